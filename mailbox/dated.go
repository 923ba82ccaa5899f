package mailbox

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// What has a time is noted where looking costs little: an empty file for each
// message whose answer is due, or that expires, made before the message is
// delivered. Its name says all there is to know, so that who looks lists names
// and opens nothing, however much mail there is.
//
//	inbox/dated/<ms since 1970, 15 digits>.<id>.due       an answer is expected by then
//	inbox/dated/<…>.<id>.lead                             it was not there, and the lead was told
//	inbox/dated/<…>.<id>.told                             and so was the agent
//	inbox/dated/<…>.<id>.expires                          an unread message counts as expired from then on
//
// The messages are the truth: a note without one means nothing, and goes.
const datedDir = "inbox/dated"

// Told is how far it was said that an answer is overdue.
type Told string

// How far: not at all; to the lead, or there is none; to the agent as well.
const (
	NotTold   Told = "due"
	LeadTold  Told = "lead"
	AgentTold Told = "told"
)

const expires = "expires"

// Due is a message whose answer is expected.
type Due struct {
	ID   wire.ID
	At   time.Time
	Told Told
}

// staleNote is how old a note without a message is before it goes: its message
// may still be on its way.
const staleNote = time.Hour

func datedName(at time.Time, id wire.ID, what string) string {
	return fmt.Sprintf("%015d.%s.%s", min(max(at.UnixMilli(), 0), 999999999999999), id, what)
}

// datedOf reads a note's name; ok is false for what is none.
func datedOf(name string) (at time.Time, id wire.ID, what string, ok bool) {
	ms, rest, _ := strings.Cut(name, ".")
	i, what, ok := strings.Cut(rest, ".")
	n, err := strconv.ParseInt(ms, 10, 64)
	if !ok || err != nil || len(ms) != 15 || n < 0 || !wire.IsID(i) {
		return at, "", "", false
	}
	return time.UnixMilli(n).UTC(), wire.ID(i), what, true
}

// noteDates makes the notes of a message that is about to be delivered. No lock
// is held. One that is there already keeps its own: who sends it again an hour
// from its deadline has reckoned another.
func (b *Box) noteDates(p *Post) error {
	m := p.Message
	if m.DueAt.IsZero() && m.ExpiresAt.IsZero() {
		return nil
	}
	r, err := b.enter()
	if err != nil {
		return err
	}
	defer r.close()
	if p.Given {
		if _, there, err := r.locate(m.ID); there || err != nil {
			return err
		}
	}
	return r.note(m)
}

// note makes a message's notes. What is there stays as it is.
func (r *room) note(m *wire.Message) error {
	if err := r.noteExpiry(m); err != nil || m.DueAt.IsZero() {
		return err
	}
	d, err := r.dir(datedDir, true)
	if err != nil {
		return err
	}
	for _, told := range []Told{LeadTold, AgentTold} {
		if has, err := d.Has(datedName(m.DueAt, m.ID, string(told))); has || err != nil {
			return err
		}
	}
	if err := makeNote(d, datedName(m.DueAt, m.ID, string(NotTold))); err != nil {
		return err
	}
	return d.Sync() // a power cut that left the message would have nobody reminded
}

func (r *room) noteExpiry(m *wire.Message) error {
	if m.ExpiresAt.IsZero() {
		return nil
	}
	d, err := r.dir(datedDir, true)
	if err != nil {
		return err
	}
	return makeNote(d, datedName(m.ExpiresAt, m.ID, expires))
}

func makeNote(d *atomicfile.Dir, name string) error {
	if has, err := d.Has(name); has || err != nil {
		return err
	}
	return d.Replace(name, nil, false)
}

// supersede notes that the answer to what a message replaces is expected no
// longer.
func (r *room) supersede(m *wire.Message) {
	if m.Supersedes == "" {
		return
	}
	if old, err := r.get(m.Supersedes); err == nil && old.From == m.From {
		_ = r.answered(old.ID, old.DueAt)
	}
}

// supersedeAgain is supersede for a message that was delivered before, by one who
// was perhaps killed before they could note that. What lies there counts.
func (r *room) supersedeAgain(m *wire.Message) {
	if m.Supersedes == "" {
		return
	}
	if it, err := r.get(m.ID); err == nil {
		r.supersede(it.Message)
	}
}

// dated calls f with the notes up to a moment, in no order.
func (r *room) dated(until time.Time, f func(name string, at time.Time, id wire.ID, what string)) error {
	d, err := r.dir(datedDir, false)
	if d == nil || err != nil {
		return err
	}
	return datedNotes(d, until, f)
}

func datedNotes(d *atomicfile.Dir, until time.Time, f func(name string, at time.Time, id wire.ID, what string)) error {
	return d.Names(func(names []string) bool {
		for _, n := range names {
			if at, id, what, ok := datedOf(n); ok && !until.Before(at) {
				f(n, at, id, what)
			}
		}
		return true
	})
}

