package notices

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Members may ask for mail when others come into a state:
//
//	<team>/.subscriptions/<member>.json   what it has asked for, and what it was told last of each other member
//
// Whoever appends events to a member's log looks there and, if the state is not the one that was told last, sends the
// notice and notes it, under the subscriber's lock. If it is killed before, whoever appends next sends it; if it is killed
// between, the notice comes twice. A notice replaces the one before about the same member if that is unread, so that
// they do not pile up.

const maxSubscriptions = 1 << 20 // bytes of a member's file

// Subscription asks for mail when a member comes into a state.
type Subscription struct {
	Event string `json:"event"` // of SubscriptionEvents
	Agent string `json:"agent"` // a member, or Everybody
}

// Everybody stands for all members but the subscriber, and people.
const Everybody = "*"

func (s Subscription) String() string { return s.Event + " " + s.Agent }

func (s Subscription) isAbout(agent wire.Name) bool {
	return s.Agent == Everybody || s.Agent == string(agent)
}

// SubscriptionEvents are what mail can be had about: the states, and that an answer is overdue.
func SubscriptionEvents() (all []string) {
	for _, word := range config.OnStates {
		all = append(all, string(word))
	}
	return append(all, config.OnOverdue)
}

// mailLeadsTo are the states that mail can bring an agent into: notices of these can go in a ring.
var mailLeadsTo = []string{string(reducer.WordIdle), string(reducer.WordBusy), string(reducer.WordBlocked), string(reducer.WordLimited)}

// subscriber is what is in a member's file.
type subscriber struct {
	Wants []Subscription          `json:"wants"`
	Told  map[wire.Name]toldState `json:"told"`
}

type toldState struct {
	State  reducer.Word `json:"state"`
	Notice wire.ID      `json:"notice,omitempty"` // the last one
}

func (s *subscriber) wants(event string, agent wire.Name) bool {
	return slices.ContainsFunc(s.Wants, func(w Subscription) bool { return w.isAbout(agent) && w.Event == event })
}

func (s *subscriber) wantsStateOf(agent wire.Name) bool {
	return slices.ContainsFunc(s.Wants, func(w Subscription) bool { return w.isAbout(agent) && w.Event != config.OnOverdue })
}

// isNews reports whether a member's state is to be told, or ends one that was: of others nothing is noted.
func (s *subscriber) isNews(now reducer.Word, agent wire.Name) bool {
	last := s.Told[agent].State
	return now != last && (s.wants(string(now), agent) || s.wants(string(last), agent))
}

// readSubscriber returns a member's file; an empty one if there is none.
func readSubscriber(t *teamdir.Team, name wire.Name) (*subscriber, error) {
	s := &subscriber{Told: map[wire.Name]toldState{}}
	err := t.Dir().ReadJSON(teamdir.SubscriberFile(name), maxSubscriptions, s)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if s.Told == nil { // "told": null
		s.Told = map[wire.Name]toldState{}
	}
	return s, err
}

