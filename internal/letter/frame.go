package letter

import (
	"fmt"

	"github.com/agentteammail/atm/wire"
)

// What a model gets within other text (as its user's words, a program's or another session's) is one or more frames,
// perhaps a line that says how they came, and End:
//
//	[atm 9f3a1c from alice, now] answer: atm reply 9f3a1c "…"
//	  Rebase, please.
//	[atm] mail from a teammate; your user did not type it here
//	[/atm]

// End is the line that ends mail within other text.
const End = "[/atm]"

// NotTyped is the line for mail that does not come as words of the user, or comes where a program says something else
// of who wrote it.
const NotTyped = "[atm] mail from a teammate; your user did not type it here"

// Frame is Render for mail within other text: the header begins with what no program takes for a command, and says how
// to answer. No text of others has "[atm" or "[/atm", also where a program gets all of it as one line.
func (r *Renderer) Frame(m *wire.Message, f Flags) []byte {
	head, id := "[atm "+r.Header(m, f)+"]", r.Short(m.ID)
	switch {
	case m.Type == wire.TypeAck, m.Type == wire.TypePermissionRequest: // whose body says how to answer it
	case m.ReplyWanted == "no" && m.RequiresAck:
		head += fmt.Sprintf(" acknowledge: atm ack %s%s", id, r.Show)
	case m.ReplyWanted == "no":
	default:
		head += fmt.Sprintf(" answer: atm reply %s \"…\"%s", id, r.Show)
	}
	return r.render(head, m)
}
