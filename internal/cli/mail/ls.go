package mail

import (
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
		&cli.StringFlag{Name: "agent", Aliases: []string{"inbox"}, Hidden: true},
		hidden("unread", "u", "new", "l", "long"),
		command.Meant("to", "atm ls NAME lists the inbox of NAME; atm search to:NAME finds what was sent there"),
		command.Meant("thread", "atm thread ID"),
	},
	Action: ls,
}

// hidden is a flag that says what is so already: it works, and changes nothing.
func hidden(name string, aliases ...string) cli.Flag {
	return &cli.BoolFlag{Name: name, Aliases: aliases, Hidden: true}
}

// A filter is what of a mailbox is listed.
type filter struct {
	mailbox.Range
	from wire.Address
	sent bool // what the mailbox's owner sent
	open bool // of that only what somebody has not acknowledged
}

func ls(c *cli.Context) error {
	for _, flags := range [][]string{{"all", "bad", "sent"}, {"done", "bad", "sent"}} {
		if err := command.NotBoth(c, flags...); err != nil {
			return err
		}
	}
	s, box, err := boxNamed(c)
	if err != nil {
		return err
	}
	if c.Bool("bad") {
		return lsBad(c, box)
	}
	f, err := filterOf(c, s)
	if err != nil {
		return err
	}
	messages, more, bad, err := f.walk(c, s, box)
	if err != nil {
		return err
	}
	if c.Bool("count") {
		return command.Print(c, count{len(messages) + more})
	}
	if n := c.Int("limit"); n > 0 && len(messages) > n {
		more += len(messages) - n
		messages = messages[:n]
	}
	l := listing{Listing: command.NewListing(nil, more)}
	l.Messages = append(l.Messages, messages...)
	if !f.sent {
		owed, _ := box.OwedIDs()
		l.Owed = append(l.Owed, owed[:min(len(owed), 20)]...)
	}
	if l.text, err = lsText(c, s, box, l.Listing, f.sent); err != nil {
		return err
	}
	if bad > 0 {
		l.text += sayBad(c, s, bad)
	}
	return command.Print(c, l)
}

type count struct {
	Count int `json:"count"`
}

func (n count) String() string { return fmt.Sprint(n.Count) }

// boxNamed is the mailbox to list: the one that is named, or mine.
func boxNamed(c *cli.Context) (*command.Scope, *mailbox.Box, error) {
	name := c.Args().First()
	if name == "" {
		name = c.String("agent")
	}
	if name == "" {
		s, err := command.OpenMe(c)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Me, nil
	}
	s, err := command.OpenMeIfSaid(c)
	if err != nil {
		return nil, nil, err
	}
	box, err := s.Member(name)
	return s, box, err
}

func filterOf(c *cli.Context, s *command.Scope) (f filter, err error) {
	if c.IsSet("since") {
		if f.Since, err = teams.Since(c.String("since"), time.Now(), command.ParseDuration); err != nil {
			return f, command.Usage("--since: %v", err).WithHint("atm ls --since 2h")
		}
	}
	if c.IsSet("from") {
		if f.from, err = sender(s, c.String("from")); err != nil {
			return f, err
		}
	}
	f.Times = !f.Since.IsZero()
	if c.Bool("sent") {
		f.sent, f.open = true, c.Bool("owed")
		f.Sent, f.Newest = true, true
		return f, nil
	}
	all, owed, done := c.Bool("all"), c.Bool("owed"), c.Bool("done")
	f.Unread = all || !owed && !done || c.Bool("unread")
	f.Owed = all || owed
	f.Done, f.Archive, f.Newest = all || done, all || done, all || done
	return f, nil
}

