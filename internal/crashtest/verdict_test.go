//go:build unix

package crashtest

import "strings"

// judge compares what was promised with what is there; each difference is a complaint. Nobody
// may be at work.
func (r *record) judge(c *census) {
	r.count["messages"], r.count["log lines"] = len(c.messages), 0
	for _, s := range c.torn {
		r.breach("torn", "%s", s)
	}
	ids := map[mail][]string{}
	texts := map[key][]found{}
	for _, f := range c.messages {
		ids[mail{f.agent, f.ID}] = append(ids[mail{f.agent, f.ID}], f.path)
		if f.token != "" {
			texts[key{f.agent, f.token}] = append(texts[key{f.agent, f.token}], f)
		}
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
	r.judgePosts(texts)
	r.judgeDrops(c, texts)
	r.judgeReads(c)
	r.judgeAcks(c)
	r.judgeLogs(c)
}

// judgePosts: what was printed is there, once, whole and under its id; all else is whole or absent.
func (r *record) judgePosts(texts map[key][]found) {
	for k, p := range r.posts {
		at := texts[k]
		switch {
		case p.stored && len(at) == 0:
			r.breach("lost", "%s (%s) to %s, of %s", p.id, k.token, k.agent, p.from)
		case len(at) > 1:
			r.breach("doubled", "%s in %s and %s", k.token, at[0].path, at[1].path)
		}
		for _, f := range at {
			if !f.whole {
				r.breach("torn", "%s", f.path)
			}
			if p.stored && f.ID != p.id {
				r.wrong("another id: %s printed, %s there", p.id, f.path)
			}
		}
	}
	for k, at := range texts {
		if r.posts[k] == nil && r.drops[k] == nil {
			r.wrong("from nowhere: %s in %s", k.token, at[0].path)
		}
	}
}

// judgeDrops: a dropped file is one message, or one event, or one bad file, or still there.
func (r *record) judgeDrops(c *census, texts map[key][]found) {
	places := map[key][]string{}
	for log, lines := range c.logs {
		agent, _, _ := strings.Cut(log, ".")
		for _, e := range lines {
			if m := headLine.FindStringSubmatch(e.line); m != nil {
				places[key{agent, token(m[1])}] = append(places[key{agent, token(m[1])}], "an event in "+e.path)
			}
		}
	}
	for k, at := range texts {
		for _, f := range at {
			places[k] = append(places[k], f.path)
			if d := r.drops[k]; d != nil && d.whole && !f.whole {
				r.breach("torn", "%s, dropped as %s", f.path, d.name)
			}
		}
	}
	for _, o := range c.others {
		k := key{o.agent, o.token}
		isPublished := o.kind == "claim" && len(places[k]) > 0 // and settled by whoever comes next
		if o.token != "" && !isPublished {
			places[k] = append(places[k], o.path)
		}
	}
	for k, d := range r.drops {
		switch at := places[k]; {
		case d.safe && len(at) == 0:
			r.breach("lost", "%s, dropped on %s", d.name, k.agent)
		case len(at) > 1:
			r.breach("doubled", "%s, dropped on %s, is %s", d.name, k.agent, strings.Join(at, " and "))
		}
	}
}

// judgeReads: what is marked as read was read, and by one. A hook hands a message over once, and
// once more, marked, if nothing showed that it arrived.
func (r *record) judgeReads(c *census) {
	for k, got := range r.reads {
		if got.alone > 1 && k.agent != "carol" { // whose mail is put back
			r.breach("doubled", "shown to %d readers: %s of %s", got.alone, k.token, k.agent)
		}
		if (got.plain > 1 || got.marked > 1) && !r.isPutBack(k.agent) {
			r.breach("doubled", "handed over %d times, and %d times marked as a repeat: %s of %s", got.plain, got.marked, k.token, k.agent)
		}
	}
	for _, f := range c.messages {
		if f.token == "" || f.attached || f.place == "new" || f.place == "withdrawn" || r.excused[mail{f.agent, f.ID}] {
			continue
		}
		if got := r.reading(f.agent, f.token); got.shown == 0 && !(got.begun && !f.whole) {
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

// judgeLogs: numbers have no gap; what was said to be in is in, once, under its number, and whole.
func (r *record) judgeLogs(c *census) {
	type place struct {
		agent string
		logLine
	}
	found := map[token][]place{}
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
			if t, whole := tokenOf(e.text()); t != "" && r.events[t] != nil {
				found[t] = append(found[t], place{agent, e})
				if !whole {
					r.breach("torn", "event %d of %s", e.Seq, agent)
				}
			}
		}
	}
	for t, h := range r.events {
		at := found[t]
		switch {
		case len(at) == 0 && h.said:
			r.breach("lost", "event %s of %s (number %d, synced %v)", t, h.agent, h.seq, h.sync)
		case len(at) > 1:
			r.breach("doubled", "event %s is %d and %d of %s", t, at[0].Seq, at[1].Seq, at[0].agent)
		case len(at) == 1 && (at[0].agent != h.agent || h.seq != 0 && at[0].Seq != h.seq):
			r.wrong("event %s, number %d of %s, is number %d of %s", t, h.seq, h.agent, at[0].Seq, at[0].agent)
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
