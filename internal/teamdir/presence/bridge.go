package presence

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

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// IsBridged reports whether a bridge to a host runs for the team: one to all hosts holds the lock bridge, one to this
// host alone has a lock of its own.
func IsBridged(t *teamdir.Team, host wire.Name) bool {
	for _, name := range []string{"bridge", BridgeLock(host)} {
		if isHeld, err := t.Locks().Held(name); isHeld && err == nil {
			return true
		}
	}
	return false
}

// BridgeLock is the lock of a bridge to one host.
func BridgeLock(host wire.Name) string { return ".bridge." + string(host) + ".link" }

// heldDir has a file for each host whose mail a bridge could not send, with the reason.
const heldDir = maildir.BridgeDir + "/held"

// NoteHeld notes why mail for a host could not be sent; "": it could.
func NoteHeld(t *teamdir.Team, host wire.Name, reason string) error {
	file := path.Join(heldDir, string(host))
	if reason == "" {
		return t.Dir().Remove(file)
	}
	if err := t.Dir().MkdirAll(heldDir); err != nil {
		return err
	}
	return t.Dir().Replace(file, []byte(strings.ReplaceAll(reason, "\n", "; ")+"\n"), false)
}

// HeldReason is why mail for a host could not be sent when a bridge last tried; "": it could, or none has tried.
func HeldReason(t *teamdir.Team, host wire.Name) string {
	reason, _ := t.Dir().ReadFile(path.Join(heldDir, string(host)), 4096)
	return letter.Escape(strings.TrimSpace(string(reason))) // other machines have a say in it
}

// ReasonSuffix ends the name of a reason file.
const ReasonSuffix = ".reason"

// UnknownHost begins the reason for an envelope of a host that has no key here; the host and a colon follow.
const UnknownHost = "from host "

// RejectReasons maps the names of rejected envelopes to the reasons.
func RejectReasons(t *teamdir.Team) (reasons map[string]string, errs error) {
	names, errs := t.Dir().Names(teamdir.BadEnvelopes)
	reasons = map[string]string{}
	for _, name := range names {
		if envelope, isReason := strings.CutSuffix(name, ReasonSuffix); isReason {
			reason, err := t.Dir().ReadFile(path.Join(teamdir.BadEnvelopes, name), 4096)
			reasons[envelope], errs = strings.TrimSpace(string(reason)), errors.Join(errs, err)
		}
	}
	return reasons, errs
}

// RetryRejected makes the running or next bridge retry all rejected envelopes, and returns how many there are.
func RetryRejected(t *teamdir.Team) (n int, errs error) {
	reasons, errs := RejectReasons(t)
	for envelope := range reasons {
		errs = errors.Join(errs, t.Dir().Remove(path.Join(teamdir.BadEnvelopes, envelope+ReasonSuffix)))
	}
	return len(reasons), errs
}

// TakenSuffix ends the name of a file in ReceivedDir that says which envelopes signed on a day were taken.
const TakenSuffix = ".taken"

// keepTaken is for how long these files are kept: twice as long as the bridge accepts an envelope that arrives late at
// the server, since clocks differ.
const keepTaken = 60 * 24 * time.Hour

// PruneTaken removes the files of days that are too long ago.
func PruneTaken(t *teamdir.Team) error {
	names, errs := t.Dir().Names(teamdir.ReceivedDir)
	oldest := time.Now().Add(-keepTaken).UTC().Format(time.DateOnly)
	for _, name := range names {
		if day, isTaken := strings.CutSuffix(name, TakenSuffix); isTaken && day < oldest {
			errs = errors.Join(errs, t.Dir().Remove(path.Join(teamdir.ReceivedDir, name)))
		}
	}
	return errs
}

const (
	rowsMaxAge   = time.Minute      // a member is unknown after that
	maxClockSkew = 10 * time.Second // Member.Clock reports a larger one
)

// Rows is what a host last reported about its members.
type Rows struct {
	Host       wire.Name `json:"host"`
	At         time.Time `json:"at"`                   // by that host's clock
	ReceivedAt time.Time `json:"received_at,omitzero"` // by our clock
	Members    []Row     `json:"members"`
}

// Row is a member as its host reports it: as in team --json, and with its open questions, so that they can be answered
// from another host.
type Row struct {
	Member
	Questions []ask.Question `json:"questions,omitempty"`
}

func (r *Rows) isFresh() bool { return time.Since(r.ReceivedAt).Abs() <= rowsMaxAge }

