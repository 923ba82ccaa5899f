package claude

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/wire"
)

// Way is the inbox socket of a session, as delivery.Way. What has got in cannot be taken back, and only the session's hooks
// tell that its model has it.
type Way struct{ *Session }

var _ delivery.Way = Way{}

func (w Way) Look(context.Context) error { return w.MayTake() }

// header matches the first message's header, before the first line of what was written.
var header = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\A(\[atm [^\n]*)\n  `) })

// Put has the first line of what was written stand behind the header: Claude Code shows its person only the first line. To its
// model it looks like the mail of another session, which its own SendMessage would answer.
func (w Way) Put(ctx context.Context, t delivery.Text) error {
	text := strings.Replace(t.Body, letter.NotTyped, letter.NotTyped+"; SendMessage does not reach atm", 1)
	err := w.Send(ctx, t.From, header().ReplaceAllString(text, "$1; text: "))
	if errors.Is(err, ErrUnconfirmed) { // it takes it when it goes on
		err = fmt.Errorf("%w: %w", delivery.ErrUnsure, err)
	}
	return err
}

func (w Way) Has(context.Context, wire.ID) (bool, error)      { return false, delivery.ErrSilent }
func (w Way) TakeBack(context.Context, wire.ID) (bool, error) { return false, nil }
