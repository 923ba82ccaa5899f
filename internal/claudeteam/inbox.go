package claudeteam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// entry is one message in an inbox file.
type entry struct {
	Type      string `json:"type"`
	From      string `json:"from"`
	Text      string `json:"text"`
	Timestamp string `json:"timestamp"`
	Summary   string `json:"summary"`
	MsgV      any    `json:"msgV"`
	MsgID     string `json:"msg_id"`
	Read      bool   `json:"read"`

	raw json.RawMessage
	bad error // why it cannot be ingested
}

func (s *Sync) readInbox(file string) ([]entry, error) {
	data, err := s.root.ReadFile(file, maxFile)
	if err != nil {
		return nil, err
	}
	return decodeInbox(data)
}

// decodeInbox parses an inbox file, which is empty between its creation and the first write.
func decodeInbox(data []byte) (list []entry, err error) {
	var raws []json.RawMessage
	if len(bytes.TrimSpace(data)) > 0 {
		if err = wire.Unmarshal(data, &raws); err == nil && raws == nil {
			err = errors.New("it is null, not a list")
		}
	}
	for _, raw := range raws {
		list = append(list, decodeEntry(raw))
	}
	return list, err
}

func decodeEntry(raw json.RawMessage) entry {
	e := entry{Type: "message"}
	err := wire.Unmarshal(raw, &e)
	e.raw = raw // only now: decoding a null clears the struct
	switch {
	case err != nil:
		e.bad = err
	case e.From == "" || e.Text == "":
		e.bad = errors.New("from or text is missing or empty")
	case e.Type != "message":
		e.bad = fmt.Errorf("its type is %q", e.Type)
	case e.sentAt().IsZero():
		e.bad = fmt.Errorf("its timestamp is %q", e.Timestamp)
	}
	return e
}

// encodeInbox formats entries as Claude Code does. Each entry keeps its fields as they were.
func encodeInbox(list []entry) ([]byte, error) {
	raws := make([][]byte, len(list))
	for i, e := range list {
		raws[i] = e.raw
	}
	return indented(append(append([]byte{'['}, bytes.Join(raws, []byte{','})...), ']'))
}

func indented(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	err := json.Indent(&out, raw, "", "  ")
	return out.Bytes(), err
}

const milliseconds = "2006-01-02T15:04:05.000Z"

// sentAt parses the entry's timestamp; it is zero if that is invalid.
func (e *entry) sentAt() time.Time {
	t, err := time.Parse(time.RFC3339Nano, e.Timestamp)
	if year := t.UTC().Year(); err != nil || year < 1970 {
		return time.Time{}
	}
	return t.UTC()
}

// idOf derives the ID of the entry's message in a mailbox.
func (s *Sync) idOf(e *entry, box *mailbox.Box) wire.ID {
	ms := e.sentAt().UnixMilli()
	start := wire.ID(fmt.Sprintf("%08x-%04x-7000-8000-000000000000", ms>>16, ms&0xffff))
	content := strings.Join([]string{"claude", filepath.Base(s.Dir), e.From, e.Timestamp, e.Text, e.MsgID}, "\x00")
	return wire.Derive(content, start, box.Address())
}

// controlMessage parses text that Claude Code itself, not its model, sends to another instance: a JSON object.
func controlMessage(text string) (o wire.Object) {
	o, _ = wire.ReadObject([]byte(trim(text)))
	return o
}

// trim trims what JavaScript's trim does, and a little more.
func trim(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
}
