//go:build linux || darwin

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/teams"
)

// A Go program that runs Claude Code brings hooks along: what the agent asks has its tool and input, and is decided by them.
func TestRunWithHooks(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	home := t.TempDir()
	team, err := teams.Create(ctx, filepath.Join(home, ".atm", "main"), "bob")
	must(t, err)
	defer team.Close()
	bob, err := team.Mailbox("bob")
	must(t, err)
	fake, err := exec.LookPath("fakeagent")
	must(t, err)
	claude := filepath.Join(home, "claude")
	must(t, os.Symlink(fake, claude))
	atm, err := exec.LookPath("atm")
	must(t, err)
	asked := make(chan ask.Question, 1)
	agent, err := ptyrun.Start(ctx, ptyrun.Options{
		Command: []string{claude}, Dir: home, Env: append(os.Environ(), "HOME="+home, "XDG_STATE_HOME="+home), Hooks: atm, Mail: &ptyrun.Mail{Mailbox: bob},
		Decide: func(q ask.Question) (ask.Answer, bool) {
			asked <- q
			return ask.Answer{Deny: q.Tool == "Bash" && q.Input == "touch made.txt"}, true
		},
	})
	must(t, err)
	defer agent.Close()
	turn, err := agent.Ask(ctx, "CONFIRM [touch made.txt] SAY done with it")
	if q := <-asked; q.Tool != "Bash" || q.Input != "touch made.txt" {
		t.Errorf("it was asked %+v", q)
	}
	if err != nil || turn.Status == "" {
		t.Errorf("%+v, %v", turn, err)
	}
	agent.Close()
	if left, err := os.ReadDir(filepath.Join(team.Dir(), "bob", "run", "hooks")); err == nil {
		t.Errorf("left behind: %v", left)
	}
}
