package notices

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

func wanting(t *testing.T, team *teamdir.Team, who wire.Name, wants string) error {
	t.Helper()
	var all []Subscription
	for w := range strings.SplitSeq(wants, ",") {
		event, agent, _ := strings.Cut(w, " ")
		all = append(all, Subscription{event, agent})
	}
	return Subscribe(t.Context(), team, who, all)
}

// Many append at once: the last notice is the state that holds, and is the only one that is unread.
func TestSubscribersAreToldOfTheStateThatHolds(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, Tell), "alice", "bob")
	teamtest.Must(t, wanting(t, team, "alice", "idle bob,busy bob"))
	for round := range 5 {
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				kinds := []string{wire.TurnStarted, wire.TurnIdle}
				e := wire.Event{Source: "cli", Kind: kinds[i%2], TurnID: fmt.Sprint(round, i/2)}
				if err := team.Box("bob").Log().Append(context.Background(), e); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		state, err := team.State("bob")
		teamtest.Must(t, err)
		var unread []string
		_, err = inbox.Walk(t.Context(), team.Box("alice"), maildir.Range{Unread: true}, func(it *wire.Item) bool {
			unread = append(unread, it.Subject)
			return true
		})
		teamtest.Must(t, err)
		if want := "bob is " + string(state.Word()); !slices.Equal(unread, []string{want}) {
			t.Errorf("round %d: unread are %q, the state is %q", round, unread, want)
		}
	}
}

// Where the next appender finds that an earlier one was killed before it sent a notice, it sends that.
func TestMissedNoticeIsSentByTheNextAppender(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, Tell), "alice", "bob")
	teamtest.Must(t, wanting(t, team, "alice", "idle *"))
	team.Store.Appended = nil // as if it were killed there
	teamtest.Happen(t, team, "bob", "turn_started", "turn_idle")
	team.Store.Appended = func(ctx context.Context, name wire.Name, events []wire.Event) { Tell(ctx, team, name, events) }
	if got := teamtest.UnreadOf(t, team, "alice"); len(got) > 0 {
		t.Fatal(got)
	}
	teamtest.Happen(t, team, "bob", "turn_idle")
	teamtest.Happen(t, team, "bob", "turn_idle")
	if got := teamtest.UnreadOf(t, team, "alice"); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
