package ptyrun

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/wire"
)

const maxLetter = 8 << 10 // bytes of one text, in which several messages may be

func (r *runner) renderer(now time.Time, items []*maildir.Item) *letter.Renderer {
	return &letter.Renderer{Now: now, Team: r.Box.Address().Team, Digits: letter.ShortLength(idsOf(items)), Bytes: maxLetter}
}

// letterText renders messages for a driver's program, which acts on nothing in the text; "": that cannot be. Nil: the
// program acts on no text that it gets so.
func (r *runner) letterText(items []*maildir.Item, repeats map[wire.ID]bool, l *letter.Renderer, d *driver.Driver) string {
	var b strings.Builder
	for i, f := range maildir.Flags(items, nil) {
		f.Repeat = repeats[items[i].ID]
		m := *items[i].Message
		m.Body = r.follower.Body(items[i].Message)
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

// inject is how mail gets into the program that runs, as far as atm knows what that is.
func (r *runner) inject() Inject {
	isPlain := r.Driver.Plain
	if r.prog != nil {
		isPlain = r.prog.state().isPlain
	}
	switch {
	case r.Inject == Body && isPlain:
		return Pointer
	case r.Inject == Execute && !isPlain:
		return Body
	}
	return r.Inject
}

// countTogether returns how many of the messages go into one text, at least one, and whether it only points at them.
func (r *runner) countTogether(ids []wire.ID, now time.Time, reader *driver.Driver) (n int, isPointer bool) {
	size := 0
	for i, id := range ids {
		it, err := r.Box.Get(id)
		if err != nil { // it is gone, as the claim will find
			continue
		}
		one := []*maildir.Item{it}
		text := r.letterText(one, nil, r.renderer(now, one), reader)
		if size > 0 && (isPointer != (text == "") || size+len(text) > maxLetter) {
			return i, isPointer
		}
		isPointer, size = text == "", size+len(text)+1
	}
	return len(ids), isPointer
}

// mailText returns the text of the claimed messages; "": no more than a pointer to them may be given.
func (r *runner) mailText(g *giving, now time.Time) string {
	to := r.prog.state()
	switch {
	case r.inject() == Execute:
		return g.items()[0].Body
	case g.isPointer, !to.takesText:
		return ""
	}
	return r.letterText(g.items(), g.claim.Repeat, r.renderer(now, g.items()), to.reader)
}

// pointerText says how to read messages, and contains nothing that their senders chose, not even their names. A shell
// can run it, and a model behind another plain program can understand it.
func pointerText(items []*maildir.Item, isPlain bool) string {
	if isPlain {
		return "atm read"
	}
	ids, digits := "", letter.ShortLength(idsOf(items))
	for _, it := range items {
		ids += " " + it.ID.Short(digits)
	}
	return fmt.Sprintf("[atm: %s] run: atm read%s", letter.Many(len(items), "new message"), ids)
}

// notices are messages that atm itself wrote, partly from what others wrote (a dialog's prompt, a message's fate).
var noticeTypes = []string{wire.TypeAck, wire.TypeNotice, wire.TypePermissionRequest, wire.TypePermissionReply}

// noNotices is the one reason for not typing that nobody needs to do anything about.
const noNotices = "atm types no notices where mail is run"

// Clean makes a text safe to type: see letter.Typable.
func Clean(s string) string { return letter.Typable(s) }

// The marks of a bracketed paste.
const pasteOn, pasteOff = "\x1b[200~", "\x1b[201~"

// keysOf returns the bytes that put a clean text into the draft. Without bracketed paste every newline submits a line:
// a plain program gets the lines like a shell from a file, the last one staying in the draft; an agent gets one line.
func keysOf(text string, isPaste, isPlain bool) string {
	switch {
	case isPaste:
		return pasteOn + text + pasteOff
	case isPlain:
		return strings.ReplaceAll(text, "\n", "\r")
	}
	return strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
}

// takesText reports whether the program gets a text as one, with its line breaks: else it gets keys, any of which may do
// something.
func (p *terminal) takesText() bool { return p.emulator.Modes().Paste || p.driver.TakesAsIs() }

// keysOf returns the bytes that put a clean text into the draft of this program.
func (p *terminal) keysOf(text string) []byte {
	switch isPaste := p.emulator.Modes().Paste; {
	case isPaste:
		var b []byte
		for _, piece := range p.driver.Pastes(text) {
			b = append(b, keysOf(piece, true, false)...)
		}
		return b
	case p.driver.TakesAsIs():
		return []byte(text)
	}
	return []byte(keysOf(text, false, p.driver.Plain))
}

// untypable says why a text cannot be typed; "": it can.
func untypable(text string, isPaste bool) string {
	switch {
	case text == "":
		return "the message has no text to type"
	case !isPaste && len(text) > control.MaxLine():
		return fmt.Sprintf("%d bytes do not fit into a line of this terminal", len(text))
	case len(text) > maxPasted:
		return fmt.Sprintf("%d bytes are too many to type; send them as a file: --attach", len(text))
	}
	return ""
}
