//go:build unix

package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What is written to logs, folded and archived.
var eventDeeds = []deed{
	{"event", func(p *template, w *world) act { return w.noticing() }},
	{"event --sync", func(p *template, w *world) act { return w.noticing("--sync") }},
	{"event after a torn line", func(p *template, w *world) act {
		segs := w.segments("bob")
		f, err := os.OpenFile(segs[len(segs)-1], os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.WriteString(`{"seq":999,"at":"2026-`)
			f.Close()
		}
		if err != nil {
			w.wrong("%v", err)
		}
		return w.noticing("--sync")
	}},
	{"event --stdin", func(p *template, w *world) act { return w.streaming() }},
	{"event --stdin --route", func(p *template, w *world) act { return w.streaming("--route", "--sync") }},
	{"events", func(p *template, w *world) act {
		var printed string
		return act{
			call: call{args: []string{"events", "bob", "--json", "--limit", "0"}},
			note: func(r result) { printed = r.out },
			done: func(c *census) error {
				seq := w.folded("bob")
				for line := range strings.Lines(printed) {
					var e struct {
						Seq      uint64 `json:"seq"`
						Archived any    `json:"archived"`
						Gap      any    `json:"gap"` // where the base could not be read
					}
					if err := json.Unmarshal([]byte(line), &e); err != nil {
						return err
					}
					if e.Archived == nil && e.Gap == nil && e.Seq != seq+1 {
						return fmt.Errorf("event %d is printed after %d", e.Seq, seq)
					}
					seq = max(seq, e.Seq)
				}
				if lines := c.logs["bob"]; seq != lines[len(lines)-1].Seq {
					return fmt.Errorf("event %d is the last that is printed", seq)
				}
				return nil
			},
		}
	}},
	{"status", func(p *template, w *world) act {
		var printed string
		failing := true
		return act{
			call: call{args: []string{"status", "bob", "--json"}},
			note: func(r result) { printed = r.out },
			done: func(*census) error {
				defer func() { failing = false }()
				if failing && strings.Contains(printed, `"state":"unknown"`) && strings.Contains(printed, "cannot be read") {
					return nil // it says so
				}
				return alike(printed, p.said)
			},
			after: func(t reporter) { w.judgeStatus(t, "bob") },
		}
	}},
	{"gc of events", func(p *template, w *world) act {
		return act{
			call: call{args: []string{"gc", "--keep", "0s"}},
			note: func(result) {},
			done: func(*census) error {
				if n := len(w.segments("bob")); n != 1 {
					return fmt.Errorf("%d segments are not in the archive", n)
				}
				return nil
			},
			after: func(t reporter) {
				w.judgeArchive(t, "bob")
				if err := alike(w.must("status", "bob", "--json").out, p.said); err != nil {
					t.Errorf("after gc: %v", err)
				}
			},
		}
	}},
}

// alike compares what two calls of status printed of the events. What waits in
// the mailbox is told as far as it can be read.
func alike(got, want string) error {
	mail := []string{"unread", "owed", "owes_to", "bad"}
	if got, want := without(got, mail...), without(want, mail...); got != want {
		return fmt.Errorf("the status is\n%s\nand should be\n%s", got, want)
	}
	return nil
}

// noticing is an act that notes an event of bob's, by its id.
func (w *world) noticing(flags ...string) act {
	t, text := write(500)
	w.happens(t, "bob", slices.Contains(flags, "--sync"))
	args := append([]string{"event", "agent_output", "stream=std_out", "content=" + text, "event_id=id-" + string(t), "--json", "--as", "bob"}, flags...)
	return act{
		call: call{args: args},
		note: func(r result) { w.printedEvents(r.out) },
		done: func(c *census) error { return c.logs.have(t) },
	}
}

// streaming is an act that pipes five events in, by their ids; routed, to bob
// and carol.
func (w *world) streaming(flags ...string) act {
	var tokens []token
	var lines strings.Builder
	for i := range 5 {
		t, text := write(500)
		to, name := "bob", ""
		if slices.Contains(flags, "--route") {
			to = []string{"bob", "carol"}[i%2]
			name = to
		}
		w.happens(t, to, slices.Contains(flags, "--sync"))
		tokens = append(tokens, t)
		lines.WriteString(eventLine(name, "id-"+string(t), text))
	}
	return act{
		call: call{args: append([]string{"event", "--stdin", "--json", "--as", "bob"}, flags...), text: lines.String()},
		note: func(r result) { w.printedEvents(r.out) },
		done: func(c *census) error { return c.logs.have(tokens...) },
	}
}

// have says whether events are in the logs.
func (l eventLogs) have(tokens ...token) error {
	for _, t := range tokens {
		there := false
		for _, lines := range l {
			there = there || slices.ContainsFunc(lines, func(e logLine) bool { return strings.Contains(e.line, string(t)) })
		}
		if !there {
			return fmt.Errorf("event %s is not in", t)
		}
	}
	return nil
}

// history gives bob a log of which a part is in the archive, and more could be.
func (p *template) history() {
	turns := func(from, to int) {
		var lines strings.Builder
		for i := from; i < to; i++ {
			id := fmt.Sprintf(`"agent":"bob","turn_id":"t%d","thread_id":"th","transport":"exec"}`, i)
			fmt.Fprintf(&lines, "{\"kind\":\"turn_started\",%s\n{\"kind\":\"counted\"}\n{\"kind\":\"turn_completed\",\"status\":\"completed\",%s\n", id, id)
		}
		if r := p.run(call{args: []string{"event", "--stdin", "--as", "bob"}, text: lines.String()}); r.code != 0 {
			p.t.Fatal(r)
		}
	}
	turns(0, 20)
	p.split("bob")
	p.must("gc", "--keep", "0s", "--keep-last", "1000")
	turns(20, 60)
	p.split("bob")
	turns(60, 90)
	p.must("status", "bob")
	if err := os.Remove(p.stateFile("bob")); err != nil {
		p.t.Fatal("status has written no state.json: ", err)
	}
	if p.folded("bob") == 0 || len(p.segments("bob")) != 2 {
		p.t.Fatal("nothing of the log is in the archive, or all")
	}
}

// split makes two segments of the newest, as if the first were full. Nobody may
// be at work.
func (w *world) split(agent string) {
	w.t.Helper()
	segs := w.segments(agent)
	path := segs[len(segs)-1]
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	at := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	var last logLine
	if err := json.Unmarshal(data[at:], &last); err != nil {
		w.t.Fatal(err)
	}
	next := filepath.Join(filepath.Dir(path), fmt.Sprintf("%020d.ndjson", last.Seq))
	if err := os.WriteFile(next, data[at:], 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Truncate(path, int64(at)); err != nil {
		w.t.Fatal(err)
	}
}
