// Package presence says how members are: busy, idle, blocked on a person, off or unknown, on what evidence, and what waits
// for a person's answer. It looks at their events, their runners and their programs, and at what other machines told.
package presence

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// Member is the evidence about a member, as team and status print it in JSON. Without evidence a state is unknown,
// which is neither idle nor off. The fields that every member has are there in JSON, null if not known.
type Member struct {
	Name wire.Name `json:"name"` // bob@build if on another host
	OtherHost
	Kind string `json:"kind"` // agent, person
	// Shared says that others may take from its inbox, and then answer for it.
	Shared bool   `json:"shared,omitempty"`
	Role   string `json:"role,omitempty"`

	State  reducer.Word `json:"state"` // one word, derived from the fields below
	Detail string       `json:"detail"`
	Since  *time.Time   `json:"since"`           // when State began
	Until  *time.Time   `json:"until,omitempty"` // when its usage limit ends

	Presence   reducer.Presence `json:"presence"`
	PresenceAt *time.Time       `json:"presence_at"` // when there was evidence for Presence

	// Source is what the state rests on, and HeardAt when that was last heard. Only Status has them.
	Source  reducer.Source `json:"source,omitempty"`
	HeardAt *time.Time     `json:"heard_at,omitempty"`
	// Ways are how its runner tells it what. Only Status has them.
	Ways control.Ways `json:"ways,omitzero"`
	// WaysIn are how mail gets into a program that its person started. Only Status has them.
	WaysIn []programs.WayNow `json:"ways_in,omitempty"`

	TurnState
	Usage *reducer.Usage `json:"usage,omitempty"` // nil: its program tells none
	MailCounts
	PID    *int64     `json:"pid"`
	ReadAt *time.Time `json:"read_at,omitempty"` // of the newest message_read or injected event
	Inject string     `json:"inject,omitempty"`  // how its runner hands over mail: body, pointer, off; "": unknown

	Running    bool               `json:"-"` // the runner lock is held
	RunnerGone bool               `json:"-"` // its runner was killed
	HasJob     bool               `json:"-"` // of a shared inbox, which is all that is known
	Runner     control.Status     `json:"-"` // what its runner answers
	RunnerErr  error              `json:"-"` // why its runner does not answer
	source     reducer.Source     // of the turn
	heardAt    time.Time          // and when that was last heard
	Started    time.Time          `json:"-"` // when a runner last started its program
	Programs   []programs.Program `json:"-"` // that people have started under its name, and that still run
	Questions  []ask.Question     `json:"-"` // what is open in all sessions of its program; none while it is off
	Err        error              `json:"-"` // why nothing is known, or its mail was not counted
	EventsErr  error              `json:"-"` // an *UnreadableError if its events cannot be read
	note       string             // the end of Detail that is atm's own
	drafts     []reducer.Draft    // that it announced
	seq        uint64             // of its newest event
	says       *agents.Session    // what its program says of itself; nil: nothing
	AtPrompt   reducer.Word       `json:"-"` // State but for what is asked beside that, which holds up no mail; "": State
}

// OtherHost says from which host a row came; zero: from this one.
type OtherHost struct {
	Host   wire.Name  `json:"host,omitempty"`
	SeenAt *time.Time `json:"seen_at,omitempty"` // when that host's rows last arrived
	Clock  string     `json:"clock,omitempty"`   // how that host's clock differs: "3m ahead"
}

// TurnState is a member's turn and its program's errors, as its events have them.
type TurnState struct {
	TurnStatus reducer.TurnStatus `json:"turn_status"`
	Activity   reducer.Activity   `json:"activity"`
	TurnID     OrNull             `json:"turn_id"`
	ThreadID   OrNull             `json:"thread_id"`
	Transport  OrNull             `json:"transport"`
	Session    OrNull             `json:"session"`
	LastTurn   *reducer.Last      `json:"last_turn"`
	Errors     uint64             `json:"errors"`
	LastError  string             `json:"last_error,omitempty"`
	Dropped    reducer.Dropped    `json:"dropped"`
	Unknown    uint64             `json:"unknown"` // events of unknown kinds
	WaitingOn  *reducer.Waiting   `json:"waiting_on"`
}

