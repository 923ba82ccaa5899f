package mail

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var lsCommand = &cli.Command{
	Name: "ls", Aliases: []string{"list", "inbox", "messages"}, ArgsUsage: "[AGENT]", Usage: "list messages, one per line",
	UsageText:   "atm ls\natm ls --owed\natm ls bob\natm ls --sent --owed",
	Description: "Marks nothing as read. Unread and owed: oldest first; done and sent: newest first.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "owed", Aliases: []string{"unacked"}, Usage: "read, but you still owe an ack or a due answer"},
		&cli.BoolFlag{Name: "done", Aliases: []string{"read"}, Usage: "read, with no ack owed"},
		&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "unread, owed and done"},
		&cli.BoolFlag{Name: "bad", Usage: "files that are not messages"},
		&cli.BoolFlag{Name: "sent", Usage: "what you sent, with its state at each recipient"},
		&cli.StringFlag{Name: "from", Aliases: []string{"sender"}, Usage: "from `NAME`"},
		&cli.StringFlag{Name: "to", Aliases: []string{"recipient"}, Hidden: true},
		&cli.StringFlag{Name: "since", Usage: "not older than `D`: 2h, 7d or a date"},
		limitFlag(),
		&cli.BoolFlag{Name: "count", Usage: "print only the number"},
		hidden("unread", "new", "l", "mine", "pending", "oldest", "inbox", "summary"),
	},
	Action: command.With(command.OpenMeIfGiven, ls),
}

func ls(c *cli.Context, s *command.Scope) error {
	if err := cmdline.NotBoth(c, "all bad sent"); err != nil {
		return err
	}
	whose := c.Args().First()
	if !c.Bool("sent") {
		whose = cmp.Or(whose, c.String("to"))
	}
	box, err := s.MemberOrMe(whose)
	if err != nil {
		return err
	}
	if c.Bool("bad") {
		return listBad(c, box)
	}
	l, err := selectMessages(c, s, box)
	if len(l.Messages)+l.More == 0 && err != nil {
		return err
	}
	ifEmpty := "no messages"
	if !c.Bool("sent") {
		owed, unreadable := box.OwedIDs()
		l.Owed = append(l.Owed, owed...)
		if len(l.Messages)+l.More == 0 && !c.Bool("owed") && !c.Bool("done") {
			bad, badErr := box.BadFiles()
			unreadable = cmp.Or(unreadable, badErr)
			ifEmpty = "0 unread" + countHint(c, s, "owed", len(owed)) + countHint(c, s, "bad", len(bad))
		}
		err = cmp.Or(err, teams.Unreadable(box, unreadable))
	}
	if err := command.WarnUnreadable(err); err != nil {
		return err
	}
	if c.Bool("count") {
		return printCount(c, len(l.Messages)+l.More)
	}
	return l.printLines(c, s.Renderer(), ifEmpty)
}

// countHint counts other messages and names the flag that lists them; it is "" without any.
func countHint(c *cli.Context, s *command.Scope, flag string, n int) string {
	if n == 0 {
		return ""
	}
	verb := strings.TrimSpace("atm ls " + c.Args().First())
	return fmt.Sprintf(", %d %s: %s --%[2]s%[4]s", n, flag, verb, s.Flags())
}

func rangeOf(c *cli.Context) mailbox.Range {
	if c.Bool("sent") {
		return mailbox.Range{Sent: true, Newest: true}
	}
	all, owed, done := c.Bool("all"), c.Bool("owed"), c.Bool("done")
	isDone := all || done
	return mailbox.Range{Unread: all || !owed && !done, Owed: all || owed, Done: isDone, Archive: isDone, Newest: isDone}
}

