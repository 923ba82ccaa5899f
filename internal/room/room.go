// Package room is what a person who looks at a team sees, and does: `atm tui` and `atm web` show it. It
// follows the team's mailboxes and keeps one value up to date, the Snapshot; the rest is read when it is
// looked at. Looking consumes nothing and marks nothing.
//
// Who I am is the scope's: without an identity a room is to look at only. Every action does what the verb of
// its name does, by the same code, and is refused like it.
package room

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

const (
	lookEvery = 3 * time.Second       // a lock that a killed runner leaves, and the clock, write no event
	settle    = 20 * time.Millisecond // from the first thing that is new to the look: more comes with it
	keepRead  = 1000                  // messages that I have read: the days of at least so many are listed
)

// A Room is a team that is looked at. Its methods may be called by several goroutines at once.
type Room struct {
	Scope *command.Scope

	mu    sync.Mutex
	now   *Snapshot
	newer chan struct{}           // closed when now is replaced
	asked map[wire.Name]time.Time // when a screen that is followed was last asked for
}

// Open makes a room of a team, as me if the scope says who that is. Run fills it.
func Open(s *command.Scope) *Room {
	first := &Snapshot{Team: s.Team.Name, Screens: map[wire.Name]*Screen{}}
	if s.Me != nil {
		first.Me = s.Me.Agent()
	}
	return &Room{Scope: s, now: first, newer: make(chan struct{}), asked: map[wire.Name]time.Time{}}
}

// Snapshot is how the team is. It is not changed any more.
type Snapshot struct {
	Version int // of all but the screens: 0: nothing was looked at yet; 1: not at drafts
	Team    wire.Name
	Me      wire.Name // "": nobody, to look only

	Members []teams.Member // as `atm team` lists them
	Waiting []Question     // those that I may answer first, of these the oldest

	// My mail by id, each part newest first. Read goes back some days only.
	Unread, Owed, Read []wire.ID

	Problem string // what cannot be read; "": nothing

	Screens map[wire.Name]*Screen // that are followed, as far as they are known: see Room.Screen
}

// Question is what a member asks.
type Question struct {
	policy.Question
	Mine bool // I may answer it, from here
}

// Is reports whether it is the same question. An id is unique for its agent at best.
func (q *Question) Is(other Question) bool {
	return q.Agent == other.Agent && q.ID == other.ID && q.Since.Equal(other.Since)
}

// Member is the row of a member; ok: it is there.
func (s *Snapshot) Member(name wire.Name) (m teams.Member, ok bool) {
	i := slices.IndexFunc(s.Members, func(m teams.Member) bool { return m.Name == name })
	if i < 0 {
		return m, false
	}
	return s.Members[i], true
}

// Snapshot is the newest one, and a channel that is closed when there is a newer one.
func (r *Room) Snapshot() (*Snapshot, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now, r.newer
}

// Wait is the newest snapshot once it is as wanted, or ctx has ended.
func (r *Room) Wait(ctx context.Context, isSo func(*Snapshot) bool) *Snapshot {
	for {
		s, newer := r.Snapshot()
		if isSo(s) || ctx.Err() != nil {
			return s
		}
		select {
		case <-newer:
		case <-ctx.Done():
		}
	}
}

// publish replaces the snapshot by what was seen, unless all is as it was.
func (r *Room) publish(s Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Version, s.Screens = r.now.Version, r.now.Screens
	if s.Version < 2 || !reflect.DeepEqual(s, *r.now) {
		s.Version++
		r.replace(&s)
	}
}

func (r *Room) replace(s *Snapshot) {
	r.now = s
	close(r.newer)
	r.newer = make(chan struct{})
}

// Run keeps the snapshot up to date until ctx ends, which is no error, or the team is gone.
func (r *Room) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := r.follow(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// follow follows the members that there are, and returns when there are others.
func (r *Room) follow(ctx context.Context) error {
	boxes, err := r.Scope.Team.Boxes()
	if err != nil {
		return err
	}
	w, err := watcher.Open(ctx, boxes, watcher.Options{Messages: true, Events: true})
	if err != nil {
		return err
	}
	defer w.Close()
	l := &look{Room: r, rows: map[wire.Name]teams.Row{}, problems: map[wire.Name]string{}}
	l.atMail(true)
	for next, isFirst := (time.Time{}), true; ; isFirst = false {
		if !time.Now().Before(next) {
			names, err := r.Scope.Team.Agents()
			err = errors.Join(err, r.Scope.Root.Lost())
			isSame := slices.EqualFunc(boxes, names, func(b *mailbox.Box, n wire.Name) bool { return b.Agent() == n })
			if err != nil || !isSame {
				return err
			}
			next = time.Now().Add(lookEvery)
			for _, name := range names {
				l.one(ctx, name)
			}
			l.remote, _ = r.Scope.Team.RemoteMembers() // atm team says what cannot be read
		}
		r.publish(l.snapshot())
		if isFirst { // a tenth of a second for a large team, which its members do not wait for
			l.atDrafts(ctx)
			r.publish(l.snapshot())
		}
		if err := l.await(ctx, w, next); err != nil {
			return err
		}
	}
}
