package history

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		about  string
		events []string
		want   string // each turn: id status "prompt" "response"
	}{
		{"nothing", nil, ""},
		{"a turn", []string{"turn_started turn=t1 prompt=it", "turn_completed turn=t1 status=completed response=done", "turn_idle turn=t1"}, `t1 completed "it" "done"`},
		{"one that goes on", []string{"turn_started turn=t1 prompt=a"}, `t1 open "a" ""`},
		{"nobody said how it ended", []string{"turn_started turn=t1", "pty state_change new=idle"}, `t1  "" ""`},
		{"said later", []string{"turn_started turn=t1", "pty state_change new=idle", "turn_completed turn=t1 status=interrupted response=half"}, `t1 interrupted "" "half"`},
		{"the end alone", []string{"turn_completed turn=t1 status=failed error=overloaded"}, `t1 failed "" ""`},
		{"its end was lost", []string{"turn_started turn=t1 prompt=a", "turn_started turn=t2 prompt=b", "turn_completed turn=t2 status=completed"}, `t1  "a" "" | t2 completed "b" ""`},
		{"said when the next one is open", []string{"turn_started turn=t1 prompt=a", "turn_started turn=t2 prompt=b", "turn_completed turn=t1 status=failed error=overloaded", "turn_completed turn=t1 status=completed"},
			`t1 failed "a" "" | t2 open "b" ""`},
		{"and the next one, too", []string{"turn_started turn=t1 prompt=a", "turn_started turn=t2 prompt=b", "turn_completed turn=t1 status=cancelled", "turn_completed turn=t2"},
			`t1 cancelled "a" "" | t2 completed "b" ""`},
		{"one named late", []string{"state_change new=thinking", "turn_completed turn=t1 status=completed response=x"}, `t1 completed "" "x"`},
		{"the program dies", []string{"turn_started turn=t1 prompt=a", "exited code=1"}, `t1 failed "a" ""`},
		{"two sessions", []string{"turn_started session=d1 turn=t1 prompt=a", "session_start session=d2", "turn_started session=d2 turn=t9 prompt=b", "turn_completed session=d2 turn=t9 status=completed response=y", "turn_completed session=d1 turn=t1 status=completed response=x"},
			`t1 completed "a" "x" | t9 completed "b" "y"`},
		{"an end of another", []string{"turn_started turn=t1 prompt=a", "turn_completed turn=t0 status=failed response=no"}, `t1 open "a" ""`},
		{"again after that", []string{"turn_started turn=t1 prompt=a", "turn_completed turn=t1 status=completed response=x", "turn_started turn=t1 prompt=b", "turn_started turn=t2 prompt=c"}, `t1 completed "a" "x" | t2 open "c" ""`},
	} {
		var got []string
		for _, p := range Full(events(c.events, ""), 0) {
			got = append(got, fmt.Sprintf("%s %s %q %q", p.ID, p.Status, p.Prompt, p.Response))
			if p.Status != Open && p.Status != "" && p.Ended == nil || p.Status == Open && p.Ended != nil {
				t.Errorf("%s: %s ended %v", c.about, p.ID, p.Ended)
			}
		}
		if s := strings.Join(got, " | "); s != c.want {
			t.Errorf("%s: %s, not %s", c.about, s, c.want)
		}
	}
}

// A message that is handed over while a turn is open belongs to it.
func TestHistoryMessages(t *testing.T) {
	t.Parallel()
	a, b, c := wire.NewID(), wire.NewID(), wire.NewID()
	turns := Of(events([]string{
		"message_read id=" + string(a), "pty turn_started turn=t1", "pty injected turn=t1 id=" + string(b), "message_read id=" + string(c),
		"pty turn_completed turn=t1 status=completed", "message_read id=" + string(a),
		"pty injected turn=t2 id=" + string(a), "pty turn_started turn=t2",
	}, "")).Turns(0)
	if len(turns) != 2 || fmt.Sprint(turns[1].Messages) != fmt.Sprint([]wire.ID{a}) || fmt.Sprint(turns[0].Messages) != fmt.Sprint([]wire.ID{b, c}) {
		t.Error(turns)
	}
}

// events makes events of lines such as "hook turn_started turn=t1 prompt=it", in which ID stands for id.
func events(lines []string, id wire.ID) (list []wire.Event) {
	for i, line := range lines {
		words := strings.Fields(strings.ReplaceAll(line, "id=ID", "id="+string(id)))
		e := wire.Event{Seq: uint64(i + 1), At: time.Now(), Source: "cli"}
		if words[0] == "pty" || words[0] == "hook" {
			e.Source, words = words[0], words[1:]
		}
		e.Kind = words[0]
		for _, w := range words[1:] {
			switch k, v, _ := strings.Cut(w, "="); k {
			case "turn":
				e.TurnID = v
			case "session":
				e.Session = v
			default:
				e = e.With(k, v)
			}
		}
		list = append(list, e)
	}
	return list
}

// What a delta costs does not grow with what was said before it, also if two sessions talk at once.
func TestManyDeltas(t *testing.T) {
	const n = 20_000
	list, want := make([]wire.Event, n), strings.Repeat("abcde", n/2-1)
	for i := range list {
		of := fmt.Sprint("s", i%2)
		e := wire.Event{Seq: uint64(i + 1), At: time.Unix(int64(i), 0), Source: "hook", Kind: "message_delta", TurnID: "t" + of, Session: of}
		if e = e.With("delta", "abcde"); i < 2 {
			e.Kind = wire.TurnStarted
		}
		list[i] = e
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	turns := Full(list, 0)
	runtime.ReadMemStats(&after)
	if len(turns) != 2 || turns[0].Response != want || turns[1].Response != want {
		t.Errorf("%d turns", len(turns))
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 200<<20 {
		t.Errorf("%d MiB were used", used>>20)
	}
}
