package drop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// parseDropped makes a message or an event of a dropped file. A *BadError says that it can be neither.
func parseDropped(ctx context.Context, b *maildir.Box, d *openDrop) (*wire.Message, *wire.Event, error) {
	switch size := d.info.Size(); {
	case size == 0:
		// The file was not empty when it was listed.
		return nil, nil, &maildir.BadError{Name: d.name, Reason: "its content was lost, probably in a power cut"}
	case size > MaxSize:
		const why = "a dropped file has at most %d MiB; atm send %s --attach FILE takes any size"
		return nil, nil, &maildir.BadError{Name: d.name, Reason: fmt.Sprintf(why, MaxSize>>20, b.Agent())}
	}
	data, err := io.ReadAll(io.LimitReader(d, wire.MaxFile+1))
	if err != nil {
		return nil, nil, err
	}
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) <= wire.MaxFile && (maildir.IsJSON(d.name) || bytes.HasPrefix(bytes.TrimSpace(text), []byte("{"))) {
		m, e, err := parseDroppedJSON(b, text, d.info, d.id)
		if err == nil && (m != nil || e != nil) {
			return m, e, nil
		}
		if err != nil && maildir.IsJSON(d.name) {
			return nil, nil, &maildir.BadError{Name: d.name, Reason: err.Error()}
		}
	}
	m := complete(b, &wire.Message{Subject: strings.ToValidUTF8(d.name, "\ufffd"), Body: string(data)}, d.info, d.id)
	if len(data) <= wire.MaxBody && utf8.Valid(data) && maildir.Check(m) == nil {
		return m, nil, nil
	}
	a, err := attachDropped(ctx, b.Store().Dir(), m.Subject, d)
	m.Body, m.Attachments = fmt.Sprintf("(the file is attached, %d bytes)", a.Size), []wire.Attachment{a}
	return m, nil, err
}

// parseDroppedJSON makes an event, a human_input message or another message of a JSON object. It returns nothing if the
// JSON is to be sent as text: it has none of our fields, or would be too large as a message.
func parseDroppedJSON(b *maildir.Box, data []byte, info fs.FileInfo, id wire.ID) (*wire.Message, *wire.Event, error) {
	if e, isEvent := foreign.AdoptDropped(data); isEvent {
		e.Source, e.EventID = wire.SourceDrop, string(id)
		return nil, &e, nil
	}
	m := &wire.Message{Type: wire.TypeHumanInput}
	body, isHuman, err := foreign.HumanText(data)
	if isHuman {
		var line bytes.Buffer
		json.Compact(&line, data)
		m.Body, m.Payload = body, line.Bytes()
	} else if m, err = wire.DecodeDropped(data, b.Store().Team); errors.Is(err, wire.ErrNotMessage) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if m.Type == wire.TypeHumanInput && m.Body == "" {
		m.Body, _, _ = foreign.HumanText(m.Payload) // "" if it is none
	}
	if m.IsReserved() {
		m.SetMeta("type", wire.Quote(m.Type))
		m.Type = ""
	}
	m = complete(b, m, info, id)
	if whole, err := m.MarshalJSON(); err == nil && len(whole) >= wire.MaxFile { // the file ends with a line feed too
		return nil, nil, nil
	}
	return m, nil, maildir.Check(m)
}

// complete fills in the missing fields of a dropped message, and replaces its origin.
func complete(b *maildir.Box, m *wire.Message, info fs.FileInfo, id wire.ID) *wire.Message {
	m.ID = id
	if m.From.Agent == "" {
		m.From = wire.Address{Agent: "drop", Team: b.Store().Team}
	}
	if len(m.To) == 0 {
		m.To = []wire.Address{b.Address()}
	}
	if m.SentAt.IsZero() {
		m.SentAt = info.ModTime().UTC()
		if y := m.SentAt.Year(); y < 1 || y > 9999 { // a file may have such a time, but RFC 3339 cannot write it
			m.SentAt = time.Now().UTC()
		}
	}
	o := &wire.Origin{Via: "drop", UID: durable.Owner(info)}
	if m.Origin != nil {
		o.Extra = m.Origin.Extra
	}
	m.Origin = o
	return m
}
