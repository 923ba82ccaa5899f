package mail

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/setaside"
	"github.com/agentteammail/atm/wire"
)

var lsCommand = &cli.Command{
	Name: "ls", Category: "list inbox messages mail mails\noutbox sent    atm ls --sent\nscheduled later    atm ls --later", ArgsUsage: "[AGENT]", Usage: "list messages, one per line",
	UsageText: `atm ls
atm ls bob
atm ls --sent --owed`,
	Description: "Marks nothing as read. Unread and owed: oldest first; others: newest first.",
	Flags: slices.Concat([]cli.Flag{
		&cli.BoolFlag{Name: "unread", Aliases: []string{"u"}, Category: "new", Usage: "not read yet (default)"},
		&cli.BoolFlag{Name: "later", Category: "waiting scheduled", Usage: "what comes later, and when"},
		&cli.BoolFlag{Name: "owed", Category: "unacked", Usage: "read, and you owe an ack"},
		&cli.BoolFlag{Name: "done", Category: "archived", Usage: "read, with no ack owed"},
		&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "unread, owed and done"},
		&cli.BoolFlag{Name: "bad", Usage: "files that are not messages"},
		&cli.BoolFlag{Name: "sent", Category: "outbox", Usage: "what you sent, and how far it is"},
		&cli.StringFlag{Name: "from", Category: "sender", Usage: "only from `NAME`"},
		&cli.StringFlag{Name: "to", Hidden: true},
		&cli.StringFlag{Name: "since", Usage: "from the last `D`: 2h, 7d"},
		limitFlag(), offsetFlag(),
		&cli.BoolFlag{Name: "count", Usage: "print only the number"},
	}, saysFlags),
	Action: command.With(app.OpenMeIfGiven, ls),
}

// lsOptions are the flags and words of ls.
type lsOptions struct {
	whose, word                                string // the inbox, and how it was named as a word
	all, unread, owed, done, bad, sent, counts bool
	limit, offset                              int
	filter                                     Filter
}

func ls(c *cli.Context, s *app.Scope, p *command.Printer) error {
	err := cmp.Or(cmdline.Only(c, "bad", "unread", "to", "limit", "offset", "count"), cmdline.Only(c, "later", "limit", "offset", "count"),
		cmdline.NotBoth(c, "all sent", "sent done", "unread sent", "count limit", "count offset"))
	if err != nil {
		return err
	}
	o := lsOptions{
		word: c.Args().First(), all: c.Bool("all"), unread: c.Bool("unread"), owed: c.Bool("owed"), done: c.Bool("done"),
		bad: c.Bool("bad"), sent: c.Bool("sent"), counts: c.Bool("count"), limit: c.Int("limit"), offset: c.Int("offset"),
	}
	if c.Bool("later") {
		return listLater(c.Context, s, p, o)
	}
	o.whose = o.word
	if !o.sent {
		o.whose = cmp.Or(o.word, c.String("to"))
	}
	box, err := s.MemberOrMe(o.whose)
	if err != nil {
		return err
	}
	if o.bad {
		return listBad(c.Context, p, box, o)
	}
	if o.filter, err = newFilter(c, s); err != nil {
		return err
	}
	return list(c.Context, s, p, box, o)
}

func list(ctx context.Context, s *app.Scope, p *command.Printer, box *maildir.Box, o lsOptions) error {
	l, ifEmpty := newListing(p, nil, nil), "no messages"
	bad, err := l.add(ctx, s, box, o)
	if bad > 0 {
		p.Warn("%s cannot be read as a message; `atm doctor` says why", letter.Many(bad, "file"))
	}
	if err != nil && len(l.Messages)+l.More == 0 {
		return teamdir.Unreadable(box, err) // an empty list would say that there is no mail
	}
	if !o.sent {
		owed, unreadable := box.OwedIDs()
		l.Owed, err = append(l.Owed, owed...), cmp.Or(err, unreadable)
		if o.unread || !o.owed && !o.done {
			ifEmpty = "0 unread"
		}
		if verb := strings.TrimSpace("atm ls " + o.word); ifEmpty == "0 unread" && len(owed) > 0 {
			ifEmpty += fmt.Sprintf(", %d to ack: %s", len(owed), p.Command(verb+" --owed"))
		}
	}
	if err := p.WarnUnreadable(teamdir.Unreadable(box, err)); err != nil {
		return err
	}
	if o.counts {
		return printCount(p, len(l.Messages)+l.More)
	}
	if err := l.printLines(p, p.RendererFor(s, box), o.offset, o.limit, ifEmpty); err != nil || !o.sent {
		return err
	}
	return l.warnHeld(s, p)
}

// warnHeld says why listed mail for other machines is not sent.
func (l *listing) warnHeld(s *app.Scope, p *command.Printer) error {
	outboxes, err := s.Team.Store.Outboxes()
	for _, box := range outboxes {
		host := box.Address().Host
		why := presence.HeldReason(s.Team, host)
		isHeld := func(m message) bool {
			it, err := box.Get(m.ID)
			return err == nil && it.State != wire.Withdrawn
		}
		if why != "" && slices.ContainsFunc(l.Messages, isHeld) {
			p.Warn("mail for %s waits: %s", host, why)
		}
	}
	return err
}

