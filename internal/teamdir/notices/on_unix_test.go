//go:build linux || darwin

package notices

import (
	"os"
	"strings"
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
	names, _ := os.ReadDir(team.Box("bob").Path() + "/run/on")
	if len(names) < len(runs) {
		t.Errorf("%d claims, %d runs", len(names), len(runs))
	}
}

// What is noted of occurrences is removed after a day, of each member.
func TestCommandsPruneForEachMember(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, Tell), "alice", "bob")
	old := time.Now().Add(-2 * forgetOccurred)
	members := []wire.Name{"alice", "bob"}
	for _, name := range members {
		dir := team.Dir().Join(string(name) + occurredDir)
		teamtest.Must(t, os.MkdirAll(dir, 0o700))
		teamtest.Must(t, os.WriteFile(dir+"/old", nil, 0o600))
		teamtest.Must(t, os.Chtimes(dir+"/old", old, old))
	}
	on := config.On{Event: config.Words{"mail"}, Command: []string{"true"}}
	c, err := StartCommands(team, func(wire.Name) []config.On { return []config.On{on} }, os.Environ())
	teamtest.Must(t, err)
	for _, name := range members {
		c.Handle(t.Context(), watcher.Entry{Address: team.Box(name).Address(), Message: &wire.Message{ID: wire.NewID(), From: team.Box("alice").Address()}})
	}
	c.Close()
	for _, name := range members {
		if files, err := team.Dir().Names(string(name) + occurredDir); err != nil || len(files) != 1 || files[0] == "old" {
			t.Errorf("%s: %v, %v", name, files, err)
		}
	}
}
