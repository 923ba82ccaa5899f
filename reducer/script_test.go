package reducer

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

var update = flag.Bool("update", false, "write what the scripts in testdata print now")

// player feeds inputs, one per line, to a state and prints what changed.
//
//	KIND k=v …            an event as for `atm event`, after its source: pty,
//	                      hook (by default), acp, cli or drop
//	{"kind":…}            an event of any vocabulary, after its source: acp by default
//	+5s                   the clock advances; -1h: it is set back
//	look [held] [silent] [person] [stopping] [run]
//	json                  continue from the state's JSON
type player struct {
	state State
	now   time.Time
	seq   uint64
	shown string
	used  string
}

// fromJSON returns the state as a snapshot gives it back.
func fromJSON(s *State) State {
	out := State{}
	data, err := json.Marshal(s)
	if err = cmp.Or(err, json.Unmarshal(data, &out)); err != nil {
		panic(err)
	}
	return out
}

// allKinds are the kinds of event that the reducer knows, and ones that it only lets pass.
var allKinds = []string{
	"agent_output", "available_commands_update", "config_option_update", "confirm_required", "current_mode_update", "draft_ready",
	"dropped_counters", "exited", "goal_complete", "injected", "injecting", "injection_failed", "message_acked", "message_again",
	"message_announced", "message_delta", "message_read", "message_returned", "message_withdrawn", "plan", "restarting", "server_request",
	"session_end", "session_info_update", "session_start", "spawned", "state_change", "status_update", "stream_error", "thought_delta",
	"thread_active", "tool_call_end", "tool_call_start", "tool_call_update", "turn_completed", "turn_idle", "turn_started", "usage",
	"user_message_chunk", "waiting_for_input",
}

