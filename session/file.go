package session

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentteammail/atm/wire"
)

// MaxFile is the longest file that is read: the log, and room for what others keep beside it.
const MaxFile = 16 << 20

// file is a session as it lies on disk. Unknown members of it and of its notes are kept.
type file struct {
	wire.InteractiveSession
	Notes notes          `json:"atm,omitempty"`
	Extra jsontext.Value `json:",embed"`
}

// notes are what is known of a session that the vocabulary has no member for.
type notes struct {
	Seq     uint64              `json:"seq,omitzero"`     // the last event of the agent's log that was taken in
	Dropped uint64              `json:"dropped,omitzero"` // messages that were removed from the log
	Goal    time.Time           `json:"goal,omitzero"`    // when an event said that the goal is complete
	Said    string              `json:"said,omitzero"`    // in the open turn, in pieces
	Drafts  map[wire.UUID]Draft `json:"drafts,omitempty"`
	Runner  binding             `json:"run,omitempty"`
	Extra   jsontext.Value      `json:",embed"`
}

// FileError says that a file under a session's name holds none, or cannot be read. It stays as it is.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s is no session: %v; it is left as it is", e.Path, e.Err)
}
func (e *FileError) Unwrap() error { return e.Err }

// Decode reads a session as it lies on disk, by the vocabulary's own rules.
func Decode(data []byte) (*Session, error) {
	var f file
	_, err := wire.Canonical("session.InteractiveSession", data)
	if err == nil {
		err = wire.Unmarshal(data, &f)
	}
	if err != nil {
		return nil, err
	}
	return &Session{f.InteractiveSession, f.Notes, f.Extra}, nil
}

// Encode is the session as it lies on disk: one line, the vocabulary's members first and as their owner
// writes them. The oldest messages of a log that is too long go.
func (s *Session) Encode() ([]byte, error) {
	s.trimLog()
	return wire.Marshal(file{s.InteractiveSession, s.notes, s.extra})
}

// messageSize is how many bytes of the file a message takes.
func messageSize(m wire.SessionMessage) int {
	raw, _ := wire.Marshal(m) // nothing in it that could not be written
	return len(raw) + len(",")
}
