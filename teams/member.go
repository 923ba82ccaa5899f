package teams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Member is what is known of a member, each thing on evidence. What there is no evidence for is unknown, which is
// neither idle nor off. It is what team and status print as JSON.
type Member struct {
	Name   wire.Name  `json:"name"`              // bob@build of another host
	Host   wire.Name  `json:"host,omitempty"`    // another, whose bridge told of it
	SeenAt *time.Time `json:"seen_at,omitempty"` // when that came last
	Clock  string     `json:"clock,omitempty"`   // how that host's clock differs: "3m ahead"
	Kind   string     `json:"kind"`              // agent, person
	Role   string     `json:"role,omitempty"`

	State  reducer.Word `json:"state"` // one word, made of what follows
	Detail string       `json:"detail,omitempty"`
	Since  *time.Time   `json:"since,omitempty"` // of the state

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
	Unknown    uint64             `json:"unknown"` // events of kinds that atm does not know
	WaitingOn  *reducer.Waiting   `json:"waiting_on,omitempty"`

	Unread int        `json:"unread"`           // without what is taken under a lease
	Held   string     `json:"held,omitempty"`   // why the unread mail waits, where nothing else here says so
	Leased int        `json:"leased,omitempty"` // taken under a lease and not finished
	Owed   int        `json:"owed"`             // acknowledgements it owes
	Bad    int        `json:"bad,omitempty"`
	PID    int64      `json:"pid,omitempty"`
	ReadAt *time.Time `json:"read_at,omitempty"` // the newest message_read, or injected

	Inject string `json:"inject,omitempty"` // how its runner brings mail: body, pointer, off; "": not known

	Running    bool           `json:"-"` // the runner's lock is held
	Started    time.Time      `json:"-"` // what a runner started last
	RunnerGone bool           `json:"-"` // its runner was killed
	runner     control.Status // what its runner says just now
}

// Stats counts a team's members as missiond's PTY manager does: running is starting, idle or busy; a dialog counts as
// busy; stopped is off or in error. People, and agents of whom nothing is known, are in the total alone.
type Stats struct {
	Total   int `json:"total"`
	Running int `json:"running"`
	Idle    int `json:"idle"`
	Busy    int `json:"busy"`
	Stopped int `json:"stopped"`
}

// Summary is a member without what lies in its mailbox.
func (t *Team) Summary(name wire.Name) (Member, error) {
	s, err := t.State(name)
	if errors.Is(err, mailbox.ErrNoAgent) {
		return Member{Name: name}, err
	}
	if err == nil {
		m, bad := t.SummaryOf(name, s)
		if m.RunnerGone { // or its runner ended between the two looks, and the log says so by now
			if s, err = t.State(name); err == nil {
				return t.SummaryOf(name, s)
			}
		}
		return m, bad
	}
	// Nothing is known of a member whose log cannot be read; that hides nobody else.
	m, bad := t.SummaryOf(name, &reducer.State{})
	m.Detail, m.LastError = "its events cannot be read", err.Error()
	return m, bad
}

// Summary is that of the member at an address; of one on another host what that told last.
func (r *Root) Summary(a wire.Address) (Member, error) {
	t, err := r.Team(a.Team)
	if err != nil {
		return Member{}, err
	}
	if a.Host != "" {
		return t.Remote(a.Agent, a.Host)
	}
	return t.Summary(a.Agent)
}

// SummaryOf is Summary for a state that the caller keeps up to date.
func (t *Team) SummaryOf(name wire.Name, s *reducer.State) (Member, error) {
	running, err := t.Running(name)
	if err != nil {
		return Member{Name: name}, err
	}
	// A team.toml that cannot be read is doctor's to name: it never hides a member.
	c, _ := t.Config()
	about := c.Members[name]
	run := t.runInfo(name)
	ev := reducer.Evidence{Now: time.Now(), Held: running, Person: about.Person, Run: run.Run}
	m := Member{Name: name, Kind: "agent", Role: about.Role, Running: running}
	if running {
		m.runner, err = t.askRunner(name)
		m.Running = !errors.Is(err, control.ErrNoRunner) // it has just ended
		ev.Held, ev.Silent, ev.Stopping = m.Running, errors.Is(err, control.ErrNotAnswering), m.runner.Gate == control.GateStopping
		m.Inject = run.Inject
	}
	v := s.Evaluate(ev)
	m.State, m.Detail, m.Since = v.Word, v.Detail, moment(v.Since)
	m.Presence, m.PresenceAt = v.Presence, moment(v.PresenceAt)
	m.Transport, m.Session, m.ThreadID, m.PID = v.Turn.Transport, v.Turn.Session, v.Turn.Thread, v.PID
	m.Errors, m.LastError, m.Dropped, m.Unknown, m.ReadAt = s.Errors, s.LastError, s.Dropped, s.Unknown, moment(s.Read)
	if s.Run != nil {
		m.Started = s.Run.Started
	}
	if about.Person { // whatever its events say
		m.Kind, m.TurnStatus, m.Activity = "person", reducer.TurnIdle, reducer.Unknown
		return m, nil
	}
	m.TurnStatus, m.Activity, m.TurnID = v.Turn.Status, v.Turn.Activity, v.Turn.ID
	m.LastTurn = v.Turn.Last
	if asked := s.Requests(); len(asked) > 0 && m.State != reducer.WordOff { // which waits for nobody
		m.WaitingOn = &asked[0]
	}
	if m.RunnerGone = v.RunnerGone; m.RunnerGone {
		m.Detail = "runner gone"
		if left, _ := run.Leftovers(); len(left) > 0 { // what cannot be seen is not said
			m.Detail += fmt.Sprintf("; %s still runs: atm stop %s", left[0], name)
		}
	}
	return m, nil
}