// selectMessages lists what the flags select. If only the state matters, messages beyond the limit are not read.
func selectMessages(c *cli.Context, s *command.Scope, box *mailbox.Box) (*listing, error) {
	l, rg := newListing(nil, nil), rangeOf(c)
	matches, after, err := filter(c, s)
	if err != nil {
		return l, err
	}
	var ingested mailbox.Ingested
	rg.Since, rg.Ingested = after, &ingested
	count, wantsOpen := c.Bool("count"), rg.Sent && c.Bool("owed")
	if matches == nil && !wantsOpen && !(count && rg.Unread) { // a count of unread mail leaves out what is leased
		rg.Limit = c.Int("limit")
	}
	var bad int
	l.More, bad, err = box.Walk(c.Context, rg, func(it *mailbox.Item) bool {
		m, isLeased := message{Item: it}, count && it.Lease != nil
		isWanted := !isLeased && (matches == nil || matches(it)) && (!wantsOpen || it.RequiresAck || !it.DueAt.IsZero())
		if isWanted && (!rg.Sent || m.trace(c.Context, s) || !wantsOpen) {
			l.Messages = append(l.Messages, m)
		}
		return true
	})
	if rg.Owed && !rg.Done {
		team, _ := s.Root.Team(box.Address().Team)
		toAnswer, unreadable := team.Unanswered(c.Context, box, func(it *mailbox.Item) bool {
			return it.State == mailbox.Done && (matches == nil || matches(it))
		})
		for _, it := range toAnswer {
			l.Messages = append(l.Messages, message{Item: it})
		}
		slices.SortFunc(l.Messages, func(a, b message) int { return strings.Compare(string(a.ID), string(b.ID)) })
		err = cmp.Or(err, unreadable)
	}
	warnNotIngested(c, ingested)
	if bad > 0 {
		command.Warn(c, "%s cannot be read as a message; atm doctor says why", letter.Many(bad, "file"))
	}
	return l, teams.Unreadable(box, err)
}

// trace finds the message's state at each recipient, and reports whether an ack or a due answer is missing.
func (m *message) trace(ctx context.Context, s *command.Scope) (isOpen bool) {
	sender := s.Team.Box(m.From.Agent)
	order := []mailbox.State{mailbox.Unread, mailbox.Owed, mailbox.Done, mailbox.Withdrawn, ""}
	for _, a := range m.To {
		it := copyAt(s, m.Message, a)
		state := cmp.Or(stateAt(it), "no evidence")
		if slices.Index(order, it.State) < slices.Index(order, m.slowest) {
			m.slowest = it.State
		}
		if m.RequiresAck && state != "acked" && state != "withdrawn" {
			_, notAcked := teams.AckOf(sender, m.ID, a) // an acked message may be unread again
			isOpen = isOpen || notAcked != nil
		}
		if !m.DueAt.IsZero() && state != "withdrawn" {
			isAnswered := s.Root.IsAnswered(ctx, m.Message, a)
			isOpen = isOpen || !isAnswered && it.SupersededBy == "" && !m.Expired(time.Now())
			if isAnswered {
				state = "answered"
			}
		}
		m.recipients = append(m.recipients, recipientState{a.String(), state})
	}
	return isOpen
}

// copyAt returns a recipient's copy of a message; its State is "" without evidence.
func copyAt(s *command.Scope, m *wire.Message, a wire.Address) *mailbox.Item {
	if a.Host != "" {
		return &mailbox.Item{Message: m, State: s.Root.RemoteState(m, a)}
	}
	box, err := s.Root.Mailbox(a)
	if err != nil {
		return &mailbox.Item{Message: m}
	}
	it, err := box.Get(m.ID)
	if _, isBad := errors.AsType[*mailbox.BadError](err); isBad {
		return &mailbox.Item{Message: m, State: "bad"}
	} else if err != nil {
		return &mailbox.Item{Message: m}
	}
	return it
}

func stateAt(it *mailbox.Item) string {
	switch {
	case it.Lease != nil:
		return "taken"
	case it.RequiresAck && it.State == mailbox.Done:
		return "acked"
	case it.State == mailbox.Owed || it.State == mailbox.Done:
		return "read"
	}
	return string(it.State)
}

