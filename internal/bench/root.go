package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// root is an atm root with one team, and raw mailboxes beside it: close by on
// the disk, so that both sides of a case find the same.
type root struct {
	*teams.Team
	path string
	raws []*raw
}

// newRoot makes a root with these members, and so many raw mailboxes, in a
// directory of its own.
func (b *bench) newRoot(name string, raws int, members ...wire.Name) (*root, error) {
	var r *root
	_, err := b.ground.dir(name, func(path string) (busy []string, err error) {
		if r != nil { // one that was refused
			if err := r.close(); err != nil {
				return nil, err
			}
		}
		r, err = makeRoot(filepath.Join(path, "root"))
		for _, m := range members {
			if err == nil {
				err = r.Create(b.ctx, m)
				busy = append(busy, r.inbox(m, "tmp"))
			}
		}
		for i := range raws {
			if err == nil {
				var w *raw
				w, err = newRaw(filepath.Join(path, "raw"+strconv.Itoa(i)))
				r.raws, busy = append(r.raws, w), append(busy, w.tmp)
			}
		}
		return busy, err
	})
	return r, err
}

func makeRoot(path string) (*root, error) {
	if _, err := teams.Make(path); err != nil {
		return nil, err
	}
	at, err := teams.Open(teams.Found{Path: path, Accepted: true}, nil)
	if err != nil {
		return nil, err
	}
	_, err = at.CreateTeam("main")
	if err := errors.Join(err, at.Close()); err != nil {
		return nil, err
	}
	return openRoot(path)
}

// openRoot opens what makeRoot made.
func openRoot(path string) (*root, error) {
	at, err := teams.Open(teams.Found{Path: path, Accepted: true}, nil)
	if err != nil {
		return nil, err
	}
	t, err := at.Team("main")
	if err != nil {
		return nil, errors.Join(err, at.Close())
	}
	return &root{Team: t, path: path}, nil
}

func (r *root) close() error {
	errs := []error{r.Root().Close()}
	for _, w := range r.raws {
		errs = append(errs, w.dir.Close())
	}
	return errors.Join(errs...)
}

// inbox is a directory in a member's inbox.
func (r *root) inbox(member wire.Name, sub string) string {
	return filepath.Join(r.Box(member).Path(), "inbox", sub)
}

// fresh is a cell in a root of its own each round: however fast one side is, it
// does not drown its own directory, nor find what others deleted further on.
func (b *bench) fresh(name string, raws int, members []wire.Name, in func(*root) cell) cell {
	return func(d time.Duration) (time.Duration, time.Duration, error) {
		r, err := b.newRoot(name, raws, members...)
		if err != nil {
			return 0, 0, err
		}
		ours, reference, err := in(r)(d)
		return ours, reference, errors.Join(err, r.close())
	}
}

// size is that of a message on disk.
const size = 1 << 10

var filler = strings.Repeat("All work and no play makes for a dull mailbox. ", size/40)

// message is a message from alice of about size bytes on disk.
func message(to ...*mailbox.Box) *wire.Message {
	m := &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "alice", Team: "main"}, SentAt: time.Now()}
	for _, t := range to {
		m.To = append(m.To, t.Address())
	}
	m.Body = filler[:size-150-10*len(m.To)]
	return m
}

// text is size bytes.
func text() []byte { return []byte(filler[:size-1] + "\n") }

// needle is in ten messages of a mailbox that was filled.
const needle = "Overlook"

// fill puts n messages into a member's mailbox, in no way to be relied on.
func (r *root) fill(member wire.Name, n int) error {
	for i := range n {
		m := message(r.Box(member))
		if i%(n/10) == 0 {
			m.Subject = needle + strconv.Itoa(i)
		}
		data, err := m.Encode()
		if err == nil {
			err = os.WriteFile(filepath.Join(r.inbox(member, "new"), string(m.ID)+".json"), data, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// crowdNames fills new with n names of messages, links to a few empty files: for
// who does not open them.
func (r *root) crowdNames(member wire.Name, n int) error {
	seed := ""
	for i := range n {
		if i%50_000 == 0 { // ext4 gives a file 65,000 links
			seed = filepath.Join(r.inbox(member, "tmp"), ".seed"+strconv.Itoa(i))
			if err := os.WriteFile(seed, nil, 0o600); err != nil {
				return err
			}
		}
		if err := os.Link(seed, filepath.Join(r.inbox(member, "new"), string(wire.NewID())+".json")); err != nil {
			return err
		}
	}
	return nil
}

// mailboxOf is a root with alice and bob, who has n unread messages.
func (b *bench) mailboxOf(n int) (*root, error) {
	if r := b.filled[n]; r != nil {
		return r, nil
	}
	fmt.Fprintf(b.progress, "a mailbox of %s messages\n", count(n))
	r, err := b.newRoot("mailbox", 0, "alice", "bob")
	if err != nil {
		return nil, err
	}
	b.later(r.close)
	b.filled[n] = r
	return r, r.fill("bob", n)
}
