//go:build linux || darwin

package notices

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// What does not fit into the queue is dropped, and an event says so. A second process that watches runs nothing twice.
func TestCommandsDropAndClaim(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, Tell), "bob")
	dir := t.TempDir()
	on := config.On{Event: config.Words{"mail"}, Command: []string{"sh", "-c", "echo >>" + dir + "/runs; until test -e " + dir + "/go; do sleep 0.01; done"}}
	of := func(wire.Name) []config.On { return []config.On{on} }
	first, err := StartCommands(team, of, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	second, err := StartCommands(team, of, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	const messages = maxQueued + 10
	for range messages {
		m := &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "alice", Team: "main"}, Body: "hi"}
		e := watcher.Entry{Address: team.Box("bob").Address(), Message: m}
		first.Handle(t.Context(), e)
		second.Handle(t.Context(), e)
	}
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	isLogged := func(log *eventlog.Log) bool {
		events, _ := log.Newest(10)
		for _, e := range events {
			if e.Kind == wire.CommandFailed && strings.Contains(e.Field("reason"), "more events were dropped") {
				return true
			}
		}
		return false
	}
	for began := time.Now(); !isLogged(team.Box("bob").Log()); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("nothing says that events were dropped")
		}
	}
	first.Close()
	second.Close()
	runs, _ := os.ReadFile(dir + "/runs")
	if n := len(runs); n == 0 || n > messages {
		t.Errorf("%d runs of %d messages", n, messages)
	}
	data, _ := team.Dir().ReadFile("bob"+occurredFile, 1<<20)
	if claims := strings.Count(string(data), "\n"); claims < len(runs) {
		t.Errorf("%d claims, %d runs", claims, len(runs))
	}
}

// Occurrences leave one file, and each is claimed once, whoever else claims it.
func TestCommandsNoteInOneFile(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, Tell), "bob")
	const occurrences = 200
	var claimed atomic.Int64
	var processes sync.WaitGroup
	for range 3 {
		c := &Commands{team: team}
		processes.Go(func() {
			for i := range occurrences {
				switch err := c.claim(Occurrence{Agent: "bob", key: fmt.Sprint("usage-", i)}); {
				case err == nil:
					claimed.Add(1)
				case !errors.Is(err, fs.ErrExist):
					t.Error(err)
				}
			}
		})
	}
	processes.Wait()
	if claimed.Load() != occurrences {
		t.Errorf("%d claims of %d occurrences", claimed.Load(), occurrences)
	}
	files := 0
	teamtest.Must(t, filepath.WalkDir(team.Box("bob").Path()+"/run", func(_ string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			files++
		}
		return err
	}))
	if files != 1 {
		t.Errorf("%d files", files)
	}
}

// What is noted of occurrences is removed after a day, of each member. What is newer stays, also beside a line that a
// power cut has left.
func TestCommandsForget(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, Tell), "alice", "bob")
	now := time.Now().UTC()
	old, recent := now.Add(-2*forgetOccurred).Format(time.RFC3339), now.Add(-forgetOccurred/2).Format(time.RFC3339)
	for _, name := range []wire.Name{"alice", "bob"} {
		file := string(name) + occurredFile
		teamtest.Must(t, team.Dir().Mkdir(string(name)+"/run"))
		teamtest.Must(t, team.Dir().Replace(file, []byte(old+" a\n\x00\x00\n"+old+" b\n"+recent+" c\n"), false))
		c := &Commands{team: team}
		if err := c.claim(Occurrence{Agent: name, key: "c"}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: c is claimed again: %v", name, err)
		}
		teamtest.Must(t, c.claim(Occurrence{Agent: name, key: "d"}))
		data, err := team.Dir().ReadFile(file, 1<<20)
		lines := strings.Split(string(data), "\n")
		if err != nil || len(lines) != 3 || lines[0] != recent+" c" || !strings.HasSuffix(lines[1], " d") {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

// Whatever a full disk has left undone: nothing is begun twice.
func TestCommandsClaimOnceAfterFault(t *testing.T) {
	for n, isDone := 0, false; !isDone; n++ {
		steps := -1 // those until everything fails; -1: nothing does
		team := teamtest.NewTeam(t, teamtest.NewFaultyRoot(t, Tell, func(op, name string) error {
			if strings.HasPrefix(name, "main/bob/run") && steps >= 0 {
				if steps == 0 {
					return syscall.ENOSPC
				}
				steps--
			}
			return nil
		}), "bob")
		c := &Commands{team: team}
		begun := map[string]int{}
		claim := func(keys ...string) {
			for _, key := range keys {
				if err := c.claim(Occurrence{Agent: "bob", key: key}); err == nil {
					begun[key]++
				} else if !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("fault %d: claim %s: %v", n, key, err)
				}
			}
		}
		steps = n
		claim("c", "d")
		isDone = steps > 0
		steps = -1
		claim("c", "d", "e", "c", "e")
		if begun["c"] > 1 || begun["d"] > 1 || begun["e"] != 1 {
			t.Errorf("fault %d: begun: %v", n, begun)
		}
	}
}
