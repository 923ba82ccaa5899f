package command

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clipperhouse/displaywidth"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// In a line that is too long, the counts of messages are cut last.
func TestTableFits(t *testing.T) {
	t.Parallel()
	var rows []teams.Member
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		rows = append(rows, teams.Member{Name: wire.Name(n), State: reducer.WordIdle, Presence: reducer.Online})
	}
	rows[1].Unread = 1
	rows[3].State, rows[3].Detail = reducer.WordBlocked, "permission for a tool with a rather long name"
	rows[0].State = reducer.WordOff
	rows[3].Unread = 2
	for i, line := range Team(rows, 40) {
		if displaywidth.String(line) > 39 || i == 3 && (!strings.HasSuffix(line, "2 unread") || !strings.Contains(line, "permission")) {
			t.Errorf("forty columns: %q", line)
		}
	}
}

// Each member has a line, and no line is too wide.
func TestTeam(t *testing.T) {
	t.Parallel()
	now := time.Now()
	earlier := now.Add(-2 * time.Hour)
	rows := []teams.Member{
		{Name: "alice", State: reducer.WordUnknown, Presence: reducer.PresenceUnknown},
		{Name: "bob", State: reducer.WordBusy, Presence: reducer.Online, Since: new(now.Add(-3 * time.Hour)), Detail: "Bash", MailCounts: teams.MailCounts{Owed: 1}},
		{Name: "carol", State: reducer.WordBusy, Presence: reducer.Online, Since: new(now.Add(-5 * time.Hour)), PresenceAt: &earlier},
		{Name: "me", State: reducer.WordPerson},
	}
	want := []string{"alice  unknown      never seen", "bob    busy     3h  Bash              1 owed",
		"carol  busy     5h  last seen 2h ago", "me     person", "4 members: 2 busy, 1 unknown"}
	if diff := cmp.Diff(want, Team(rows, 0)); diff != "" {
		t.Error(diff)
	}
	for _, line := range Team(rows, 20) {
		if displaywidth.String(line) >= 20 {
			t.Errorf("%q is wider than the terminal", line)
		}
	}
}