// LocalRows returns the rows of this host's members. With an *UnreadableError it returns what could be read.
func LocalRows(ctx context.Context, t *teamdir.Team, host wire.Name) (Rows, error) {
	r := Rows{Host: host, At: time.Now().UTC(), Members: []Row{}}
	members, err := localMembers(ctx, t)
	for _, m := range members {
		r.Members = append(r.Members, Row{m, m.Questions})
		err = errors.Join(err, m.EventsErr)
	}
	return r, err
}

// SaveRows stores rows unless the stored ones are newer: anybody who may write to the server can replay old rows.
func SaveRows(t *teamdir.Team, r Rows) error {
	file := teamdir.RowsDir + "/" + string(r.Host) + ".json"
	old, err := rowsOf(t, r.Host)
	if err == nil && r.At.Equal(old.At) {
		return nil
	}
	if err == nil && r.At.Before(old.At) {
		return fmt.Errorf("older than the rows that %s sent before; if its clock was ahead then, remove %s", r.Host, t.Dir().Join(file))
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := t.Dir().MkdirAll(teamdir.RowsDir); err != nil {
		return err
	}
	return t.Dir().Replace(file, append(data, '\n'), false)
}

// ReadRows returns the stored rows by host. With an *UnreadableError it returns the others.
func ReadRows(t *teamdir.Team) (all []Rows, err error) {
	names, err := t.Dir().Names(teamdir.RowsDir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		host, isRows := strings.CutSuffix(name, ".json")
		if !isRows {
			continue
		}
		r, bad := rowsOf(t, wire.Name(host))
		if bad == nil {
			all = append(all, r)
		}
		err = errors.Join(err, bad)
	}
	if err != nil {
		err = &teamdir.UnreadableError{Err: err}
	}
	return all, err
}

func rowsOf(t *teamdir.Team, host wire.Name) (r Rows, err error) {
	err = t.Dir().ReadJSON(teamdir.RowsDir+"/"+string(host)+".json", 4<<20, &r)
	if err == nil && r.Host != host {
		err = fmt.Errorf("they are from host %q", r.Host)
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

// localize returns a row of r as it is shown on this host: unknown if r is old, the state escaped, since it may be any
// text from a newer atm, and without questions that only that host's people can answer, such as drafts.
func (r *Rows) localize(row Row) Member {
	m, name := row.Member, row.Name+"@"+r.Host
	if !r.isFresh() {
		m = Member{
			Kind: m.Kind, Role: m.Role, Shared: m.Shared, Presence: reducer.PresenceUnknown,
			TurnState:  TurnState{TurnStatus: "unknown", Activity: reducer.Unknown},
			Usage:      m.Usage,
			MailCounts: MailCounts{Unread: m.Unread, Owed: m.Owed},
		}
	}
	m.State = cmp.Or(reducer.Word(letter.Escape(string(m.State))), reducer.WordUnknown)
	if m.Usage != nil && !(isUsage(m.Usage.Figures) && isUsage(m.Usage.Turn)) {
		m.Usage = nil
	}
	m.Name, m.OtherHost = name, OtherHost{Host: r.Host, SeenAt: TimeOrNil(r.ReceivedAt)}
	if skew := r.At.Sub(r.ReceivedAt); skew > maxClockSkew {
		m.Clock = letter.Span(skew) + " ahead"
	} else if skew < -maxClockSkew {
		m.Clock = letter.Span(-skew) + " behind"
	}
	m.Questions = slices.DeleteFunc(row.Questions, func(q ask.Question) bool {
		return q.Kind != reducer.Permission && q.Kind != reducer.Question && q.Kind != reducer.ClientTool
	})
	for i := range m.Questions {
		q := &m.Questions[i]
		q.Agent, q.Host, q.SeenAt = name, r.Host, m.SeenAt
	}
	return m
}

// Remote returns a member of another host from its last rows. Without fresh rows a missing member is unknown, with them
// it is an *UnknownError.
func Remote(t *teamdir.Team, name, host wire.Name) (Member, error) {
	r, err := rowsOf(t, host)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Member{}, err
	}
	unknown := &teamdir.UnknownError{Name: name + "@" + host, Team: t.Name}
	for _, m := range r.Members {
		if m.Name == name {
			return r.localize(m), nil
		}
		unknown.Members = append(unknown.Members, m.Name+"@"+host)
	}
	if r.isFresh() {
		return Member{}, unknown
	}
	r.Host = host
	return r.localize(Row{Member: Member{Name: name, Kind: "agent"}}), nil
}

// EvidenceAge says how old the evidence about a member of another host is.
func (m *Member) EvidenceAge(now time.Time) string {
	if m.SeenAt == nil {
		return "no news from " + string(m.Host) + " yet"
	}
	return strings.TrimSuffix("seen "+letter.Ago(now, *m.SeenAt)+", clock "+m.Clock, ", clock ")
}
