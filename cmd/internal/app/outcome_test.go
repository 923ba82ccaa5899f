package app

import (
	"testing"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/wire"
)

// Where a message is stored at some of its recipients, no hint leads to a second one at any of them.
func TestAddRetry(t *testing.T) {
	s := &Scope{Team: &teamdir.Team{Name: "main"}}
	const again = "retry with the same command: it stays one message"
	for _, tt := range []struct {
		once     string
		isStored bool // at this one, maybe not for good
		own      failure.Hint
		want     failure.Hint
	}{
		{"", true, "do not send it again", "do not send it again"},
		{"", false, "atm doctor", "atm doctor; send it again to bob alone"},
		{"", false, "", "send it again to bob alone"},
		{"ci/1", true, "do not send it again", again},
		{"ci/1", false, "atm doctor", "atm doctor; " + again},
	} {
		f := Failed{Error: &failure.Error{Hint: tt.own}}
		to := post.Recipient{Receipt: wire.Receipt{Address: wire.Address{Agent: "bob", Team: "main"}, IsStored: tt.isStored}}
		f.addRetry(s, tt.once != "", to)
		if f.Hint != tt.want {
			t.Errorf("%+v: %q", tt, f.Hint)
		}
	}
}