// MailCounts are the numbers of messages in a member's mailbox.
type MailCounts struct {
	Unread int    `json:"unread"`           // without leased messages
	Held   string `json:"held,omitempty"`   // why unread mail waits, unless State says it
	Leased int    `json:"leased,omitempty"` // messages under a lease
	Aside  int    `json:"aside,omitempty"`  // jobs that are not given out any more
	Owed   int    `json:"owed"`             // messages that it has not acknowledged
	Bad    int    `json:"bad,omitempty"`
}

// OrNull is a text that is null in JSON if there is none.
type OrNull string

// MarshalJSON implements json.Marshaler.
func (t OrNull) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return wire.Quote(string(t)), nil
}

// A Query says how to look at members. The zero value is for those that somebody has named.
type Query struct {
	Mail  bool           // count their mail too: that takes in dropped files, which may be events
	Brief bool           // wait less long for runners that do not answer
	State *reducer.State // of the only one, if the caller keeps it up to date

	config *config.Config
}

// Look returns how members are, in the order of their names, which are bob or bob@host. It asks all runners at the same
// time. A member of another host is as the last rows of that host have it.
func Look(ctx context.Context, t *teamdir.Team, q Query, names ...wire.Name) []Member {
	q.config, _ = t.Config() // doctor reports its mistakes
	runners := askRunners(ctx, t, names, q.Brief)
	members := make([]Member, len(names))
	teamdir.AtOnce(len(names), func(i int) {
		name, host, isElsewhere := strings.Cut(string(names[i]), "@")
		if isElsewhere {
			members[i] = remote(t, wire.Name(name), wire.Name(host))
			return
		}
		var count inbox.Counts
		var countErr error
		if q.Mail {
			count, countErr = inbox.Count(ctx, t.Box(names[i])) // first: it takes in dropped files
		}
		m := &members[i]
		*m = look(ctx, t, q, names[i], runners)
		if q.Mail {
			m.addMail(t, count, countErr)
		}
	})
	return members
}

// One is Look for one member. It fails if nothing is known of the member. One whose events cannot be read is unknown, which
// is no error.
func One(ctx context.Context, t *teamdir.Team, name wire.Name) (Member, error) {
	m := Look(ctx, t, Query{}, name)[0]
	return m, m.Err
}

// At is Look for members of several teams, also of linked roots. Of a team that cannot be opened, Member.Err says why.
func At(ctx context.Context, r *teamdir.Root, addresses ...wire.Address) map[wire.Address]Member {
	all, teams := map[wire.Address]Member{}, map[wire.Address][]wire.Address{}
	for _, a := range addresses {
		of := wire.Address{Team: a.Team}
		if r.IsLink(a.Host) {
			of.Host = a.Host
		}
		if !slices.Contains(teams[of], a) {
			teams[of] = append(teams[of], a)
		}
	}
	for of, those := range teams {
		t, err := r.TeamOf(of)
		if err != nil {
			for _, a := range those {
				all[a] = Member{Err: err}
			}
			continue
		}
		names := make([]wire.Name, len(those))
		for i, a := range those {
			if names[i] = t.NameOf(a); of.Host != "" {
				names[i] = a.Agent
			}
		}
		for i, m := range Look(ctx, t, Query{}, names...) {
			m.Name = t.NameOf(those[i])
			all[those[i]] = m
		}
	}
	return all
}

func look(ctx context.Context, t *teamdir.Team, q Query, name wire.Name, runners map[wire.Name]runnerAnswer) Member {
	s, err := q.State, error(nil)
	if s == nil {
		s, err = t.State(name)
	}
	if errors.Is(err, maildir.ErrNoMailbox) {
		return Member{Name: name, Err: err}
	}
	if err != nil {
		m := member(ctx, t, q, name, &reducer.State{}, runners)
		m.Detail, m.LastError, m.EventsErr = "its events cannot be read", err.Error(), teamdir.Unreadable(t.Box(name), err)
		return m
	}
	m := member(ctx, t, q, name, s, runners)
	if m.RunnerGone && q.State == nil { // or it ended after State had read the log, which says so by now
		if s, err = t.State(name); err == nil {
			m = member(ctx, t, q, name, s, runners)
		}
	}
	return m
}

