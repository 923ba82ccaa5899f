package mail

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/wire"
)

// A message adds to the JSON of a message its state and short id and, if I sent it, its state at each recipient.
type message struct {
	*wire.Item
	recipients   []recipientState
	slowest      wire.State
	supersededBy wire.ID // a message beside it that replaces it
	comes        string  // when, if it is not due
	after        []need  // what it waits for
	digits       int     // of the short id, at least 6
	isKept       bool
}

type recipientState struct {
	To    string `json:"to"`
	State string `json:"state,omitempty"`
	// Outcome and Text are what its ack says of the work.
	Outcome string `json:"outcome,omitempty"`
	Text    string `json:"text,omitempty"`
}

// need is a message that another one waits for.
type need struct {
	ID    wire.ID `json:"id"`
	State string  `json:"state"` // done, blocked, declined, withdrawn, else where it is: unread, taken, …
}

// word is the outcome, else the state.
func (r recipientState) word() string { return cmp.Or(r.Outcome, r.State) }

// MarshalJSON adds the state to the fields of the message file, and keeps its unknown ones.
func (m message) MarshalJSON() ([]byte, error) {
	all, _ := wire.ReadObject(m.Extra) // it may have none
	all = all.With("short", wire.Quote(m.ID.Short(max(m.digits, 6)))).With("state", wire.Quote(string(cmp.Or(m.State, m.slowest))))
	if outcome := m.Outcome(); outcome != "" {
		all = all.With("outcome", wire.Quote(outcome))
	}
	if l := m.Lease; l != nil {
		all = all.With("lease", fmt.Appendf(nil, `{"by":%q,"until":%q}`, l.By, l.Until.UTC().Format(time.RFC3339Nano)))
	}
	if m.isKept {
		all = all.With("kept", []byte("true"))
	}
	if m.supersededBy != "" {
		all = all.With("superseded_by", wire.Quote(string(m.supersededBy)))
	}
	if m.recipients != nil {
		recipients, _ := wire.Marshal(m.recipients)
		all = all.With("recipients", recipients)
	}
	if m.after != nil {
		after, _ := wire.Marshal(m.after)
		all = all.With("after", after)
	}
	msg := *m.Item.Message
	msg.Extra = all.Encode()
	return msg.MarshalJSON()
}

// traceAll finds the states of messages at each recipient, and returns for each whether an ack is missing.
func traceAll(ctx context.Context, s *app.Scope, all []message) (areUnacked []bool) {
	var sent []*wire.Message
	for _, m := range all {
		sent = append(sent, m.Message)
	}
	answers := post.AnswersTo(ctx, s.Root, sent...)
	for i := range all {
		areUnacked = append(areUnacked, all[i].trace(s, answers))
	}
	return areUnacked
}

// trace finds the message's state at each recipient, and reports whether an ack is missing.
func (m *message) trace(s *app.Scope, answers *post.Answers) (isUnacked bool) {
	order := []wire.State{wire.Later, wire.Unread, wire.Owed, wire.Done, wire.Withdrawn, ""}
	for _, a := range m.To {
		p := answers.At(m.Message, a)
		if slices.Index(order, p.State) < slices.Index(order, m.slowest) {
			m.slowest = p.State
		}
		isUnacked = isUnacked || p.OwesAck()
		to := recipientState{To: p.To, State: p.Word()}
		if ack := p.Ack(); ack != nil && ack.Outcome() != "" {
			to.Outcome, to.Text = ack.Outcome(), ack.Body
		}
		m.recipients = append(m.recipients, to)
	}
	if m.slowest == wire.Later {
		m.setLater(s)
	}
	return isUnacked
}

// setLater says when the message comes that is not due, and after what.
func (m *message) setLater(s *app.Scope) {
	m.comes = post.WhenDue(s.Team, m.Message)
	if why := post.WhyNever(s.Team, m.Message); why != "" {
		m.comes = "waits for " + why
	}
	needs, _ := post.Needs(s.Team, m.Message)
	for _, n := range needs {
		m.after = append(m.after, need{n.ID, n.State})
	}
}

// A listing is the JSON of read, ls, thread and search. Its lists are never null.
type listing struct {
	Messages []message `json:"messages"`
	More     int       `json:"more"`
	Owed     []wire.ID `json:"owed"`

	Error *failure.Error `json:"error,omitempty"` // for what failed although the messages are listed
}

// newListing lists messages and, if it is known who I am, those that I owe an ack.
func newListing(p *command.Printer, items []*wire.Item, me *maildir.Box) *listing {
	l := &listing{Messages: make([]message, len(items)), Owed: []wire.ID{}}
	for i, it := range items {
		l.Messages[i].Item = it
	}
	if me != nil {
		owed, err := me.OwedIDs()
		p.WarnUnreadable(teamdir.Unreadable(me, err))
		l.Owed = append(l.Owed, owed...)
	}
	return l
}

