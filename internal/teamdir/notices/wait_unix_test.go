//go:build linux || darwin

package notices

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/input"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Nobody waits for git or for a program under a lock that others wait for: not who takes in a dropped file, delivers what is
// due or tells of a state, and not who sends in a session. In a build with the race detector package lockfile looks
// at all that wait.
func TestNoLockIsHeldOver(t *testing.T) {
	ctx := t.Context()
	r := teamtest.NewRoot(t, Tell)
	team := teamtest.NewTeam(t, r, "alice", "bob")
	var mu sync.Mutex
	during, asked := "", map[string]int{}
	checkFree := func(who string) {
		mu.Lock()
		defer mu.Unlock()
		what := who + " during " + during
		asked[what]++
		names, err := team.Dir().Names(".locks")
		teamtest.Must(t, err)
		for _, name := range names {
			if held, err := team.Locks().Held(name); held || err != nil {
				t.Errorf("%s: the lock %s is held (%v)", what, name, err)
			}
		}
	}
	begin := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		during = what
	}
	team.Store.MayAct = func(context.Context) error { checkFree("git"); return nil }
	bindCodex(t, team, "bob", func() { checkFree("a program") })

	begin("a dropped file")
	teamtest.Must(t, os.WriteFile(filepath.Join(team.Box("bob").Path(), "inbox", "note.json"), []byte(`{"body":"hello"}`), 0o600))
	if got := teamtest.UnreadOf(t, team, "bob"); len(got) != 1 {
		t.Errorf("dropped: %q", got)
	}
	begin("what is due")
	m := &wire.Message{Body: "due", NotBefore: time.Now().UTC().Add(-time.Second)}
	_, err := post.Send(ctx, r, &post.Outgoing{From: team.Box("alice"), To: []wire.Address{team.Box("bob").Address()}, Message: m})
	teamtest.Must(t, err)
	push.Waited(ctx, team, map[string]bool{})
	begin("a notice")
	teamtest.Must(t, wanting(t, team, "bob", "busy alice"))
	teamtest.Happen(t, team, "alice", "turn_started")
	begin("input")
	s, err := team.Sessions().New(ctx, session.Options{Agent: "bob"})
	teamtest.Must(t, err)
	_, err = input.SendInput(ctx, team, s.SessionID, input.SessionInput{From: team.Box("alice"), Input: foreign.HumanInput{Kind: "message", Text: "go on"}})
	teamtest.Must(t, err)
	if got := teamtest.UnreadOf(t, team, "bob"); len(got) != 4 {
		t.Errorf("%q", got)
	}
	for _, what := range []string{"git during a dropped file", "git during a notice", "a program during what is due", "a program during input"} {
		mu.Lock()
		isAsked := asked[what] > 0
		mu.Unlock()
		if !isAsked {
			t.Errorf("nobody asked %s: %v", what, asked)
		}
	}
}

// bindCodex notes a program of a vendor with a server as the one that a member's mail is given to. The server hangs up.
func bindCodex(t *testing.T, team *teamdir.Team, name wire.Name, asked func()) {
	t.Helper()
	socket := filepath.Join(testtree.Short(t), "s")
	l, err := net.Listen("unix", socket)
	teamtest.Must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked()
			c.Close()
		}
	}()
	cmd := exec.Command("sleep", "600")
	teamtest.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	info, ok := process.Find(cmd.Process.Pid)
	if !ok {
		t.Fatal("no process")
	}
	teamtest.Must(t, programs.Note(team, name, programs.Program{Tool: "codex", PID: info.PID, Start: info.Start, Session: "s1", Server: socket}, true))
}
