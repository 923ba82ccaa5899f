package app

import (
	"testing"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/control"
)

// A runner of somebody else is refused, with what helps.
func TestForeignRunner(t *testing.T) {
	for _, c := range []struct {
		err           error
		message, hint string
	}{
		{&control.OtherUserError{User: "eve"}, "bob: it runs as another user, eve", `only eve and root may do that; atm send bob "…" reaches the agent`},
		{&control.OtherUserError{User: "root"}, "bob: it runs as another user, root", `only root may do that; atm send bob "…" reaches the agent`},
		{&control.OtherVersionError{PID: 7}, "bob: its runner speaks another version of the protocol", "use the version of atm that started it, or end it and its agent: kill 7"},
		{&control.OtherVersionError{}, "bob: its runner speaks another version of the protocol", "use the version of atm that started it"},
	} {
		e := (&Given{}).Explain((&Scope{}).RunnerError("bob", c.err))
		if e.Message != c.message || e.Hint.String() != c.hint || e.Exit != failure.ExitRefused {
			t.Errorf("%q, %q, exit %d", e.Message, e.Hint, e.Exit)
		}
	}
}
