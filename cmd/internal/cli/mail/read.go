package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

var readCommand = &cli.Command{
	Name: "read", Aliases: []string{"recv", "receive", "check", "fetch", "pull"}, ArgsUsage: "[ID…]", Usage: "show unread mail and mark it as read",
	UsageText: `atm read
atm read --wait 5m --from alice
atm read --limit 5`,
	Description: `Shows at most 20 messages, 8 KiB and 200 lines at a time, then how many more there are.
What is indented was written by the sender; a line that begins in column 0 is atm's.
A message counts as read once it was received: after a broken pipe it is shown again.
Exit 0 if there is no mail, 4 if --wait timed out.`,
	Flags: []cli.Flag{
		limitFlag(),
		&cli.StringFlag{Name: "from", Aliases: []string{"sender"}, Usage: "only from `NAME`"},
		&cli.StringFlag{Name: "since", Usage: "not older than `D`: 2h, 7d or a date"},
		&cli.StringFlag{Name: "thread", Aliases: []string{"thread-id"}, Usage: "in the thread of `ID`"},
		&cli.BoolFlag{Name: "urgent", Usage: "only urgent ones"},
		&cli.BoolFlag{Name: "peek", Aliases: []string{"no-mark", "dry-run"}, Usage: "mark nothing"},
		&cli.BoolFlag{Name: "full", Usage: "no cap"},
		&cli.BoolFlag{Name: "last", Usage: "show the last batch again"},
		&cli.BoolFlag{Name: "wait", Aliases: []string{"w", "block"}, Usage: "wait until there is mail"},
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f", "watch"}, Usage: "keep showing new mail"},
		cmdline.TimeoutFlag(),
		&cli.BoolFlag{Name: "confirm", Hidden: true}, // of a program: see write
		cmdline.NoFlag("inbox agent", "your own mail: atm read; somebody's inbox: atm ls NAME"),
		cmdline.NoFlag("queue", "atm take QUEUE takes the next of a shared inbox"),
		cmdline.NoFlag("unread new u mail mark mark-read mark-as-read next", "leave it out: atm read shows unread mail, and marks it; atm ls lists it"),
		cmdline.NoFlag("all a history", "atm ls --all lists read messages too; atm read --full has no cap"),
		cmdline.NoFlag("tail newest latest reverse", "the newest: atm ls --all --limit 5; the last batch again: atm read --last"),
		cmdline.NoFlag("mark-unread", "atm unread ID puts a message back"),
		cmdline.NoFlag("count", "atm ls --count; atm read --limit N"),
		cmdline.NoFlag("owed unacked", "atm ls --owed"),
		cmdline.NoFlag("sent outbox", "atm ls --sent"),
		cmdline.NoFlag("skip offset page", "atm read again shows the next"),
		cmdline.NoFlag("grep search contains", "atm search WORDS"),
		cmdline.NoFlag("ack", "atm ack ID"),
	},
	Action: command.With(app.OpenMe, read),
}

func read(c *cli.Context, s *app.Scope, p *command.Printer) error {
	if err := cmdline.NotBoth(c, "peek follow", "last wait follow"); err != nil {
		return err
	}
	s.WarnUnnoted()
	if c.Bool("last") {
		return showLastBatch(c, s)
	}
	g, err := newPage(c, s)
	if err == nil && !g.peeks {
		err = s.MayWrite()
	}
	if err != nil {
		return err
	}
	if g.follows {
		return s.FollowFor(command.GivenTimeout(c), g.follow)
	} else if g.waits {
		return s.Await(g.wait)
	}
	_, err = g.show(c.Context)
	return err
}

func showLastBatch(c *cli.Context, s *app.Scope) error {
	if c.NArg() > 0 {
		return failure.Usage("--last shows the last batch again and takes no number").WithHint("to list the newest: atm ls --all --limit 5")
	}
	items, err := s.Me.LastBatch()
	if err != nil {
		return err
	}
	r, limit := command.PrinterOf(c).Renderer(s), 0
	if !c.Bool("full") {
		r.LimitToPage()
	}
	if c.IsSet("limit") {
		limit = c.Int("limit")
	}
	return printLetters(c, s, r, items, limit, "no last batch")
}

