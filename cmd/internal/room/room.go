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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

const (
	readEvery = 3 * time.Second        // a killed runner's lock and the clock change states without an event
	pause     = 100 * time.Millisecond // between two reads, since changes come together
	maxRead   = 1000                   // of my read messages; the day of the last one is listed whole
	maxTurns  = 20
)

// A Room follows a team. Several goroutines may call its methods at once.
type Room struct {
	Scope *app.Scope

	mu       sync.Mutex
	current  *Snapshot
	replaced chan struct{}           // closed when current is replaced
	askedAt  map[wire.Name]time.Time // of each screen that is followed, the last time
}

// Open makes a room for the scope's team and identity. Run fills it.
func Open(s *app.Scope) *Room {
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

	Members []presence.Member // as `atm team` lists them
	Waiting []Question        // those that I may answer come first, then by age

	// The ids of my mail, newest first. Read goes back some days only. MailVersion grows when my mail may have changed.
	Unread, Owed, Read []wire.ID
	MailVersion        int

	Problem string // what cannot be read; "": nothing

	Screens map[wire.Name]*Screen // those that are followed and known: see Room.Screen
}

// Question is a question of a member.
type Question struct {
	ask.Question
	MayAnswer bool // by me, from here
}

// TakesText reports whether a text answers the question, which an agent here asks on its session channel.
func (q Question) TakesText() bool { return q.OnChannel && q.Host == "" }

// Is reports whether both are the same question. An id alone may be another agent's as well.
func (q *Question) Is(other Question) bool {
	return q.Agent == other.Agent && q.ID == other.ID && q.Since.Equal(other.Since)
}

// Member returns the row of a member.
func (s *Snapshot) Member(name wire.Name) (m presence.Member, ok bool) {
	i := slices.IndexFunc(s.Members, func(m presence.Member) bool { return m.Name == name })
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

// Run keeps the snapshot up to date until ctx ends, which is no error, or the team is gone. When something has changed,
// it reads all members again, but my mail and the drafts, which take longer, only when it was about these.
func (r *Room) Run(ctx context.Context) error {
	boxes, err := r.Scope.Team.Mailboxes()
	if err != nil {
		return err
	}
	first, _ := r.Snapshot()
	var hasMail, hasDraft atomic.Bool
	changed, ended := make(changeSignal, 1), make(chan error, 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		options := watcher.Options{Messages: true, Events: true, Mailboxes: r.Scope.Team.Mailboxes}
		ended <- watcher.Until(watching, boxes, options, func(e watcher.Entry) (isDone bool, err error) {
			isOpen := e == (watcher.Entry{})     // from now on nothing is missed
			if isOpen || e.Address.Agent != "" { // else it is a tick
				hasMail.CompareAndSwap(false, isOpen || e.Address.Agent == first.Me)
				hasDraft.CompareAndSwap(false, isOpen || isAboutDraft(e))
				changed.send()
			}
			return false, nil
		})
	}()
	var drafts []ask.Question
	for s := *first; ctx.Err() == nil; app.Sleep(ctx, pause) {
		select {
		case <-changed:
		case <-time.After(readEvery):
		case err := <-ended:
			if ctx.Err() == nil {
				return err
			}
			return nil
		}
		if err := r.Scope.Root.CheckPaths(); err != nil {
			return err
		}
		if hasMail.Swap(false) {
			r.readMail(&s)
		}
		r.readMembers(ctx, &s)
		s.Waiting = r.waiting(s.Members, drafts)
		r.publish(s)
		if hasDraft.Swap(false) { // the members are shown before
			drafts, _ = presence.Drafts(ctx, r.Scope.Team) // atm pending reports an error
			s.Waiting = r.waiting(s.Members, drafts)
			r.publish(s)
		}
	}
	return nil
}

// isAboutDraft reports whether an entry may change which drafts wait for an answer.
func isAboutDraft(e watcher.Entry) bool {
	return e.Message != nil && e.Message.Type == wire.TypeHumanInput ||
		e.Event != nil && (e.Event.Kind == wire.DraftReady || strings.HasPrefix(e.Event.Kind, "session_"))
}

// readMail reads the ids of my mail. The error of an unreadable mailbox is that of my row.
func (r *Room) readMail(s *Snapshot) {
	if me := r.Scope.Me; me != nil {
		s.MailVersion++
		s.Unread, _ = me.IDs(maildir.Range{Unread: true, Newest: true})
		s.Owed, _ = me.IDs(maildir.Range{Owed: true, Newest: true})
		s.Read, _ = me.IDs(maildir.Range{Done: true, Archive: true, Newest: true, Limit: maxRead})
	}
}

// readMembers reads the members. An error does not hide the rest.
func (r *Room) readMembers(ctx context.Context, s *Snapshot) {
	members, err := presence.Members(ctx, r.Scope.Team)
	for i := range members {
		if members[i].Running {
			members[i].PresenceAt = nil // it is the current time, so it would make every snapshot a new one
		}
		err = errors.Join(err, members[i].EventsErr)
	}
	s.Members, s.Problem = members, ""
	if err != nil {
		s.Problem = strings.ReplaceAll(err.Error(), "\n", "; ") + ": atm doctor"
	}
}

// waiting returns the questions of members and the drafts, in order.
func (r *Room) waiting(members []presence.Member, drafts []ask.Question) (all []Question) {
	questions := slices.Clone(drafts)
	for _, m := range members {
		questions = append(questions, m.Questions...)
	}
	for _, q := range questions {
		all = append(all, Question{q, r.Scope.Me != nil && q.ID != "" && r.Scope.MayAnswer(q) == nil})
	}
	slices.SortStableFunc(all, func(a, b Question) int {
		if a.MayAnswer == b.MayAnswer {
			return a.Since.Compare(b.Since)
		} else if a.MayAnswer {
			return -1
		}
		return 1
	})
	return all
}

// Mail returns messages of mine in the order of the ids. It leaves out those that are gone by now.
func (r *Room) Mail(ids []wire.ID) (items []*maildir.Item) {
	for _, id := range ids {
		if it, err := r.Scope.Me.Get(id); err == nil {
			items = append(items, it)
		}
	}
	return items
}

// Thread returns the messages of a thread that I received or sent, oldest first. If the given message is not among
// them, it returns the whole thread, which takes long in a team with much mail.
func (r *Room) Thread(ctx context.Context, thread, message wire.ID) ([]*maildir.Item, error) {
	if r.Scope.Me != nil {
		items, err := search.Thread(ctx, r.Scope.Team, thread, r.Scope.Me.Agent())
		if slices.ContainsFunc(items, func(it *maildir.Item) bool { return it.ID == message }) {
			return items, err
		}
	}
	return search.Thread(ctx, r.Scope.Team, thread)
}

// Turns returns an agent's newest turns, oldest first.
func (r *Room) Turns(name wire.Name) ([]history.Turn, error) {
	if _, err := r.Scope.Member(string(name)); err != nil {
		return nil, err
	}
	return r.Scope.Team.Turns(name, maxTurns)
}
