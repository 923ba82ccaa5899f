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
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/watcher"
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

// readSubscribers reads the files of all of them that can be read.
func readSubscribers(t *teamdir.Team) map[wire.Name]*subscriber {
	all := map[wire.Name]*subscriber{}
	for _, name := range Subscribers(t) {
		if s, err := readSubscriber(t, name); err == nil {
			all[name] = s
		}
	}
	return all
}

// Subscriptions returns what a member has asked for.
func Subscriptions(t *teamdir.Team, name wire.Name) ([]Subscription, error) {
	s, err := readSubscriber(t, name)
	return s.Wants, err
}

// Subscribe replaces what a member has asked for. What is so already brings no mail.
func Subscribe(ctx context.Context, t *teamdir.Team, me wire.Name, wants []Subscription) error {
	s := &subscriber{Wants: wants, Told: map[wire.Name]toldState{}}
	agents, err := t.Agents()
	if err != nil {
		return err
	}
	for _, name := range agents {
		if s.wantsStateOf(name) {
			now, err := look(t, name)
			if err != nil {
				return err
			}
			s.Told[name] = toldState{State: now.word}
		}
	}
	lock, err := t.Locks().Lock(ctx, string(me)+".subscriptions", lockfile.Exclusive, t.LockWait(), t.Box(me).CheckPresent)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return writeSubscriber(t, me, s)
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
	tell(context.WithoutCancel(ctx), t, name, readSubscribers(t), func(s *subscriber) bool { return s.wantsStateOf(name) })
}

// TellKilled tells those who have asked for it that a member is off whose runner was killed: that no event says. Without
// subscriptions it is one look.
func TellKilled(ctx context.Context, t *teamdir.Team) {
	subscribers := readSubscribers(t)
	if len(subscribers) == 0 {
		return
	}
	agents, _ := t.Agents() // what cannot be read now is told by a later look
	for _, name := range agents {
		tell(ctx, t, name, subscribers, func(s *subscriber) bool {
			return s.wants(string(reducer.WordOff), name) && s.Told[name].State != reducer.WordOff
		})
	}
}

// tell tells those subscribers that have asked for it of a member's state, if it is news to them.
func tell(ctx context.Context, t *teamdir.Team, name wire.Name, subscribers map[wire.Name]*subscriber, isAsked func(*subscriber) bool) {
	now, err := view{}, error(nil)
	for sub, s := range subscribers {
		if sub == name || !isAsked(s) {
			continue
		}
		if now.word == "" {
			if now, err = look(t, name); err != nil {
				return
			}
		}
		if s.isNews(now.word, name) {
			tellSubscriber(ctx, t, sub, name)
		}
	}
}

// look returns the view of a member's events since when its state holds. The state is off also if its runner was killed.
func look(t *teamdir.Team, name wire.Name) (v view, err error) {
	for range 2 { // a runner that has ended says so, after the first look perhaps
		s, err := t.State(name)
		if err != nil {
			return v, err
		}
		v = viewOf(s)
		v.at = s.Session().Since
		if v.at.IsZero() || v.word != s.Session().Word() {
			v.at = time.Now()
		}
		running, err := t.Running(name)
		if err != nil || running || !s.Evaluate(reducer.Evidence{Now: time.Now()}).RunnerGone {
			return v, err
		}
	}
	return view{word: reducer.WordOff, at: time.Now()}, nil
}

// tellSubscriber tells one member of another's state until it knows the newest: who appended meanwhile may have seen the one
// before. No lock is held while git is asked.
func tellSubscriber(ctx context.Context, t *teamdir.Team, sub, name wire.Name) {
	if t.Store.MayAct(ctx) != nil { // a root that came with a clone sends nothing
		return
	}
	for isNews := true; isNews; {
		var push []func()
		isNews, push, _ = noteTold(ctx, t, sub, name)
		for _, f := range push {
			f()
		}
	}
}

// noteTold notes a member's state as told, if it is news, and stores the notice of it, which push then gives to the
// subscriber's program.
func noteTold(ctx context.Context, t *teamdir.Team, sub, name wire.Name) (isNews bool, push []func(), err error) {
	lock, err := t.Locks().Lock(ctx, string(sub)+".subscriptions", lockfile.Exclusive, t.LockWait(), t.Box(sub).CheckPresent)
	if err != nil {
		return false, nil, err
	}
	defer lock.Unlock()
	s, err := readSubscriber(t, sub) // what was seen before the lock does not count
	if err != nil {
		return false, nil, err
	}
	now, err := look(t, name)
	if err != nil || !s.isNews(now.word, name) {
		return false, nil, err
	}
	last, box := s.Told[name], t.Box(name)
	for _, o := range occurrences(view{word: last.State}, now, watcher.Entry{Address: box.Address()}) {
		if !s.wants(o.Event, name) || post.IsPerson(t.Root(), box.Address()) {
			continue
		}
		m := notice(o, isEcho(box))
		m.Supersedes = last.Notice
		_, f, err := post.StoreFor(ctx, t, box, sub, m)
		if err != nil {
			return false, nil, err
		}
		push = append(push, f)
		last.Notice = m.ID
	}
	last.State = now.word
	s.Told[name] = last
	err = writeSubscriber(t, sub, s)
	return err == nil, push, err
}

// isEcho reports whether mail about states, and nothing else, has begun a member's last turn. Mail about what came of that
// starts no turn: else two who are told of each other would wake each other for ever.
func isEcho(box *maildir.Box) bool {
	var ids []wire.ID
	isFound, looked := false, 0
	box.Log().Tail(func(e *wire.Event) bool {
		looked++
		now := reducer.Activity(e.Field("new"))
		isStart := e.Kind == wire.TurnStarted || e.Kind == wire.StateChange && (now == reducer.Thinking || now == reducer.Responding || now == reducer.ToolRunning)
		isEnd := e.Kind == wire.TurnCompleted || e.Kind == wire.TurnIdle || e.Kind == wire.StateChange && now == reducer.Idle
		isMail := e.Kind == wire.EventInjected || e.Source == wire.SourceHook && (e.Kind == wire.EventAnnounced || e.Kind == wire.EventRead)
		if isMail {
			ids = append(ids, e.MessageID())
		}
		isBefore := isFound && (isStart || isEnd)
		isFound = isFound || isStart
		return isBefore || looked == maxEcho
	})
	isOther := func(id wire.ID) bool {
		it, err := box.OpenAnywhere(id)
		return err != nil || !it.IsOfState()
	}
	return len(ids) > 0 && !slices.ContainsFunc(ids, isOther)
}

const maxEcho = 2000 // events of one turn, about so many

// notice is the mail about a state that a member has come into. It has no word of others in it. With isEcho it starts no turn.
func notice(o Occurrence, isEcho bool) *wire.Message {
	since := o.At.Format("2006-01-02 15:04:05 UTC")
	return &wire.Message{
		Type: wire.TypeNotice, ReplyWanted: "no", Payload: json.RawMessage(fmt.Sprintf(`{"state":%q,"echo":%t}`, o.Event, isEcho)),
		Subject: fmt.Sprintf("%s is %s", o.Agent, o.Event),
		Body:    fmt.Sprintf("Since %s. atm status %s says more. You asked to be told: atm watch --mail-me", since, o.Agent),
	}
}
