package claudeteam

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

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

	raw    json.RawMessage
	sentAt time.Time
	bad    error // why it cannot be ingested
}

func (s *Sync) readInbox(m member) ([]entry, error) {
	data, err := s.root.ReadFile(m.inboxFile(), maxFile)
	if err != nil {
		return nil, err
	}
	list, err := decodeInbox(data)
	if err != nil {
		err = &FileError{m.inboxFile(), fmt.Errorf("it is torn, or not a list of messages: %w", err)}
	}
	return list, err
}

// changeInbox rewrites an inbox file, which is made if there is none; if f returns nil, the file stays as it is.
func (s *Sync) changeInbox(ctx context.Context, m member, f func(list []entry) ([]entry, error)) error {
	if err := s.createInbox(m); err != nil {
		return err
	}
	return s.rewrite(ctx, m.inboxFile(), func(old []byte) ([]byte, error) {
		list, err := decodeInbox(old)
		if err != nil {
			err = &FileError{m.inboxFile(), fmt.Errorf("it is torn, or not a list of messages: %w", err)}
		} else {
			list, err = f(list)
		}
		if list == nil || err != nil {
			return nil, err
		}
		return encodeInbox(list)
	})
}

func (s *Sync) createInbox(m member) error {
	if err := s.root.Create(m.inboxFile(), []byte("[]")); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// FileError says that a file of Claude Code's is not what it should be: a program was killed while it wrote it, or another
// one wrote it. It stays as it is, and its mail waits.
type FileError struct {
	File   string // in the directory of its team
	Reason error
}

func (e *FileError) Error() string { return e.Reason.Error() }
func (e *FileError) Unwrap() error { return e.Reason }

// decodeInbox parses an inbox file, which is empty between its creation and the first write.
func decodeInbox(data []byte) (list []entry, err error) {
	var raws []json.RawMessage
	if len(bytes.TrimSpace(data)) > 0 {
		if err = wire.Unmarshal(data, &raws); err == nil && raws == nil {
			err = errors.New("it is null, not a list")
		}
	}
	for _, raw := range raws {
		e := entry{Type: "message"}
		err := wire.Unmarshal(raw, &e)
		at, timeErr := time.Parse(time.RFC3339Nano, e.Timestamp)
		e.raw, e.sentAt = raw, at.UTC()
		if cmp.Or(err, timeErr) != nil || e.From == "" || e.Text == "" || e.Type != "message" || e.sentAt.Year() < 1970 {
			e.bad = errNotAMessage
		}
		list = append(list, e)
	}
	return list, err
}

var errNotAMessage = errors.New("it is not a message with from, text and timestamp")

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

// addTo appends the entry to a list, and returns nil if its message is in the list already.
func (e *entry) addTo(list []entry) (_ []entry, err error) {
	if slices.ContainsFunc(list, func(other entry) bool { return other.MsgID == e.MsgID }) {
		return nil, nil
	}
	e.raw, err = json.Marshal(e)
	return append(list, *e), err
}

// idOf derives the ID of the entry's message to one of our team.
func (s *Sync) idOf(e *entry, to wire.Address) wire.ID {
	ms := e.sentAt.UnixMilli()
	start := wire.ID(fmt.Sprintf("%08x-%04x-7000-8000-000000000000", ms>>16, ms&0xffff))
	content := strings.Join([]string{"claude", filepath.Base(s.Dir), e.From, e.Timestamp, e.Text, e.MsgID}, "\x00")
	return wire.Derive(content, start, to)
}

// control parses text that Claude Code itself, not its model, sends to another instance: a JSON object.
func (e *entry) control() (o wire.Object) {
	o, _ = wire.ReadObject([]byte(strings.TrimSpace(e.Text)))
	return o
}