// A page prints unread mail, one batch at each show.
type page struct {
	c       *cli.Context
	s       *app.Scope
	options maildir.ReadOptions
	shown   map[wire.ID]bool // in earlier portions of this batch, if it is shown inPortions
	again   []*maildir.Item  // messages that were named and are read already: printed as well

	follows, peeks, waits, inPortions bool
}

func newPage(c *cli.Context, s *app.Scope) (*page, error) {
	p := &page{c: c, s: s, follows: c.Bool("follow"), peeks: c.Bool("peek")}
	// A message marked in a shared inbox would be hidden from everybody, and nobody would hold it.
	if isShared, _ := s.Me.Shared(); isShared && !p.peeks {
		return nil, failure.Refused("%s is a shared inbox, where read marks nothing", s.Me.Agent()).
			WithHint("atm take %s --as NAME takes a message; atm read --peek looks", s.Me.Agent())
	}
	p.options = maildir.ReadOptions{Limit: c.Int("limit"), LookAhead: 200}
	if p.follows {
		p.options.Limit, p.options.LookAhead = 1, 0
	} else if c.Bool("full") && !c.IsSet("limit") {
		p.options.Limit = 0
	}
	for _, word := range c.Args().Slice() {
		if word == string(s.Me.Agent()) {
			continue // `atm read bob --as bob`
		}
		it, box, err := s.Find(word)
		if err == nil && (box.Address() != s.Me.Address() || it.State == "") { // "": what I sent
			err = failure.NotFound("message %s is not in your inbox", it.ID.Short(6)).WithHint("atm show %s shows it", it.ID.Short(6))
		}
		if err != nil {
			return nil, err
		}
		if it.State != maildir.Unread {
			p.again = append(p.again, it)
		}
		p.options.IDs = append(p.options.IDs, it.ID)
	}
	p.waits = c.Bool("wait") && len(p.again) == 0
	f, err := newFilter(c, s)
	if f != (filter{}) {
		p.options.Match = f.matches
	}
	return p, err
}

// maxPortion is how many bytes of messages are held at a time. A JSON document holds all.
const maxPortion = 16 << 20

// show prints and marks a batch, in portions if it is large, and reports whether there was any mail.
func (p *page) show(ctx context.Context) (hasMail bool, err error) {
	r, options := command.PrinterOf(p.c).Renderer(p.s), p.options
	isPage := !p.c.Bool("full") && !p.c.IsSet("limit") && !p.follows
	if isPage {
		options.Fits = r.LimitToPage()
	}
	if p.inPortions = !isPage && !p.c.Bool("json"); isPage || p.inPortions {
		options.MaxBytes = maxPortion
	}
	p.shown, options.Batch = map[wire.ID]bool{}, wire.NewID()
	for {
		options.Skip = p.shown
		b, err := p.showPortion(ctx, r, options)
		for _, it := range b.Items {
			p.shown[it.ID] = true
		}
		if err != nil || p.isLast(b) {
			return len(p.shown) > 0, err
		}
		options.Limit = max(options.Limit-len(b.Items), 0) // 0 stays 0: a batch at its limit is not cut
	}
}

// isLast reports whether the batch has no further portion.
func (p *page) isLast(b maildir.Batch) bool { return !b.IsCut || !p.inPortions }

func (p *page) showPortion(ctx context.Context, r *letter.Renderer, options maildir.ReadOptions) (b maildir.Batch, err error) {
	if p.peeks {
		if b, err = p.s.Me.Peek(ctx, options); err == nil {
			_, err = p.write(ctx, b, r)
		}
	} else {
		b, err = p.s.Me.Read(ctx, options, func(b maildir.Batch) (int, error) { return p.write(ctx, b, r) })
	}
	if bad := b.Bad + len(b.Unreadable); bad > 0 && !p.follows && p.isLast(b) {
		command.PrinterOf(p.c).Warn("%s cannot be read as mail: atm ls --bad and atm doctor say why", letter.Many(bad, "file"))
	}
	if b.LogErr != nil {
		command.PrinterOf(p.c).Warn("%v; atm read --last does not show this batch", b.LogErr)
	}
	if err == nil && b.MarkErr != nil && p.isLast(b) {
		err = notMarked(b.MarkErr)
	}
	return b, err
}

func notMarked(why error) error { return fmt.Errorf("shown, but not marked as read: %w", why) }

