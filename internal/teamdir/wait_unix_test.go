//go:build linux || darwin

package teamdir

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Nobody waits for git or for a program under a lock that others wait for: not who takes in a dropped file, delivers what is
// due or tells of a state, and not who sends in a session. In a build with the race detector package lockfile looks
// at all that wait.
func TestNoLockIsHeldOver(t *testing.T) {
	ctx := t.Context()
	r := newRoot(t, Tell)
	team := newTeam(t, r, "alice", "bob")
	asked := map[string]int{}
	checkFree := func(what string) {
		asked[what]++
		names, err := team.Dir().Names(".locks")
		must(t, err)
		for _, name := range names {
			if held, err := team.Locks().Held(name); held || err != nil {
				t.Errorf("%s: the lock %s is held (%v)", what, name, err)
			}
		}
	}
	during := ""
	team.BeforeLook = func() func(context.Context) error {
		return func(context.Context) error { checkFree("git during " + during); return nil }
	}
	bindCodex(t, team, "bob")
	r.StartFollower = func(*Team, wire.Name, string, int) error { checkFree("a program during " + during); return nil }

	during = "a dropped file"
	must(t, os.WriteFile(filepath.Join(team.Box("bob").Path(), "inbox", "note"), []byte("hello"), 0o600))
	if got := unreadOf(t, team, "bob"); len(got) != 1 {
		t.Errorf("dropped: %q", got)
	}
	during = "what is due"
	due := &Outgoing{From: team.Box("alice"), To: []wire.Address{team.Box("bob").Address()}, Message: &wire.Message{Body: "due"}}
	_, err := r.SendLater(ctx, due, time.Now().Add(-time.Second))
	must(t, err)
	_, err = team.DeliverLater(ctx)
	must(t, err)
	during = "a notice"
	must(t, wanting(t, team, "bob", "busy alice"))
	happen(t, team, "alice", "turn_started")
	during = "input"
	s, err := team.Sessions().New(ctx, session.Options{Agent: "bob"})
	must(t, err)
	_, err = team.SendInput(ctx, s.SessionID, SessionInput{From: team.Box("alice"), Input: foreign.HumanInput{Kind: "message", Text: "go on"}})
	must(t, err)
	if got := unreadOf(t, team, "bob"); len(got) != 4 {
		t.Errorf("%q", got)
	}
	for _, what := range []string{"git during a dropped file", "git during what is due", "git during a notice", "a program during what is due", "a program during a notice", "a program during input"} {
		if asked[what] == 0 {
			t.Errorf("nobody asked %s: %v", what, asked)
		}
	}
}

// bindCodex notes a program of a vendor with a server as the one that a member's mail is given to.
func bindCodex(t *testing.T, team *Team, name wire.Name) {
	t.Helper()
	home, err := os.MkdirTemp("", "cx") // a socket's path is short
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(home) })
	must(t, os.MkdirAll(filepath.Join(home, "app-server-control"), 0o700))
	l, err := net.Listen("unix", filepath.Join(home, "app-server-control/app-server-control.sock"))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	cmd := exec.Command("sleep", "600")
	cmd.Env = []string{"CODEX_HOME=" + home, "HOME=" + home}
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	info, ok := process.Find(cmd.Process.Pid)
	if !ok {
		t.Fatal("no process")
	}
	must(t, team.NoteProgram(name, Program{Tool: "codex", PID: info.PID, Start: info.Start, Session: "s1", Server: "x"}, true))
}