// member returns what is known by the events that a state has, and by what runs.
func member(ctx context.Context, t *teamdir.Team, q Query, name wire.Name, s *reducer.State, runners map[wire.Name]runnerAnswer) Member {
	running, err := t.Running(name)
	if err != nil {
		return Member{Name: name, Err: err}
	}
	entry, run := q.config.Members[name], t.RunInfo(name)
	m := Member{Name: name, Kind: "agent", Role: entry.Role}
	given := s
	m.Programs = programs.Of(t, name)
	if !running {
		m.says, s = programs.Ask(ctx, t, name, s, m.Programs)
		s = withoutEnded(t, name, s)
	}
	if running {
		m.Inject = run.Inject
		answer, isKnown := runners[name]
		if !isKnown {
			answer = askRunner(ctx, t, name)
		}
		m.Runner, m.RunnerErr = answer.status, answer.err
		m.Running = !errors.Is(m.RunnerErr, control.ErrNoRunner) // else it has just ended
	}
	isPerson := q.config.IsPerson(name)
	evidence := reducer.Evidence{
		Now: time.Now(), IsPerson: isPerson, RunID: run.Run, IsRunnerLocked: m.Running,
		IsStopping: m.Runner.Gate == control.GateStopping, IsNotAnswering: errors.Is(m.RunnerErr, control.ErrNotAnswering),
	}
	m.setView(s, s.Evaluate(evidence))
	if s != given && m.State == reducer.WordOff {
		m.Since = nil // nobody knows when
	}
	if isPerson { // whatever its events say
		m.Kind, m.TurnStatus, m.Activity = "person", reducer.TurnIdle, reducer.Unknown
		m.TurnID, m.LastTurn = "", nil
		return m
	}
	if strings.HasSuffix(m.Detail, reducer.NotAnswering) {
		m.note = reducer.NotAnswering
	}
	if requests := s.Requests(); len(requests) > 0 && m.State != reducer.WordOff {
		m.WaitingOn, m.Questions = &requests[0], questions(t, &m, requests)
		if m.WaitingOn.IsOnChannel || m.WaitingOn.IsBeside() && !m.Running {
			m.AtPrompt = s.AtPrompt().Evaluate(evidence).Word
		}
	}
	if m.RunnerGone {
		m.Detail = "runner gone"
		if left, _ := process.Leftovers(run.Run); len(left) > 0 {
			m.addNote(fmt.Sprintf("%s still runs: atm stop %s", letter.OneLine(fmt.Sprint(left[0]), 40), name))
		}
	}
	if declared := m.declaredState(s, evidence.Now); declared != nil {
		m.setView(declared, declared.Evaluate(evidence))
	}
	if m.Session == "" && s.Run != nil {
		m.Session = OrNull(programs.ShownIn(t, name, s.Run.ID))
	}
	if m.Until != nil {
		m.addNote("until " + letter.Stamp(*m.Until))
	}
	if text := m.Sharing(); text != "" {
		m.addNote(text)
	}
	return m
}

// withoutEnded returns the state in which the sessions of programs that were killed are over.
func withoutEnded(t *teamdir.Team, name wire.Name, s *reducer.State) *reducer.State {
	for _, p := range programs.EndedUnsaid(programs.NotedPrograms(t, name), s) {
		e := p.SessionEnd(programs.OtherSession(t, name, p))
		e.Team, e.Agent, e.At = s.Team, s.Agent, s.SessionOf(p.Session).HeardAt
		if copied := applyTo(s, e); copied != nil {
			s = copied
		}
	}
	return s
}

// applyTo returns a copy of a state with one more event; nil: it cannot be copied.
func applyTo(s *reducer.State, e wire.Event) *reducer.State {
	copied := &reducer.State{}
	if data, err := json.Marshal(s); err != nil || json.Unmarshal(data, copied) != nil {
		return nil
	}
	copied.Apply(&e)
	return copied
}

func (m *Member) setView(s *reducer.State, v reducer.View) {
	turn := v.Session.Turn
	m.State, m.Detail, m.Since, m.Until = v.Word, v.Detail, TimeOrNil(v.Since), nil
	if v.Word == reducer.WordLimited && !v.Until.IsZero() {
		m.Until = TimeOrNil(v.Until)
	}
	m.Presence, m.PresenceAt = v.Presence, TimeOrNil(v.PresenceAt)
	m.TurnState = TurnState{
		TurnStatus: turn.Status, Activity: v.Session.Activity, TurnID: OrNull(turn.ID), ThreadID: OrNull(turn.Thread),
		Transport: OrNull(turn.Transport), Session: OrNull(v.Session.ID), LastTurn: v.Session.Last,
		Errors: s.Errors, LastError: s.LastError, Dropped: s.Dropped, Unknown: s.Unknown,
	}
	m.ReadAt, m.RunnerGone, m.Usage = TimeOrNil(s.Read), v.RunnerGone, s.Usage
	m.drafts, m.seq = s.Drafts, s.Seq
	m.source, m.heardAt = v.Session.Source, v.Session.HeardAt
	if v.PID > 0 {
		m.PID = new(v.PID)
	}
	if s.Run != nil {
		m.Started = s.Run.Started
	}
}