// walk is what the filter leaves, and how many more there are: where nothing but
// the place counts, what is beyond the limit is counted by name.
func (f *filter) walk(c *cli.Context, s *command.Scope, box *mailbox.Box) (out []command.Message, more, bad int, err error) {
	held := map[wire.ID]mailbox.Lease{}
	if c.Bool("count") && f.Unread {
		held, _ = box.Leases() // what somebody else holds is not there to be read
	}
	if f.Since.IsZero() && f.from == (wire.Address{}) && !f.open && len(held) == 0 {
		f.Limit = c.Int("limit")
		if c.Bool("count") {
			f.Limit = 1
		}
	}
	more, bad, err = box.Walk(c.Context, f.Range, func(it *mailbox.Item) bool {
		if f.Times && it.Written.Before(f.Since) || f.from != (wire.Address{}) && it.From != f.from {
			return true
		}
		if _, isHeld := held[it.ID]; isHeld && it.Lease != nil {
			return true
		}
		m := command.Message{Item: it}
		if f.sent {
			open := false
			if m.Recipients, open = recipientStates(s, it.Message); f.open && !open {
				return true
			}
		}
		out = append(out, m)
		return true
	})
	return out, more, bad, err
}

// sender is an address that mail may come from.
func sender(s *command.Scope, word string) (wire.Address, error) {
	a, err := wire.ParseAddress(strings.TrimPrefix(word, "@"), s.Team.Name)
	if err != nil {
		return a, command.Usage("%v", err).WithHint("members: %s", command.Join(s.Names()))
	}
	if a.Agent != "drop" {
		_, err = s.Root.Mailbox(a)
	}
	return a, err
}

// recipientStates are what became of a message at its recipients; open says that
// somebody has not acknowledged it who should.
func recipientStates(s *command.Scope, m *wire.Message) (out []command.RecipientState, open bool) {
	for _, a := range m.To {
		r := command.RecipientState{To: a.String()}
		if box, err := s.Root.Mailbox(a); err == nil {
			if it, err := box.Get(m.ID); err == nil {
				r.State = stateAt(it)
			}
		}
		if m.RequiresAck && r.State != "acked" && r.State != "withdrawn" {
			open = true
		}
		out = append(out, r)
	}
	return out, open
}

func stateAt(it *mailbox.Item) string {
	if it.Lease != nil {
		return "taken"
	}
	if it.RequiresAck && it.State == mailbox.Done {
		return "acked"
	}
	if it.State == mailbox.Owed || it.State == mailbox.Done {
		return "read"
	}
	return string(it.State)
}

func lsText(c *cli.Context, s *command.Scope, box *mailbox.Box, l command.Listing, sent bool) (string, error) {
	var b strings.Builder
	lines := lineRenderer{s.Renderer(), false}
	ids := make([]wire.ID, len(l.Messages))
	for i, m := range l.Messages {
		ids[i] = m.ID
	}
	lines.Digits = letter.ShortLength(ids)
	for _, m := range l.Messages {
		if sent {
			b.WriteString(lines.sentLine(m) + "\n")
		} else {
			b.WriteString(lines.line(m) + "\n")
		}
	}
	if l.More > 0 {
		fmt.Fprintf(&b, "%d more: the same with --limit 0\n", l.More)
	}
	if len(l.Messages) > 0 {
		return b.String(), nil
	}
	n, err := box.Count(c.Context)
	if err != nil {
		return "", err
	}
	switch {
	case sent && c.Bool("owed"):
		b.WriteString("0 sent that wait for an ack\n")
	case sent:
		b.WriteString("nothing sent\n")
	case c.Bool("owed"):
		b.WriteString("0 owed\n")
	case c.Bool("done"):
		b.WriteString("0 done\n")
	default:
		who := ""
		if name := c.Args().First(); name != "" {
			who = " " + letter.Escape(name)
		}
		b.WriteString("0 unread")
		if n.Owed > 0 {
			fmt.Fprintf(&b, ", %d owed: atm ls%s --owed%s", n.Owed, who, s.Flags())
		}
		if n.Bad > 0 {
			fmt.Fprintf(&b, ", %d bad: atm ls%s --bad%s", n.Bad, who, s.Flags())
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}

func sayBad(c *cli.Context, s *command.Scope, n int) string {
	text := "1 file could not be understood"
	if n > 1 {
		text = fmt.Sprintf("%d files could not be understood", n)
	}
	if !c.Bool("sent") && c.Args().Len() == 0 {
		text += ": atm read" + s.Flags() + " sets aside what is unread"
	}
	return text + "\n"
}
