//go:build unix

package crashtest

import (
	"fmt"
	"strings"
)

// A verdict compares what was promised with what is there.
type verdict struct {
	messages            int
	lost, doubled, torn int
	unseen, unpaid      int // read by nobody and marked; cleared without an ack
	events, gaps        int // lines of logs; numbers that do not follow
	claims              int // that nobody settles
}

func (v verdict) String() string {
	return fmt.Sprintf("%d messages, %d events: lost %d, doubled %d, torn %d, gaps %d, consumed unseen %d, cleared without an ack %d, claims left %d",
		v.messages, v.events, v.lost, v.doubled, v.torn, v.gaps, v.unseen, v.unpaid, v.claims)
}

// reporter is the part of a testing.TB that a verdict needs.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// judge reports every difference as an error of the test.
func (l *ledger) judge(t reporter, c *census) verdict {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	v := verdict{messages: len(c.messages)}
	for _, s := range c.torn {
		v.torn++
		t.Errorf("torn: %s", s)
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
			v.doubled++
			t.Errorf("in %d places: %s", len(paths), strings.Join(paths, ", "))
		}
	}
	l.judgePosts(t, &v, texts)
	l.judgeDrops(t, &v, c, texts)
	for m := range l.acks {
		if len(ids[m]) == 0 {
			v.lost++
			t.Errorf("lost: the ack %s in the mailbox of %s", m.id, m.agent)
		}
	}
	l.judgeReading(t, &v, c)
	l.judgeDebts(t, &v, c)
	l.judgeLogs(t, &v, c)
	l.judgeHanded(t, &v)
	for _, s := range l.order {
		t.Errorf("%s", s)
	}
	l.order = nil
	return v
}

func (l *ledger) judgePosts(t reporter, v *verdict, texts map[key][]found) {
	for k, p := range l.posts {
		at := texts[k]
		switch {
		case p.stored && len(at) == 0:
			v.lost++
			t.Errorf("lost: %s (%s) to %s, of %s", p.id, k.token, k.agent, p.from)
		case len(at) > 1:
			v.doubled++
			t.Errorf("doubled: %s in %s and %s", k.token, at[0].path, at[1].path)
		}
		for _, f := range at {
			if !f.whole {
				v.torn++
				t.Errorf("torn: %s", f.path)
			}
			if p.stored && f.ID != p.id {
				t.Errorf("another id: %s printed, %s there", p.id, f.path)
			}
		}
	}
	for k, at := range texts {
		if l.posts[k] == nil && l.drops[k] == nil {
			t.Errorf("from nowhere: %s in %s", k.token, at[0].path)
		}
	}
}

func (l *ledger) judgeDrops(t reporter, v *verdict, c *census, texts map[key][]found) {
	events := map[token]int{}
	for _, lines := range c.events {
		for _, line := range lines {
			if m := headLine.FindStringSubmatch(line); m != nil {
				events[token(m[1])]++
			}
		}
	}
	places := map[key][]string{}
	originals := map[key]int{}
	for _, o := range c.others {
		k := key{o.agent, o.token}
		switch {
		case o.kind == "original":
			originals[k]++
		case o.kind == "claim" && (len(texts[k]) > 0 || events[o.token] > 0):
			// Published, and not let go of yet: settled by who comes next.
		case o.token != "":
			places[k] = append(places[k], o.path)
		}
	}
	for k, d := range l.drops {
		there := places[k]
		for _, f := range texts[k] {
			there = append(there, f.path)
			if d.whole && !f.whole {
				v.torn++
				t.Errorf("torn: %s, dropped as %s", f.path, d.name)
			}
		}
		for range events[k.token] {
			there = append(there, "the events")
		}
		switch {
		case d.safe && len(there) == 0:
			v.lost++
			t.Errorf("lost: %s, dropped on %s (originals kept: %d)", d.name, k.agent, originals[k])
		case len(there) > 1:
			v.doubled++
			t.Errorf("doubled: %s, dropped on %s, is %s", d.name, k.agent, strings.Join(there, " and "))
		}
	}
}

// judgeReading: what is marked as read was read, and by one.
func (l *ledger) judgeReading(t reporter, v *verdict, c *census) {
	for k, n := range l.alone {
		if n > 1 && k.agent != "carol" { // whose mail is put back
			v.doubled++
			t.Errorf("shown to %d readers: %s of %s", n, k.token, k.agent)
		}
	}
	for _, f := range c.messages {
		if f.token == "" || f.file || f.place == "new" || f.place == "withdrawn" {
			continue
		}
		k := key{f.agent, f.token}
		if l.got[k] == 0 && !(l.begun[k] && !f.whole) && !l.excused[mail{f.agent, f.ID}] {
			v.unseen++
			t.Errorf("consumed unseen: %s (%s)", f.path, f.token)
		}
	}
}

// judgeDebts: what asked for an ack is done only when its sender has one, or
// an answer.
func (l *ledger) judgeDebts(t reporter, v *verdict, c *census) {
	answered := map[string]bool{} // the id answered and who answered it
	for _, f := range c.messages {
		if f.InReplyTo != "" {
			who, _, _ := strings.Cut(f.From, "@")
			answered[f.InReplyTo+" "+who] = true
		}
	}
	for _, f := range c.messages {
		from, _, _ := strings.Cut(f.From, "@")
		if f.RequiresAck && (f.place == "done" || f.place == "archive") && from != "drop" && !answered[f.ID+" "+f.agent] {
			v.unpaid++
			t.Errorf("cleared without an ack: %s", f.path)
		}
	}
}