// write prints a batch and returns how many messages were received: with --confirm all, once a byte comes on stdin.
func (p *page) write(ctx context.Context, b maildir.Batch, r *letter.Renderer) (received int, err error) {
	if len(b.Items) == 0 && (p.waits || p.follows) {
		return 0, nil
	}
	if len(b.Items) > 0 {
		p.s.WarnUnaccepted()
	}
	if p.isLast(b) {
		b.Items = slices.Concat(b.Items, p.again)
	}
	l := p.afterReading(b)
	r.Digits = l.setDigits()
	pieces := command.Letters(r, b.Items, b.Ahead)
	var document any = l
	if p.follows {
		document = map[string]message{"message": l.Messages[0]}
	} else if p.isLast(b) {
		pieces = append(pieces, []byte(p.foot(l)))
	}
	if p.peeks {
		return 0, command.PrinterOf(p.c).PrintAs(document, string(bytes.Join(pieces, nil)))
	}
	received, err = printReceived(ctx, p.c, p.s, document, pieces...)
	isConfirmed := p.c.Bool("json") && p.c.Bool("confirm")
	if err == nil && isConfirmed && len(b.Items) > 0 {
		n, _ := p.c.App.Reader.Read(make([]byte, 1))
		received *= n
	}
	return received, err
}

// afterReading lists the messages of a batch with the states that they have once they are marked, and what I owe then.
func (p *page) afterReading(b maildir.Batch) *listing {
	l := newListing(command.PrinterOf(p.c), b.Items, p.s.Me)
	l.More = b.More
	if b.MarkErr != nil {
		l.Error = command.Given(p.c).Explain(notMarked(b.MarkErr))
	}
	flags := maildir.Flags(b.Items, b.Ahead)
	for i, it := range b.Items {
		after := *it
		l.Messages[i].Item, l.Messages[i].supersededBy = &after, flags[i].SupersededBy
		if it.State != maildir.Unread || p.peeks || b.MarkErr != nil {
			continue
		}
		after.State = maildir.Done
		if it.RequiresAck {
			after.State = maildir.Owed
			l.Owed = append(l.Owed, it.ID)
		}
	}
	return l
}

// foot says how many messages are left, and which I owe an ack.
func (p *page) foot(l *listing) (foot string) {
	if len(l.Messages) == 0 && len(p.shown) == 0 {
		foot = "no new messages\n"
	}
	if l.More > 0 {
		foot += fmt.Sprintf("%d more: atm read%s\n", l.More, p.s.Given.Flags("", "root", "team", "as"))
	}
	return foot + owedLine(l.Owed, p.s.Given.Flags("", "root", "team", "as"))
}

// owedLine counts the messages that I owe an ack, and names the newest of them.
func owedLine(owed []wire.ID, flags string) string {
	const most = 6
	switch n := len(owed); {
	case n == 0:
		return ""
	case n == 1:
		return "1 awaits your ack: " + app.Shorts(owed) + "\n"
	case n > most:
		return fmt.Sprintf("%d await your ack: %s … atm ls --owed%s\n", n, app.Shorts(owed[n-most:]), flags)
	default:
		return fmt.Sprintf("%d await your ack: %s\n", n, app.Shorts(owed))
	}
}

// wait prints mail as soon as there is any. If another reader has taken it, the wait goes on.
func (p *page) wait(ctx context.Context) error {
	timeout := cmdline.Duration(p.c, "timeout")
	err := app.UntilMail(ctx, timeout, p.s.Me, func() (bool, error) { return p.show(ctx) })
	if !errors.Is(err, app.ErrTimeout) {
		return err
	}
	none := newListing(command.PrinterOf(p.c), nil, p.s.Me)
	owed := strings.TrimSpace(owedLine(none.Owed, p.s.Given.Flags("", "root", "team", "as")))
	e := failure.Timeout("%s", app.JoinFilled("; ", "no mail within "+timeout.String(), owed)).
		WithHint("do other work, or end your turn; later: atm read%s", p.s.Given.Flags("", "root", "team", "as"))
	e.Done = none
	return e
}

// follow prints unread mail as it comes.
func (p *page) follow(ctx context.Context) error {
	return app.UntilMail(ctx, 0, p.s.Me, func() (done bool, err error) {
		for hasMail := true; hasMail && err == nil; {
			hasMail, err = p.show(ctx)
		}
		return false, err
	})
}
