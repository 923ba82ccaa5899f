package mail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var lsCommand = &cli.Command{
	Name: "ls", Aliases: []string{"list", "inbox", "messages"}, ArgsUsage: "[AGENT]", Usage: "list messages, a line each",
	UsageText:   "atm ls\natm ls --owed\natm ls bob\natm ls --sent --owed",
	Description: "Marks nothing. Unread and owed: oldest first; done and sent: newest first.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "owed", Usage: "read, an ack still owed"},
		&cli.BoolFlag{Name: "done", Aliases: []string{"read"}, Usage: "read ones, with nothing owed"},
		&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "unread, owed and done"},
		&cli.BoolFlag{Name: "bad", Usage: "files that are not messages"},
		&cli.BoolFlag{Name: "sent", Usage: "what you sent, and what became of it"},
		&cli.StringFlag{Name: "from", Usage: "from this `NAME`"},
		&cli.StringFlag{Name: "since", Usage: "not older than `D`: 2h, 7d, a date"},
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 20, Usage: "at most `N` lines (default 20); 0: all"},
		&cli.BoolFlag{Name: "count", Usage: "only how many"},
		&cli.StringFlag{Name: "agent", Hidden: true}, hidden("unread", "new", "l"),
		command.Meant("to", "atm ls NAME lists the inbox of NAME; atm search to:NAME finds what was sent there"),
	},
	Action: ls,
}

func ls(c *cli.Context) error {
	if err := command.NotBoth(c, "all", "bad", "sent"); err != nil {
		return err
	}
	name := cmp.Or(c.Args().First(), c.String("agent"))
	open := command.OpenMe
	if name != "" {
		open = command.OpenMeIfSaid
	}
	s, err := open(c)
	if err != nil {
		return err
	}
	box, err := s.MemberOrMe(name)
	if err != nil {
		return err
	}
	if c.Bool("bad") {
		return lsBad(c, box)
	}
	l, err := chosen(c, s, box)
	if err != nil {
		return err
	}
	if c.Bool("count") {
		return printCount(c, len(l.Messages))
	}
	none := "nothing there"
	if !c.Bool("sent") {
		if l.Owed, err = box.OwedIDs(); err != nil {
			return err
		}
		l.Owed = append([]wire.ID{}, l.Owed...)
	}
	if !c.Bool("sent") && !c.Bool("owed") && !c.Bool("done") {
		if none, err = nothingUnread(c, s, box); err != nil {
			return err
		}
	}
	return l.printLines(c, s.Renderer(), none)
}

// nothingUnread says what there is beside unread messages.
func nothingUnread(c *cli.Context, s *command.Scope, box *mailbox.Box) (string, error) {
	n, err := box.Count(c.Context)
	text, name := "0 unread", strings.TrimSpace("atm ls "+c.Args().First())
	if n.Owed > 0 {
		text += fmt.Sprintf(", %d owed: %s --owed%s", n.Owed, name, s.Flags())
	}
	if n.Bad > 0 {
		text += fmt.Sprintf(", %d bad: %s --bad%s", n.Bad, name, s.Flags())
	}
	return text, err
}

// chosen are the messages of a mailbox that the flags choose; where nothing but the place
// counts, what is beyond the limit is counted by name.
func chosen(c *cli.Context, s *command.Scope, box *mailbox.Box) (l *listing, err error) {
	all, owed, done, sent, count := c.Bool("all"), c.Bool("owed"), c.Bool("done"), c.Bool("sent"), c.Bool("count")
	rg := mailbox.Range{Unread: all || !owed && !done, Owed: all || owed, Done: all || done, Archive: all || done, Newest: all || done}
	if sent {
		rg = mailbox.Range{Sent: true, Newest: true}
	}
	if rg.Since, rg.Times, err = since(c); err != nil {
		return nil, err
	}
	from, err := sender(c, s)
	if err != nil {
		return nil, err
	}
	if !rg.Times && !c.IsSet("from") && !(sent && owed) && !count {
		rg.Limit = c.Int("limit")
	}
	l = newListing(nil)
	l.More, _, err = box.Walk(c.Context, rg, func(it *mailbox.Item) bool {
		m, isOpen := message{Item: it}, true
		if sent {
			isOpen = m.trace(s)
		}
		switch {
		case rg.Times && it.Written.Before(rg.Since), from != (wire.Address{}) && it.From != from:
		case count && it.Lease != nil: // what somebody has taken is not there to be read
		case sent && owed && !isOpen:
		default:
			l.Messages = append(l.Messages, m)
		}
		return true
	})
	return l, err
}

