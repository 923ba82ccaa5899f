package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

var readCommand = &cli.Command{
	Name: "read", Aliases: []string{"recv", "receive", "check", "fetch", "pull", "poll"}, ArgsUsage: "[ID…]", Usage: "show unread mail and mark it",
	UsageText: "atm read\natm read --wait 5m --from alice\natm read --limit 5",
	Description: "At most 20 messages, 8 KiB and 200 lines at a time; then it says how many more there are.\n" +
		"A message counts as read once its reader has received it: a cut pipe shows it again.\n" +
		"Exit 0 without mail; 4 when --wait waited in vain.",
	Flags: []cli.Flag{
		limitFlag(),
		&cli.StringFlag{Name: "from", Aliases: []string{"sender"}, Usage: "from this `NAME`"},
		&cli.StringFlag{Name: "since", Usage: "not older than `D`: 2h, 7d, a date"},
		&cli.StringFlag{Name: "thread", Usage: "of the thread of `ID`"},
		&cli.BoolFlag{Name: "urgent", Usage: "urgent ones"},
		&cli.BoolFlag{Name: "peek", Aliases: []string{"no-mark", "no-mark-read", "keep"}, Usage: "mark nothing"},
		&cli.BoolFlag{Name: "full", Usage: "no cap"},
		&cli.BoolFlag{Name: "last", Usage: "the last batch again"},
		&cli.BoolFlag{Name: "wait", Aliases: []string{"w", "block"}, Usage: "until there is mail"},
		&cli.BoolFlag{Name: "follow", Usage: "go on showing what comes"},
		command.TimeoutFlag(),
		hidden("unread", "new", "u", "mark-read", "mark", "next"), hidden("confirm"), // of a program: see write
	},
	Action: command.With(command.OpenMe, read),
}

func read(c *cli.Context, s *command.Scope) error {
	if err := command.NotBoth(c, "peek follow", "last wait follow"); err != nil {
		return err
	}
	s.WarnUnaccepted()
	if c.Bool("last") && c.NArg() > 0 {
		return command.Usage("--last shows the last batch again, and takes no number").WithHint("the newest: atm ls --all --limit 5")
	} else if c.Bool("last") {
		items, err := s.Me.LastBatch()
		if err != nil {
			return err
		}
		r := s.Renderer()
		r.LimitToPage()
		return printLetters(c, r, items, "no batch to show again")
	}
	if !c.Bool("peek") {
		if err := s.MayWrite(); err != nil {
			return err
		}
	}
	p, err := newPage(c, s)
	switch {
	case err != nil:
		return err
	case c.Bool("follow"):
		return s.Follow(p.follow)
	case p.waits:
		return s.Await(p.wait)
	}
	_, err = p.show(c.Context)
	return err
}

// A page is what one read shows.
type page struct {
	c       *cli.Context
	s       *command.Scope
	options mailbox.ReadOptions
	again   []*mailbox.Item // messages named that were read already: they are shown as well

	follows, peeks, waits bool

	isPrinted bool // the JSON document
	hasWarned bool // of messages that cannot be read
}

// newPage makes the options of a read of the flags.
func newPage(c *cli.Context, s *command.Scope) (*page, error) {
	p := &page{c: c, s: s, follows: c.Bool("follow"), peeks: c.Bool("peek")}
	p.options = mailbox.ReadOptions{Limit: c.Int("limit"), LookAhead: 200}
	if p.follows {
		p.options.Limit, p.options.LookAhead = 1, 0
	} else if c.Bool("full") && !c.IsSet("limit") {
		p.options.Limit = 0
	}
	for _, word := range c.Args().Slice() {
		if word == string(s.Me.Agent()) || slices.Contains([]string{"all", "mail", "messages", "new", "unread"}, word) {
			continue // read bob, by bob
		}
		it, box, err := s.Find(word)
		if err == nil && box.Address() != s.Me.Address() {
			err = fmt.Errorf("message %s: %w", word, mailbox.ErrNotFound)
		}
		if err == nil && it.Lease != nil && !p.peeks {
			err = &mailbox.LeasedError{ID: it.ID, Lease: *it.Lease}
		}
		if err != nil {
			return nil, err
		}
		if it.State != mailbox.Unread {
			p.again = append(p.again, it)
		}
		p.options.IDs = append(p.options.IDs, it.ID)
	}
	p.waits = c.Bool("wait") && len(p.again) == 0
	from, err := sender(c, s)
	if err != nil {
		return nil, err
	}
	var thread wire.ID
	if c.IsSet("thread") {
		it, _, err := s.Find(c.String("thread"))
		if err != nil {
			return nil, err
		}
		thread = it.ThreadID()
	}
	after, err := since(c)
	if err != nil {
		return nil, err
	}
	if !after.IsZero() || from != (wire.Address{}) || thread != "" || c.Bool("urgent") { // else the rest is counted by name
		p.options.Match = func(m *wire.Message) bool {
			return !m.SentAt.Before(after) && (from == wire.Address{} || m.From == from) && (thread == "" || m.ThreadID() == thread) && (!c.Bool("urgent") || m.Urgent())
		}
	}
	return p, nil
}

