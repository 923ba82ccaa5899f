package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/outlet"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// watchTeam shows the team and shows it again when something changes: in
// place on a terminal that can, every second for the ages' sake; else a new table, or
// JSON document, only when something but an age is different.
func (e *env) watchTeam(ctx context.Context) error {
	if e.terminal() && !e.JSON() && e.Getenv("TERM") != "dumb" {
		return e.paintTeam(ctx)
	}
	before := ""
	first := true
	return e.eachChange(ctx, 0, func(rows []teams.Member, stats teams.Stats) error {
		now := fmt.Sprint(stats)
		for _, m := range rows {
			m.PresenceAt, m.ReadAt = nil, nil
			now += string(marshalLine(m))
		}
		if now == before {
			return nil
		}
		before = now
		if e.JSON() {
			return e.PrintJSON(teamDocument(e.team.Name, rows, stats))
		}
		if !first {
			if err := e.print(""); err != nil {
				return err
			}
		}
		first = false
		return e.printTeam(rows)
	})
}

// paintTeam shows the team on a screen of its own, until q or an interrupt; the
// last table stays below what was there.
func (e *env) paintTeam(ctx context.Context) error {
	s := outlet.Screen{Out: e.Stdout}
	if e.Stdin != nil && term.IsTerminal(int(e.Stdin.Fd())) {
		s.In = e.Stdin
	}
	s.Open()
	var last []string
	defer func() { s.Close(last) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		select {
		case <-s.Quit():
			cancel()
		case <-ctx.Done():
		}
	}()
	err := e.eachChange(ctx, time.Second, func(rows []teams.Member, _ teams.Stats) error {
		t := e.table()
		last = t.Lines(rows)
		if _, h, err := term.GetSize(int(e.Stdout.Fd())); err == nil {
			t.Height = h
		}
		return s.Paint(t.Lines(rows))
	})
	cancel()
	<-typed
	select {
	case <-s.Quit():
		return nil
	default:
		return err
	}
}

// eachChange calls show with the rows at every look (eachLook).
func (e *env) eachChange(ctx context.Context, every time.Duration, show func([]teams.Member, teams.Stats) error) error {
	return e.eachLook(ctx, every, func() error {
		rows, stats, err := e.team.Members(ctx)
		if err != nil {
			return err
		}
		return show(rows, stats)
	})
}

// eachLook calls look, again whenever a mailbox or a log changed, a member came
// or went, and every so often besides (0: only as often as what no file tells,
// such as a runner's lock, needs).
func (e *env) eachLook(ctx context.Context, every time.Duration, look func() error) error {
	if every == 0 {
		every = 2 * time.Second
	}
	var w *watcher.Watcher
	var watched []wire.Name
	defer func() {
		if w != nil {
			w.Close()
		}
	}()
	for {
		names, err := e.team.Agents()
		if err != nil {
			return err
		}
		if w == nil || !slices.Equal(names, watched) {
			if w != nil {
				w.Close()
			}
			boxes, err := e.team.Boxes()
			if err != nil {
				return err
			}
			if w, err = watcher.Open(ctx, boxes, watcher.Options{Messages: true, Events: true}); err != nil {
				return err
			}
			watched = names
		}
		if err := look(); err != nil {
			return err
		}
		if err := settle(ctx, w, every); err != nil {
			return err
		}
	}
}

// settle waits for something to happen, at most so long, and then until
// nothing has for a moment: a burst is one repainting.
func settle(ctx context.Context, w *watcher.Watcher, most time.Duration) error {
	limit, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for wait := most; ; wait = 30 * time.Millisecond {
		c, stop := context.WithTimeout(limit, wait)
		_, err := w.Next(c) // an entry's error is one of looking, which Rows has as well
		stop()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return nil
		case err != nil:
			return err
		}
	}
}
