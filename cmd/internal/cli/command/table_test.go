package command

import (
	"slices"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"
	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
)

// Each member has a line, and no line is too wide: the counts of messages are cut last.
func TestTeam(t *testing.T) {
	t.Parallel()
	now := time.Now()
	earlier := now.Add(-2 * time.Hour)
	rows := []presence.Member{
		{Name: "alice", State: reducer.WordUnknown, Presence: reducer.PresenceUnknown},
		{Name: "bob", State: reducer.WordBusy, Presence: reducer.Online, Since: new(now.Add(-3 * time.Hour)), Detail: "Bash", MailCounts: presence.MailCounts{Owed: 1}},
		{Name: "carol", State: reducer.WordBusy, Presence: reducer.Online, Since: new(now.Add(-5 * time.Hour)), PresenceAt: &earlier},
		{Name: "dave", State: reducer.WordBlocked, Presence: reducer.Online, Detail: "permission for a long name", MailCounts: presence.MailCounts{Unread: 2}},
		{Name: "me", State: reducer.WordPerson},
	}
	want := []string{"alice  unknown      never seen", "bob    busy     3h  Bash                        1 to ack",
		"carol  busy     5h  last seen 2h ago", "dave   blocked      permission for a long name  2 unread", "me     person",
		"5 members: 2 busy, 1 blocked, 1 unknown, 1 person"}
	if diff := cmp.Diff(want, Team(rows, 0, false)); diff != "" {
		t.Error(diff)
	}
	if dave := Team(rows, 40, false)[3]; dave != "dave   blocked      permissi…  2 unread" {
		t.Errorf("%q", dave)
	}
	rows[0].Name, rows[0].Unread = "integration-tests", 12
	if got, want := Team(rows, 56, false)[:2], []string{"integration-t…  unknown      never seen       12 unread",
		"bob             busy     3h  Bash             1 to ack"}; !slices.Equal(got, want) { // one long name
		t.Errorf("%q", got)
	}
	if got, want := Team(rows, TeamWidth(rows), false)[:2], []string{"integra…  unknown  12 unread", "bob       busy     1 to ack"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for width := range 100 {
		for i, line := range Team(rows, width, false) {
			if displaywidth.String(line) >= max(width, TeamWidth(rows)) && width > 0 && i < len(rows) {
				t.Errorf("%q is wider than %d", line, width)
			}
		}
	}
}
