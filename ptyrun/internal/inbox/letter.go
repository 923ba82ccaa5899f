package inbox

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

const maxLetter = 8 << 10 // bytes of one text, in which several messages may be

func (in *Inbox) renderer(now time.Time, items []*wire.Item) *letter.Renderer {
	return &letter.Renderer{Now: now, Team: in.Box.Address().Team, Digits: letter.ShortLength(idsOf(items)), Bytes: maxLetter}
}

// letterText renders messages for a driver's program, which acts on nothing in the text; "": that cannot be. Nil: the
// program acts on no text that it gets so.
func (in *Inbox) letterText(items []*wire.Item, repeats map[wire.ID]bool, l *letter.Renderer, d *driver.Driver) string {
	var b strings.Builder
	for i, f := range maildir.Flags(items, nil) {
		f.Repeat = repeats[items[i].ID]
		m := *items[i].Message
		if in.o.Body != nil {
			m.Body = in.o.Body(items[i].Message)
		}
		if d == nil {
			b.Write(l.Frame(&m, f))
			continue
		}
		one, legend, ok := d.AsData(string(l.Frame(&m, f)))
		if !ok {
			return ""
		}
		if head, body, _ := strings.Cut(one, "\n"); legend != "" {
			one = head + " (" + legend + ")\n" + body
		}
		b.WriteString(one)
	}
	return b.String() + letter.End
}

// Inject is how mail gets into the program that runs, as far as atm knows what that is.
func (in *Inbox) Inject() Inject {
	isPlain := in.o.IsPlain
	if in.Agent != nil {
		isPlain = in.Agent.State().IsPlain
	}
	if in.o.Inject == Body && isPlain {
		return Pointer
	}
	return in.o.Inject
}

// countTogether returns how many of the messages go into one text, at least one, and whether it only points at them.
func (in *Inbox) countTogether(ids []wire.ID, now time.Time, reader *driver.Driver) (n int, isPointer bool) {
	size := 0
	for i, id := range ids {
		it, err := in.Box.Get(id)
		if err != nil { // it is gone, as the claim will find
			continue
		}
		one := []*wire.Item{it}
		text := in.letterText(one, nil, in.renderer(now, one), reader)
		if size > 0 && (isPointer != (text == "") || size+len(text) > maxLetter) {
			return i, isPointer
		}
		isPointer, size = text == "", size+len(text)+1
	}
	return len(ids), isPointer
}

// mailText returns the text of the claimed messages; "": no more than a pointer to them may be given.
func (in *Inbox) mailText(g *giving, now time.Time) string {
	to := in.Agent.State()
	if g.IsPointer || !to.TakesText {
		return ""
	}
	return in.letterText(g.Items, g.claim.Repeat, in.renderer(now, g.Items), to.Reader)
}

// pointerText says how to read messages, and contains nothing that their senders chose, not even their names. A shell
// can run it, and a model behind another plain program can understand it.
func pointerText(items []*wire.Item, isPlain bool) string {
	if isPlain {
		return "atm read"
	}
	ids, digits := "", letter.ShortLength(idsOf(items))
	for _, it := range items {
		ids += " " + it.ID.Short(digits)
	}
	return fmt.Sprintf("[atm: %s] run: atm read%s", letter.Many(len(items), "new message"), ids)
}