func newPlayer() *player {
	return &player{now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
}

// words splits a line at blanks outside single quotes. \n is a line's end.
func words(line string) (out []string) {
	in, cur, any := false, "", false
	for _, r := range strings.ReplaceAll(line, `\n`, "\n") {
		switch {
		case r == '\'':
			in, any = !in, true
		case r == ' ' && !in:
			if any {
				out = append(out, cur)
			}
			cur, any = "", false
		default:
			cur, any = cur+string(r), true
		}
	}
	if any {
		out = append(out, cur)
	}
	return out
}

// event parses an event.
func (p *player) event(line string) (*wire.Event, error) {
	var e wire.Event
	var err error
	source := ""
	if before, rest, _ := strings.Cut(line, " "); slices.Contains([]string{"pty", "hook", "acp", "cli", "drop"}, before) {
		source, line = before, rest
	}
	if strings.HasPrefix(line, "{") {
		e, err = foreign.Adopt([]byte(line))
		source = cmp.Or(source, "acp")
	} else {
		w := words(line)
		source = cmp.Or(source, "hook")
		e.Kind = w[0]
		for _, s := range w[1:] {
			k, v, ok := strings.Cut(s, "=")
			if !ok {
				return nil, fmt.Errorf("%q: k=v", s)
			}
			switch k {
			case "turn_id":
				e.TurnID = v
			case "session":
				e.Session = v
			case "event_id":
				e.EventID = v
			default:
				raw, bad := foreign.ParseField(e.Kind, k, v)
				if bad != nil { // only another program may append it
					raw = wire.Quote(v)
				}
				e = e.With(k, raw)
			}
		}
		e = foreign.Translate(e)
	}
	if err != nil {
		return nil, err
	}
	p.seq++
	e.Seq, e.At, e.Team, e.Agent, e.Source = p.seq, p.now, "main", "bob", source
	// Fold it as it is read back from a log.
	e, err = wire.DecodeEvent(e.Append(nil))
	return &e, err
}

// play carries out a line and returns what it prints.
func (p *player) play(line string) (out []string, err error) {
	w := words(line)
	switch {
	case line[0] == '+' || line[0] == '-':
		d, err := time.ParseDuration(strings.TrimPrefix(line, "+"))
		p.now = p.now.Add(d)
		return nil, err
	case w[0] == "look":
		ev := Evidence{Now: p.now}
		for _, s := range w[1:] {
			is := map[string]*bool{"held": &ev.IsRunnerLocked, "silent": &ev.IsNotAnswering, "person": &ev.IsPerson, "stopping": &ev.IsStopping}[s]
			if s == "run" {
				ev.RunID = "r1"
			} else if is == nil {
				return nil, errors.New(s)
			} else {
				*is = true
			}
		}
		v := p.state.Evaluate(ev)
		out := fmt.Sprintf("= %s (%s) since %s; %s by %s", v.Word, v.Detail, clock(v.Since), v.Presence, clock(v.PresenceAt))
		if !v.Until.IsZero() {
			out += ", until " + clock(v.Until)
		}
		if v.PID != 0 {
			out += fmt.Sprintf(", pid %d", v.PID)
		}
		return []string{out}, nil
	case w[0] == "json":
		p.state = fromJSON(&p.state)
		return nil, nil
	}
	e, err := p.event(line)
	if err != nil {
		return nil, err
	}
	p.state.Apply(e)
	if s := show(&p.state); s != p.shown {
		p.shown = s
		out = append(out, s)
	}
	if s := showUsage(p.state.Usage); s != p.used {
		p.used = s
		out = append(out, s)
	}
	return out, nil
}

func showUsage(u *Usage) string {
	if u == nil {
		return ""
	}
	show := func(f Figures) string {
		text := fmt.Sprintf("%d (%d in, %d cached, %d out)", f.TotalTokens, f.InputTokens, f.CachedTokens, f.OutputTokens)
		if f.Currency != "" {
			text += fmt.Sprintf(" %.6g %s", f.Cost, f.Currency)
		}
		return text
	}
	out := "used " + show(u.Figures)
	if u.Turn != (Figures{}) {
		out += ", in the turn " + show(u.Turn)
	}
	if u.ContextSize > 0 {
		out += fmt.Sprintf(", context %d of %d", u.ContextUsed, u.ContextSize)
	}
	return out
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format("15:04:05")
}

// show describes a state in one line.
func show(s *State) string {
	ses := s.Session()
	t := ses.Turn
	out := fmt.Sprintf("%s: %s", s.Word(), ses.Activity)
	if ses.Detail != "" && ses.Waiting() == nil {
		out += " " + strconv.Quote(ses.Detail)
	}
	out += fmt.Sprintf(", turn %s %s", cmp.Or(t.ID, "-"), t.Status)
	if ses.ID != "" {
		out += ", session " + ses.ID
	}
	if t.Thread != "" {
		out += ", thread " + t.Thread
	}
	if t.Transport != "" {
		out += ", by " + t.Transport
	}
	if w := ses.Waiting(); w != nil {
		out += ", asks " + showWaiting(w)
		for i := range ses.Requests[1:] {
			out += ", then " + showWaiting(&ses.Requests[i+1])
		}
	}
	for i := range s.Asked {
		out += ", on its channel asks " + showWaiting(&s.Asked[i])
	}
	if l := ses.Last; l != nil {
		out += fmt.Sprintf("; last %s %s", cmp.Or(l.ID, "-"), l.Status)
		if l.Duration() > 0 {
			out += " after " + l.Duration().String()
		}
		if l.Error != "" {
			out += " by " + strconv.Quote(l.Error)
		}
	}
	if l := s.Limit; l != nil {
		out += fmt.Sprintf("; limit until %s", clock(l.Until))
		if l.CutOff {
			out += " cut it off"
		}
	}
	if s.Errors > 0 {
		out += fmt.Sprintf("; errors %d", s.Errors)
	}
	if s.Dropped != (Dropped{}) {
		out += fmt.Sprintf("; dropped %d and %d", s.Dropped.Dropped, s.Dropped.Unknown)
	}
	if s.Unknown > 0 {
		out += fmt.Sprintf("; unknown %d", s.Unknown)
	}
	return out
}

func showWaiting(w *Waiting) string {
	out := w.Kind
	if w.Tool != "" {
		out += " " + w.Tool
	}
	if w.Input != "" && w.Input != w.Prompt {
		out += " " + strconv.Quote(w.Input)
	}
	if w.Prompt != "" {
		out += " " + strconv.Quote(w.Prompt)
	}
	if w.ID != "" {
		out += " as " + w.ID
	}
	if w.ToolCallID != "" {
		out += " for " + w.ToolCallID
	}
	if w.IsIncomplete {
		out += " cut"
	}
	return out
}

// TestScripts plays testdata/*.txt: inputs, and indented by a tab what they change. `go test ./reducer -run Scripts
// -update` rewrites the files.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 15 {
		t.Fatal(len(files), "scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := newPlayer()
			var got strings.Builder
			for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
				if strings.HasPrefix(line, "\t") {
					continue
				}
				got.WriteString(line + "\n")
				if line == "" || line[0] == '#' {
					continue
				}
				out, err := p.play(line)
				if err != nil {
					t.Fatalf("%s:%d: %s: %v", file, i+1, line, err)
				}
				for _, s := range out {
					got.WriteString("\t" + s + "\n")
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if d := gocmp.Diff(string(data), got.String()); d != "" {
				t.Error(d)
			}
		})
	}
}
