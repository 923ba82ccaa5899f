package teamdir_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

const endedSession = `{"session_id":"0190163d-8694-739b-aea5-966c26f8ad91","goal_id":"00000000-0000-0000-0000-000000000000","channel_id":"cli:tty0",` +
	`"agent_id":"bob","state":"completed","created_at":"2026-03-01T10:00:00Z","updated_at":"2026-03-01T10:00:00Z","messages":[],"draft_ids":[]}`

// Who had a message in a root of an older format has it still, or the message is known to have been handed out.
func TestMoveOver(t *testing.T) {
	root := teamtest.NewRoot(t, nil)
	team := teamtest.NewTeam(t, root, "alice", "bob")
	var ids []wire.ID
	for range 4 {
		ids = append(ids, teamtest.Post(t, team, "alice", "bob", "hello"))
	}
	now := time.Now().UTC()
	type entry map[string]any
	claims, _ := json.Marshal([]entry{
		{"owner": "lease:alice", "at": now, "until": now.Add(time.Hour), "times": 2, "ids": ids[:1]},
		{"owner": "session:s1", "at": now, "until": now.Add(10 * time.Minute), "times": 1, "offered": true, "call": "prompt 1", "ids": ids[1:2]},
		{"owner": "runner:r1", "at": now, "times": 1, "ids": ids[2:3]},
	})
	dir := team.Dir().Path()
	file := filepath.Join(dir, "bob/run/claims.json")
	teamtest.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	teamtest.Must(t, os.WriteFile(file, claims, 0o600))
	teamtest.Must(t, os.WriteFile(filepath.Join(root.Path, rootdir.FormatFile), []byte("1\n"), 0o600))
	const over = "0190163d-8694-739b-aea5-966c26f8ad91.json"
	teamtest.Must(t, os.MkdirAll(filepath.Join(dir, ".sessions"), 0o700))
	teamtest.Must(t, os.WriteFile(filepath.Join(dir, ".sessions", over), []byte(endedSession), 0o600))
	open := func() (*teamdir.Root, error) { return teamdir.Open(root.Path, nil) }

	runner, err := claim.HoldRunner(t.Context(), team.Store, "bob")
	teamtest.Must(t, err)
	if _, err := open(); !errors.Is(err, teamdir.ErrOlderRuns) {
		t.Fatalf("while bob runs: %v", err)
	}
	teamtest.Must(t, runner.Release())

	teamtest.Must(t, os.Chmod(filepath.Join(dir, "bob/inbox/new"), 0o500)) // it is cut off
	if _, err := open(); err == nil && os.Getuid() != 0 {
		t.Error("moved without rights")
	}
	teamtest.Must(t, os.Chmod(filepath.Join(dir, "bob/inbox/new"), 0o700))
	again, err := open()
	teamtest.Must(t, err)
	defer again.Close()
	held, err := team.Box("bob").Held()
	teamtest.Must(t, err)
	if l := held[ids[0]]; !l.IsLiveLease(now) || l.Who != "alice" || l.Times != 2 {
		t.Errorf("a lease: %v", l)
	}
	if s := held[ids[1]]; !s.IsShown() || !s.IsSession("s1") || s.Kind != holder.Session || !s.IsLive(now.Add(9*time.Minute), false) {
		t.Errorf("a session's: %v", s)
	}
	if r := held[ids[2]]; r.IsLive(now, true) || r.Times != 1 {
		t.Errorf("a dead runner's: %v", r)
	}
	if _, err := os.Stat(filepath.Join(dir, ".archive/sessions", over)); err != nil {
		t.Errorf("a session that is over lies beside the others: %v", err)
	}
	format, _ := os.ReadFile(filepath.Join(root.Path, rootdir.FormatFile))
	if _, err := os.Stat(file); !os.IsNotExist(err) || string(format) != "3\n" || len(held) != 3 {
		t.Errorf("format %q, %v, %v", format, err, held)
	}
}

// What is no claim in the file of an older atm hides no message, and moves nothing else.
func TestMoveOverOddClaims(t *testing.T) {
	for _, text := range []string{
		`[{"ids":["ID"],"at":"2026-01-01T00:00:00Z","times":3}]`, `[{"ids":["ID"],"owner":":","times":1}]`,
		`[{"ids":["ID"],"owner":"../../../x:y","times":1}]`, `[{"ids":["../../../alice/state","../new/ID"],"owner":"runner:x"}]`, `[{"ids":["ID"]`, `{}`,
	} {
		root := teamtest.NewRoot(t, nil)
		team := teamtest.NewTeam(t, root, "alice", "bob")
		id := teamtest.Post(t, team, "alice", "bob", "hello")
		state, claims := filepath.Join(team.Dir().Path(), "alice/state.json"), filepath.Join(team.Dir().Path(), "bob/run/claims.json")
		teamtest.Must(t, os.WriteFile(state, []byte("{}"), 0o600))
		teamtest.Must(t, os.MkdirAll(filepath.Dir(claims), 0o700))
		teamtest.Must(t, os.WriteFile(claims, []byte(strings.ReplaceAll(text, "ID", string(id))), 0o600))
		teamtest.Must(t, os.WriteFile(filepath.Join(root.Path, rootdir.FormatFile), []byte("2\n"), 0o600))
		again, err := teamdir.Open(root.Path, nil)
		teamtest.Must(t, err)
		again.Close()
		unread, err := team.Box("bob").UnreadIDs()
		if _, stateErr := os.Stat(state); err != nil || !slices.Equal(unread, []wire.ID{id}) || stateErr != nil {
			t.Errorf("%s: unread %v, %v; %v", text, unread, err, stateErr)
		}
	}
}
