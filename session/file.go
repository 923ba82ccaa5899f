package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/agentteammail/atm/wire"
)

// MaxFile is the longest file that is read: the log, and room for what others
// keep beside it.
const MaxFile = 16 << 20

// FileError says that a file under a session's name holds none. It stays as it
// is.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s is no session: %v; it is left as it is", e.Path, e.Err)
}
func (e *FileError) Unwrap() error { return e.Err }

// Decode reads a session as it lies on disk. Beyond the vocabulary's own rules
// the field "atm", where there is one, must be as Encode writes it.
func Decode(data []byte) (*Session, error) {
	body, err := wire.Parse[wire.InteractiveSession](data)
	if err != nil {
		return nil, err
	}
	// An empty list is none: so it is written.
	if len(body.Messages) == 0 {
		body.Messages = nil
	}
	if len(body.DraftIDs) == 0 {
		body.DraftIDs = nil
	}
	s := &Session{InteractiveSession: body}
	fields, err := wire.Object(data)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		switch f.Key {
		case "session_id", "goal_id", "channel_id", "agent_id", "state", "created_at", "updated_at", "draft_ids":
		case "messages":
			if err := s.keep(f.Raw); err != nil {
				return nil, err
			}
		case "atm":
			if err := s.readOurs(f.Raw); err != nil {
				return nil, fmt.Errorf("atm: %w", err)
			}
		default:
			s.extra = append(s.extra, wire.Field{Key: f.Key, Raw: f.Raw})
		}
	}
	return s, nil
}

// keep remembers the messages as they were written.
func (s *Session) keep(raw json.RawMessage) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) != len(s.Messages) {
		return errors.New("messages: must be a list")
	}
	for i, m := range list {
		var line bytes.Buffer
		if err := json.Compact(&line, m); err != nil {
			return err
		}
		s.kept = append(s.kept, kept{s.Messages[i], line.Bytes()})
	}
	return nil
}

func (s *Session) readOurs(raw json.RawMessage) error {
	fields, err := wire.Object(raw)
	if err != nil {
		return err
	}
	number := func(raw json.RawMessage, to *uint64) (err error) {
		if *to, err = strconv.ParseUint(string(raw), 10, 64); err != nil {
			err = errors.New("must be a whole number")
		}
		return err
	}
	moment := func(raw json.RawMessage, to *time.Time) error {
		var t time.Time
		if err := json.Unmarshal(raw, &t); err != nil || string(raw) == "null" {
			return errors.New("must be a time")
		}
		*to = t.UTC()
		return nil
	}
	for _, f := range fields {
		switch f.Key {
		case "seq":
			err = number(f.Raw, &s.seq)
		case "dropped":
			err = number(f.Raw, &s.dropped)
		case "heard":
			err = moment(f.Raw, &s.heard)
		case "goal":
			err = moment(f.Raw, &s.goal)
		case "seen":
			var who []wire.Field
			if who, err = wire.Object(f.Raw); err != nil {
				break
			}
			for _, w := range who {
				var n uint64
				if err = number(w.Raw, &n); err != nil {
					break
				}
				s.See(w.Key, n)
			}
		case "drafts":
			err = s.readDrafts(f.Raw)
		case "run":
			err = s.run.read(f.Raw)
		default:
			s.ours = append(s.ours, wire.Field{Key: f.Key, Raw: f.Raw})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Key, err)
		}
	}
	// Counted on with, so they must leave room.
	if s.dropped > 1<<62 || s.seq > 1<<62 {
		return errors.New("seq and dropped: too large")
	}
	return nil
}

// draftNote is what is kept of a draft, by its id.
type draftNote struct {
	At        time.Time `json:"at,omitzero"`
	Summary   string    `json:"summary,omitempty"`
	Artifacts uint64    `json:"artifact_count,omitempty"`
}

