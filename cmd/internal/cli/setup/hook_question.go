package setup

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/hook"
	"github.com/agentteammail/atm/cmd/internal/question"
	"github.com/agentteammail/atm/internal/agents/claude"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams/policy"
)

// answerWithin is how long a hook waits for an answer: a little less than its timeout, at which Claude Code would end it as
// it does when the person has answered.
const answerWithin = 24*time.Hour - time.Minute

// waitForAnswer waits for an answer to a permission request of the program that has started this hook. Claude Code ends it with
// SIGTERM when the person has said no, and does not tell it of a yes; the plugin of OpenCode ends it when the person has
// answered.
func waitForAnswer(ctx context.Context, s *app.Scope, tool hook.Tool, p *hook.Permission, give func(hook.Verdict) error) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP, os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	rule := &policy.Request{Tool: p.Tool, Command: p.IsCommand, Input: p.Input}
	if p.IsRisky {
		rule.Input += "…" // of what is incomplete, rules only deny
	}
	if dir, err := os.Getwd(); err == nil { // see hook.Tool.ProjectDir
		rule.Dirs = []string{dir}
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			rule.Dirs = append(rule.Dirs, real)
		}
	}
	program, _ := process.Program()
	q := question.Question{ID: p.ID, Tool: p.Tool, Prompt: p.Prompt, Rule: rule, Event: p.Event}
	now := claudeActivity(ctx, program)
	if tool == hook.OpenCode {
		q.Options, now = opencodeOptions, endOf(program)
	}
	_, err := question.Wait(ctx, s.Team, s.Me, q, question.Options{
		Program: program,
		Now:     now,
		Give: func(a question.Answer) error {
			return give(hook.Verdict{Option: a.Option.ID, IsDeny: a.IsDeny, By: a.By, Reason: a.Reason})
		},
	})
	if errors.Is(err, question.ErrOver) || errors.Is(err, question.ErrAsked) || ctx.Err() != nil {
		return nil
	}
	return err
}

// opencodeOptions are the answers that OpenCode takes.
var opencodeOptions = []policy.Option{
	{ID: "once", Label: "Allow once", Kind: "allow_once"},
	{ID: "always", Label: "Allow always", Kind: "allow_always"},
	{ID: "reject", Label: "Reject", Kind: "reject_once"},
}

// endOf returns a function that says whether a program has ended, and no more.
func endOf(program process.Info) func() reducer.Activity {
	return func() reducer.Activity {
		if program.PID != 0 && !program.IsRunning() {
			return reducer.Exited
		}
		return reducer.Unknown
	}
}

// claudeActivity returns a function that says what a Claude Code is seen to do, by the file of its session. That has said
// that it waits for its person before it counts that it does not, unless ctx has ended: it follows within a second.
func claudeActivity(ctx context.Context, program process.Info) func() reducer.Activity {
	dir, hasWaited := claude.ConfigDir(process.Environment(program.PID)), false
	look := func() reducer.Activity {
		if program.PID != 0 && !program.IsRunning() {
			return reducer.Exited
		}
		session, err := claude.Find(dir, program.PID)
		switch {
		case err != nil:
			return reducer.Unknown
		case session.Status == claude.Waiting:
			hasWaited = true
			return reducer.Confirming
		case !hasWaited && ctx.Err() == nil:
			return reducer.Unknown
		case session.Status == claude.Busy:
			return reducer.Thinking
		case session.IsIdle():
			return reducer.Idle
		}
		return reducer.Unknown
	}
	return func() (a reducer.Activity) {
		for range 10 { // between the dialogs of two sub-agents it is at work for a moment
			if a = look(); a != reducer.Thinking || ctx.Err() != nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		return a
	}
}
