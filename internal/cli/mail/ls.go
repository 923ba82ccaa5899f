package mail

import (
	"cmp"
	"fmt"
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
		&cli.StringFlag{Name: "agent", Hidden: true},
		hidden("unread", "new", "l"),
		command.Meant("to", "atm ls NAME lists the inbox of NAME; atm search to:NAME finds what was sent there"),
	},
	Action: ls,
}

func ls(c *cli.Context) error {
	if err := command.NotBoth(c, "all", "bad", "sent"); err != nil {
		return err
	}
	s, box, err := boxNamed(c)
	if err != nil {
		return err
	}
	if c.Bool("bad") {
		return lsBad(c, box)
	}
	l, err := walk(c, s, box)
	if err != nil {
		return err
	}
	if c.Bool("count") {
		return command.Print(c, count{len(l.Messages)})
	}
	none := "nothing there"
	if !c.Bool("sent") && !c.Bool("owed") && !c.Bool("done") {
		if none, err = nothingUnread(c, s, box); err != nil {
			return err
		}
	}
	if !c.Bool("sent") {
		owed, _ := box.OwedIDs()
		l.Owed = append(l.Owed, owed...)
	}
	return command.Print(c, lines(c, s.Renderer(), l, none))
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

type count struct {
	Count int `json:"count"`
}

func (n count) String() string { return fmt.Sprint(n.Count) }

// boxNamed is the mailbox to list: the one that is named, or mine.
func boxNamed(c *cli.Context) (*command.Scope, *mailbox.Box, error) {
	name := cmp.Or(c.Args().First(), c.String("agent"))
	if name != "" {
		s, err := command.OpenMeIfSaid(c)
		if err != nil {
			return nil, nil, err
		}
		box, err := s.Member(name)
		return s, box, err
	}
	s, err := command.OpenMe(c)
	if err != nil {
		return nil, nil, err
	}
	return s, s.Me, nil
}

// walk is what the flags choose of a mailbox; where nothing but the place counts, what
// is beyond the limit is counted by name.
func walk(c *cli.Context, s *command.Scope, box *mailbox.Box) (l command.Listing, err error) {
	all, owed, done, sent, counted := c.Bool("all"), c.Bool("owed"), c.Bool("done"), c.Bool("sent"), c.Bool("count")
	rg := mailbox.Range{Unread: all || !owed && !done, Owed: all || owed, Done: all || done, Archive: all || done, Newest: all || done}
	if sent {
		rg = mailbox.Range{Sent: true, Newest: true}
	}
	if c.IsSet("since") {
		rg.Times = true
		if rg.Since, err = teams.Since(c.String("since"), time.Now(), command.ParseDuration); err != nil {
			return l, command.Usage("--since: %v", err).WithHint("atm ls --since 2h")
		}
	}
	from, err := sender(c, s)
	if err != nil {
		return l, err
	}
	if !rg.Times && !c.IsSet("from") && !(sent && owed) && !counted {
		rg.Limit = c.Int("limit")
	}
	l = command.NewListing(nil, 0)
	l.More, _, err = box.Walk(c.Context, rg, func(it *mailbox.Item) bool {
		m, open := command.Message{Item: it}, true
		if sent {
			m.Recipients, open = recipientStates(s, it.Message)
		}
		switch {
		case rg.Times && it.Written.Before(rg.Since), from != (wire.Address{}) && it.From != from:
		case counted && it.Lease != nil: // what somebody has taken is not there to be read
		case sent && owed && !open:
		default:
			l.Messages = append(l.Messages, m)
		}
		return true
	})
	return l, err
}

// recipientStates are what became of a message at its recipients; open says that
// somebody has not acknowledged it who should.
func recipientStates(s *command.Scope, m *wire.Message) (out []command.RecipientState, open bool) {
	for _, a := range m.To {
		r := command.RecipientState{To: a.String(), State: "no evidence"}
		if box, err := s.Root.Mailbox(a); err == nil {
			if it, err := box.Get(m.ID); err == nil {
				r.State = stateAt(it)
			}
		}
		open = open || m.RequiresAck && r.State != "acked" && r.State != "withdrawn"
		out = append(out, r)
	}
	return out, open
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

type badFile struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

func (f badFile) String() string { return letter.Escape(f.Name) + " " + letter.Escape(f.Reason) }

// lsBad prints the files that are no messages; with --json one a line.
func lsBad(c *cli.Context, box *mailbox.Box) error {
	if _, err := box.TakeIn(c.Context); err != nil {
		return err
	}
	files, err := box.BadFiles(c.Int("limit"))
	if err == nil && len(files) == 0 && !c.Bool("json") {
		return command.Print(c, command.Text("0 bad"))
	}
	for _, f := range files {
		if err := command.Print(c, badFile{f.Name, letter.Size(f.Size) + ": " + letter.Clip(f.Reason, 160)}); err != nil {
			return err
		}
	}
	return err
}
