// Package room is what a person sees of a team, and can do: `atm`, `atm pending`, what watches, `atm tui` and `atm web`
// show one value, the Snapshot. Look makes one, Run follows the team's mailboxes and keeps it up to date; everything else
// is read when it is asked for. Reading marks nothing.
//
// The scope says who I am; without an identity nothing can be done. Every action does what the verb of its name does,
// by the same code and with the same checks.
package room

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

const (
	readEvery = 3 * time.Second        // a killed runner's lock and the clock change states without an event
	pause     = 100 * time.Millisecond // between two reads, since changes come together
	// Late answers are looked for when something has changed, and at rest for what falls due.
	lateAtMost, lateAtRest = 3 * time.Second, 15 * time.Second

	maxRead  = 1000 // of my read messages; the day of the last one is listed whole
	maxTurns = 20
)

// A Room follows a team. Several goroutines may call its methods at once.
type Room struct {
	Scope *app.Scope

	mu       sync.Mutex
	current  *Snapshot
	replaced chan struct{}           // closed when current is replaced
	askedAt  map[wire.Name]time.Time // of each screen that is followed, the last time
	changed  changeSignal            // something may have changed
}

// Open makes a room for the scope's team and identity. Run fills it.
func Open(s *app.Scope) *Room {
	first := &Snapshot{Project: filepath.Base(app.ProjectOf(s.Root.Path)), Team: s.Team.Name, Screens: map[wire.Name]*Screen{}}
	if s.Me != nil {
		first.Me = s.Me.Agent()
	}
	return &Room{Scope: s, current: first, replaced: make(chan struct{}), askedAt: map[wire.Name]time.Time{}, changed: make(changeSignal, 1)}
}

// Snapshot is the state of the team at one time. It never changes.
type Snapshot struct {
	Version int    // of all but the screens; 0: nothing was read yet, 1: drafts were not
	Project string // the name of the directory that the root is in
	Team    wire.Name
	Me      wire.Name // "": there is no identity

	Members []presence.Member // those that are stopped first, else as `atm team` lists them

	// What waits for a person.
	Waiting []Question              // those that I may answer come first, then by age
	Overdue []notices.OverdueAnswer // by due date
	Held    []HeldMail

	// The ids of my mail, newest first. Read goes back some days only. MailVersion grows when my mail may have changed.
	Unread, Owed, Read []wire.ID
	MailVersion        int

	// Mail is all of that, but for messages that stand in Waiting as questions, in the order in which it wants me: urgent,
	// overdue, to be answered or acknowledged (so many are Wanting), other unread (all these are Open), read; newest first in
	// each. New is how many of it are unread.
	Mail               []wire.ID
	Wanting, Open, New int

	Problem string // what cannot be read; "": nothing

	Screens map[wire.Name]*Screen // those that are followed and known: see Room.Screen
}

// HeldMail is mail that is given to nobody until a person acts.
type HeldMail struct {
	Agent  wire.Name `json:"agent"`
	Unread int       `json:"unread"`
	Reason string    `json:"reason"`

	Look string `json:"-"` // the command with which a person sees it
}

func (h HeldMail) String() string { return letter.Many(h.Unread, "message") + " held: " + h.Reason }

// lateLine says in a line who has not answered what, and since when.
func (s *Snapshot) lateLine(o notices.OverdueAnswer) string {
	if o.Agent == s.Me {
		return fmt.Sprintf("you owe %s an answer, due %s: %s", s.From(o), letter.Age(time.Now(), o.DueAt), letter.OneLine(o.Subject, 60))
	}
	status := "has not even read"
	if o.Read {
		status = "has not answered"
	}
	return fmt.Sprintf("%s %s %s from %s, due %s: %s", o.Agent, status, o.ID.Short(6), o.From, letter.Age(time.Now(), o.DueAt),
		letter.OneLine(o.Subject, 60))
}

// From is who waits for an answer, as the team calls them.
func (s *Snapshot) From(o notices.OverdueAnswer) string {
	return strings.TrimSuffix(o.From, "@"+string(s.Team))
}

// Question is a question of a member.
type Question struct {
	ask.Question
	MayAnswer bool // by me, from here
}

// TakesText reports whether only a text answers the question, which an agent here asks on its session channel.
func (q Question) TakesText() bool { return q.OnChannel && q.Host == "" }

// IsMail reports whether a message asks the question: one of its options answers it, or a text.
func (q Question) IsMail() bool { return q.Kind == ask.KindMail }

// A Wait is one thing that waits for a person.
type Wait struct {
	Agent wire.Name
	Key   string  // the same as long as it waits: a dialog may get an id and further details later
	Line  string  // begins with the agent, unless it is mine to answer
	Mine  wire.ID // the message that I owe an answer; "": it is no such thing
}

// QuestionKey, LateKey and HeldMail.Key are the Keys of Waits.
func QuestionKey(q ask.Question) string {
	return fmt.Sprint(q.Agent, " ", q.Kind, " ", q.Since.UnixNano())
}
func LateKey(o notices.OverdueAnswer) string { return fmt.Sprint(o.Agent, " ", o.ID) }
func (h HeldMail) Key() string               { return fmt.Sprint(h.Agent, " ", h.Reason) }

