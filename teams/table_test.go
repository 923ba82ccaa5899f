package teams

import (
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
	"github.com/clipperhouse/displaywidth"
)

// Where a line does not fit, what waits in the mailbox is cut last.
func TestTableFits(t *testing.T) {
	t.Parallel()
	var rows []Member
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		rows = append(rows, Member{Name: wire.Name(n), State: reducer.WordIdle, Presence: reducer.Online})
	}
	rows[1].Unread = 1
	rows[3].State, rows[3].Detail = reducer.WordBlocked, "permission for a tool with a rather long name"
	tab := Table{Now: time.Now()}
	got := FirstLines(tab.Lines(rows), 4)
	if len(got) != 4 || !strings.HasPrefix(got[0], "a  idle") || got[3] != "3 more: atm team" {
		t.Errorf("four lines:\n%s", strings.Join(got, "\n"))
	}
	rows[3].Unread = 2
	tab = Table{Now: time.Now(), Width: 40}
	for i, line := range tab.Lines(rows) {
		if displaywidth.String(line) > 39 || i == 3 && (!strings.HasSuffix(line, "2 unread") || !strings.Contains(line, "permission")) {
			t.Errorf("forty columns: %q", line)
		}
	}
}

// The foot says of whom its numbers speak.
func TestFooter(t *testing.T) {
	t.Parallel()
	rows := []Member{{State: reducer.WordIdle}, {State: reducer.WordUnknown}, {State: reducer.WordUnknown}, {State: reducer.WordOff}}
	if got := footer(rows); got != "4 members, 1 running: 1 idle; 1 stopped, 2 unknown" {
		t.Error(got)
	}
	if got := footer(rows[2:]); got != "2 members: 1 stopped, 1 unknown" {
		t.Error(got)
	}
	if got := footer(rows[1:3]); got != "" {
		t.Error(got)
	}
}
