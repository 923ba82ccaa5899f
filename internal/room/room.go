// Package room is the model behind `atm tui` and `atm web`: what a person sees of a team, and can do. It follows the
// team's mailboxes and keeps one value up to date, the Snapshot; everything else is read when it is asked for. Reading
// marks nothing.
//
// The scope says who I am; without an identity nothing can be done. Every action does what the verb of its name does,
// by the same code and with the same checks.
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
	scanEvery = 3 * time.Second       // a killed runner's lock and the clock change states without an event
	gather    = 20 * time.Millisecond // after the first change, since changes come together
	maxRead   = 1000                  // of my read messages; the day of the last one is listed whole
)

// A Room follows a team. Several goroutines may call its methods at once.
type Room struct {
	Scope *command.Scope

	mu       sync.Mutex
	current  *Snapshot
	replaced chan struct{}           // closed when current is replaced
	askedAt  map[wire.Name]time.Time // of each screen that is followed, the last time
}

// Open makes a room for the scope's team and identity. Run fills it.
func Open(s *command.Scope) *Room {
	first := &Snapshot{Team: s.Team.Name, Screens: map[wire.Name]*Screen{}}
	if s.Me != nil {
		first.Me = s.Me.Agent()
	}
	return &Room{Scope: s, current: first, replaced: make(chan struct{}), askedAt: map[wire.Name]time.Time{}}
}

// Snapshot is the state of the team at one time. It never changes.
type Snapshot struct {
	Version int // of all but the screens; 0: nothing was read yet, 1: drafts were not
	Team    wire.Name
	Me      wire.Name // "": there is no identity

	Members []teams.Member // as `atm team` lists them
	Waiting []Question     // those that I may answer come first, then by age

	// The ids of my mail, newest first. Read goes back some days only.
	Unread, Owed, Read []wire.ID

	Problem string // what cannot be read; "": nothing

	Screens map[wire.Name]*Screen // those that are followed and known: see Room.Screen
}

// Question is a question of a member.
type Question struct {
	policy.Question
	MayAnswer bool // by me, from here
}

// Is reports whether both are the same question. An id alone may be another agent's as well.
func (q *Question) Is(other Question) bool {
	return q.Agent == other.Agent && q.ID == other.ID && q.Since.Equal(other.Since)
}

// Member returns the row of a member.
func (s *Snapshot) Member(name wire.Name) (m teams.Member, ok bool) {
	i := slices.IndexFunc(s.Members, func(m teams.Member) bool { return m.Name == name })
	if i < 0 {
		return m, false
	}
	return s.Members[i], true
}

// Snapshot returns the current snapshot, and a channel that is closed once there is a newer one.
func (r *Room) Snapshot() (*Snapshot, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current, r.replaced
}

// Wait returns the current snapshot once it meets the condition, or ctx has ended.
func (r *Room) Wait(ctx context.Context, condition func(*Snapshot) bool) *Snapshot {
	for {
		s, newer := r.Snapshot()
		if condition(s) || ctx.Err() != nil {
			return s
		}
		select {
		case <-newer:
		case <-ctx.Done():
		}
	}
}

// publish replaces the snapshot, unless nothing has changed.
func (r *Room) publish(s Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Version, s.Screens = r.current.Version, r.current.Screens
	if s.Version < 2 || !reflect.DeepEqual(s, *r.current) {
		s.Version++
		r.replace(&s)
	}
}

func (r *Room) replace(s *Snapshot) {
	r.current = s
	close(r.replaced)
	r.replaced = make(chan struct{})
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

// follow follows the present members, and returns when one has come or gone.
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
	o := &observer{Room: r, rows: map[wire.Name]teams.Member{}, problems: map[wire.Name]string{}}
	o.readMail(true)
	for next, isFirst := (time.Time{}), true; ; isFirst = false {
		if !time.Now().Before(next) {
			names, err := r.Scope.Team.Agents()
			err = errors.Join(err, r.Scope.Root.CheckPaths())
			isSame := slices.EqualFunc(boxes, names, func(b *mailbox.Box, n wire.Name) bool { return b.Agent() == n })
			if err != nil || !isSame {
				return err
			}
			next = time.Now().Add(scanEvery)
			for _, name := range names {
				o.readMember(ctx, name)
			}
			o.remote, _ = r.Scope.Team.RemoteMembers() // atm team reports an error
		}
		r.publish(o.snapshot())
		if isFirst { // drafts take a tenth of a second in a large team, so the members are shown before
			o.readDrafts(ctx)
			r.publish(o.snapshot())
		}
		if err := o.awaitChanges(ctx, w, next); err != nil {
			return err
		}
	}
}
