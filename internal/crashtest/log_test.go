//go:build unix

package crashtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// logLine is an event as it lies in an agent's log.
type logLine struct {
	Seq       uint64 `json:"seq"`
	Source    string `json:"source"`
	Kind      string `json:"kind"`
	Session   string `json:"session"`
	TurnID    string `json:"turn_id"`
	ToolCall  string `json:"tool_call_id"`
	Status    string `json:"status"`
	Content   string `json:"content"`
	EventID   string `json:"event_id"`
	MessageID string `json:"id"`
	Wire      *struct {
		Content string `json:"content"`
		Text    string `json:"text"`
	} `json:"wire"`

	path string // of the segment, below the team
	line string
}

// eventLogs are the logs of agents, by name, each from its first event on. That of a
// retired one goes by name and time.
type eventLogs map[string][]logLine

// text is what a test put into an event.
func (e *logLine) text() string {
	switch {
	case e.Wire != nil && e.Wire.Content != "":
		return e.Wire.Content
	case e.Wire != nil:
		return e.Wire.Text
	}
	return e.Content
}

// happening is an event with a text, which some process was to append.
type happening struct {
	agent string
	said  bool   // a process said that it is in: it has to be there, once
	seq   uint64 // under this number, where that was printed
	sync  bool   // and it has to survive a power cut
}

// trace is what tells an event of a hook's call in the log. about is the turn
// or the tool call.
type trace struct{ agent, kind, session, about string }

// traced is what is known of such an event.
type traced struct {
	tries int  // calls that may have appended it
	said  bool // one ended well, and so says that it is in
	loose bool // two calls may each leave one: a turn goes on after its end, moments differ
}

// traceOf is what a line of the log says of a hook's call.
func traceOf(agent string, e *logLine) trace {
	t := trace{agent: agent, kind: e.Kind, session: e.Session}
	switch e.Kind {
	case "turn_started", "turn_idle":
		t.about = e.TurnID
	case "turn_completed":
		t.about = strings.TrimSpace(e.TurnID + " " + e.Status)
	case "tool_call_start", "tool_call_end":
		t.about = e.ToolCall
	}
	return t
}

// happens notes that an event is about to be appended.
func (l *ledger) happens(t token, agent string, sync bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events[t] = &happening{agent: agent, sync: sync}
	l.count["events"]++
}

// happened notes that a process said an event is in; seq is 0 where it did
// not say under which number.
func (l *ledger) happened(t token, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.events[t]
	if h == nil {
		l.order = append(l.order, "it prints an event that was not given to it: "+string(t))
		return
	}
	if h.seq != 0 && seq != 0 && h.seq != seq {
		l.order = append(l.order, "the same event was said to be in twice: "+string(t))
	}
	if !h.said {
		l.count["events said to be in"]++
	}
	h.said = true
	if seq != 0 {
		h.seq = seq
	}
}

// tried notes a call of a hook that was to leave an event; said is that the
// call ended well.
func (l *ledger) tried(t trace, said, loose bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.traces[t]
	if c == nil {
		c = &traced{}
		l.traces[t] = c
	}
	c.tries++
	c.said = c.said || said
	c.loose = c.loose || loose
}

// forgive takes back what is not promised across a power cut: the last events
// of a log, unless they were synced.
func (l *ledger) forgive(c *census) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, there := map[string]uint64{}, map[token]bool{}
	for name, lines := range c.logs {
		agent, _, _ := strings.Cut(name, ".")
		for i := range lines {
			last[agent] = max(last[agent], lines[i].Seq)
			if t, _ := tokenOf(lines[i].text()); t != "" {
				there[t] = true
			}
		}
	}
	for t, h := range l.events {
		if h.said && !h.sync && (h.seq > last[h.agent] || h.seq == 0 && !there[t]) {
			h.said, h.seq = false, 0
			l.count["events lost to a cut"]++
		}
	}
	for _, t := range l.traces {
		t.said = false
	}
	clear(l.handed)
	clear(l.taken)
}

