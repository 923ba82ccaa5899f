package teamdir_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

func stateOf(t testing.TB, team *teamdir.Team, agent wire.Name) string {
	t.Helper()
	s, err := team.State(agent)
	teamtest.Must(t, err)
	b, err := json.Marshal(s)
	teamtest.Must(t, err)
	return string(b)
}

// turns returns the events of n turns and of an open one.
func turns(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("turn_started turn=t%d", i), fmt.Sprintf("tool_call_start turn=t%d tool=Bash", i),
			fmt.Sprintf("stream_error error_summary=e%d", i), fmt.Sprintf("turn_completed turn=t%d status=failed", i))
	}
	return append(out, "turn_started turn=open session=s1")
}

func TestSnapshotIsACache(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob")
	cache := filepath.Join(team.Box("bob").Path(), "state.json")
	teamtest.Happen(t, team, "bob", turns(5)...)
	stateOf(t, team, "bob")
	if _, err := os.Stat(cache); err == nil {
		t.Error("a snapshot of so few events costs more than it saves")
	}
	teamtest.Happen(t, team, "bob", turns(100)...)
	stateOf(t, team, "bob")
	whole, err := os.ReadFile(cache)
	teamtest.Must(t, err)
	// To fold on from the snapshot gives the same state as to fold everything.
	teamtest.Happen(t, team, "bob", "turn_idle turn=open", "confirm_required tool=Bash")
	want := stateOf(t, team, "bob")
	if !strings.Contains(want, `"confirming"`) {
		t.Fatal(want)
	}
	spoil := func(name string, f func(string) string) {
		t.Helper()
		teamtest.Must(t, os.WriteFile(cache, []byte(f(string(whole))), 0o600))
		if diff := cmp.Diff(want, stateOf(t, team, "bob")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	number := func(field, value string) func(string) string {
		re := regexp.MustCompile(`"` + field + `":[0-9]+`)
		return func(s string) string { return strings.Replace(s, re.FindString(s), `"`+field+`":`+value, 1) }
	}
	lie := func(s string) string { return strings.Replace(s, `"last_error":"e99"`, `"last_error":"lies"`, 1) }
	if lie(string(whole)) == string(whole) {
		t.Fatal("nothing to lie about in ", string(whole))
	}
	spoil("as it was", func(s string) string { return s })
	spoil("of another version", func(s string) string { return number("version", "999")(lie(s)) })
	spoil("of another line", func(s string) string { return number("crc", "1")(lie(s)) })
	spoil("of an event that is not there", func(s string) string { return number("seq", "99999")(lie(s)) })
	spoil("torn", func(s string) string { return s[:len(s)/2] })
	spoil("empty", func(string) string { return "" })
	spoil("no JSON", func(string) string { return "hello" })
	spoil("of another agent", func(s string) string {
		return strings.Replace(lie(s), `"agent":"bob"`, `"agent":"eve"`, 1)
	})
	os.Remove(cache)
	teamtest.Must(t, os.Mkdir(cache, 0o700))
	if diff := cmp.Diff(want, stateOf(t, team, "bob")); diff != "" {
		t.Error("a directory in its place: ", diff)
	}
}

func TestArchivedEventsAreFolded(t *testing.T) {
	r := teamtest.NewRoot(t, nil)
	team := teamtest.NewTeam(t, r, "bob")
	box := team.Box("bob")
	for i := range 17 {
		teamtest.Happen(t, team, "bob", fmt.Sprintf("turn_started turn=t%d", i), fmt.Sprintf("turn_completed turn=t%d", i), fmt.Sprintf("stream_error error_summary=e%d", i))
	}
	teamtest.Happen(t, team, "bob", "turn_started turn=last")
	// Two segments, as if the first were full.
	segment := filepath.Join(box.Path(), "events", "00000000000000000001.ndjson")
	data, err := os.ReadFile(segment)
	teamtest.Must(t, err)
	last := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	teamtest.Must(t, os.WriteFile(filepath.Join(filepath.Dir(segment), "00000000000000000052.ndjson"), data[last:], 0o600))
	teamtest.Must(t, os.Truncate(segment, int64(last)))
	want := stateOf(t, team, "bob")
	os.Remove(filepath.Join(box.Path(), "state.json"))

	ctx := context.Background()
	if _, n, err := box.Log().Archive(ctx, time.Now().Add(-time.Hour), false); err != nil || n != 0 {
		t.Fatalf("young events: %d bytes, %v", n, err)
	}
	_, dry, err := box.Log().Archive(ctx, time.Now().Add(time.Hour), true)
	if err != nil || dry != int64(last) {
		t.Fatalf("%d bytes, %v", dry, err)
	}
	_, n, err := box.Log().Archive(ctx, time.Now().Add(time.Hour), false)
	if err != nil || n != dry {
		t.Fatalf("%d bytes, and %d in a dry run; %v", n, dry, err)
	}
	if got := stateOf(t, team, "bob"); got != want {
		t.Error(cmp.Diff(want, got))
	}
	if left, _ := filepath.Glob(filepath.Join(box.Path(), "events", "*.ndjson")); len(left) != 1 {
		t.Errorf("segments left: %v", left)
	}
	// Without the snapshot, as after an upgrade, the fold begins with the archived events.
	os.Remove(filepath.Join(box.Path(), "state.json"))
	if diff := cmp.Diff(want, stateOf(t, team, "bob")); diff != "" {
		t.Error(diff)
	}
	if _, damaged, err := box.Log().Check(); len(damaged) > 0 || err != nil {
		t.Errorf("damaged: %v, %v", damaged, err)
	}
	// A second time moves nothing, and the numbers continue.
	if _, n, err := box.Log().Archive(ctx, time.Now().Add(time.Hour), false); err != nil || n != 0 {
		t.Fatalf("again: %d bytes, %v", n, err)
	}
	teamtest.Happen(t, team, "bob", "turn_idle turn=last")
	if seq, _ := box.Log().LastSeq(); seq != 17*3+2 {
		t.Errorf("the last number is %d", seq)
	}
	if !strings.Contains(stateOf(t, team, "bob"), `"activity":"idle"`) {
		t.Error(stateOf(t, team, "bob"))
	}
}

// A fold over missing events ends.
func TestMissingEvents(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob")
	teamtest.Happen(t, team, "bob", "turn_idle", "turn_idle")
	events := filepath.Join(team.Box("bob").Path(), "events")
	old := filepath.Join(events, "00000000000000000001.ndjson")
	teamtest.Must(t, os.Rename(old, filepath.Join(events, "00000000000000000009.ndjson")))
	if _, err := team.State("bob"); err != nil {
		t.Fatal(err)
	}
}
