package teams

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/wire"
)

// Member is a member's row: what is known of them, each thing on evidence.
// What there is no evidence for is unknown, which is neither idle nor off.
// send, trace, wait, team and status all show this row.
type Member struct {
	Name wire.Name `json:"name"`
	Kind string    `json:"kind"` // agent, person
	Role string    `json:"role,omitempty"`

	State  reducer.Word `json:"state"` // one word, made of what follows
	Detail string       `json:"detail,omitempty"`
	Since  *time.Time   `json:"since,omitempty"` // of the word

	Presence   reducer.Presence `json:"presence"`
	PresenceAt *time.Time       `json:"presence_at,omitempty"` // of the evidence

	TurnStatus reducer.TurnStatus `json:"turn_status"`
	Activity   reducer.Activity   `json:"activity"`
	TurnID     string             `json:"turn_id,omitempty"`
	ThreadID   string             `json:"thread_id,omitempty"`
	Transport  string             `json:"transport,omitempty"`
	Session    string             `json:"session,omitempty"`
	LastTurn   *reducer.Last      `json:"last_turn,omitempty"`
	Errors     uint64             `json:"errors"`
	LastError  string             `json:"last_error,omitempty"`
	Dropped    reducer.Dropped    `json:"dropped"`
	Unknown    uint64             `json:"unknown"` // events of kinds we do not know
	WaitingOn  *reducer.Waiting   `json:"waiting_on,omitempty"`

	Unread   int         `json:"unread"`              // in nobody's hands
	Leased   int         `json:"leased,omitempty"`    // taken under a lease and not finished
	Owed     int         `json:"owed"`                // acknowledgements it owes
	OwesTo   []wire.Name `json:"owes_to,omitempty"`   // to these
	WaitsFor []wire.Name `json:"waits_for,omitempty"` // who owe it one
	Bad      int         `json:"bad,omitempty"`
	PID      int64       `json:"pid,omitempty"`
	ReadAt   *time.Time  `json:"read_at,omitempty"` // the newest message_read

	Inject string `json:"inject,omitempty"` // how its runner brings mail: body, pointer, off; "": not known

	Running bool      `json:"-"` // the runner's lock is held
	Started time.Time `json:"-"` // what a runner started last

	// Said by who asks for Word, and knows.
	Gate   string `json:"-"` // why its runner types nothing just now
	Urgent bool   `json:"-"` // the message may interrupt
}

// Stats counts a team's members as vocabulary B does: who runs is starting,
// idle or busy, a dialog counts as busy; stopped is off or in error. Of people
// and of those of whom nothing is known only the total speaks.
type Stats struct {
	Total   int `json:"total"`
	Running int `json:"running"`
	Idle    int `json:"idle"`
	Busy    int `json:"busy"`
	Stopped int `json:"stopped"`
}

// Glance is a member's row without the counts: what one line about somebody
// needs. It probes the runner's lock and folds the events.
func (t *Team) Glance(name wire.Name) (Member, error) {
	running, err := t.Running(name)
	if err != nil {
		return Member{Name: name}, err
	}
	s, err := t.State(name)
	if errors.Is(err, mailbox.ErrNoAgent) {
		return Member{Name: name}, err
	}
	if err != nil {
		// Of one whose log cannot be read nothing is known; that hides nobody else.
		m := t.memberOf(name, &reducer.State{}, running, time.Now())
		m.Detail, m.LastError = "its events cannot be read", err.Error()
		return m, nil
	}
	return t.memberOf(name, s, running, time.Now()), nil
}

// MemberOf is a row made of a fold that the caller keeps up to date.
func (t *Team) MemberOf(name wire.Name, s *reducer.State, now time.Time) (Member, error) {
	running, err := t.Running(name)
	return t.memberOf(name, s, running, now), err
}