// since is the moment that --since names, and whether it is given.
func since(c *cli.Context) (t time.Time, given bool, err error) {
	if !c.IsSet("since") {
		return t, false, nil
	}
	if t, err = teams.Since(c.String("since"), time.Now(), command.ParseDuration); err != nil {
		err = command.Usage("--since: %v", err).WithHint("%s --since 2h", c.Command.HelpName)
	}
	return t, true, err
}

// sender is the address that --from names; zero: anybody.
func sender(c *cli.Context, s *command.Scope) (wire.Address, error) {
	if !c.IsSet("from") {
		return wire.Address{}, nil
	}
	a, err := s.Address(c.String("from"))
	if err == nil && a.Agent != "drop" {
		_, err = s.Root.Mailbox(a)
	}
	return a, err
}

// trace looks what became of a message at its recipients; isOpen says that somebody has
// not acknowledged it who should.
func (m *message) trace(s *command.Scope) (isOpen bool) {
	order := []mailbox.State{mailbox.Unread, mailbox.Owed, mailbox.Done, mailbox.Withdrawn, ""}
	m.at = ""
	for _, a := range m.To {
		r := recipientState{a.String(), "no evidence"}
		if box, err := s.Root.Mailbox(a); err == nil {
			if it, err := box.Get(m.ID); err == nil {
				r.State = stateAt(it)
				if slices.Index(order, it.State) < slices.Index(order, m.at) {
					m.at = it.State
				}
			}
		}
		isOpen = isOpen || m.RequiresAck && r.State != "acked" && r.State != "withdrawn"
		m.recipients = append(m.recipients, r)
	}
	return isOpen
}

// stateAt is the state of a message in words that its sender understands.
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

// lsBad lists the files that are no messages.
func lsBad(c *cli.Context, box *mailbox.Box) error {
	if _, err := box.TakeIn(c.Context); err != nil {
		return err
	}
	files, err := box.BadFiles()
	if err != nil {
		return err
	}
	n, text := len(files), ""
	if c.Bool("count") {
		return printCount(c, n)
	}
	if limit := c.Int("limit"); limit > 0 {
		files = files[:min(limit, n)]
	}
	bad := []map[string]string{}
	for _, f := range files {
		reason := letter.Size(f.Size) + ": " + letter.Clip(f.Reason, 160)
		bad = append(bad, map[string]string{"name": f.Name, "reason": reason, "state": "bad"})
		text += letter.Escape(f.Name) + " " + letter.Escape(reason) + "\n"
	}
	document := map[string]any{"messages": bad, "more": n - len(files), "owed": []wire.ID{}}
	return command.PrintAs(c, document, cmp.Or(text, "0 bad"))
}

func printCount(c *cli.Context, n int) error {
	return command.PrintAs(c, map[string]int{"count": n}, fmt.Sprint(n))
}

var searchCommand = &cli.Command{
	Name: "search", Aliases: []string{"grep", "find"}, ArgsUsage: "WORDS…", Usage: "search every message of the team",
	UsageText:   "atm search flaky test from:alice since:7d\natm search in:new to:bob",
	Description: "All words must be in subject or body, in any case; from:, to:, in:new|cur|done, since:.\nNewest first.",
	Flags: []cli.Flag{
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 20, Usage: "at most `N` (default 20); 0: all"},
		&cli.StringFlag{Name: "from", Hidden: true}, &cli.StringFlag{Name: "to", Hidden: true}, &cli.StringFlag{Name: "since", Hidden: true},
	},
	Action: command.With(command.OpenTeam, search),
}

func search(c *cli.Context, s *command.Scope) error {
	words := c.Args().Slice()
	for _, key := range []string{"from", "to", "since"} {
		if c.IsSet(key) {
			words = append(words, key+":"+c.String(key))
		}
	}
	query, err := teams.ParseQuery(words, time.Now(), command.ParseDuration)
	if err != nil {
		return command.Usage("%v", err).WithHint("atm search WORDS since:7d")
	}
	items, err := s.Team.Search(c.Context, query)
	if err != nil {
		return err
	}
	r := s.Renderer()
	r.To = true
	return newListing(items).printLines(c, r, "no match")
}

var threadCommand = &cli.Command{
	Name: "thread", Aliases: []string{"conversation"}, ArgsUsage: "ID", Usage: "the conversation, in order",
	UsageText: "atm thread 9f3a1c", Description: "Across the team's inboxes. Marks nothing.",
	Action: command.With(command.OpenMeIfSaid, thread),
}

func thread(c *cli.Context, s *command.Scope) error {
	it, _, err := s.Find(c.Context, c.Args().First(), false)
	if err != nil {
		return err
	}
	items, err := s.Team.Thread(c.Context, it.ThreadID())
	if err != nil {
		return err
	}
	r := s.Renderer()
	r.To = true
	return printLetters(c, r, items, "")
}
