package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// bench is a run.
type bench struct {
	Config
	ctx      context.Context
	progress io.Writer
	ground   *ground
	turns    int // of singles, at least

	programs map[string]string // built, by name
	filled   map[int]*root
	closers  []func() error
}

func open(ctx context.Context, c Config, progress io.Writer) (*bench, error) {
	b := &bench{Config: c, ctx: ctx, progress: progress, turns: 3, programs: map[string]string{}, filled: map[int]*root{}}
	if c.Round == 1 {
		b.turns = 1
	}
	var err error
	b.ground, err = newGround(c.Dir)
	return b, err
}

func (b *bench) later(f func() error) { b.closers = append(b.closers, f) }

func (b *bench) close() error {
	var errs []error
	for i := len(b.closers) - 1; i >= 0; i-- {
		errs = append(errs, b.closers[i]())
	}
	return errors.Join(append(errs, b.ground.clean())...)
}

// cases are the lines of the table, in its order.
func (b *bench) cases() []*Case {
	var out []*Case
	for _, list := range [][]*Case{b.deliveries(), b.processes(), b.growth(), b.watching(), b.searching()} {
		for _, c := range list {
			if b.Only == nil || b.Only.MatchString(c.Name) {
				out = append(out, c)
			}
		}
	}
	return out
}

func (b *bench) shuffle(n int, swap func(i, j int)) { rand.Shuffle(n, swap) }

// eitherFirst is 0 and 1 in any order.
func (b *bench) eitherFirst() [2]int {
	first := rand.IntN(2)
	return [2]int{first, 1 - first}
}

// root is an atm root with one team.
type root struct {
	path string
	*teams.Team
}

// newRoot makes a root with these members, in a directory of its own.
func (b *bench) newRoot(name string, members ...wire.Name) (*root, error) {
	dir, err := b.ground.dir(name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "root")
	if _, err := teams.Make(path); err != nil {
		return nil, err
	}
	r, err := teams.Open(teams.Found{Path: path, Accepted: true}, nil)
	if err != nil {
		return nil, err
	}
	b.later(r.Close)
	if _, err := r.CreateTeam("main"); err != nil {
		return nil, err
	}
	t, err := r.Team("main")
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if err := t.Create(b.ctx, m); err != nil {
			return nil, err
		}
	}
	return &root{path, t}, nil
}

// newDir is where new messages of a member are.
func (r *root) newDir(member wire.Name) string {
	return filepath.Join(r.Box(member).Path(), "inbox", "new")
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
	m.Body = filler[:size-216-8*len(m.To)]
	return m
}

// text is size bytes.
func (b *bench) text() []byte { return []byte(filler[:size-1] + "\n") }

// needle is in ten messages of a mailbox that fill filled.
const needle = "Overlook"

// fill puts n messages into a member's mailbox, by the quickest way; empty
// files, when nobody is to read them.
func (r *root) fill(member wire.Name, n int, empty bool) error {
	dir := r.newDir(member)
	for i := range n {
		m := message(r.Box(member))
		if i%(n/10) == 0 {
			m.Subject = needle + fmt.Sprint(i)
		}
		var data []byte
		if !empty {
			var err error
			if data, err = m.Encode(); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, string(m.ID)+".json"), data, 0o600); err != nil {
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
	r, err := b.newRoot("mailbox", "alice", "bob")
	if err == nil {
		err = r.fill("bob", n, false)
	}
	b.filled[n] = r
	return r, err
}