func (t *Team) memberOf(name wire.Name, s *reducer.State, running bool, now time.Time) Member {
	// A team.toml that cannot be read is doctor's to name: it adds to what is
	// known and never hides a member.
	c, _ := t.Config()
	who := c.Members[name]
	v := s.Look(reducer.Evidence{Now: now, Held: running, Silent: running && t.silent(name), Person: who.Person})
	m := Member{
		Name: name, Kind: "agent", Role: who.Role, Running: running,
		State: v.Word, Detail: v.Detail, Since: moment(v.Since),
		Presence: v.Presence, PresenceAt: moment(v.PresenceAt),
		TurnStatus: v.Turn.Status, Activity: v.Turn.Activity, TurnID: v.Turn.ID, ThreadID: v.Turn.Thread,
		Transport: v.Turn.Transport, Session: v.Turn.Session, LastTurn: v.Turn.Last, WaitingOn: v.Turn.Waiting(),
		Errors: s.Errors, LastError: s.LastError, Dropped: s.Dropped, Unknown: s.Unknown,
		PID: v.PID, ReadAt: moment(s.Read),
	}
	if who.Person { // whatever their events say
		m.Kind = "person"
		m.TurnStatus, m.Activity, m.TurnID, m.WaitingOn, m.LastTurn = reducer.TurnIdle, reducer.Unknown, "", nil, nil
	}
	if s.Run != nil {
		m.Started = s.Run.Started
	}
	if running {
		m.Inject = t.injects(name)
	}
	return m
}

// silent reports whether a runner is there that does not say a word. (One whose
// socket is not there is about to begin, or to end.)
func (t *Team) silent(name wire.Name) bool {
	c, err := control.Dial(context.Background(), filepath.Join(t.Box(name).Path(), "run"))
	if err == nil {
		c.Close()
	}
	return errors.Is(err, control.ErrNotAnswering)
}

// injects is how a member's runner says that it brings mail, "" where it does
// not say.
func (t *Team) injects(name wire.Name) string {
	if how := t.runInfo(name).Inject; slices.Contains(config.Injects, how) {
		return how
	}
	return ""
}

// told is what a member's runner has written down about itself; zero where
// there is nothing.
func (t *Team) told(name wire.Name) (said control.Paper) {
	if data, err := t.Dir().ReadFile(string(name)+"/run/"+control.PaperFile, control.MaxPaper); err == nil {
		said, _ = control.ParsePaper(data)
	}
	return said
}

