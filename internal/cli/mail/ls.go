package mail

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	all, owed, done := c.Bool("all"), c.Bool("owed"), c.Bool("done")
	isDone := all || done
	return mailbox.Range{Unread: all || !owed && !done, Owed: all || owed, Done: isDone, Archive: isDone, Newest: isDone}
}

// selectMessages lists what the flags select, and warns of files that cannot be read.
func selectMessages(c *cli.Context, s *command.Scope, box *mailbox.Box) (*listing, error) {
	l := newListing(nil, nil)
	f, err := newFilter(c, s)
	if err != nil {
		return l, err
	}
	var found mailbox.Walked
	if c.Bool("sent") {
		found, err = l.addSent(c, s, box, f)
	} else {
		found, err = l.addReceived(c, s, box, f)
	}
	l.More = found.More
	warnNotIngested(c, found.Ingested)
	if found.Bad > 0 {
		command.Warn(c, "%s cannot be read as a message; atm doctor says why", letter.Many(found.Bad, "file"))
	}
	return l, teams.Unreadable(box, err)
}

// addSent adds what box's owner sent, with --owed what nobody has acked or answered.
func (l *listing) addSent(c *cli.Context, s *command.Scope, box *mailbox.Box, f filter) (mailbox.Walked, error) {
	onlyOpen := c.Bool("owed")
	rg := mailbox.Range{Sent: true, Newest: true, Since: f.since}
	if f.isEmpty() && !onlyOpen { // then messages beyond the limit are not read
		rg.Limit = c.Int("limit")
	}
	return box.Walk(c.Context, rg, func(it *mailbox.Item) bool {
		m, mayBeOpen := message{Item: it}, it.RequiresAck || !it.DueAt.IsZero()
		if !f.matches(it) || onlyOpen && !mayBeOpen {
			return true
		}
		if isOpen := m.trace(c.Context, s); isOpen || !onlyOpen {
			l.Messages = append(l.Messages, m)
		}
		return true
	})
}

// addReceived adds the messages of box in the states that the flags name.
func (l *listing) addReceived(c *cli.Context, s *command.Scope, box *mailbox.Box, f filter) (mailbox.Walked, error) {
	rg := rangeOf(c)
	rg.Since = f.since
	leavesOutLeased := c.Bool("count")
	if f.isEmpty() && !(leavesOutLeased && rg.Unread) { // then messages beyond the limit are not read
		rg.Limit = c.Int("limit")
	}
	found, err := box.Walk(c.Context, rg, func(it *mailbox.Item) bool {
		isLeftOut := leavesOutLeased && it.Lease != nil
		if !isLeftOut && f.matches(it) {
			l.Messages = append(l.Messages, message{Item: it})
		}
		return true
	})
	if !rg.Owed || rg.Done {
		return found, err
	}
	team, _ := s.Root.Team(box.Address().Team)
	toAnswer, unreadable := team.Unanswered(c.Context, box, func(it *mailbox.Item) bool {
		return it.State == mailbox.Done && f.matches(it)
	})
	for _, it := range toAnswer {
		l.Messages = append(l.Messages, message{Item: it})
	}
	slices.SortFunc(l.Messages, func(a, b message) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return found, cmp.Or(err, unreadable)
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
		id, err := findThread(c, s, c.Args().First())
		if err != nil {
			return err
		}
		items, err := s.Team.Thread(c.Context, id)
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