// show shows one batch, and marks it unless --peek.
func (p *page) show(ctx context.Context) (shown bool, err error) {
	r, options := p.s.Renderer(), p.options
	if !p.c.Bool("full") && !p.c.IsSet("limit") && !p.follows {
		options.Fits = r.LimitToPage()
	}
	var b mailbox.Batch
	if !p.peeks {
		b, err = p.s.Me.Read(ctx, options, func(b mailbox.Batch) (int, error) { return p.write(ctx, b, r) })
	} else if b, err = p.s.Me.Peek(ctx, options); err == nil {
		_, err = p.write(ctx, b, r)
	}
	if b.SetAside > 0 {
		command.Warn(p.c, "%s set aside as unreadable: atm ls --bad%s says why", letter.Many(b.SetAside, "file"), p.s.Flags())
	}
	if err == nil && b.Unmarked != nil {
		err = fmt.Errorf("shown, but not marked as read: %w", b.Unmarked)
	}
	if err == nil && len(b.Unreadable) > 0 {
		what := "a message"
		if n := len(b.Unreadable); n > 1 {
			what = fmt.Sprint(n, " messages")
		}
		err = command.Failed("%s cannot be read: %w", what, b.Unreadable[0]).WithHint("atm doctor")
		if p.follows || p.waits && len(b.Items) == 0 { // others may come
			if !p.hasWarned {
				command.Warn(p.c, "%v", err)
			}
			p.hasWarned, err = true, nil
		}
	}
	if p.isPrinted {
		err = command.Tell(p.c, err)
	}
	return len(b.Items) > 0, err
}

// write writes a batch and returns how many of its messages were received. With --confirm that is none
// until a byte comes on stdin: a program that passes them on says that they have arrived.
func (p *page) write(ctx context.Context, b mailbox.Batch, r *letter.Renderer) (received int, err error) {
	if len(b.Items) == 0 && (p.waits || p.follows) {
		return 0, nil
	}
	var owed []wire.ID // as they were before this reading, and what it adds
	if !p.follows {
		owed, _ = p.s.Me.OwedIDs()
	}
	listed := slices.Clone(owed[:min(len(owed), 5)]) // for people: there may be hundreds
	b.Items = slices.Concat(b.Items, p.again)
	l := newListing(b.Items)
	flags := mailbox.Flags(b.Items, b.Ahead)
	for i, it := range b.Items {
		after := *it // as it is when it has been read
		after.SupersededBy = flags[i].SupersededBy
		l.Messages[i].Item = &after
		if it.State != mailbox.Unread || p.peeks || b.Unmarked != nil {
			continue
		}
		after.State = mailbox.Done
		if it.RequiresAck && !p.s.Me.HasAcked(it.ID) {
			after.State = mailbox.Owed
			owed, listed = append(owed, it.ID), append(listed, it.ID)
		}
	}
	l.More, l.Owed = b.More, append(l.Owed, owed...)
	var pieces [][]byte
	if !p.c.Bool("json") || command.Via(p.c) != "" {
		r.Digits = letter.ShortLength(append(l.ids(), listed...))
		pieces = command.Letters(r, b.Items, b.Ahead)
		if !p.follows {
			pieces = append(pieces, []byte(p.foot(b, listed, len(owed))))
		}
	}
	if !p.c.Bool("json") {
		return showPieces(ctx, pieces...)
	}
	var document any = l
	if p.follows {
		document = map[string]message{"message": l.Messages[0]}
	}
	if command.Via(p.c) != "" {
		document = command.Said{Document: document, Text: string(bytes.Join(pieces, nil))}
	}
	p.isPrinted = !p.follows
	text, err := command.JSON(document)
	if err != nil {
		return 0, err
	}
	n, err := showPieces(ctx, text)
	if err == nil && p.c.Bool("confirm") && len(b.Items) > 0 && !p.peeks {
		n, _ = os.Stdin.Read(make([]byte, 1))
	}
	return n * len(b.Items), err // one document for all of them
}

// foot says what is left, and what is owed: so many, and some of them.
func (p *page) foot(b mailbox.Batch, owed []wire.ID, total int) (foot string) {
	if len(b.Items) == 0 {
		foot = "no new messages\n"
	}
	if b.More > 0 {
		foot += fmt.Sprintf("%d more: atm read%s\n", b.More, p.s.Flags())
	}
	if total == 0 {
		return foot
	}
	verb, more := "await", ""
	if total == 1 {
		verb = "awaits"
	} else if total > len(owed) {
		more = " … atm ls --owed"
	}
	return foot + fmt.Sprintf("%d %s your ack: %s%s\n", total, verb, command.Shorts(owed), more)
}

// wait shows mail as soon as there is any. Another reader may be quicker: then the
// wait goes on.
func (p *page) wait(ctx context.Context) error {
	timeout := command.Duration(p.c, "timeout")
	err := await(ctx, p.s, timeout, watchMail(p.s.Me), func(entry) (bool, error) { return p.show(ctx) })
	if errors.Is(err, errTimeout) {
		e := command.Timeout("no mail within %s", timeout).WithHint("do other work, or end your turn; later: atm read%s", p.s.Flags())
		none := newListing(nil)
		e.Extra["messages"], e.Extra["more"], e.Extra["owed"] = none.Messages, none.More, none.Owed
		return e
	}
	return err
}

// follow shows what is unread and what comes, until interrupted or, where a timeout
// was given, for that long.
func (p *page) follow(ctx context.Context) error {
	timeout := command.Duration(p.c, "timeout")
	if !p.c.IsSet("timeout") {
		timeout = 0
	}
	err := await(ctx, p.s, timeout, watchMail(p.s.Me), func(entry) (bool, error) {
		for {
			if shown, err := p.show(ctx); !shown || err != nil {
				return false, err
			}
		}
	})
	if errors.Is(err, errTimeout) {
		return nil
	}
	return err
}
