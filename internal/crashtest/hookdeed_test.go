//go:build unix

package crashtest

import (
	"math/rand/v2"
	"time"
)

// What hooks of bob's program do. Whatever fails: exit 0, and nothing or one
// whole document on stdout. Afterwards all mail comes out, by hooks and by read,
// at most twice by hooks, and the second time marked.
var hookDeeds = []deed{
	{"hook at a session's start", func(p *template, w *world) act {
		s := w.newSession("bob")
		return s.hooking(s.starts("startup"))
	}},
	{"hook at a prompt", func(p *template, w *world) act {
		s := w.newSession("bob")
		return s.hooking(s.prompts())
	}},
	{"hook at a stop", func(p *template, w *world) act {
		s := w.newSession("bob")
		s.tell(s.prompts())
		s.tell(s.uses()[0])
		w.mail("bob")
		w.mail("bob")
		return s.hooking(s.stops(false))
	}},
	{"hook that settles", func(p *template, w *world) act {
		s := w.newSession("bob")
		s.tell(s.prompts())
		return s.hooking(s.uses()[0])
	}},
	{"hook that settles and hands over", func(p *template, w *world) act {
		s := w.newSession("bob")
		s.tell(s.prompts())
		w.mail("bob")
		uses := s.uses()
		return s.hooking(uses[len(uses)-1])
	}},
	{"hook at a session's end", func(p *template, w *world) act {
		s := w.newSession("bob")
		s.tell(s.prompts())
		return s.hooking(s.ends("other"))
	}},
	{"hook that hands over again", func(p *template, w *world) act {
		first, s := w.newSession("bob"), w.newSession("bob")
		first.tell(first.prompts())
		w.age("bob")
		return s.hooking(s.prompts())
	}},
}

// hooking is an act that is one call of a hook. Again it is the call of a hook
// that is installed twice.
func (s *session) hooking(e told) act {
	s.failing = true
	calls := 0
	return act{
		call: s.hook(e),
		note: func(r result) {
			calls++
			s.answer(e, calls, time.Now(), r)
			s.failing = false // from now on nothing fails
		},
		done: func(*census) error { return nil },
		after: func(t reporter) {
			if e.event != "SessionEnd" {
				s.tell(s.uses()[0]) // the program goes on
			}
			s.handOut(t, s.agent, rand.IntN(2) == 0)
		},
	}
}

// mail sends somebody a text.
func (w *world) mail(to string) {
	t, text := write(300)
	w.begin(t, "alice", to)
	w.stored(t, w.must("send", to, "--as", "alice", "--json", "--", text))
}