func listBad(c *cli.Context, box *mailbox.Box) error {
	if _, err := box.Ingest(c.Context); err != nil {
		return err
	}
	files, err := box.BadFiles()
	if err != nil {
		return err
	}
	if c.Bool("count") {
		return printCount(c, len(files))
	}
	shown := files
	if n := c.Int("limit"); n > 0 {
		shown = files[:min(n, len(files))]
	}
	bad, text := []map[string]string{}, ""
	for _, f := range shown {
		reason := letter.Size(f.Size) + ": " + letter.Clip(f.Reason, 160)
		bad = append(bad, map[string]string{"name": f.Name, "reason": reason, "state": "bad"})
		text += letter.Escape(f.Name) + " " + letter.Escape(reason) + "\n"
	}
	document := map[string]any{"messages": bad, "more": len(files) - len(shown), "owed": []wire.ID{}}
	return command.PrintAs(c, document, cmp.Or(text, "0 bad"))
}

func printCount(c *cli.Context, n int) error {
	return command.PrintAs(c, map[string]int{"count": n}, fmt.Sprint(n))
}

var searchCommand = &cli.Command{
	Name: "search", Aliases: []string{"grep", "find"}, ArgsUsage: "[WORDS…]", Usage: "search every message of the team",
	UsageText:   "atm search flaky test from:alice since:7d\natm search in:new to:bob",
	Description: "Finds messages with all words in subject or body, ignoring case; narrow it with from:, to:,\nin:new|cur|done and since:. Newest first.",
	Flags: []cli.Flag{
		limitFlag(),
		&cli.StringFlag{Name: "from", Hidden: true}, &cli.StringFlag{Name: "to", Hidden: true}, &cli.StringFlag{Name: "since", Hidden: true},
		&cli.StringFlag{Name: "in", Hidden: true}, hidden("i", "ignore-case", "all"),
	},
	Action: command.With(command.OpenMeIfGiven, func(c *cli.Context, s *command.Scope) error {
		words := c.Args().Slice()
		for _, key := range []string{"from", "to", "since", "in"} {
			if c.IsSet(key) {
				words = append(words, key+":"+c.String(key))
			}
		}
		if len(words) == 0 {
			return failure.Usage("atm search needs WORDS").WithHint("%s", cmdline.HintFor("search ?"))
		}
		items, err := s.Search(c.Context, words)
		if err != nil && len(items) == 0 || command.WarnUnreadable(err) != nil {
			return err
		}
		r, none := s.Renderer(), "no match"
		if strings.Contains(strings.Join(words, " "), ":") {
			none += "; the filters are from:, to:, in:new|cur|done and since:"
		}
		r.Whole = true
		return newListing(items, s.Me).printLines(c, r, none)
	}),
}

var threadCommand = &cli.Command{
	Name: "thread", Aliases: []string{"conversation"}, ArgsUsage: "ID", Usage: "show a conversation, oldest first",
	UsageText: "atm thread 9f3a1c", Description: "Looks in all inboxes of the team. Marks nothing as read.",
	Flags: []cli.Flag{
		cmdline.CountFlag("limit", 50, "the newest `N` (default 50, with --json all); 0: all", "all", "n", "max"),
	},
	Action: command.With(command.OpenMeIfGiven, func(c *cli.Context, s *command.Scope) error {
		it, _, err := s.Find(c.Args().First())
		if err != nil {
			return err
		}
		items, err := s.Team.Thread(c.Context, it.ThreadID())
		if err := command.WarnUnreadable(err); err != nil {
			return err
		}
		r, limit := s.Renderer(), c.Int("limit")
		r.Whole = true
		if c.Bool("json") && command.CallingProgram(c) == "" && !c.IsSet("limit") {
			limit = 0
		}
		return printLetters(c, s, r, items, limit, "")
	}),
}

// A message adds to the JSON of a message its state and short id and, if I sent it, its state at each recipient.
type message struct {
	*mailbox.Item
	recipients []recipientState
	slowest    mailbox.State
	digits     int // of the short id, at least 6
}

type recipientState struct {
	To    string `json:"to"`
	State string `json:"state,omitempty"`
}

