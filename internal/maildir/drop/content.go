package drop

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// plain makes a message of a file that is none by itself: its text, or the file attached. A *maildir.BadError says that it
// is no mail: notJSON is what parse says.
func (o *opened) plain(ctx context.Context, notJSON error) (*wire.Message, error) {
	switch size := o.info.Size(); {
	case size == 0: // it was not empty when it was begun
		return nil, &maildir.BadError{Name: o.name, Reason: "its content was lost, probably in a power cut"}
	case notJSON != nil && maildir.IsJSON(o.name):
		return nil, &maildir.BadError{Name: o.name, Reason: notJSON.Error()}
	case size > MaxSize:
		const why = "a dropped file has at most %d MiB; atm send %s --attach FILE takes any size"
		return nil, &maildir.BadError{Name: o.name, Reason: fmt.Sprintf(why, MaxSize>>20, o.box.Agent())}
	}
	data, err := o.text()
	if err != nil {
		return nil, err
	}
	m := o.complete(&wire.Message{Subject: strings.ToValidUTF8(o.name, "\ufffd"), Body: string(data)})
	if data != nil && len(data) <= wire.MaxBody && utf8.Valid(data) && maildir.Check(m) == nil {
		return m, nil
	}
	content := durable.ReadUntil(ctx, io.NewSectionReader(o, 0, MaxSize))
	a, err := filestore.AddOnce(o.box.Store().Dir(), m.Subject, o.id, content)
	m.Body, m.Attachments = fmt.Sprintf("(the file is attached, %d bytes)", a.Size), []wire.Attachment{a}
	return m, err
}

// text reads a file that is small enough for a message, without a byte order mark; nil of a larger one.
func (o *opened) text() ([]byte, error) {
	if o.info.Size() > wire.MaxFile {
		return nil, nil
	}
	data, err := io.ReadAll(io.NewSectionReader(o, 0, wire.MaxFile))
	return bytes.TrimPrefix(data, []byte("\ufeff")), err
}

// parse makes an event, a human_input message or another message of a whole JSON object. It returns nothing if the file is
// to be sent as text: it has none of our fields, would be too large as a message, or is no JSON and not named so.
func (o *opened) parse() (*wire.Message, *wire.Event, error) {
	data, err := o.text()
	if err != nil || len(data) == 0 || !maildir.IsJSON(o.name) && !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil, nil, nil // plain reads it again
	}
	if e, isEvent := foreign.AdoptDropped(data); isEvent {
		e.Source, e.EventID = wire.SourceDrop, string(o.id)
		return nil, &e, nil
	}
	m := &wire.Message{Type: wire.TypeHumanInput}
	body, isHuman, err := foreign.HumanText(data)
	if isHuman {
		m.Body, m.Payload = body, wire.Compact(data)
	} else if m, err = wire.DecodeDraft(data, o.box.Store().Team, "id"); err == wire.ErrNotMessage || err == wire.ErrNotObject {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if whole, _ := wire.ReadObject(data); !isHuman && whole.Get("id") != nil {
		m.SetMeta("id", whole.Get("id")) // theirs, whatever it is
	}
	if m.Type == wire.TypeHumanInput && m.Body == "" {
		m.Body, _, _ = foreign.HumanText(m.Payload) // "" if it is none
	}
	if m.IsReserved() {
		m.SetMeta("type", wire.Quote(m.Type))
		m.Type = ""
	}
	m = o.complete(m)
	if whole, err := m.MarshalJSON(); err == nil && len(whole) >= wire.MaxFile { // the file ends with a line feed too
		return nil, nil, nil
	}
	if err = maildir.Check(m); err != nil {
		return nil, nil, err
	}
	return m, nil, nil
}

// complete fills in the missing fields of a dropped message, and replaces its origin.
func (o *opened) complete(m *wire.Message) *wire.Message {
	m.ID = o.id
	if m.From.Agent == "" {
		m.From = wire.Address{Agent: "drop", Team: o.box.Store().Team}
	}
	if len(m.To) == 0 {
		m.To = []wire.Address{o.box.Address()}
	}
	if m.SentAt.IsZero() {
		m.SentAt = o.info.ModTime().UTC()
		if y := m.SentAt.Year(); y < 1 || y > 9999 { // a file may have such a time, but RFC 3339 cannot write it
			m.SentAt = time.Now().UTC()
		}
	}
	origin := &wire.Origin{Via: "drop", UID: durable.Owner(o.info)}
	if m.Origin != nil {
		origin.Extra = m.Origin.Extra
	}
	m.Origin = origin
	return m
}
