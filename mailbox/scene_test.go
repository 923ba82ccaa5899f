//go:build unix

package mailbox

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/wire"
)

// dropScene is a scene in which something was dropped. Taken in at last, it is
// one of these and nothing else is left of it.
func dropScene(name string, content []byte, messages, events, bad int) faultScene {
	return faultScene{
		setup: func(r *faultRun) { drop(r.t, r.bob, "inbox", name, content) },
		act: func(r *faultRun) error {
			_, err := r.bob.TakeIn(ctx)
			return err
		},
		after: func(r *faultRun) {
			for range 2 {
				takeIn(r.t, r.bob)
			}
			c := takeCensus(r.t, r.path, "bob")
			if len(c.places) != messages || len(c.bad) != bad || len(c.tmp)+len(c.inbox) != 0 {
				r.t.Errorf("%d messages, bad %q, tmp %q, inbox %q", len(c.places), c.bad, c.tmp, c.inbox)
			}
			n := 0
			for _, e := range eventsOf(r.t, r.bob) {
				if e.Source == "drop" && string(e.Wire) == string(content) {
					n++
				}
			}
			if n != events {
				r.t.Errorf("%d events in the log", n)
			}
			for _, m := range c.texts {
				got := []byte(m.Body)
				if len(m.Attachments) > 0 {
					f, err := r.Attachment(m.Attachments[0])
					if err != nil {
						r.t.Error(err)
						return
					}
					got, _ = io.ReadAll(f)
					f.Close()
				}
				if string(got) != string(content) && m.Body != "the body" {
					r.t.Errorf("%d bytes came of %d", len(got), len(content))
				}
			}
			for _, b := range c.bad {
				got, _ := os.ReadFile(filepath.Join(r.bob.Path(), "inbox", "bad", b))
				if string(got) != string(content) {
					r.t.Errorf("bad has %q", got)
				}
			}
		},
	}
}

