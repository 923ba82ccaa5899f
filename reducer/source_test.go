package reducer

import (
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// A turn says what its activity rests on.
func TestSource(t *testing.T) {
	var s State
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	if got := s.Session().Source; got != "" {
		t.Errorf("of nothing: %q", got)
	}
	for i, c := range []struct {
		source, kind, evidence string
		want                   Source
	}{
		{"pty", "spawned", "", fromRunner}, {"pty", "state_change", "declared", FromDeclared}, {"pty", "state_change", "title", FromScreen},
		{"pty", "state_change", "", FromScreen}, {"pty", "state_change", "made up", FromScreen}, {"hook", "turn_started", "declared", fromHook},
		{"acp", "message_delta", "", fromProtocol}, {"drop", "state_change", "declared", fromEvent}, {"pty", "exited", "", fromRunner},
	} {
		e := wire.Event{Seq: uint64(i + 1), At: at, Team: "main", Agent: "bob", Source: c.source, Kind: c.kind}
		e = e.With("new", "thinking").With("evidence", c.evidence)
		s.Apply(&e)
		if got := s.Session().Source; got != c.want {
			t.Errorf("%v: %q", c, got)
		}
	}
}

// A program tells its turns from its first hook on, also in a conversation whose beginning no hook has told.
func TestTells(t *testing.T) {
	var s State
	for i, e := range []wire.Event{
		{Source: wire.SourcePTY, Kind: wire.Spawned},
		wire.Event{Source: wire.SourcePTY, Kind: wire.StateChange}.With("new", "idle"),
		{Source: wire.SourceHook, Kind: wire.TurnStarted, Session: "s", TurnID: "t"},
	} {
		e.Seq, e.At = uint64(i+1), time.Date(2026, 5, 1, 12, 0, i, 0, time.UTC)
		if s.Apply(&e); s.Tells() != (e.Source == wire.SourceHook) {
			t.Errorf("after %s: %v", e.Kind, s.Tells())
		}
	}
}