// Rest is the line without the agent.
func (w Wait) Rest() string { return strings.TrimPrefix(w.Line, string(w.Agent)+" ") }

// Waits returns all that waits for a person, in the order of Waiting, Overdue and Held.
func (s *Snapshot) Waits() (all []Wait) {
	for _, q := range s.Waiting {
		all = append(all, Wait{Agent: q.Agent, Key: QuestionKey(q.Question), Line: string(q.Agent) + " " + letter.OneLine(q.Summary(), 80)})
	}
	for _, o := range s.Overdue {
		w := Wait{Agent: o.Agent, Key: LateKey(o), Line: s.lateLine(o)}
		if o.Agent == s.Me {
			w.Mine = o.ID
		}
		all = append(all, w)
	}
	for _, h := range s.Held {
		all = append(all, Wait{Agent: h.Agent, Key: h.Key(), Line: string(h.Agent) + " " + h.String()})
	}
	return all
}

// Late returns those of Waits that are no questions.
func (s *Snapshot) Late() []Wait { return s.Waits()[len(s.Waiting):] }

// Questions returns Waiting without what I may do.
func (s *Snapshot) Questions() []ask.Question {
	all := []ask.Question{} // never nil: it is a list in JSON
	for _, q := range s.Waiting {
		all = append(all, q.Question)
	}
	return all
}

// Asks reports whether a message asks one of the questions.
func (s *Snapshot) Asks(id wire.ID) bool {
	return slices.ContainsFunc(s.Waiting, func(q Question) bool { return q.ID == string(id) })
}

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

// IsWhole reports whether all was read once.
func (s *Snapshot) IsWhole() bool { return s.Version > 1 }

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
// it reads all members again, but my mail, the drafts and what messages ask, which take longer, only when it was about these.
func (r *Room) Run(ctx context.Context) error {
	boxes, err := r.Scope.Team.Mailboxes()
	if err != nil {
		return err
	}
	first, _ := r.Snapshot()
	var hasMail, hasDraft, hasAsked atomic.Bool
	changed, ended := r.changed, make(chan error, 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		options := watcher.Options{Messages: true, Events: true, Mailboxes: r.Scope.Team.Mailboxes}
		ended <- watcher.Until(watching, boxes, options, func(e watcher.Entry) (isDone bool, err error) {
			isOpen := e == (watcher.Entry{})     // from now on nothing is missed
			if isOpen || e.Address.Agent != "" { // else it is a tick
				isMine := e.Address.Agent == first.Me
				hasMail.CompareAndSwap(false, isOpen || isMine)
				hasDraft.CompareAndSwap(false, isOpen || isAboutDraft(e))
				hasAsked.CompareAndSwap(false, isOpen || isMine || isAboutChoices(e))
				changed.send()
			}
			return false, nil
		})
	}()
	path, _ := os.Executable()
	program, _ := os.Stat(path)
	var drafts, asked []ask.Question
	var lookedForLate time.Time
	wants, unread := wantsOf{}, 0
	for s := *first; ctx.Err() == nil; app.Sleep(ctx, pause) {
		hasNews := true
		select {
		case <-changed:
		case <-time.After(readEvery):
			hasNews = false
		case err := <-ended:
			if ctx.Err() == nil {
				return err
			}
			return nil
		}
		if err := r.Scope.Root.CheckPaths(); err != nil {
			return err
		}
		s.Problem = ""
		if now, err := os.Stat(path); program != nil && err == nil && !os.SameFile(program, now) {
			s.Problem = "atm is another version by now: start this view again"
		}
		if err := r.readMembers(ctx, &s); err != nil {
			s.Problem = strings.ReplaceAll(err.Error(), "\n", "; ") + ": atm doctor"
		}
		stopped := []reducer.Word{reducer.WordLimited, reducer.WordBlocked} // the worst last
		slices.SortStableFunc(s.Members, func(a, b presence.Member) int {
			return slices.Index(stopped, b.State) - slices.Index(stopped, a.State)
		})
		for i := range s.Members {
			if s.Members[i].Running {
				s.Members[i].PresenceAt = nil // it is the current time, so it would make every snapshot a new one
			}
		}
		my, _ := s.Member(first.Me)
		if hasMail.Swap(false) || my.Unread != unread { // a message that is unread again is no news to the watcher
			unread = my.Unread
			wants = r.readMail(&s)
		}
		s.Waiting = r.waiting(s.Members, drafts, asked)
		s.order(wants, time.Now())
		r.publish(s)
		// The members are shown before what takes longer. Look reports its errors.
		since := time.Since(lookedForLate)
		isDue := since > lateAtRest || hasNews && since > lateAtMost
		hasNewDraft, hasNewAsked := hasDraft.Swap(false), hasAsked.Swap(false)
		if hasNewDraft {
			drafts, _ = presence.Drafts(ctx, r.Scope.Team, s.Members)
		}
		if hasNewAsked {
			asked, _ = presence.MailQuestions(r.Scope.Team)
		}
		if hasNewDraft || hasNewAsked {
			s.Waiting = r.waiting(s.Members, drafts, asked)
		}
		if isDue {
			lookedForLate = time.Now()
			s.Overdue, _ = notices.OverdueAnswers(ctx, r.Scope.Team)
		}
		if hasNewDraft || hasNewAsked || isDue {
			s.order(wants, time.Now())
			r.publish(s)
		}
	}
	return nil
}

