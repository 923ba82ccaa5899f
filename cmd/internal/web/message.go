package web

import (
	"slices"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/wire"
)

// A part is a list of mail.
type part struct {
	ID, Title string
	Messages  []message
	More      int // how many messages are not shown
}

// Unread are the messages of the part that are unread and want no ack, if they are several: one button marks them.
func (p part) Unread() (ids []wire.ID) {
	for _, m := range p.Messages {
		if room.IsPlain(m.Item) {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) < 2 {
		return nil
	}
	return ids
}

// Last is the last of the messages.
func (p part) Last() wire.ID { return p.Messages[len(p.Messages)-1].ID }

type message struct {
	*wire.Item
	Notes []letter.Note
	page  *page
}

func (p *page) messages(items []*wire.Item) (out []message) {
	for _, it := range items {
		notes := room.Notes(command.Notes(p.renderer(), it), it, p.ReadBy(it))
		out = append(out, message{it, notes, p})
	}
	return out
}

// Title is a line; the message's own may have a million columns.
func (m message) Title() string {
	return letter.Clip(letter.Escape(letter.Clip(m.Item.Title(), 100)), 100)
}

// IsRead reports whether it is in my mailbox, and was read.
func (m message) IsRead() bool { return m.State == wire.Owed || m.State == wire.Done }

// IsStrong reports whether one of its notes is.
func (m message) IsStrong() bool {
	return slices.ContainsFunc(m.Notes, func(n letter.Note) bool { return n.IsStrong })
}

// Subject is the subject unless it is the page's title.
func (m message) Subject() string {
	if s := letter.Escape(m.Item.Subject); s != m.page.Title {
		return s
	}
	return ""
}

// Text is the body, as far as it is shown.
func (m message) Text() string {
	return letter.EscapeBody(strings.ToValidUTF8(m.Body[:min(maxText, len(m.Body))], ""))
}

// Left is the size of what Text leaves out, "" for nothing.
func (m message) Left() string {
	if len(m.Body) <= maxText {
		return ""
	}
	return letter.Size(int64(len(m.Body) - maxText))
}

// IsEscaped reports whether Text or the subject has escapes.
func (m message) IsEscaped() bool { return letter.IsEscaped(m.Item.Message) }

// IsUnread reports whether it is in my mailbox, unread.
func (m message) IsUnread() bool { return slices.Contains(m.page.Room.Unread, m.ID) }

// WantsAck reports whether I owe it an ack.
func (m message) WantsAck() bool {
	return m.RequiresAck && (m.IsUnread() || slices.Contains(m.page.Room.Owed, m.ID))
}

func (p *page) addMine(id, title string, ids []wire.ID, most int) {
	n := min(len(ids), most)
	p.Parts = append(p.Parts, part{id, title, p.messages(p.Mail(ids[:n])), len(ids) - n})
}

func (p *page) addFound(items []*wire.Item) {
	n := min(len(items), maxMail)
	p.Parts = append(p.Parts, part{"found", "Messages", p.messages(p.AsMine(items[:n])), len(items) - n})
}
