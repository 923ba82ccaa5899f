package reducer

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/wire"
)

// What a State keeps at most. Texts are measured as they stand in JSON, so that
// no text is longer there than it seems. Together less than maxState.
const (
	keptTurns  = 3   // sessions of one agent
	keptBehind = 2   // questions behind one that is asked
	keptOver   = 32  // ended turns of one session
	keptRecent = 512 // event ids
	keptCalls  = 12  // calls of one turn

	maxID        = 80
	maxTransport = 32
	maxTool      = 64
	maxDetail    = 120
	maxPrompt    = 400
	maxBrief     = 80
	maxInput     = 200
	maxDialog    = 16
	maxOptions   = 560
	maxError     = 300
	maxWhy       = 100
	maxAnew      = 999

	maxState = 16 << 10
)

// marks are the hashes of the newest few of many ids, oldest first: 48 bits
// each, of which no two in a log are the same by chance. In JSON eight
// characters each.
type marks []uint64

const markBits = 48

// mark is FNV-1a, folded.
func mark(id string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	return (h ^ h>>markBits) & (1<<markBits - 1)
}

// add adds one that is not among them, and forgets the oldest beyond so many.
func (m *marks) add(h uint64, kept int) {
	if n := len(*m); n >= kept {
		*m = append((*m)[:0], (*m)[n-kept+1:]...)
	}
	*m = append(*m, h)
}

func (m marks) has(h uint64) bool { return slices.Contains(m, h) }

// MarshalJSON writes six bytes each, in base64.
func (m marks) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 6*len(m))
	for _, h := range m {
		b = append(b, byte(h>>40), byte(h>>32), byte(h>>24), byte(h>>16), byte(h>>8), byte(h))
	}
	return json.Marshal(base64.StdEncoding.EncodeToString(b))
}

// UnmarshalJSON reads a state as encoding/json wrote it. What no fold can have
// made is refused: who finds it discards it and folds anew.
func (s *State) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil // as encoding/json has it
	}
	if len(data) > 4*maxState {
		return errors.New("the state is too long")
	}
	n, err := restored(data)
	if err == nil {
		err = n.check()
	}
	if err != nil {
		return fmt.Errorf("the state is none: %w", err)
	}
	*s = n
	return nil
}

func (s *State) check() error {
	for _, n := range []wire.Name{s.Team, s.Agent} {
		if n != "" {
			if _, err := wire.ParseName(string(n)); err != nil {
				return err
			}
		}
	}
	if len(s.Turns) > keptTurns || len(s.Recent) > keptRecent || len(s.Past) > keptOver || clip(s.LastError, maxError) != s.LastError {
		return errors.New("there is too much of it")
	}
	if r := s.Run; r != nil && (clip(r.Signal, maxTool) != r.Signal || r.PID < 0) {
		return errors.New("run")
	}
	for i := range s.Turns {
		t := &s.Turns[i]
		if err := t.check(); err != nil {
			return fmt.Errorf("turn %d: %w", i, err)
		}
		if slices.ContainsFunc(s.Turns[:i], func(o Turn) bool { return o.Session == t.Session }) {
			return fmt.Errorf("turn %d: its session stands twice", i)
		}
	}
	return nil
}

type limited struct {
	text string
	most int
}

func (t *Turn) check() error {
	switch t.Status {
	case TurnIdle, TurnBusy, TurnTerminal:
	default:
		return errors.New("turn_status")
	}
	blocked := false
	switch t.Activity {
	case AwaitingInput, Confirming:
		blocked = true
	case Unknown, Starting, Idle, Thinking, Responding, ToolRunning, Exited, Error:
	default:
		return errors.New("activity")
	}
	texts := []limited{{t.Session, maxID}, {t.ID, maxID}, {t.Thread, maxID}, {t.Transport, maxTransport}, {t.Detail, maxDetail}}
	if l := t.Last; l != nil {
		texts = append(texts, limited{l.ID, maxID}, limited{l.Status, maxTool}, limited{l.Why, maxWhy})
	}
	if (t.Waiting != nil) != blocked || t.Waiting == nil && t.Behind != nil || len(t.Behind) > keptBehind {
		return errors.New("waiting_on")
	}
	if w := t.Waiting; w != nil {
		if w.Options = compact(w.Options); len(w.Options) > maxOptions {
			return errors.New("options")
		}
		texts = append(texts, w.limits(maxPrompt)...)
	}
	for i := range t.Behind {
		t.Behind[i].Options = nil
		texts = append(texts, t.Behind[i].limits(maxBrief)...)
	}
	for _, x := range texts {
		if clip(x.text, x.most) != x.text {
			return errors.New("a text is too long")
		}
	}
	if len(t.Over) > keptOver || len(t.Calls) > keptCalls || t.Anew < 0 || t.Anew > maxAnew {
		return errors.New("over")
	}
	return nil
}

func (w *Waiting) limits(prompt int) []limited {
	return []limited{{w.ID, maxID}, {w.Call, maxID}, {w.Kind, maxTool}, {w.Prompt, prompt}, {w.Tool, maxTool}, {w.Input, maxInput}, {w.Dialog, maxDialog}}
}

// runeCost is how many bytes a character takes in JSON, as encoding/json writes it.
func runeCost(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
		return 2
	case r < 0x20 || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029':
		return 6
	case r < utf8.RuneSelf:
		return 1
	}
	return utf8.RuneLen(r)
}

// clip cuts a text to what takes at most so many bytes of JSON, at a
// character's end. What is not UTF-8 becomes U+FFFD.
func clip(s string, most int) string {
	if len(s) <= most && plain(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	n := 0
	for i, r := range s {
		if n += runeCost(r); n > most {
			return s[:i]
		}
	}
	return s
}

// plain reports whether a text takes in JSON as many bytes as it has, as nearly
// all do.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// short is an id as it is kept: one that is too long is cut, and told from
// others that begin alike by its hash.
func short(id string) string {
	s := clip(id, maxID)
	if s == id {
		return id
	}
	h := mark(id)
	sum := hex.EncodeToString([]byte{byte(h >> 40), byte(h >> 32), byte(h >> 24), byte(h >> 16), byte(h >> 8), byte(h)})
	return clip(id, maxID-1-len(sum)) + "~" + sum
}

// compact is a JSON value as encoding/json writes it; nil for none, and for null.
func compact(raw json.RawMessage) json.RawMessage {
	b, err := json.Marshal(raw)
	if err != nil || string(b) == "null" {
		return nil
	}
	return b
}

// moment is a time as it is kept: what its JSON gives back.
func moment(t time.Time) time.Time {
	t = t.UTC().Round(0)
	if t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