// add adds the messages of box in the states that the options name or, with sent, those that its owner sent, with owed
// what nobody has acked of these. It returns how many files could not be read.
func (l *listing) add(ctx context.Context, s *app.Scope, box *maildir.Box, o lsOptions) (bad int, err error) {
	isDone := o.all || o.done
	rg := maildir.Range{Unread: o.all || o.unread || !o.owed && !o.done, Owed: o.all || o.owed, Done: isDone, Archive: isDone, Newest: isDone, Since: o.filter.since}
	if o.sent {
		rg = maildir.Range{Sent: true, Newest: true, Since: o.filter.since}
		if o.owed {
			rg.With = headers.WantsAck
		}
	}
	if o.sent && o.owed {
		isAcked := l.acked(ctx, s, box, rg)
		rg.Wants = func(id wire.ID) bool { return !isAcked[id] }
	}
	if o.filter.matchesAll() { // then messages beyond the limit are not read
		if rg.Limit = o.limit; o.limit > 0 {
			rg.Limit += o.offset
		}
		if o.counts {
			rg.Limit = -1
		}
	}
	if rg.Unread {
		in, _ := drop.Ingest(ctx, box, drop.Patience) // what cannot be ingested now stays where it is
		rg.Listed = in.Unread
	}
	before := len(l.Messages)
	found, err := box.Walk(rg, func(it *wire.Item) bool {
		if o.filter.matches(it) {
			l.Messages = append(l.Messages, message{Item: it})
		}
		return true
	})
	if l.More = found.More; o.sent {
		traceAll(ctx, s, l.Messages[before:])
	}
	return found.Bad, err
}

// acked returns those of the messages of a range that want no ack any more.
func (l *listing) acked(ctx context.Context, s *app.Scope, box *maildir.Box, rg maildir.Range) map[wire.ID]bool {
	may, acked, some := post.MayBeAcked(ctx, s.Root, box), map[wire.ID]bool{}, []message(nil)
	rg.Wants = func(id wire.ID) bool { return may[id] }
	box.Walk(rg, func(it *wire.Item) bool {
		some = append(some, message{Item: it})
		return true
	})
	for i, isUnacked := range traceAll(ctx, s, some) {
		acked[some[i].ID] = !isUnacked
	}
	return acked
}

// listLater lists the messages of the team that are not due, or those that one member wrote or is to get.
func listLater(ctx context.Context, s *app.Scope, p *command.Printer, o lsOptions) error {
	by, err := (*maildir.Box)(nil), error(nil)
	if o.word != "" {
		by, err = s.Member(o.word)
	}
	if err != nil {
		return err
	}
	l, seen := newListing(p, nil, nil), map[wire.ID]bool{}
	err = post.LaterMail(s.Team, func(box *maildir.Box, it *wire.Item) {
		isOf := by == nil || it.From == by.Address() || box.Address() == by.Address()
		if !isOf || seen[it.ID] {
			return
		}
		seen[it.ID] = true
		m := message{Item: it}
		if m.trace(s, post.AnswersTo(ctx, s.Root, m.Message)); m.comes == "" { // it lies in an outbox
			m.setLater(s)
		}
		l.Messages = append(l.Messages, m)
	})
	if err := p.WarnUnreadable(err); err != nil {
		return err
	}
	slices.SortStableFunc(l.Messages, func(a, b message) int {
		return cmp.Or(a.NotBefore.Compare(b.NotBefore), cmp.Compare(a.ID, b.ID))
	})
	if o.counts {
		return printCount(p, len(l.Messages))
	}
	r := p.Renderer(s)
	r.Whole = true
	return l.printLines(p, r, o.offset, o.limit, "nothing comes later")
}

func listBad(ctx context.Context, p *command.Printer, box *maildir.Box, o lsOptions) error {
	drop.Ingest(ctx, box, drop.Patience) // what cannot be ingested now stays where it is
	files, err := drop.BadFiles(box)
	if err != nil {
		return err
	}
	if o.counts {
		return printCount(p, len(files))
	}
	bad, text, retry := []map[string]string{}, "", ""
	files = files[min(o.offset, len(files)):]
	shown := files[:min(cmp.Or(o.limit, len(files)), len(files))]
	for _, f := range shown {
		reason, file := letter.Size(f.Size)+": "+letter.Clip(f.Reason, 160), filepath.Join(box.Path(), f.Dir, f.Name)
		bad = append(bad, map[string]string{"name": f.Name, "short": f.Name, "reason": reason, "state": "bad", "file": file})
		text += letter.Escape(f.Name) + " " + letter.Escape(reason) + "\n"
		if retry == "" && f.Dir == "inbox/bad" {
			one := setaside.Item{Kind: setaside.File, Name: f.Name, Agent: box.Agent()}
			retry = letter.Escape("to try one again: "+p.Command(app.RetryCommand(&one))) + "\n"
		}
	}
	text += retry
	return p.PrintAs(map[string]any{"messages": bad, "more": len(files) - len(shown), "owed": []wire.ID{}}, cmp.Or(text, "0 bad"))
}

func printCount(p *command.Printer, n int) error {
	return p.PrintAs(map[string]int{"count": n}, fmt.Sprint(n))
}