// Overdue lists the messages whose answer is overdue, as far as is noted, those
// that waited longest first. No message is opened, and some may have their
// answer, or be gone.
func (b *Box) Overdue(now time.Time) ([]Due, error) {
	d, err := b.store.dir.Walk(string(b.agent), "inbox", "dated")
	if atomicfile.Absent(err) {
		return nil, nil // nor is there a mailbox, perhaps
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var out []Due
	err = datedNotes(d, now, func(_ string, at time.Time, id wire.ID, what string) {
		if what != expires {
			out = append(out, Due{id, at, Told(what)})
		}
	})
	slices.SortFunc(out, func(a, b Due) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	return out, err
}

// Tell notes how far it was said that an answer is overdue. Told before, by
// whomever, or answered meanwhile, is fine.
func (b *Box) Tell(d Due, told Told) error {
	if d.Told == told {
		return nil
	}
	return b.amendNote(func(dir *atomicfile.Dir) error {
		from := datedName(d.At, d.ID, string(d.Told))
		err := atomicfile.Move(dir, from, dir, datedName(d.At, d.ID, string(told)))
		switch {
		case errors.Is(err, fs.ErrExist): // a kill in between left both
			return dir.Remove(from)
		case atomicfile.Absent(err):
			return nil
		}
		return err
	})
}

// Answered notes that nobody waits for the answer to a message any more, due at
// that time. Again is fine.
func (b *Box) Answered(id wire.ID, due time.Time) error {
	if due.IsZero() {
		return nil
	}
	r, err := b.enter()
	if err != nil {
		return err
	}
	defer r.close()
	return r.answered(id, due)
}

func (r *room) answered(id wire.ID, due time.Time) error {
	d, err := r.dir(datedDir, false)
	if d == nil || due.IsZero() {
		return err
	}
	for _, told := range []Told{NotTold, LeadTold, AgentTold} {
		err = errors.Join(err, d.Remove(datedName(due, id, string(told))))
	}
	return err
}

// amendNote calls f with the directory of notes, if there is one.
func (b *Box) amendNote(f func(*atomicfile.Dir) error) error {
	r, err := b.enter()
	if err != nil {
		return err
	}
	defer r.close()
	d, err := r.dir(datedDir, false)
	if d == nil || err != nil {
		return err
	}
	return f(d)
}

// Is reports whether a note is that of a message as it was delivered: who sent it
// was perhaps killed before that, and sent it again with another time.
func (d Due) Is(m *wire.Message) bool {
	return datedName(d.At, d.ID, "") == datedName(m.DueAt, m.ID, "")
}

// ForgetNote removes the notes of a message that is nowhere, unless it may be
// on its way still.
func (b *Box) ForgetNote(due Due) error {
	return b.amendNote(func(d *atomicfile.Dir) error {
		name := datedName(due.At, due.ID, string(due.Told))
		info, err := d.Lstat(name)
		if atomicfile.Absent(err) {
			return nil
		}
		if err != nil || b.store.now().Sub(info.ModTime()) < staleNote {
			return err
		}
		return d.Remove(name)
	})
}

// Rest notes until when the answer to a message, which was looked for in vain,
// need not be looked for again: as the time of its note. It is a convenience.
func (b *Box) Rest(due Due, until time.Time) {
	_ = b.amendNote(func(d *atomicfile.Dir) error {
		root, err := d.Root()
		if err != nil {
			return err
		}
		return root.Chtimes(datedName(due.At, due.ID, string(due.Told)), until, until)
	})
}

// Rests reports whether the answer to a message need not be looked for now. A
// time further ahead than most is some other clock's, and counts for nothing.
func (b *Box) Rests(due Due, now time.Time, most time.Duration) (rests bool) {
	_ = b.amendNote(func(d *atomicfile.Dir) error {
		info, err := d.Lstat(datedName(due.At, due.ID, string(due.Told)))
		rests = err == nil && info.ModTime().After(now) && !info.ModTime().After(now.Add(most))
		return err
	})
	return rests
}

// expired counts the unread messages that have expired, of which held says that
// nobody holds them, and clears away the notes of others.
func (r *room) expired(now time.Time, held map[wire.ID]bool) (n int, err error) {
	d, err := r.dir(datedDir, false)
	if d == nil || err != nil {
		return 0, err
	}
	var gone []string
	var wrong error
	seen := map[wire.ID]bool{}
	err = r.dated(now, func(name string, _ time.Time, id wire.ID, what string) {
		if what != expires {
			return
		}
		unread, err := r.fresh.Has(string(id) + ".json")
		switch {
		case err != nil:
			wrong = err
		case !unread:
			gone = append(gone, name)
		case !held[id] && !seen[id]:
			seen[id] = true
			n++
		}
	})
	for _, name := range gone {
		if info, err := d.Lstat(name); err == nil && now.Sub(info.ModTime()) >= staleNote {
			d.Remove(name) // a disk that cannot be written keeps them
		}
	}
	return n, errors.Join(err, wrong)
}

// unnote removes the note of when a message expires, once that has left new.
func (r *room) unnote(m *wire.Message) {
	if m.ExpiresAt.IsZero() {
		return
	}
	if d, err := r.dir(datedDir, false); d != nil && err == nil {
		d.Remove(datedName(m.ExpiresAt, m.ID, expires))
	}
}
