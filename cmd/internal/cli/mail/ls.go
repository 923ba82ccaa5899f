package mail

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

var lsCommand = &cli.Command{
	Name: "ls", Aliases: []string{"list", "inbox", "messages"}, ArgsUsage: "[AGENT]", Usage: "list messages, one per line",
	UsageText: `atm ls
atm ls --owed
atm ls bob
atm ls --sent --owed`,
	Description: "Marks nothing as read. Unread and owed: oldest first; done and sent: newest first.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "unread", Aliases: []string{"new", "u"}, Usage: "not read yet, as without a flag"},
		&cli.BoolFlag{Name: "owed", Aliases: []string{"unacked"}, Usage: "read, but you still owe an ack"},
		&cli.BoolFlag{Name: "done", Aliases: []string{"archived"}, Usage: "read, with no ack owed"},
		&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "unread, owed and done"},
		&cli.BoolFlag{Name: "bad", Usage: "files that are not messages, and why"},
		&cli.BoolFlag{Name: "sent", Aliases: []string{"outbox"}, Usage: "what you sent, with its state at each recipient"},
		&cli.StringFlag{Name: "from", Aliases: []string{"sender"}, Usage: "only from `NAME`"},
		&cli.StringFlag{Name: "to", Hidden: true},
		&cli.StringFlag{Name: "since", Usage: "not older than `D`: 2h, 7d or a date"},
		limitFlag(),
		&cli.BoolFlag{Name: "count", Usage: "print only the number"},
		cmdline.NoFlag("agent member user", "--as NAME says who you are; atm ls NAME shows somebody's inbox"),
		cmdline.NoFlag("mark-read mark-all-read mark-as-read", "atm read marks what it shows"),
		cmdline.NoFlag("urgent", "atm read --urgent"),
		cmdline.NoFlag("peek", "atm read --peek"),
		cmdline.NoFlag("wait timeout", "atm read --wait, atm wait"),
		cmdline.NoFlag("teams", "atm team ls"),
		cmdline.NoFlag("thread", "atm thread ID"),
		cmdline.NoFlag("due overdue pending", "atm pending shows what waits for an answer, atm ls --owed what you owe an ack"),
		cmdline.NoFlag("sort reverse newest oldest tail", "done and sent come newest first, unread oldest first; atm ls --all --limit 5, atm ls --from NAME"),
		cmdline.NoFlag("l long summary", "leave it out: atm ls prints a line for each message"),
		cmdline.NoFlag("follow f watch w", "atm watch follows; atm read --wait waits for mail"),
		cmdline.NoFlag("status state filter grep", "atm search WORDS; atm ls --from NAME --since 2h"),
	},
	Action: command.With(app.OpenMeIfGiven, ls),
}

