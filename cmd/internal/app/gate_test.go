package app

import (
	"os"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Of a member that is retired meanwhile nothing is known.
func TestForecastUnknown(t *testing.T) {
	s := newScope(t)
	to := post.Recipient{Address: wire.Address{Agent: "bob", Team: "main"}}
	if _, got := Forecast(s.Root, to, &wire.Message{}); got != "unknown" {
		t.Errorf("%q", got)
	}
}

// The gate mentions a restore only for a retired member.
func TestGateOfMissing(t *testing.T) {
	s := newScope(t, "bob", "carol")
	toBob, toCarol := s.send(t, "alice", "bob", nil), s.send(t, "alice", "carol", nil)
	_, err := s.Team.Retire(t.Context(), "bob")
	must(t, err)
	must(t, os.RemoveAll(s.Team.Box("carol").Path()))
	for m, want := range map[*wire.Message]string{
		toBob:   "bob@main is retired; its mail is kept: atm team restore bob --team main",
		toCarol: "carol@main has no mailbox here: atm team",
	} {
		if got := TraceOf(post.AnswersTo(t.Context(), s.Root, m), s.Root, m, m.To[0]); got.Gate.String() != want {
			t.Errorf("%+v", got)
		}
	}
}

// A runner may be faster than its sender: what the agent does because of the message is not what the message waits for.
func TestForecastOfWhatIsHandedOver(t *testing.T) {
	t.Parallel()
	s := newScope(t, "bob")
	box := s.Team.Box("bob")
	m := &wire.Message{ID: wire.NewID(), SentAt: time.Now()}
	forecast := func(state reducer.Word) string {
		return forecastFor(s.Root, &presence.Member{Name: "bob", Running: true, State: state, Inject: "body"}, post.Recipient{Address: box.Address()}, m)
	}
	if got := forecast(reducer.WordBusy); got != "busy: typed in when idle" {
		t.Error(got)
	}
	if err := box.Log().Append(t.Context(), wire.Event{Kind: wire.EventInjecting, Source: "pty"}.With("id", string(m.ID))); err != nil {
		t.Fatal(err)
	}
	for _, state := range []reducer.Word{reducer.WordIdle, reducer.WordBusy, reducer.WordBlocked} {
		if got := forecast(state); got != "idle: typed in now" {
			t.Errorf("%s: %s", state, got)
		}
	}
	if m.Priority = "urgent"; forecast(reducer.WordBusy) != "busy: interrupts it" {
		t.Error(forecast(reducer.WordBusy))
	}
}