// isAboutChoices reports whether an entry may change which messages with choices wait for an answer.
func isAboutChoices(e watcher.Entry) bool {
	return e.Message != nil && (len(e.Message.Choices) > 0 || e.Message.InReplyTo != "")
}

// isAboutDraft reports whether an entry may change which drafts wait for an answer.
func isAboutDraft(e watcher.Entry) bool {
	return e.Message != nil && e.Message.Type == wire.TypeHumanInput ||
		e.Event != nil && (e.Event.Kind == wire.DraftReady || strings.HasPrefix(e.Event.Kind, "session_"))
}

// readMail reads the ids of my mail, and what that wants. The error of an unreadable mailbox is that of my row.
func (r *Room) readMail(s *Snapshot) wantsOf {
	wants := wantsOf{}
	if me := r.Scope.Me; me != nil {
		s.MailVersion++
		s.Unread = wants.openMail(me, maildir.Range{Unread: true})
		s.Owed = wants.openMail(me, maildir.Range{Owed: true})
		s.Read, _ = me.IDs(maildir.Range{Done: true, Archive: true, Newest: true, Limit: maxRead})
	}
	return wants
}

// readMembers reads the members. An error does not hide the rest.
func (r *Room) readMembers(ctx context.Context, s *Snapshot) (err error) {
	s.Members, err = presence.Members(ctx, r.Scope.Team)
	s.Held = nil
	for _, m := range s.Members {
		err = errors.Join(err, m.EventsErr)
		if m.Held != "" && m.Host == "" && m.Inject != "off" {
			s.Held = append(s.Held, HeldMail{m.Name, m.Unread, m.Held, "atm attach " + string(m.Name)})
		}
		if m.Aside > 0 && m.Host == "" {
			s.Held = append(s.Held, HeldMail{m.Name, m.Aside, "set aside: nobody finished it", "atm ls " + string(m.Name)})
		}
	}
	return err
}

// Look looks at the team once, and not at my mail. With an *teamdir.UnreadableError it returns what could be read.
func (r *Room) Look(ctx context.Context) (*Snapshot, error) {
	s, _ := r.Snapshot()
	now := *s
	err := r.readMembers(ctx, &now)
	asked, askedErr := presence.Asked(ctx, r.Scope.Team, now.Members)
	now.Waiting = r.waiting(now.Members, asked)
	overdue, overdueErr := notices.OverdueAnswers(ctx, r.Scope.Team)
	now.Overdue = overdue
	if err = errors.Join(err, askedErr, overdueErr); err != nil {
		err = &teamdir.UnreadableError{Err: err}
	}
	return &now, err
}

// waiting returns the questions of members and others, in order.
func (r *Room) waiting(members []presence.Member, others ...[]ask.Question) (all []Question) {
	questions := slices.Concat(others...)
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
func (r *Room) Mail(ids []wire.ID) (items []*wire.Item) {
	for _, id := range ids {
		if it, err := r.Scope.Me.Get(id); err == nil {
			items = append(items, it)
		}
	}
	return items
}

// Older returns the ids of my mail after one of Mail, in that order and without end, and how many more there are.
func (r *Room) Older(after wire.ID, most int) (ids []wire.ID, more int) {
	s, _ := r.Snapshot()
	if r.Scope.Me == nil {
		return nil, 0
	}
	read, _ := r.Scope.Me.IDs(maildir.Range{Done: true, Archive: true, Newest: true})
	ids = slices.Concat(s.Mail[:s.Open], read)
	ids = ids[slices.Index(ids, after)+1:]
	n := min(len(ids), most)
	return ids[:n], len(ids) - n
}

// Next returns the id of the message after one of Mail, "" if there is none.
func (r *Room) Next(after wire.ID) wire.ID {
	s, _ := r.Snapshot()
	if i := slices.Index(s.Mail, after); i >= 0 && i+1 < len(s.Mail) {
		return s.Mail[i+1]
	}
	return ""
}

// Thread returns the messages of a thread that I received or sent, oldest first. If the given message is not among
// them, it returns the whole thread, which takes long in a team with much mail.
func (r *Room) Thread(ctx context.Context, thread, message wire.ID) ([]*wire.Item, error) {
	if r.Scope.Me != nil {
		items, err := search.Thread(ctx, r.Scope.Team, thread, r.Scope.Me.Agent())
		if slices.ContainsFunc(items, func(it *wire.Item) bool { return it.ID == message }) {
			return items, err
		}
	}
	return search.Thread(ctx, r.Scope.Team, thread)
}

// Turns returns an agent's newest turns, oldest first.
func (r *Room) Turns(name wire.Name) ([]history.FullTurn, error) {
	if _, err := r.Scope.Member(string(name)); err != nil {
		return nil, err
	}
	return r.Scope.Team.Turns(name, maxTurns)
}
