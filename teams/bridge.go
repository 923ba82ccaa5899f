package teams

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// IsBridged reports whether a bridge runs, which carries the team's mail to and from other hosts: it holds the
// lock bridge.
func (t *Team) IsBridged() bool {
	isHeld, err := t.Locks().Held("bridge")
	return isHeld && err == nil
}

// BadEnvelopes is where a team's bridge keeps what it did not accept: each envelope under its SHA-256, with the
// reason beside it. One without a reason is to be tried again.
const BadEnvelopes = mailbox.BridgeDir + "/bad"

// ReasonSuffix ends the name of a reason.
const ReasonSuffix = ".reason"

// BadReasons are why envelopes were not accepted, by the names of the envelopes.
func (t *Team) BadReasons() (reasons map[string]string, errs error) {
	names, errs := t.Dir().Names(BadEnvelopes)
	reasons = map[string]string{}
	for _, name := range names {
		if envelope, isReason := strings.CutSuffix(name, ReasonSuffix); isReason {
			why, err := t.Dir().ReadFile(path.Join(BadEnvelopes, name), 4096)
			reasons[envelope], errs = strings.TrimSpace(string(why)), errors.Join(errs, err)
		}
	}
	return reasons, errs
}

// RetryBad has the bridge that runs, or the next one, try again what was not accepted, and says how many these are.
func (t *Team) RetryBad() (n int, errs error) {
	reasons, errs := t.BadReasons()
	for envelope := range reasons {
		errs = errors.Join(errs, t.Dir().Remove(path.Join(BadEnvelopes, envelope+ReasonSuffix)))
	}
	return len(reasons), errs
}

// RowsDir is where the bridge writes what other hosts tell of their members, a file <host>.json each.
const RowsDir = mailbox.BridgeDir + "/rows"

const (
	rowsHold  = time.Minute      // older rows say nothing of how things are now
	clockSlip = 10 * time.Second // a host's clock that differs by more is told of
)

// Rows are what a host told last of its members, under their names there.
type Rows struct {
	Host       wire.Name `json:"host"`
	At         time.Time `json:"at"`                   // by that host's clock
	ReceivedAt time.Time `json:"received_at,omitzero"` // by this one's
	Members    []Row     `json:"members"`
}

// Row is a member, and what it asks.
type Row struct {
	Member
	Questions []policy.Question `json:"questions,omitempty"`
}

func (r *Rows) isFresh() bool { return time.Since(r.ReceivedAt).Abs() <= rowsHold }

// LocalRows are what this host tells of the team's own members. With an *UnreadableError it is what can be said.
func (t *Team) LocalRows(ctx context.Context, host wire.Name) (Rows, error) {
	r := Rows{Host: host, At: time.Now().UTC(), Members: []Row{}}
	err := t.Each(func(b *mailbox.Box) error {
		m, err := t.Status(ctx, b.Agent())
		if errors.Is(err, mailbox.ErrNoAgent) {
			return err
		}
		asked, askedErr := t.Questions(b.Agent())
		r.Members = append(r.Members, Row{m, asked})
		return cmp.Or(err, askedErr)
	})
	return r, err
}

// SaveRows writes what a host has told, unless that is known already. What is older is refused: anybody who may
// write to the server can repeat it.
func (t *Team) SaveRows(r Rows) error {
	file := RowsDir + "/" + string(r.Host) + ".json"
	old, err := t.rowsOf(r.Host)
	if err == nil && r.At.Equal(old.At) {
		return nil
	}
	if err == nil && r.At.Before(old.At) {
		return fmt.Errorf("older than what %s has told before; if its clock was ahead then, remove %s", r.Host, t.Dir().Join(file))
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := t.Dir().MkdirAll(RowsDir); err != nil {
		return err
	}
	return t.Dir().Replace(file, append(data, '\n'), false)
}

// Rows are what the other hosts told last, by host. A file that cannot be read hides no other: an
// *UnreadableError tells of all.
func (t *Team) Rows() (all []Rows, err error) {
	names, err := t.Dir().Names(RowsDir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		host, isRows := strings.CutSuffix(name, ".json")
		if !isRows || !wire.IsName(host) {
			continue
		}
		r, bad := t.rowsOf(wire.Name(host))
		if bad == nil {
			all = append(all, r)
		}
		err = errors.Join(err, bad)
	}
	if err != nil {
		err = &UnreadableError{err}
	}
	return all, err
}

func (t *Team) rowsOf(host wire.Name) (r Rows, err error) {
	data, err := t.Dir().ReadFile(RowsDir+"/"+string(host)+".json", 4<<20)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && r.Host != host {
		err = fmt.Errorf("they are of host %q", r.Host)
	}
	for _, m := range r.Members {
		_, bad := wire.ParseName(string(m.Name))
		err = cmp.Or(err, bad)
	}
	if err != nil {
		err = fmt.Errorf("the rows of %s: %w", host, err)
	}
	return r, err
}

// RemoteMembers are the members of other hosts as they are shown here: old rows are unknown.
func (t *Team) RemoteMembers() (out []Row, err error) {
	all, err := t.Rows()
	for _, r := range all {
		for _, m := range r.Members {
			out = append(out, r.shown(m))
		}
	}
	return out, err
}

// shown is a row of r as it is shown on this host now. What a newer atm says is escaped, and what only
// a host's own people answer is left out, as a draft.
func (r *Rows) shown(m Row) Row {
	name := m.Name + "@" + r.Host
	if !r.isFresh() {
		m.Member = Member{Kind: m.Kind, Role: m.Role, Presence: "unknown", TurnStatus: "unknown", Activity: "unknown", Unread: m.Unread, Owed: m.Owed}
	}
	m.State = cmp.Or(reducer.Word(letter.Escape(string(m.State))), reducer.WordUnknown)
	m.Name, m.Host, m.SeenAt, m.Clock = name, r.Host, moment(r.ReceivedAt), ""
	if slip := r.At.Sub(r.ReceivedAt); slip > clockSlip {
		m.Clock = letter.Span(slip) + " ahead"
	} else if slip < -clockSlip {
		m.Clock = letter.Span(-slip) + " behind"
	}
	m.Questions = slices.DeleteFunc(m.Questions, func(q policy.Question) bool {
		return q.Kind != reducer.Permission && q.Kind != reducer.Question && q.Kind != reducer.ClientTool
	})
	for i := range m.Questions {
		q := &m.Questions[i]
		q.Agent, q.Host, q.SeenAt = name, r.Host, m.SeenAt
	}
	return m
}

// Remote is a member of another host, as that told last: an *UnknownError where fresh rows do not know it,
// unknown where there are none.
func (t *Team) Remote(name, host wire.Name) (Member, error) {
	r, err := t.rowsOf(host)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Member{}, err
	}
	nobody := &UnknownError{Name: name + "@" + host, Team: t.Name}
	for _, m := range r.Members {
		if m.Name == name {
			return r.shown(m).Member, nil
		}
		nobody.Members = append(nobody.Members, m.Name+"@"+host)
	}
	if r.isFresh() {
		return Member{}, nobody
	}
	r.Host = host
	return r.shown(Row{Member: Member{Name: name, Kind: "agent"}}).Member, nil
}

// Seen says how old what is known of a member of another host is.
func (m *Member) Seen(now time.Time) string {
	if m.SeenAt == nil {
		return "no news of " + string(m.Host) + " yet"
	}
	return strings.TrimSuffix("seen "+letter.Age(now, *m.SeenAt)+", clock "+m.Clock, ", clock ")
}