// MarshalJSON adds the state to the fields of the message file, and keeps its unknown ones.
func (m message) MarshalJSON() ([]byte, error) {
	fields, err := m.Item.Message.MarshalJSON()
	if err != nil {
		return nil, err
	}
	all, _ := wire.ReadObject(fields) // an object, as MarshalJSON made it
	all = all.With("short", wire.Quote(m.ID.Short(max(m.digits, 6)))).With("state", wire.Quote(string(cmp.Or(m.State, m.slowest))))
	if l := m.Lease; l != nil {
		all = all.With("lease", fmt.Appendf(nil, `{"by":%q,"until":%q}`, l.By, l.Until.UTC().Format(time.RFC3339Nano)))
	}
	if m.SupersededBy != "" {
		all = all.With("superseded_by", wire.Quote(string(m.SupersededBy)))
	}
	if m.recipients != nil {
		recipients, _ := wire.Marshal(m.recipients)
		all = all.With("recipients", recipients)
	}
	return all.Encode(), nil
}

// A listing is the JSON of read, ls, thread and search. Its lists are never null.
type listing struct {
	Messages []message `json:"messages"`
	More     int       `json:"more"`
	Owed     []wire.ID `json:"owed"`

	Error *failure.Error `json:"error,omitempty"` // for what failed although the messages are listed
}

// newListing lists messages and, if it is known who I am, those that I owe an ack.
func newListing(items []*mailbox.Item, me *mailbox.Box) *listing {
	l := &listing{Messages: make([]message, len(items)), Owed: []wire.ID{}}
	for i, it := range items {
		l.Messages[i].Item = it
	}
	if me != nil {
		owed, err := me.OwedIDs()
		command.WarnUnreadable(teams.Unreadable(me, err))
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

// printLines prints one line for each message, at most --limit of them, or ifEmpty.
func (l *listing) printLines(c *cli.Context, r *letter.Renderer, ifEmpty string) error {
	if n := c.Int("limit"); n > 0 && len(l.Messages) > n {
		l.More += len(l.Messages) - n
		l.Messages = l.Messages[:n]
	}
	r.Digits = l.setDigits()
	var lines []string
	var rows [][]string
	for _, m := range l.Messages {
		row := cells(r, m)
		rows = append(rows, row)
		about := command.JoinFilled(", ", strings.Join(row[:3], " "), row[3])
		lines = append(lines, command.JoinFilled(": ", about, row[4]))
	}
	if command.Terminal() {
		lines = command.Columns(rows, "36", "1", "2", "33", "")
	}
	if len(l.Messages) == 0 {
		lines = []string{ifEmpty}
	}
	if err := command.PrintAs(c, l, strings.Join(lines, "\n")); err != nil {
		return err
	}
	if l.More > 0 && !c.Bool("json") {
		command.Warn(c, "%d more: add --limit 0", l.More)
	}
	return nil
}

// cells are id, sender, age, notes and title of a message; one that I sent has its states instead of the sender.
func cells(r *letter.Renderer, m message) []string {
	id, age, title := r.Short(m.ID), letter.Sent(r.Now, m.Message), letter.Clip(letter.Escape(m.Title()), 100)
	if m.recipients != nil {
		var states []string
		for _, to := range m.recipients {
			states = append(states, r.Called(to.To)+" "+to.State)
		}
		return []string{id, age, strings.Join(states, ", "), "", title}
	}
	from := r.Who(m.From)
	if r.Whole {
		from += " to " + who(r, m.To, ",")
	}
	return []string{id, from, age, command.Notes(r, m.Item), title}
}

func who(r *letter.Renderer, all []wire.Address, separator string) string {
	var names []string
	for _, a := range all {
		names = append(names, r.Who(a))
	}
	return strings.Join(names, separator)
}

// printLetters prints whole messages, the last ones up to a limit (0: all), or ifEmpty.
func printLetters(c *cli.Context, s *command.Scope, r *letter.Renderer, items []*mailbox.Item, limit int, ifEmpty string) error {
	earlier := max(0, len(items)-cmp.Or(limit, len(items)))
	l := newListing(items[earlier:], s.Me)
	l.More = earlier
	r.Digits = l.setDigits()
	text := string(bytes.Join(command.Letters(r, items[earlier:], nil), nil))
	if earlier > 0 {
		text = fmt.Sprintf("%d earlier: add --limit 0\n", earlier) + text
	}
	return command.PrintAs(c, l, cmp.Or(text, ifEmpty))
}