func (s *Session) readDrafts(raw json.RawMessage) error {
	var notes map[wire.UUID]draftNote
	if err := json.Unmarshal(raw, &notes); err != nil {
		return errors.New("must say of each draft at, summary and artifact_count")
	}
	for id, n := range notes {
		if canonical, err := wire.ParseUUID(string(id)); err != nil || canonical != id {
			return fmt.Errorf("%q is no UUID", id)
		}
		if s.about == nil {
			s.about = map[wire.UUID]Draft{}
		}
		s.about[id] = Draft{ID: id, Summary: n.Summary, Artifacts: n.Artifacts, At: n.At.UTC()}
	}
	return nil
}

// Encode is the session as it lies on disk: one line, the vocabulary's fields
// first and as their owner writes them.
func (s *Session) Encode() []byte {
	plain := s.InteractiveSession
	plain.Messages, plain.DraftIDs = nil, nil
	b := bytes.TrimSuffix(wire.Encode(plain), []byte("}"))
	if len(s.Messages) > 0 {
		b = append(b, `,"messages":[`...)
		for i := range s.Messages {
			if i > 0 {
				b = append(b, ',')
			}
			if i < len(s.kept) && s.kept[i].message == s.Messages[i] {
				b = append(b, s.kept[i].raw...)
			} else {
				b = append(b, wire.Encode(s.Messages[i])...)
			}
		}
		b = append(b, ']')
	}
	if len(s.DraftIDs) > 0 {
		b = append(b, `,"draft_ids":[`...)
		for i, id := range s.DraftIDs {
			if i > 0 {
				b = append(b, ',')
			}
			b = wire.AppendString(b, string(id))
		}
		b = append(b, ']')
	}
	for _, f := range s.extra {
		b = appendField(b, f.Key, f.Raw)
	}
	if ours := s.encodeOurs(); len(ours) > 2 {
		b = appendField(b, "atm", ours)
	}
	return append(b, '}')
}

func (s *Session) encodeOurs() []byte {
	var b []byte
	count := func(key string, n uint64) {
		if n > 0 {
			b = appendField(b, key, strconv.AppendUint(nil, n, 10))
		}
	}
	moment := func(key string, t time.Time) {
		if !t.IsZero() {
			b = appendField(b, key, t.UTC().AppendFormat(nil, `"`+time.RFC3339Nano+`"`))
		}
	}
	count("seq", s.seq)
	count("dropped", s.dropped)
	moment("heard", s.heard)
	moment("goal", s.goal)
	if len(s.seen) > 0 {
		var seen []byte
		for _, who := range slices.Sorted(maps.Keys(s.seen)) {
			seen = appendField(seen, who, strconv.AppendUint(nil, s.seen[who], 10))
		}
		b = appendField(b, "seen", inBraces(seen))
	}
	if len(s.about) > 0 {
		var notes []byte
		for _, id := range slices.Sorted(maps.Keys(s.about)) {
			d := s.about[id]
			// Nothing in it that could not be encoded.
			note, _ := json.Marshal(draftNote{At: d.At, Summary: d.Summary, Artifacts: d.Artifacts})
			notes = appendField(notes, string(id), note)
		}
		b = appendField(b, "drafts", inBraces(notes))
	}
	if run := s.run.encode(); run != nil {
		b = appendField(b, "run", run)
	}
	for _, f := range s.ours {
		b = appendField(b, f.Key, f.Raw)
	}
	return inBraces(b)
}

// appendField appends a member of an object with a comma before it.
func appendField(b []byte, key string, raw []byte) []byte {
	b = append(wire.AppendString(append(b, ','), key), ':')
	var line bytes.Buffer
	if json.Compact(&line, raw) == nil {
		return append(b, line.Bytes()...)
	}
	return append(b, raw...)
}

func inBraces(members []byte) []byte {
	if len(members) > 0 {
		members = members[1:]
	}
	return append(append([]byte{'{'}, members...), '}')
}
