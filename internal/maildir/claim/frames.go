package claim

import (
	"fmt"
	"strings"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// Frames renders the messages for a model, as a part of another text. l.Show is what a command needs to act as the reader:
// " --as bob".
func (g *Claim) Frames(l *letter.Renderer) string {
	var text strings.Builder
	var ids []wire.ID
	for _, it := range g.Items {
		ids = append(ids, it.ID)
	}
	l.Digits = letter.ShortLength(ids)
	for i, flags := range maildir.Flags(g.Items, nil) {
		flags.Repeat = g.Repeat[ids[i]]
		text.Write(l.Frame(g.Items[i].Message, flags))
	}
	if n := g.More + g.GivenUp; n > 0 {
		fmt.Fprintf(&text, "%d more: atm read%s\n", n, l.Show)
	}
	return text.String()
}

// PushText renders the messages as a text of their own, which a program is given beside its prompt. What they say comes
// first: the program shows its person the beginning.
func (g *Claim) PushText(l *letter.Renderer) string {
	return g.Frames(l) + letter.NotTyped + "\n" + letter.End + "\n"
}