func writeSubscriber(t *teamdir.Team, name wire.Name, s *subscriber) error {
	if len(s.Wants) == 0 {
		err := t.Dir().Remove(teamdir.SubscriberFile(name))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	data, _ := json.Marshal(s) // strings: cannot fail
	return cmp.Or(t.Dir().Mkdir(teamdir.SubscriptionsDir), t.Dir().Replace(teamdir.SubscriberFile(name), append(data, '\n'), false))
}

// Subscribers returns those who have asked for something. Without any it is one look.
func Subscribers(t *teamdir.Team) (names []wire.Name) {
	files, _ := t.Dir().Names(teamdir.SubscriptionsDir)
	for _, file := range files {
		if name, isJSON := strings.CutSuffix(file, ".json"); isJSON && wire.IsName(name) {
			names = append(names, wire.Name(name))
		}
	}
	return names
}

// Subscriptions returns what a member has asked for.
func Subscriptions(t *teamdir.Team, name wire.Name) ([]Subscription, error) {
	s, err := readSubscriber(t, name)
	return s.Wants, err
}

// A RingError refuses a subscription: a notice would start a turn, whose end another notice is about, and so on for ever.
type RingError struct{ Of []wire.Name }

func (e *RingError) Error() string {
	text := make([]string, len(e.Of))
	for i, n := range e.Of {
		text[i] = string(n)
	}
	return "notices would go round for ever: " + strings.Replace(strings.Join(text, ", who is told of "), ", who", "", 1)
}

// Subscribe replaces what a member has asked for. What is so already brings no mail.
func Subscribe(ctx context.Context, t *teamdir.Team, me wire.Name, wants []Subscription) error {
	lock := func(name string) (*lockfile.Lock, error) {
		return t.Locks().Lock(ctx, name, lockfile.Exclusive, t.LockWait(), nil)
	}
	all, err := lock("team") // of two that would make a ring, one comes later
	if err != nil {
		return err
	}
	defer all.Unlock()
	if ring := ring(t, me, wants); ring != nil {
		return &RingError{ring}
	}
	mine, err := lock(string(me) + ".subscriptions")
	if err != nil {
		return err
	}
	defer mine.Unlock()
	s := &subscriber{Wants: wants, Told: map[wire.Name]toldState{}}
	agents, err := t.Agents()
	if err != nil {
		return err
	}
	for _, name := range agents {
		if s.wantsStateOf(name) {
			_, word, err := stateToTell(t, name)
			if err != nil {
				return err
			}
			s.Told[name] = toldState{State: word}
		}
	}
	return writeSubscriber(t, me, s)
}

// ring returns a ring of agents, each told of the next one, that a subscription would close; nil: there is none. A person
// is in none, since nobody is told of people's states.
func ring(t *teamdir.Team, me wire.Name, wants []Subscription) []wire.Name {
	agents, _ := t.Agents()
	agents = slices.DeleteFunc(agents, func(n wire.Name) bool { return post.IsPerson(t.Root(), t.Box(n).Address()) })
	isTold := func(s *subscriber, agent wire.Name) bool {
		return slices.ContainsFunc(mailLeadsTo, func(event string) bool { return s.wants(event, agent) })
	}
	seen := map[wire.Name]bool{}
	var from func(name wire.Name, s *subscriber) []wire.Name
	from = func(name wire.Name, s *subscriber) []wire.Name {
		seen[name] = true
		for _, n := range agents {
			if n == name || !isTold(s, n) {
				continue
			}
			if n == me {
				return []wire.Name{name, me}
			}
			if !seen[n] {
				next, _ := readSubscriber(t, n)
				if rest := from(n, next); rest != nil {
					return append([]wire.Name{name}, rest...)
				}
			}
		}
		return nil
	}
	if !slices.Contains(agents, me) {
		return nil
	}
	return from(me, &subscriber{Wants: wants})
}

// saysNoState are the kinds of events that change no state, or come many times a second within one.
var saysNoState = []string{
	wire.EventAnnounced, wire.EventRead, wire.EventAcked, wire.EventWithdrawn, wire.EventInjecting, wire.EventInjected,
	wire.EventInjectionFailed, wire.EventReturned, wire.EventUnread, wire.EventStage, wire.CommandFailed, wire.StreamError,
	wire.MessageDelta, wire.ThoughtDelta, wire.AgentOutput,
}

// Tell is a teamdir.Told: it tells those who have asked for it that events have brought a member into another state, and
// withdraws the message about a question that an event closes. What fails here is done by the next one, or not at all.
func Tell(ctx context.Context, t *teamdir.Team, name wire.Name, events []wire.Event) {
	if !slices.ContainsFunc(events, func(e wire.Event) bool { return !slices.Contains(saysNoState, e.Kind) }) {
		return // also what is appended under the locks of a mailbox
	}
	for _, e := range events {
		if id := e.Text(wire.FieldID); e.Kind == wire.StateChange && wire.IsID(id) {
			WithdrawRequest(context.WithoutCancel(ctx), t, t.Box(name), wire.ID(id))
		}
	}
	var now reducer.Word
	for _, sub := range Subscribers(t) {
		s, err := readSubscriber(t, sub)
		if err != nil || sub == name || !s.wantsStateOf(name) {
			continue
		}
		if now == "" {
			var err error
			if _, now, err = stateToTell(t, name); err != nil {
				return
			}
		}
		if s.isNews(now, name) {
			tellSubscriber(context.WithoutCancel(ctx), t, sub, name)
		}
	}
}

// TellKilled tells those who have asked for it that a member is off whose runner was killed: that no event says. Without
// subscriptions it is one look.
func TellKilled(ctx context.Context, t *teamdir.Team) {
	subs := Subscribers(t)
	if len(subs) == 0 {
		return
	}
	agents, _ := t.Agents() // what cannot be read now is told by a later look
	off := reducer.WordOff
	for _, sub := range subs {
		s, err := readSubscriber(t, sub)
		if err != nil {
			continue
		}
		for _, name := range agents {
			if name == sub || !s.wants(string(off), name) || s.Told[name].State == off {
				continue
			}
			if _, word, err := stateToTell(t, name); err == nil && word == off {
				tellSubscriber(ctx, t, sub, name)
			}
		}
	}
}

// stateToTell returns a member's state by its events, and the word for it: off also if its runner was killed.
func stateToTell(t *teamdir.Team, name wire.Name) (s *reducer.State, word reducer.Word, err error) {
	for range 2 { // a runner that has ended says so, after the first look perhaps
		if s, err = t.State(name); err != nil {
			return nil, "", err
		}
		running, err := t.Running(name)
		if err != nil || running || !s.Evaluate(reducer.Evidence{Now: time.Now()}).RunnerGone {
			return s, s.Word(), err
		}
	}
	return s, reducer.WordOff, nil
}

// tellSubscriber tells one member of another's state until it knows the newest: who appended meanwhile may have seen the one
// before. No lock is held while git is asked or a program gets the notice.
func tellSubscriber(ctx context.Context, t *teamdir.Team, sub, name wire.Name) error {
	for {
		s, err := readSubscriber(t, sub)
		if err != nil || !s.wantsStateOf(name) {
			return err
		}
		if _, word, err := stateToTell(t, name); err != nil || !s.isNews(word, name) {
			return err
		}
		if err := t.Store.MayAct(ctx); err != nil { // a root that came with a clone sends nothing
			return err
		}
		push, err := noteTold(ctx, t, sub, name)
		push()
		if err != nil {
			return err
		}
	}
}

// noteTold notes a member's state as told, if it is news, and stores the notice of it. push is as in package post.
func noteTold(ctx context.Context, t *teamdir.Team, sub, name wire.Name) (push func(), err error) {
	push = func() {}
	lock, err := t.Locks().Lock(ctx, string(sub)+".subscriptions", lockfile.Exclusive, t.LockWait(), t.Box(sub).CheckPresent)
	if err != nil {
		return push, err
	}
	defer lock.Unlock()
	s, err := readSubscriber(t, sub) // what was seen before the lock does not count
	if err != nil {
		return push, err
	}
	state, word, err := stateToTell(t, name)
	if err != nil || !s.isNews(word, name) {
		return push, err
	}
	last := s.Told[name]
	last.State = word
	if s.wants(string(word), name) && !post.IsPerson(t.Root(), t.Box(name).Address()) {
		m := notice(fmt.Sprintf("%s is %s", name, word), fmt.Sprintf("Since %s. atm status %s says more.", since(state, word), name))
		m.Supersedes = last.Notice
		if _, push, err = post.StoreFor(ctx, t, t.Box(name), sub, m); err != nil {
			return push, err
		}
		last.Notice = m.ID
	}
	s.Told[name] = last
	return push, writeSubscriber(t, sub, s)
}

// notice is mail that somebody has asked for. It has no word of others in it.
func notice(subject, body string) *wire.Message {
	return &wire.Message{Type: wire.TypeNotice, ReplyWanted: "no", Subject: subject, Body: body + " You asked to be told: atm watch --mail-me"}
}

func since(s *reducer.State, word reducer.Word) string {
	at := s.Session().Since
	if at.IsZero() || word != s.Session().Word() {
		at = time.Now()
	}
	return at.UTC().Format("2006-01-02 15:04:05 UTC")
}
