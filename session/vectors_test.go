package session

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// vectors reads a file of what Trusted Autonomy does.
func vectors[T any](t *testing.T, file string) (out []T) {
	data, err := os.ReadFile("../testdata/wire/" + file)
	must(t, err)
	must(t, json.Unmarshal(data, &out))
	return out
}

// A session behaves as its owner's does. (TestVectors has add_draft.)
func TestVectorsOfRules(t *testing.T) {
	count := map[string]int{}
	begun := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for _, c := range vectors[struct {
		Function, From, To, State, Error string
		OK                               bool
		Elapsed                          int64 `json:"elapsed_seconds"`
		Result                           any
	}](t, "behaviour.json") {
		count[c.Function]++
		var got any
		switch c.Function {
		case "InteractiveSession.transition":
			s := InteractiveSession{State: State(c.From)}
			err := s.Transition(State(c.To), begun)
			if (err == nil) != c.OK || err != nil && err.Error() != c.Error {
				t.Errorf("%s to %s: %v", c.From, c.To, err)
			}
			if moved := s.UpdatedAt.Equal(begun) && string(s.State) == c.To; moved != c.OK {
				t.Errorf("%s to %s: now %v", c.From, c.To, s)
			}
			continue
		case "InteractiveSession.is_alive":
			got = State(c.State).Alive()
		case "InteractiveSession.elapsed_display":
			got = (&InteractiveSession{CreatedAt: begun}).Elapsed(begun.Add(time.Duration(c.Elapsed) * time.Second))
		default:
			continue // other packages test it
		}
		if got != c.Result {
			t.Errorf("%s %s%v: %v, not %v", c.Function, c.State, c.Elapsed, got, c.Result)
		}
	}
	want := map[string]int{
		"InteractiveSession.transition": 16, "InteractiveSession.is_alive": 4, "InteractiveSession.elapsed_display": 11,
		"InteractiveSession.add_draft": 1, "PTYManager.get_stats": 6, "AgentStreamState.apply": 11, "DaemonStreamEvent.agent": 5,
	}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Error(diff)
	}
}

// The errors of a channel are its owner's, to the letter, and so is what is written of a session and of an entry in its
// log; what the owner refuses is refused.
func TestVectorsOfValues(t *testing.T) {
	errs := map[string]error{
		"channel_closed": ErrChannelClosed,
		"other":          &Error{"boom"},
		"transition":     (&InteractiveSession{State: Completed}).Transition(Active, time.Time{}),
	}
	n := 0
	for _, v := range vectors[struct {
		Type, Name, Display string
		Text                string `json:"json_text"`
	}](t, "000-001_session_channel.json") {
		switch v.Type {
		case "SessionChannelError":
			n++
			if err := errs[v.Name]; err == nil || err.Error() != v.Display {
				t.Errorf("%v, not %s", err, v.Display)
			}
		case "SessionMessage":
			n++
			checkJSON[Entry](t, v.Text, v.Text)
		case "InteractiveSession":
			n++
			checkJSON[InteractiveSession](t, v.Text, v.Text)
		}
	}
	for _, c := range vectors[struct {
		Type, Input, Canonical string
		OK                     bool
	}](t, "deserialize.json") {
		if c.Type != "InteractiveSession" {
			continue
		}
		n++
		if c.OK {
			checkJSON[InteractiveSession](t, c.Input, c.Canonical)
		} else if err := json.Unmarshal([]byte(c.Input), &InteractiveSession{}); err == nil {
			t.Errorf("%s is read", c.Input)
		}
	}
	if n != 15 {
		t.Errorf("%d vectors, not 15", n)
	}
}

// checkJSON fails if a text is read and written as another one than this.
func checkJSON[T any](t *testing.T, text, want string) {
	t.Helper()
	var v T
	must(t, json.Unmarshal([]byte(text), &v))
	for _, of := range []any{v, &v} {
		if got, err := json.Marshal(of); err != nil || string(got) != want {
			t.Errorf("%s, %v, not %s", got, err, want)
		}
	}
}
