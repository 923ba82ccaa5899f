package reducer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// scripted are the events of the scripts in testdata, as lines of a log.
func scripted(t testing.TB) (logs [][]byte) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := newPlayer()
		var log []byte
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSuffix(line, "\n")
			if line == "" || line[0] == '#' || line[0] == '\t' {
				continue
			}
			in, _, err := p.input(line)
			if err != nil {
				t.Fatal(file, err)
			}
			if in != nil && in.Event != nil {
				log = append(in.Event.Append(log), '\n')
			}
		}
		logs = append(logs, log)
	}
	return logs
}

// FuzzStep folds the lines of a log, whatever they are: no panic, never too
// long, the same through JSON, and folding the log again changes nothing.
func FuzzStep(f *testing.F) {
	for _, log := range scripted(f) {
		f.Add(log)
	}
	for i, h := range hostile {
		f.Add(fmt.Appendf(nil, `{"seq":%d,"at":"2026-05-01T12:00:00Z","team":"main","agent":"bob","source":"hook",%s}`, i+1, h))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		if len(log) > 1<<16 {
			return
		}
		var s, snapped State
		var events []wire.Event
		mail := Mail{ID: "m1", Urgent: true, Due: time.Date(2026, 5, 1, 12, 0, 5, 0, time.UTC)}
		for _, line := range bytes.Split(log, []byte{'\n'}) {
			e, err := wire.DecodeEvent(line)
			if err != nil {
				continue
			}
			events = append(events, e)
			in := Input{Now: e.At, Event: &e}
			before := s.Clone()
			next, effects := Step(s, in)
			if a, b := mustJSON(t, &before), mustJSON(t, &s); !bytes.Equal(a, b) {
				t.Fatalf("Step changed its argument: %s, %s", a, b)
			}
			s = next
			for _, e := range effects {
				if e.Do != Ask && len(e.IDs) == 0 || e.Do == Ask && e.Waiting == nil {
					t.Fatal(e)
				}
			}
			valid(t, &s)
			snapped.Apply(in)
			b := mustJSON(t, &snapped)
			snapped = State{}
			if err := json.Unmarshal(b, &snapped); err != nil {
				t.Fatalf("%v: %.300s", err, b)
			}
			if got, want := mustJSON(t, &snapped), mustJSON(t, &s); !bytes.Equal(got, want) {
				t.Fatalf("through JSON: %s, not %s", got, want)
			}
			s.Apply(Input{Now: e.At, Arrived: &mail})
			s.NextTick()
		}
		want := mustJSON(t, &s)
		for i := range events {
			if events[i].Seq > 0 {
				s.Apply(Input{Now: events[i].At, Event: &events[i]})
			}
		}
		if got := mustJSON(t, &s); !bytes.Equal(got, want) {
			t.Fatalf("folded again: %s, not %s", got, want)
		}
	})
}

func mustJSON(t testing.TB, s *State) []byte {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzSnapshot goes on from a state.json that anybody may have written.
func FuzzSnapshot(f *testing.F) {
	logs := scripted(f)
	for _, log := range logs {
		var s State
		for line := range bytes.Lines(log) {
			if e, err := wire.DecodeEvent(line); err == nil {
				s.Apply(Input{Now: e.At, Event: &e})
			}
		}
		f.Add(mustJSON(f, &s))
	}
	f.Add([]byte(`{"turns":[{"turn_status":"busy","activity":"confirming","requests":[{"kind":"","since":"0001-01-01T00:00:00Z"}]}],"seq":18446744073709551615}`))
	for _, text := range []string{
		`null`, `{"turns":[null]}`, `{"turns":[{}]}`, `{"turns":[{"turn_status":"IDLE","activity":"dancing","reopened":-1}]}`, `{"run":{"pid":-1}}`,
		`{"turns":[{"turn_status":"idle","activity":"idle"},{"turn_status":"idle","activity":"idle"},{},{},{},{}]}`,
		`{"turns":[{"turn_status":"idle","activity":"confirming"}]}`, `{"agent":"../x","heard":"2026-05-01T12:00:00+02:00"}`,
		`{"turns":[{"turn_status":"busy","activity":"idle","requests":[{},{"kind":"permission","options":[" "]},{},{},{}]}]}`,
		`{"turns":[{"ended":["",""],"started_calls":[""]}],"past_turns":["",""],"event_ids":["",""]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s State
		if json.Unmarshal(data, &s) != nil {
			return
		}
		b := mustJSON(t, &s)
		var back State
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%v: %.300s", err, b)
		}
		if again := mustJSON(t, &back); !bytes.Equal(again, b) {
			t.Fatalf("%s, then %s", b, again)
		}
		for _, ev := range []Evidence{{}, {Held: true, Silent: true}, {Now: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Person: true}} {
			s.Evaluate(ev)
		}
		s.Apply(Input{Arrived: &Mail{ID: "m1", Urgent: true}})
		for _, log := range logs[:3] {
			seq := s.Seq
			for line := range bytes.Lines(log) {
				e, err := wire.DecodeEvent(line)
				if err != nil {
					t.Fatal(err)
				}
				e.Team, e.Agent = s.Team, s.Agent
				if seq++; seq == 0 {
					break
				}
				e.Seq = seq
				s.Apply(Input{Now: e.At, Event: &e})
				if b := mustJSON(t, &s); len(b) > 4*maxState {
					t.Fatal(len(b))
				}
			}
		}
	})
}