func (t *Team) askRunner(name wire.Name) (s control.Status, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), control.Patience)
	defer cancel()
	c, err := t.DialRunner(ctx, name)
	if err != nil {
		return s, err
	}
	defer c.Close()
	s, _ = c.Status(ctx)
	return s, nil
}

// Dial reaches a member's runner, as control.Dial does. The socket of another user's runner that has died is no runner.
func (t *Team) Dial(ctx context.Context, name wire.Name) (*control.Client, error) {
	c, err := control.Dial(ctx, filepath.Join(t.Box(name).Path(), "run"))
	if _, isRefused := errors.AsType[*control.Error](err); isRefused {
		if running, bad := t.Running(name); bad == nil && !running {
			return nil, control.ErrNoRunner
		}
	}
	return c, err
}

// DialRunner connects to the runner of a member whose lock is held. Where no socket is there it is about to begin or to
// end, for which control.Patience is enough: ErrNoRunner when the lock is free then, else ErrNotAnswering.
func (t *Team) DialRunner(ctx context.Context, name wire.Name) (*control.Client, error) {
	for began := time.Now(); ; time.Sleep(control.Patience / 50) {
		c, err := t.Dial(ctx, name)
		if !errors.Is(err, control.ErrNoRunner) {
			return c, err
		}
		if running, bad := t.Running(name); bad == nil && !running {
			return nil, err
		}
		if time.Since(began) > control.Patience {
			return nil, &control.NotAnsweringError{}
		}
	}
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// Status is a member with what lies in its mailbox; dropped files are taken in. With an
// *UnreadableError it is what can be said.
func (t *Team) Status(ctx context.Context, name wire.Name) (Member, error) {
	// Counting takes in what was dropped, which may be events: it comes first.
	c, countErr := t.Box(name).Count(ctx)
	m, err := t.Summary(name)
	err = Unreadable(t.Box(name), cmp.Or(countErr, err))
	if err != nil {
		m.State = cmp.Or(m.State, reducer.WordUnknown)
		m.Detail = strings.TrimPrefix(m.Detail+"; its mailbox cannot be read: atm doctor", "; ")
	}
	m.Unread, m.Leased, m.Owed, m.Bad = c.Unread, c.Leased, c.Owed, c.Bad
	if m.Unread > 0 && m.Running {
		m.Held = m.hold()
	}
	return m, err
}

// Members are all members, those of other hosts last. With an *UnreadableError it is what can be said.
func (t *Team) Members(ctx context.Context) (members []Member, err error) {
	err = t.Each(func(b *mailbox.Box) error {
		m, err := t.Status(ctx, b.Agent())
		if !errors.Is(err, mailbox.ErrNoAgent) {
			members = append(members, m)
		}
		return err
	})
	remote, unreadable := t.RemoteMembers()
	for _, r := range remote {
		members = append(members, r.Member)
	}
	return members, cmp.Or(err, unreadable)
}

// StatsOf adds members up.
func StatsOf(members []Member) Stats {
	s := Stats{Total: len(members)}
	for _, m := range members {
		switch m.State {
		case reducer.WordIdle:
			s.Idle++
		case reducer.WordBusy, reducer.WordBlocked:
			s.Busy++
		case reducer.WordOff, reducer.WordError:
			s.Stopped++
		default:
			if m.Running || m.State == reducer.WordStarting {
				s.Running++
			}
		}
	}
	s.Running += s.Idle + s.Busy
	return s
}