// gated says when what a runner holds back is typed in.
func gated(gate string) string {
	switch {
	case strings.Contains(gate, "draft"):
		return "a line is begun at its prompt: typed in when that is sent or cleared"
	case gate == "a person types":
		return "a person types: typed in when they pause"
	case gate == "dialog":
		return "a dialog came up: typed in when that is answered"
	}
	return "not at its prompt: typed in when it is"
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Row is a member's row with what waits in the mailbox; drops are taken in.
func (t *Team) Row(ctx context.Context, name wire.Name) (Member, error) {
	// Counting takes in what was dropped, which may be events.
	waits := Member{Name: name}
	if err := t.count(ctx, &waits); err != nil {
		return waits, err
	}
	m, err := t.Glance(name)
	m.Unread, m.Leased, m.Owed, m.OwesTo, m.Bad = waits.Unread, waits.Leased, waits.Owed, waits.OwesTo, waits.Bad
	return m, err
}

// owedSeen is how many of the messages that await an ack are opened to see
// whom it is owed.
const owedSeen = 50

// count fills in what waits in a member's mailbox.
func (t *Team) count(ctx context.Context, m *Member) error {
	box := t.Box(m.Name)
	c, err := box.Count(ctx)
	m.Unread, m.Leased, m.Owed, m.Bad = c.Unread, c.Leased, c.Owed, c.Bad
	if err != nil || m.Owed == 0 {
		return err
	}
	n := 0
	_, _, err = box.Walk(ctx, mailbox.Range{Owed: true}, func(it *mailbox.Item) bool {
		if it.From.Team == t.Name && !slices.Contains(m.OwesTo, it.From.Agent) {
			m.OwesTo = append(m.OwesTo, it.From.Agent)
		}
		n++
		return n < owedSeen
	})
	slices.Sort(m.OwesTo)
	return err
}

// Rows are the rows of all members and what they add up to.
func (t *Team) Rows(ctx context.Context) ([]Member, Stats, error) {
	names, err := t.Agents()
	if err != nil {
		return nil, Stats{}, err
	}
	var rows []Member
	for _, n := range names {
		m, err := t.Row(ctx, n)
		if errors.Is(err, mailbox.ErrNoAgent) {
			continue // retired meanwhile
		}
		if err != nil {
			return nil, Stats{}, err
		}
		rows = append(rows, m)
	}
	for i := range rows {
		for _, o := range rows {
			if slices.Contains(o.OwesTo, rows[i].Name) && o.Name != rows[i].Name {
				rows[i].WaitsFor = append(rows[i].WaitsFor, o.Name)
			}
		}
	}
	return rows, Sum(rows), nil
}

// Sum counts rows.
func Sum(rows []Member) Stats {
	s := Stats{Total: len(rows)}
	for _, m := range rows {
		switch m.State {
		case reducer.WordIdle:
			s.Idle++
			s.Running++
		case reducer.WordBusy, reducer.WordBlocked:
			s.Busy++
			s.Running++
		case reducer.WordStarting:
			s.Running++
		case reducer.WordOff, reducer.WordError:
			s.Stopped++
		default:
			if m.Running {
				s.Running++
			}
		}
	}
	return s
}

// Word says in a few words when a message is likely to be seen, on evidence.
func (m Member) Word(now time.Time) string {
	state := string(m.State)
	if m.State == reducer.WordBusy && m.Since != nil {
		state += " " + letter.Span(now.Sub(*m.Since))
	}
	last := ""
	switch {
	case m.ReadAt != nil:
		last = "last read " + letter.Age(now, *m.ReadAt)
	case m.PresenceAt != nil && m.Presence != reducer.Offline:
		last = "last seen " + letter.Age(now, *m.PresenceAt)
	}
	hooked := m.handed() && m.PresenceAt != nil
	if m.Running && m.Inject == "off" && m.State != reducer.WordPerson {
		return strings.TrimSuffix(state+"; nothing is typed in; "+last, "; ")
	}
	switch m.State {
	case reducer.WordPerson:
		return "person"
	case reducer.WordBlocked:
		return "blocked: " + m.about()
	case reducer.WordOff:
		if last != "" {
			return "off; " + last
		}
		return "off"
	case reducer.WordIdle, reducer.WordBusy, reducer.WordStarting, reducer.WordError:
		switch {
		case m.Running && m.State == reducer.WordIdle && m.Inject == "pointer":
			return "idle: told of it now"
		case m.Running && m.State == reducer.WordIdle && m.Gate != "":
			return "idle, but " + gated(m.Gate)
		case m.Running && m.State == reducer.WordIdle:
			return "idle: typed in now"
		case m.Running && m.State == reducer.WordBusy && m.Urgent:
			return state + ": interrupts it"
		case m.Running && m.State == reducer.WordError:
			return "error: " + m.about() + "; typed in when idle"
		case m.Running && m.Inject == "pointer":
			return state + ": told of it when idle"
		case m.Running:
			return state + ": typed in when idle"
		case hooked && m.State == reducer.WordBusy && m.Presence == reducer.Online:
			return state + ": handed over in this turn"
		case hooked:
			return "at its next turn; last seen " + letter.Age(now, *m.PresenceAt)
		case last != "":
			return state + "; " + last
		}
		return state
	}
	switch {
	case m.Running:
		return "running"
	case last != "":
		return last
	}
	return "has not read yet"
}

// handed reports whether hooks hand mail over to the agent in its turns. Those
// of OpenCode, and Codex's notify, only tell what it does.
func (m Member) handed() bool { return m.Transport == "hook" }

// about is what there is to say about the state, for people: a tool's name and
// all else that came from outside escaped.
func (m Member) about() string {
	s := m.Detail
	if w := m.WaitingOn; w != nil && w.Tool != "" {
		s += " for " + w.Tool
	}
	return letter.Clip(letter.Escape(s), 80)
}