// judgeLogs: numbers have no gap; what was said to be in is in, once, under its
// number, and whole.
func (l *ledger) judgeLogs(t reporter, v *verdict, c *census) {
	type place struct {
		agent string
		e     *logLine
	}
	found := map[token][]place{}
	calls := map[trace][]*logLine{}
	ids := map[string]uint64{}
	for name, lines := range c.logs {
		agent, _, _ := strings.Cut(name, ".")
		next := uint64(1)
		for i := range lines {
			e := &lines[i]
			v.events++
			if e.Seq != next {
				v.gaps++
				t.Errorf("events of %s: number %d where %d comes next, in %s: %s", agent, e.Seq, next, e.path, clip(e.line))
			}
			next = e.Seq + 1
			if e.EventID != "" {
				// (The log knows an id for a MiB only; nobody here needs it longer.)
				if first := ids[name+" "+e.EventID]; first != 0 {
					v.doubled++
					t.Errorf("doubled: %d and %d of %s have the id %s: %s", first, e.Seq, name, e.EventID, clip(e.line))
				}
				ids[name+" "+e.EventID] = e.Seq
			}
			if e.Source == "hook" {
				k := traceOf(agent, e)
				calls[k] = append(calls[k], e)
			}
			if tok, whole := tokenOf(e.text()); tok != "" && l.events[tok] != nil {
				found[tok] = append(found[tok], place{agent, e})
				if !whole {
					v.torn++
					t.Errorf("torn: event %d of %s", e.Seq, agent)
				}
			}
		}
	}
	for tok, h := range l.events {
		at := found[tok]
		switch {
		case len(at) == 0:
			if h.said {
				v.lost++
				t.Errorf("lost: event %s of %s (number %d, synced %v)", tok, h.agent, h.seq, h.sync)
			}
			continue
		case len(at) > 1:
			v.doubled++
			t.Errorf("doubled: event %s is %d and %d of %s", tok, at[0].e.Seq, at[1].e.Seq, at[0].agent)
		}
		if at[0].agent != h.agent {
			t.Errorf("event %s of %s is in the log of %s", tok, h.agent, at[0].agent)
		}
		if h.seq != 0 && at[0].e.Seq != h.seq {
			t.Errorf("event %s of %s: number %d printed, %d there", tok, h.agent, h.seq, at[0].e.Seq)
		}
	}
	for k, c := range l.traces {
		switch n := len(calls[k]); {
		case c.said && n == 0:
			v.lost++
			t.Errorf("lost: what a hook said: %+v", k)
		case n > 1 && !c.loose, n > c.tries:
			v.doubled++
			t.Errorf("%d times in the log, of %d calls: %+v: %s %s", n, c.tries, k, calls[k][0].line, calls[k][n-1].line)
		}
	}
}

// logged sorts the lines of a segment in. Those of the archive come first.
func (c *census) logged(agent, rel string, line []byte) {
	e := logLine{path: rel, line: string(line)}
	if dir, ok := strings.CutPrefix(rel, ".archive/retired/"); ok {
		agent, _, _ = strings.Cut(dir, "/")
	}
	if json.Unmarshal(line, &e) == nil {
		c.logs[agent] = append(c.logs[agent], e)
	}
}

// segments are an agent's segments that are not in the archive, oldest first.
func (w *world) segments(agent string) (out []string) {
	out, _ = filepath.Glob(filepath.Join(w.team(), agent, "events", "*.ndjson"))
	return out
}

// folded is up to which event the older ones of an agent may be in the archive.
func (w *world) folded(agent string) uint64 {
	var base struct {
		Seq uint64 `json:"seq"`
	}
	data, err := os.ReadFile(filepath.Join(w.team(), agent, "events", "base.json"))
	if err == nil && json.Unmarshal(data, &base) != nil {
		w.wrong("torn: the base of %s: %s", agent, clip(string(data)))
	}
	return base.Seq
}
