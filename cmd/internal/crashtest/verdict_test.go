//go:build unix

package crashtest

import (
	"fmt"
	"slices"
	"strings"
)

// judge compares what was promised with what is there; each difference is a complaint. Nobody
// may be at work.
func (r *record) judge(c *census) {
	r.count["messages"], r.count["log lines"] = len(c.messages), 0
	for _, s := range c.torn {
		r.breach("torn", "%s", s)
	}
	ids := map[mail][]string{}
	for _, f := range c.messages {
		ids[mail{f.agent, f.ID}] = append(ids[mail{f.agent, f.ID}], f.path)
	}
	for _, paths := range ids {
		if len(paths) > 1 {
			r.breach("doubled", "%s", strings.Join(paths, " and "))
		}
	}
	for m := range r.acks {
		if len(ids[m]) == 0 {
			r.breach("lost", "the ack %s in the mailbox of %s", m.id, m.agent)
		}
	}
	places := c.places()
	for k, it := range r.items {
		r.judgeItem(k, it, places[k])
	}
	for k, at := range places {
		if r.items[k] == nil && k.token != "" {
			r.wrong("from nowhere: %s in %s", k.token, at[0].path)
		}
	}
	r.judgeReads(c)
	r.judgeAcks(c)
	r.judgeLogs(c)
}

// judgeItem: what was promised is there, once, whole and under its id or number; all else is whole or
// absent. A dropped file is one message, or one event, or one bad file, or still there.
func (r *record) judgeItem(k key, it *item, at []place) {
	if it.kind == "message" { // of which a log may tell
		at = slices.DeleteFunc(at, func(p place) bool { return p.kind == "log" })
	}
	what := fmt.Sprintf("%s %s of %s (%s%d from %s)", it.kind, k.token, k.agent, it.id, it.seq, it.from)
	if it.promised && len(at) == 0 {
		r.breach("lost", "%s", what)
	}
	if len(at) > 1 {
		r.breach("doubled", "%s in %v", what, at)
	}
	for _, p := range at {
		isDrops := it.kind == "drop" && (it.cut || p.kind == "log" || p.id == "")
		if !p.whole && !isDrops {
			r.breach("torn", "%s in %s", what, p.path)
		}
		if it.id != "" && p.id != it.id || it.seq != 0 && p.seq != it.seq {
			r.wrong("%s is under %s%d in %s", what, p.id, p.seq, p.path)
		}
	}
}

// judgeReads: what is marked as read was read, and by one. A hook hands a message over once, and
// once more, marked, if nothing showed that it arrived.
func (r *record) judgeReads(c *census) {
	for k, it := range r.items {
		if it.again > 0 && k.agent != "carol" { // whose mail is put back
			r.breach("doubled", "shown %d times after it was read: %s of %s", it.again, k.token, k.agent)
		}
		if (it.plain > 1 || it.marked > 1) && !r.isPutBack(k.agent) {
			r.breach("doubled", "handed over %d times, and %d times marked as a repeat: %s of %s", it.plain, it.marked, k.token, k.agent)
		}
	}
	for _, f := range c.messages {
		it := r.items[key{f.agent, f.token}]
		isRead := f.place != "new" && f.place != "withdrawn"
		if it != nil && isRead && !f.attached && !r.excused[mail{f.agent, f.ID}] && it.shown == 0 && !(it.begun && !f.whole) {
			r.breach("consumed unseen", "%s (%s)", f.path, f.token)
		}
	}
}

// judgeAcks: what asked for an ack is done only when its sender has one, or an answer.
func (r *record) judgeAcks(c *census) {
	answered := map[mail]bool{}
	for _, f := range c.messages {
		answered[mail{f.sender(), f.InReplyTo}] = true
	}
	for _, f := range c.messages {
		isDone := f.place == "done" || f.place == "archive"
		if f.RequiresAck && isDone && f.sender() != "drop" && !answered[mail{f.agent, f.ID}] {
			r.breach("cleared without an ack", "%s", f.path)
		}
	}
}

// judgeLogs: numbers have no gap, no id is there twice, and what hooks said is in, once.
func (r *record) judgeLogs(c *census) {
	calls := map[hookEvent][]string{}
	for log, lines := range c.logs {
		agent, _, _ := strings.Cut(log, ".")
		r.count["log lines"] += len(lines)
		next, ids := uint64(1), map[string]uint64{}
		for _, e := range lines {
			if e.Seq != next {
				r.breach("gaps", "events of %s: number %d where %d comes next, in %s: %s", agent, e.Seq, next, e.path, clip(e.line))
			}
			next = e.Seq + 1
			// (The log knows an id for a MiB only; nobody here needs it longer.)
			if first := ids[e.EventID]; e.EventID != "" && first != 0 {
				r.breach("doubled", "%d and %d of %s have the id %s: %s", first, e.Seq, log, e.EventID, clip(e.line))
			}
			ids[e.EventID] = e.Seq
			if e.Source == "hook" {
				h := e.hookEvent(agent)
				calls[h] = append(calls[h], e.line)
			}
		}
	}
	for e, h := range r.hooks {
		switch n := len(calls[e]); {
		case h.said && n == 0:
			r.breach("lost", "what a hook said: %+v", e)
		case n > 1 && !h.loose, n > h.tries:
			r.breach("doubled", "%d times in the log, of %d calls: %+v: %s %s", n, h.tries, e, calls[e][0], calls[e][n-1])
		}
	}
}