func ls(c *cli.Context, s *app.Scope, p *command.Printer) error {
	if err := cmdline.NotBoth(c, "all bad sent", "sent done", "unread sent bad", "bad owed", "bad done"); err != nil {
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
	f, err := newFilter(c, s)
	if err != nil {
		return err
	}
	l, ifEmpty := newListing(p, nil, nil), "no messages"
	err = l.add(c, s, box, f)
	if err != nil && len(l.Messages)+l.More == 0 {
		return teams.Unreadable(box, err) // an empty list would say that there is no mail
	}
	if !c.Bool("sent") {
		owed, unreadable := box.OwedIDs()
		l.Owed, err = append(l.Owed, owed...), cmp.Or(err, unreadable)
		if c.Bool("unread") || !c.Bool("owed") && !c.Bool("done") {
			ifEmpty = "0 unread"
		}
		if verb := strings.TrimSpace("atm ls " + c.Args().First()); ifEmpty == "0 unread" && len(owed) > 0 {
			ifEmpty += fmt.Sprintf(", %d to ack: %s --owed%s", len(owed), verb, s.Given.Flags("", "root", "team", "as"))
		}
	}
	if err := p.WarnUnreadable(teams.Unreadable(box, err)); err != nil {
		return err
	}
	if c.Bool("count") {
		return printCount(c, len(l.Messages)+l.More)
	}
	return l.printLines(c, p.Renderer(s), ifEmpty)
}

// add adds the messages of box in the states that the flags name or, with --sent, those that its owner sent, with --owed
// what nobody has acked of these.
func (l *listing) add(c *cli.Context, s *app.Scope, box *maildir.Box, f filter) error {
	all, owed, done, sent := c.Bool("all"), c.Bool("owed"), c.Bool("done"), c.Bool("sent")
	isDone := all || done
	rg := maildir.Range{Unread: all || c.Bool("unread") || !owed && !done, Owed: all || owed, Done: isDone, Archive: isDone, Newest: isDone, Large: true, Since: f.since}
	if sent {
		rg = maildir.Range{Sent: true, Newest: true, Since: f.since}
	}
	if f == (filter{}) && !(sent && owed) { // then messages beyond the limit are not read
		rg.Limit = c.Int("limit")
	}
	found, err := box.Walk(c.Context, rg, func(it *maildir.Item) bool {
		switch m := (message{Item: it}); {
		case !f.matches(it), sent && owed && !m.RequiresAck:
		case sent && !m.trace(c.Context, s) && owed:
		default:
			l.Messages = append(l.Messages, m)
		}
		return true
	})
	l.More = found.More
	if found.Bad > 0 {
		command.PrinterOf(c).Warn("%s cannot be read as a message; atm doctor says why", letter.Many(found.Bad, "file"))
	}
	return err
}

func listBad(c *cli.Context, box *maildir.Box) error {
	box.Ingest(c.Context) // what cannot be ingested now stays where it is
	files, err := box.BadFiles()
	if err != nil {
		return err
	}
	if c.Bool("count") {
		return printCount(c, len(files))
	}
	bad, text, retry := []map[string]string{}, "", ""
	shown := files
	if n := c.Int("limit"); n > 0 {
		shown = files[:min(n, len(files))]
	}
	for _, f := range shown {
		reason, file := letter.Size(f.Size)+": "+letter.Clip(f.Reason, 160), filepath.Join(box.Path(), f.Dir, f.Name)
		bad = append(bad, map[string]string{"name": f.Name, "short": f.Name, "reason": reason, "state": "bad", "file": file})
		text += letter.Escape(f.Name) + " " + letter.Escape(reason) + "\n"
		if retry == "" && f.Dir == "inbox/bad" {
			inbox := filepath.Join(box.Path(), "inbox") + "/"
			retry = letter.Escape("to try one again: mv "+policy.Quote(file)+" "+policy.Quote(inbox)) + "\n"
		}
	}
	text += retry
	return command.PrinterOf(c).PrintAs(map[string]any{"messages": bad, "more": len(files) - len(shown), "owed": []wire.ID{}}, cmp.Or(text, "0 bad"))
}

func printCount(c *cli.Context, n int) error {
	return command.PrinterOf(c).PrintAs(map[string]int{"count": n}, fmt.Sprint(n))
}

var searchCommand = &cli.Command{
	Name: "search", Aliases: []string{"grep", "find", "query"}, ArgsUsage: "[WORDS…]", Usage: "search every message of the team",
	UsageText: `atm search flaky test from:alice since:7d
atm search in:new to:bob`,
	Description: `Finds messages with all words in subject or body, ignoring case; narrow it with from:, to:,
in:new|cur|done, since: and until:. Newest first.`,
	Flags: []cli.Flag{
		limitFlag(),
		&cli.StringFlag{Name: "from", Hidden: true}, &cli.StringFlag{Name: "to", Hidden: true}, &cli.StringFlag{Name: "since", Hidden: true},
		&cli.StringFlag{Name: "until", Hidden: true}, &cli.StringFlag{Name: "in", Hidden: true},
		cmdline.NoFlag("agent", "atm search WORDS from:NAME to:NAME"),
		cmdline.NoFlag("regex pattern query text body subject i", "atm search WORDS finds words or parts of them in subject and body, in any case"),
	},
	Action: command.With(app.OpenMeIfGiven, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		words := c.Args().Slice()
		ifEmpty := "no match"
		if strings.Contains(strings.Join(words, " "), ":") {
			ifEmpty += "; the filters are from:, to:, in:, since: and until:"
		}
		for _, key := range []string{"from", "to", "since", "until", "in"} {
			if c.IsSet(key) {
				words = append(words, key+":"+strings.ReplaceAll(c.String(key), " ", "-")) // last week
			}
		}
		if len(words) == 0 {
			return failure.Usage("atm search needs WORDS").WithHint("atm search WORDS from:NAME to:NAME")
		}
		s.Team.Progress = p.Progress("searching: %d messages")
		items, err := command.Search(c.Context, s, words)
		if err != nil && len(items) == 0 { // what could not be read may match
			return err
		} else if err := p.WarnUnreadable(err); err != nil {
			return err
		}
		r := p.Renderer(s)
		r.Whole = true
		return newListing(p, items, s.Me).printLines(c, r, ifEmpty)
	}),
}

var threadCommand = &cli.Command{
	Name: "thread", Aliases: []string{"conversation"}, ArgsUsage: "ID", Usage: "show a conversation, oldest first",
	UsageText:   "atm thread 9f3a1c",
	Description: "Looks in all inboxes of the team. Marks nothing as read.",
	Flags: []cli.Flag{
		cmdline.CountFlag("limit", 50, "the newest `N` (default 50, with --json all); 0: all", "all", "n"),
	},
	Action: command.With(app.OpenMeIfGiven, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		id, err := findThread(s, c.Args().First())
		if err != nil {
			return err
		}
		s.Team.Progress = p.Progress("searching: %d messages")
		items, err := s.Team.Thread(c.Context, id)
		if err := p.WarnUnreadable(err); err != nil {
			return err
		}
		if len(items) == 0 {
			return fmt.Errorf("thread %s: %w", id, maildir.ErrNotFound)
		}
		r, limit := p.Renderer(s), c.Int("limit")
		r.Whole = true
		if c.Bool("json") && p.Via == "" && !c.IsSet("limit") {
			limit = 0 // a program wants all of it
		}
		return printLetters(c, s, r, items, limit, "")
	}),
}