// TimeOrNil is t for a JSON field that is null or absent without a time.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// addNote adds words of atm's own to the detail.
func (m *Member) addNote(text string) {
	m.Detail, m.note = strings.TrimPrefix(m.Detail+"; "+text, "; "), strings.TrimPrefix(m.note+"; "+text, "; ")
}

// addMail adds what the mailbox of the member has.
func (m *Member) addMail(t *teamdir.Team, c inbox.Counts, countErr error) {
	box := t.Box(m.Name)
	if m.Err = teamdir.Unreadable(box, cmp.Or(countErr, m.Err)); m.Err != nil {
		m.State = cmp.Or(m.State, reducer.WordUnknown)
		m.addNote("its mailbox cannot be read: atm doctor")
	}
	m.Shared, _ = claim.Shared(box)
	m.MailCounts = MailCounts{Unread: c.Unread, Leased: c.Leased, Aside: c.Aside, Owed: c.Owed, Bad: c.Bad}
	if m.Unread > 0 && m.Running {
		m.Held = m.holdReason()
	}
}

// Status returns a member with the counts of its mailbox, its ways, and what its state rests on. With an *UnreadableError it
// returns what could be read.
func Status(ctx context.Context, t *teamdir.Team, name wire.Name) (Member, error) {
	looked := Look(ctx, t, Query{Mail: true}, name)
	m := looked[0]
	if m.State == reducer.WordUnknown {
		boxes, _ := t.Boxes()
		for _, box := range boxes {
			if isShared, _ := claim.Shared(box); isShared {
				addTaken(box, looked)
			}
		}
		m = looked[0]
	}
	m.Ways, m.WaysIn = m.Runner.Ways, programs.WaysNow(t, name)
	if m.Kind != "person" {
		m.Source, m.HeardAt = m.source, TimeOrNil(m.heardAt)
		if m.HeardAt != nil && m.Since != nil && m.Since.After(*m.HeardAt) { // a program's end is no word of its own
			m.HeardAt = m.Since
		}
	}
	return m, m.Err
}

// Members returns all members, those of other hosts last. With an *UnreadableError it returns what could be read.
func Members(ctx context.Context, t *teamdir.Team) ([]Member, error) {
	members, err := localMembers(ctx, t)
	all, unreadable := ReadRows(t)
	for _, r := range all {
		for _, m := range r.Members {
			members = append(members, r.localize(m))
		}
	}
	return members, cmp.Or(err, unreadable)
}

// localMembers is Members without those of other hosts.
func localMembers(ctx context.Context, t *teamdir.Team) (members []Member, err error) {
	boxes, err := t.Boxes()
	names := make([]wire.Name, len(boxes))
	for i, b := range boxes {
		names[i] = b.Agent()
	}
	members = []Member{} // in JSON nobody is [], not null
	for _, m := range Look(ctx, t, Query{Mail: true, Brief: true}, names...) {
		if errors.Is(m.Err, maildir.ErrNoMailbox) { // retired meanwhile
			continue
		}
		members, err = append(members, m), errors.Join(err, m.Err)
	}
	for _, m := range members {
		if m.Leased > 0 {
			addTaken(t.Box(m.Name), members)
		}
	}
	if err != nil {
		err = &teamdir.UnreadableError{Err: err}
	}
	return members, err
}

// addTaken says of members of whom nothing else is known which jobs of a shared inbox they have taken.
func addTaken(inbox *maildir.Box, members []Member) {
	held, _ := inbox.Held()
	for _, h := range held {
		if !h.IsLiveLease(time.Now()) {
			continue
		}
		lease := inbox.LeaseOf(h)
		for i := range members {
			if m := &members[i]; m.State == reducer.WordUnknown && lease.By == (wire.Address{Agent: m.Name, Team: inbox.Address().Team}) {
				m.HasJob = true
				m.addNote(fmt.Sprintf("has a job of %s until %s", inbox.Agent(), letter.Stamp(lease.Until)))
			}
		}
	}
}