// setDigits makes the short ids as long as they need be in this list, and returns how long.
func (l *listing) setDigits() int {
	ids := slices.Clone(l.Owed)
	for _, m := range l.Messages {
		ids = append(ids, m.ID)
	}
	n := letter.ShortLength(ids)
	for i := range l.Messages {
		l.Messages[i].digits = n
	}
	return n
}

// printLines prints one line for each message behind the first offset, up to a limit (0: all), or ifEmpty.
func (l *listing) printLines(p *command.Printer, r *letter.Renderer, offset, limit int, ifEmpty string) error {
	if skipped := min(offset, len(l.Messages)); skipped > 0 {
		l.Messages = l.Messages[skipped:]
		ifEmpty = "no more"
	}
	if limit > 0 && len(l.Messages) > limit {
		l.More += len(l.Messages) - limit
		l.Messages = l.Messages[:limit]
	}
	r.Digits = l.setDigits()
	var lines []string
	var rows [][]string
	for i, m := range l.Messages {
		l.Messages[i].isKept = command.IsKept(r, m.Item)
		rows = append(rows, cells(r, m))
		lines = append(lines, line(r, m))
	}
	if p.IsTerminal() {
		lines = p.Columns(rows, "36", "1", "2", "33", "")
	}
	if len(l.Messages) == 0 {
		lines = []string{ifEmpty}
	}
	if err := p.PrintAs(l, strings.Join(lines, "\n")); err != nil {
		return err
	}
	warnMore(p, l.More, offset+len(l.Messages))
	return nil
}

// warnMore says how to see the rest of a list, which begins behind an offset.
func warnMore(p *command.Printer, more, offset int) {
	if more > 0 && !p.IsJSON {
		p.Warn("%d more: add --limit 0, or --offset %d", more, offset)
	}
}

// line is a message in a line for a pipe: with sender and notes or, if I sent it, with its state at each recipient.
func line(r *letter.Renderer, m message) string {
	row := cells(r, m)
	about := app.JoinFilled(", ", strings.Join(row[:3], " "), row[3])
	if m.recipients != nil && !r.Whole {
		var states []string
		for _, to := range m.recipients {
			states = append(states, r.Called(to.To)+" "+to.word())
		}
		about = row[0] + " " + row[2] + " " + strings.Join(states, ", ")
	}
	return app.JoinFilled(": ", about, row[4])
}

// cells are id, sender, age, notes and title of a message. One that I sent has its recipients instead of the sender, and
// how many are in which state instead of the notes, unless the list is of other people's, too (r.Whole).
func cells(r *letter.Renderer, m message) []string {
	id, age, title := r.Short(m.ID), letter.Sent(r.Now, m.Message), letter.Clip(letter.Escape(m.Title()), 100)
	if m.comes != "" {
		age = m.comes
	}
	if m.recipients != nil && !r.Whole {
		return []string{id, r.Recipients(m.To), age, statesText(m.recipients), title}
	}
	from := r.Who(m.From)
	if r.Whole {
		from += " to " + r.Recipients(m.To)
	}
	it := *m.Item
	if m.comes != "" {
		it.State = ""
	}
	return []string{id, from, age, command.NotesText(command.Notes(r, &it)), title}
}

// statesText is "read", or "2 read, 1 unread" if the recipients' states differ.
func statesText(recipients []recipientState) string {
	var order []string
	counts := map[string]int{}
	for _, to := range recipients {
		if counts[to.word()]++; counts[to.word()] == 1 {
			order = append(order, to.word())
		}
	}
	if len(order) == 1 {
		return order[0]
	}
	for i, state := range order {
		order[i] = fmt.Sprint(counts[state], " ", state)
	}
	return strings.Join(order, ", ")
}

// printLetters prints whole messages, the last ones up to a limit (0: all), or ifEmpty.
func printLetters(s *app.Scope, p *command.Printer, r *letter.Renderer, items []*wire.Item, limit int, ifEmpty string) error {
	earlier := max(0, len(items)-cmp.Or(limit, len(items)))
	l := newListing(p, items[earlier:], s.Me)
	l.More, r.Digits = earlier, l.setDigits()
	if p.IsJSON {
		return p.PrintAs(l, "") // the text would take as long as the document
	}
	text := string(bytes.Join(command.Letters(r, items[earlier:], nil), nil))
	if earlier > 0 {
		text = fmt.Sprintf("%d earlier: add --limit 0\n", earlier) + text
	}
	return p.PrintAs(l, cmp.Or(text, ifEmpty))
}
