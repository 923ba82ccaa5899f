package setaside

import (
	"errors"
	"testing"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// Mail that a runner has typed and that was not accepted can be tried again, until it is read.
func TestRetryUntyped(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob")
	box := team.Box("bob")
	id := teamtest.Post(t, team, "alice", "bob", "hello")
	teamtest.Post(t, team, "alice", "bob", "another")
	list := func(n int) []Item {
		t.Helper()
		all, err := List(t.Context(), team)
		teamtest.Must(t, err)
		if len(all) != n {
			t.Fatalf("%+v", all)
		}
		return all
	}
	teamtest.Must(t, box.Log().Append(t.Context(), wire.Event{Source: "pty", Kind: wire.EventInjectionFailed}.With("id", string(id)).With("reason", "no prompt")))
	list(0) // no runner runs: the next one tries it anyway
	hold, err := claim.HoldRunner(t.Context(), team.Store, "bob")
	teamtest.Must(t, err)
	defer hold.Release()
	one := list(1)[0]
	if one.Kind != Untyped || one.Agent != "bob" || one.Reason != "no prompt" || !one.IsCalled(id.Short(6)) || one.IsCalled("000000") {
		t.Errorf("%+v", one)
	}
	got, err := Retry(t.Context(), team, one, "alice")
	teamtest.Must(t, err)
	events, err := box.Log().Tail(func(*wire.Event) bool { return false })
	teamtest.Must(t, err)
	if e := events[len(events)-1]; got != id || e.Kind != wire.EventUnread || e.MessageID() != id || e.Field("by") != "alice@main" {
		t.Errorf("%s, %+v", got, e)
	}
	list(0)
	teamtest.ReadAll(t, team, "bob")
	_, err = Retry(t.Context(), team, one, "alice")
	if before, ok := errors.AsType[*drop.DeliveredError](err); !ok || before.ID != id {
		t.Error(err)
	}
}