var faultScenes = map[string]faultScene{
	"deliver one": {
		act:   func(r *faultRun) error { return r.post(r.message(r.bob)) },
		after: (*faultRun).again,
	},
	"deliver to two": {
		act:   func(r *faultRun) error { return r.post(r.message(r.bob, r.carol)) },
		after: (*faultRun).again,
	},
	"deliver what is due": {
		act: func(r *faultRun) error {
			p := r.message(r.bob, r.carol)
			p.Message.DueAt, p.Message.ExpiresAt = time.Now(), time.Now().Add(time.Hour)
			return r.post(p)
		},
		after: func(r *faultRun) {
			r.again()
			for _, b := range []*Box{r.bob, r.carol} {
				due, err := b.Overdue(time.Now())
				for _, id := range takeCensus(r.t, r.path, b.Agent()).ids() { // killed before, none is there
					if err != nil || !slices.ContainsFunc(due, func(d Due) bool { return d.ID == id }) {
						r.t.Errorf("%s is to be reminded of %v: %v", b.Agent(), due, err)
					}
				}
			}
		},
	},
	"remind": {
		setup: func(r *faultRun) {
			p := r.message(r.bob)
			p.Message.DueAt = time.Now()
			r.must(r.post(p))
		},
		act: func(r *faultRun) error {
			due, err := r.bob.Overdue(time.Now())
			if err != nil || len(due) != 1 {
				return err
			}
			return errors.Join(r.bob.Tell(due[0], LeadTold), r.bob.Answered(due[0].ID, due[0].At))
		},
		after: func(r *faultRun) {
			due, err := r.bob.Overdue(time.Now())
			if err != nil || len(due) > 1 {
				r.t.Errorf("%v: %v", due, err)
			}
			r.must(r.bob.Answered(r.posts[0].Message.ID, r.posts[0].Message.DueAt))
			if due, err := r.bob.Overdue(time.Now()); err != nil || len(due) != 0 {
				r.t.Errorf("answered, and still due: %v: %v", due, err)
			}
		},
	},
	"deliver a batch": {
		act: func(r *faultRun) error {
			return r.post(r.message(r.bob), r.message(r.carol, r.bob), r.message(r.bob))
		},
		after: (*faultRun).again,
	},
	"deliver a given id": {
		act: func(r *faultRun) error {
			p := r.message(r.bob)
			p.Given = true
			return r.post(p)
		},
		after: (*faultRun).again,
	},
	"deliver what was read": {
		setup: func(r *faultRun) { r.given(1, false); r.must(r.read()) },
		act: func(r *faultRun) error {
			p := &Post{Message: sealed(r.ids[0], "message 0", false), To: []*Box{r.bob}, Given: true}
			Deliver(ctx, p)
			return p.Outcomes[0].Err
		},
		after: func(r *faultRun) { r.in(r.ids[0], placeDone) },
	},
	"read": {
		setup: func(r *faultRun) { r.given(2, false); r.given(1, true) },
		act:   (*faultRun).read,
		after: func(r *faultRun) { r.consumed((*faultRun).read) },
	},
	"type": {
		setup: func(r *faultRun) { r.given(2, false); r.given(1, true) },
		act:   (*faultRun).types,
		after: func(r *faultRun) { r.consumed((*faultRun).types) },
	},
	"take": {
		setup: func(r *faultRun) { r.given(1, true) },
		act:   func(r *faultRun) error { _, err := r.bob.Take(ctx, r.ids[0]); return err },
		after: func(r *faultRun) {
			r.in(r.ids[0], placeNew, placeCur)
			_, err := r.bob.Take(ctx, r.ids[0])
			r.must(err)
			r.in(r.ids[0], placeCur)
		},
	},
	"settle": {
		setup: func(r *faultRun) { r.given(1, true); r.must(r.read()) },
		act:   func(r *faultRun) error { return r.bob.Settle(ctx, r.ids[0], true) },
		after: func(r *faultRun) {
			r.in(r.ids[0], placeCur, placeDone)
			r.must(r.bob.Settle(ctx, r.ids[0], true))
			r.in(r.ids[0], placeDone)
		},
	},
	"unread": {
		setup: func(r *faultRun) { r.given(1, false); r.must(r.read()) },
		act:   func(r *faultRun) error { _, err := r.bob.Unread(ctx, r.ids[0]); return err },
		after: func(r *faultRun) {
			r.in(r.ids[0], placeDone, placeNew)
			_, err := r.bob.Unread(ctx, r.ids[0])
			r.must(err)
			r.in(r.ids[0], placeNew)
		},
	},
	"withdraw": {
		setup: func(r *faultRun) { r.given(1, false) },
		act: func(r *faultRun) error {
			_, err := r.bob.Withdraw(ctx, r.ids[0], r.alice.Address())
			return err
		},
		after: func(r *faultRun) {
			r.in(r.ids[0], placeNew, placeWithdrawn)
			_, err := r.bob.Withdraw(ctx, r.ids[0], r.alice.Address())
			r.must(err)
			r.in(r.ids[0], placeWithdrawn)
		},
	},
	"hold": {
		setup: func(r *faultRun) { r.given(2, false) },
		act:   func(r *faultRun) error { return r.hold("carol") },
		after: func(r *faultRun) {
			r.in(r.ids[0], placeNew)
			if r.shown[r.ids[0]] == 0 {
				r.must(r.hold("carol"))
			}
			r.free()
			r.must(r.hold("alice"))
			r.must(r.bob.Finish(ctx, r.ids[0], r.alice.Address(), "", true))
			r.in(r.ids[0], placeDone)
			r.in(r.ids[1], placeNew)
		},
	},
	"finish": {
		setup: func(r *faultRun) { r.given(1, true); r.must(r.hold("carol")) },
		act:   func(r *faultRun) error { return r.bob.Finish(ctx, r.ids[0], r.carol.Address(), "", true) },
		after: func(r *faultRun) {
			r.in(r.ids[0], placeNew, placeDone)
			if err := r.bob.Finish(ctx, r.ids[0], r.carol.Address(), "", true); !errors.Is(err, ErrNotHeld) {
				r.must(err)
			}
			r.in(r.ids[0], placeDone)
			if _, err := r.bob.Unread(ctx, r.ids[0]); err != nil {
				r.t.Error(err)
			}
			r.must(r.hold("alice")) // no old lease holds it
		},
	},
	"give back": {
		setup: func(r *faultRun) { r.given(1, false); r.must(r.hold("carol")) },
		act:   func(r *faultRun) error { return r.bob.GiveBack(ctx, r.ids[0], r.carol.Address(), "", "") },
		after: func(r *faultRun) {
			r.in(r.ids[0], placeNew)
			r.free()
			r.must(r.hold("alice"))
		},
	},
	"set aside": {
		setup: func(r *faultRun) {
			r.given(1, false)
			for range MaxTries - 1 {
				r.must(r.hold("carol"))
				r.must(r.bob.GiveBack(ctx, r.ids[0], r.carol.Address(), "", "no"))
			}
			r.must(r.hold("carol"))
		},
		act: func(r *faultRun) error { return r.bob.GiveBack(ctx, r.ids[0], r.carol.Address(), "", "no") },
		after: func(r *faultRun) {
			r.in(r.ids[0], placeNew, placeAside)
			r.free()
			untold, err := r.bob.Tidy(ctx)
			r.must(err)
			r.in(r.ids[0], placeAside)
			if len(untold) != 1 || untold[0].Takings.Tries() != MaxTries {
				r.t.Errorf("untold: %v", untold)
			}
		},
	},
	"put back what was set aside": {
		setup: func(r *faultRun) {
			r.given(1, false)
			for range MaxTries {
				r.must(r.hold("carol"))
				r.must(r.bob.GiveBack(ctx, r.ids[0], r.carol.Address(), "", "no"))
			}
			r.in(r.ids[0], placeAside)
		},
		act: func(r *faultRun) error { _, err := r.bob.Unread(ctx, r.ids[0]); return err },
		after: func(r *faultRun) {
			r.in(r.ids[0], placeAside, placeNew)
			_, err := r.bob.Unread(ctx, r.ids[0])
			r.must(err)
			r.in(r.ids[0], placeNew)
			r.must(r.hold("carol"))
			it, err := r.bob.Get(r.ids[0])
			r.must(err)
			if n := it.Takings.Tries(); n != 1 {
				r.t.Errorf("%d tries", n)
			}
		},
	},
	"drop text":       dropScene("a note", []byte("hello\n"), 1, 0, 0),
	"drop a message":  dropScene("m.json", []byte(`{"body":"the body"}`), 1, 0, 0),
	"drop with an id": dropScene("m.json", []byte(`{"id":"`+gone+`","body":"the body"}`), 1, 0, 0),
	"drop an event":   dropScene("e.json", []byte(`{"kind":"turn_started","n":18446744073709551615}`), 0, 1, 0),
	"drop binary":     dropScene("b.bin", []byte("\x00\xff\x00"), 1, 0, 0),
	"drop too much":   dropScene("long", []byte(strings.Repeat("x", wire.MaxBody+1)), 1, 0, 0),
	"drop torn JSON":  dropScene("t.json", []byte(`{"body":"the`), 0, 0, 1),
	"append": {
		act: func(r *faultRun) error {
			return r.bob.Append(ctx, AppendOptions{Sync: true},
				wire.Event{Kind: "a", EventID: "1"}, wire.Event{Kind: "b", EventID: "2"})
		},
		after: func(r *faultRun) {
			r.must(r.bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "a", EventID: "1"}, wire.Event{Kind: "b", EventID: "2"}))
			if n := len(eventsOf(r.t, r.bob)); n != 2 {
				r.t.Errorf("%d events", n)
			}
		},
	},
	"append after a torn line": {
		setup: func(r *faultRun) {
			r.must(r.bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "a", EventID: "1"}))
			r.torn = []byte(`{"seq":2,"at":"2026`)
			log := filepath.Join(r.bob.Path(), "events", segmentName(1))
			f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
			r.must(err)
			f.Write(r.torn)
			f.Close()
		},
		act: func(r *faultRun) error {
			return r.bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "b", EventID: "2"})
		},
		after: func(r *faultRun) {
			r.must(r.bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "b", EventID: "2"}))
			if n := len(eventsOf(r.t, r.bob)); n != 2 {
				r.t.Errorf("%d events", n)
			}
			kept := false
			for _, b := range takeCensus(r.t, r.path, "bob").bad {
				got, _ := os.ReadFile(filepath.Join(r.bob.Path(), "inbox", "bad", b))
				kept = kept || string(got) == string(r.torn)
			}
			if !kept {
				r.t.Error("the torn line is not in bad")
			}
		},
	},
	"attach": {
		act: func(r *faultRun) error { _, err := r.Attach("x", strings.NewReader("content")); return err },
		after: func(r *faultRun) {
			a, err := r.Attach("x", strings.NewReader("content"))
			r.must(err)
			f, err := r.Attachment(a)
			r.must(err)
			if err == nil {
				f.Close()
			}
		},
	},
	"gc": {
		setup: func(r *faultRun) { r.given(3, false); r.must(r.read()) },
		act: func(r *faultRun) error {
			_, err := r.bob.GC(ctx, GCOptions{Before: time.Now()})
			return err
		},
		after: func(r *faultRun) {
			_, err := r.bob.GC(ctx, GCOptions{Before: time.Now()})
			r.must(err)
			for _, id := range r.ids {
				r.in(id, placeArchive)
			}
		},
	},
	"gc into a day that is there": {
		setup: func(r *faultRun) {
			for range 2 {
				r.given(2, false)
				r.must(r.read())
				if len(r.ids) == 2 {
					_, err := r.bob.GC(ctx, GCOptions{Before: time.Now()})
					r.must(err)
				}
			}
		},
		act: func(r *faultRun) error {
			_, err := r.bob.GC(ctx, GCOptions{Before: time.Now()})
			return err
		},
		after: func(r *faultRun) {
			_, err := r.bob.GC(ctx, GCOptions{Before: time.Now()})
			r.must(err)
			for _, id := range r.ids {
				r.in(id, placeArchive)
			}
		},
	},
	"retire": {
		setup: func(r *faultRun) { r.given(1, false) },
		act:   func(r *faultRun) error { _, err := r.Retire(ctx, "bob"); return err },
		after: func(r *faultRun) {
			if !r.bob.Exists() {
				r.must(r.Restore(ctx, "bob"))
			}
			r.in(r.ids[0], placeNew)
		},
	},
	"create": {
		act: func(r *faultRun) error { return r.Create(ctx, "dave") },
		after: func(r *faultRun) {
			if err := r.Create(ctx, "dave"); err != nil && !errors.Is(err, ErrExists) {
				r.t.Error(err)
			}
			deliver(r.t, r.Box("dave"), sealed(wire.NewID(), "x", false))
		},
	},
}
