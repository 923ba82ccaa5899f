package mail

import (
	"testing"
	"time"

	"github.com/agentteammail/atm/cmd/internal/outlook"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// Only what there is evidence for is named. What was put back is not read any more.
func TestStagesText(t *testing.T) {
	at, because := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), "event 1 of bob"
	when := letter.Stamp(at)
	stored := history.Stage{Name: "stored", At: at, Evidence: because}
	read := history.Stage{Name: "read", At: at, Evidence: because}
	for _, tt := range []struct {
		state  wire.State
		stages []history.Stage
		want   string
	}{
		{wire.Unread, nil, "no evidence"},
		{wire.Withdrawn, []history.Stage{{Name: "stored"}}, "no evidence"},
		{wire.Unread, []history.Stage{stored, {Name: "read"}}, "stored " + when},
		{wire.Unread, []history.Stage{stored, {Name: "announced", Evidence: because}, {Name: "read"}}, "stored " + when + "   announced"},
		{wire.Unread, []history.Stage{stored, read}, "stored " + when + "   read " + when + "   unread again"},
		{wire.Done, []history.Stage{stored, read}, "stored " + when + "   read " + when},
		{wire.Withdrawn, []history.Stage{stored, read}, "stored " + when + "   read " + when + "   withdrawn"},
		{wire.Done, []history.Stage{{Name: "outcome", At: at, Evidence: because, Outcome: "done", Text: "all is well", Host: "build"}},
			"done " + when + ` at build "all is well"`},
	} {
		if got := stagesText(outlook.Trace{Progress: &post.Progress{State: tt.state, Stages: tt.stages}}); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
