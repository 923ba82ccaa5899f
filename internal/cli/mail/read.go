package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

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
	if c.Bool("last") {
		return showLastBatch(c, s)
	}
	isShared, _ := s.Me.Shared() // a message read there would be out of everybody's reach, and nobody would hold it
	peeks := c.Bool("peek") || isShared
	if isShared && c.Bool("follow") {
		return command.Refused("%s is shared, and read marks nothing there", s.Me.Agent()).
			WithHint("in your own name: atm take %s --wait --as NAME", s.Me.Agent())
	}
	if isShared && !c.Bool("peek") {
		command.Warn(c, "%s is shared, and nothing is marked: atm take %[1]s takes a message", s.Me.Agent())
	}
	if !peeks {
		if err := s.MayWrite(); err != nil {
			return err
		}
	}
	p, err := newPage(c, s, peeks)
	switch {
	case err != nil:
		return err
	case c.Bool("follow"):
		return s.FollowFor(p.follow)
	case p.waits:
		warnWaiting(c, s.Me)
		return s.Await(p.wait)
	}
	shown, err := p.show(c.Context)
	if !shown && err == nil {
		warnWaiting(c, s.Me)
	}
	return err
}

// warnWaiting says that there are dropped files which are not mail yet.
func warnWaiting(c *cli.Context, box *mailbox.Box) {
	in, _ := box.TakeIn(c.Context)
	warnTaken(c, in)
}

func warnTaken(c *cli.Context, in mailbox.TakenIn) {
	if in.Waiting > 0 {
		command.Warn(c, "%s not taken in yet: %v", letter.Many(in.Waiting, "dropped file"), in.Why)
	}
}

func showLastBatch(c *cli.Context, s *command.Scope) error {
	if c.NArg() > 0 {
		return command.Usage("--last shows the last batch again, and takes no number").WithHint("the newest: atm ls --all --limit 5")
	}
	items, err := s.Me.LastBatch()
	if err != nil {
		return err
	}
	r := s.Renderer()
	if !c.Bool("full") {
		r.LimitToPage()
	}
	return printLetters(c, s, r, items, 0, "no batch to show again")
}

type page struct {
	c       *cli.Context
	s       *command.Scope
	options mailbox.ReadOptions
	again   []*mailbox.Item // messages named that were read already: they are shown as well

	follows, peeks, waits bool

	isPrinted bool      // the JSON document
	warn      sync.Once // of messages that cannot be read
}

func newPage(c *cli.Context, s *command.Scope, peeks bool) (*page, error) {
	p := &page{c: c, s: s, follows: c.Bool("follow"), peeks: peeks}
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
		if err != nil {
			return nil, err
		}
		if it.State != mailbox.Unread {
			p.again = append(p.again, it)
		}
		p.options.IDs = append(p.options.IDs, it.ID)
	}
	p.waits = c.Bool("wait") && len(p.again) == 0
	var err error
	p.options.Match, err = filter(c, s)
	return p, err
}

// filter is which messages --from, --thread, --since and --urgent choose. Without any of them it is nil: what is
// beyond the limit is then counted without being read.
func filter(c *cli.Context, s *command.Scope) (func(*mailbox.Item) bool, error) {
	from, err := sender(c, s)
	if err != nil {
		return nil, err
	}
	thread, err := namedThread(c, s)
	if err != nil {
		return nil, err
	}
	after, err := since(c)
	isUrgent := c.Bool("urgent")
	if err != nil || after.IsZero() && from == (wire.Address{}) && thread == "" && !isUrgent {
		return nil, err
	}
	return func(m *mailbox.Item) bool {
		isOther := from != (wire.Address{}) && m.From != from || thread != "" && m.ThreadID() != thread
		isOld := !after.IsZero() && m.Written().Before(after)
		return !isOther && !isOld && (!isUrgent || m.Urgent())
	}, nil
}

func (p *page) show(ctx context.Context) (shown bool, err error) {
	r, options := p.s.Renderer(), p.options
	if !p.c.Bool("full") && !p.c.IsSet("limit") && !p.follows {
		options.Fits = r.LimitToPage()
	}
	var b mailbox.Batch
	if p.peeks {
		if b, err = p.s.Me.Peek(ctx, options); err == nil {
			_, err = p.write(ctx, b, r)
		}
	} else {
		b, err = p.s.Me.Read(ctx, options, func(b mailbox.Batch) (int, error) { return p.write(ctx, b, r) })
	}
	if b.SetAside > 0 {
		command.Warn(p.c, "%s set aside as unreadable: atm ls --bad%s says why", letter.Many(b.SetAside, "file"), p.s.Flags())
	}
	if b.Unlogged != nil {
		command.Warn(p.c, "%v; atm read --last does not show this batch", b.Unlogged)
	}
	if err == nil && b.Unmarked != nil {
		err = notMarked(b.Unmarked)
	}
	if len(b.Unreadable) > 0 {
		p.warn.Do(func() {
			command.Warn(p.c, "%s cannot be read: %v; atm doctor says what mends it", letter.Many(len(b.Unreadable), "message"), b.Unreadable[0])
		})
	}
	if p.isPrinted {
		err = command.Tell(p.c, err)
	}
	return len(b.Items) > 0, err
}

func notMarked(why error) error { return fmt.Errorf("shown, but not marked as read: %w", why) }

// write writes a batch and returns how many of its messages were received. With --confirm that is none
// until a byte comes on stdin: a program that passes them on says that they have arrived.
func (p *page) write(ctx context.Context, b mailbox.Batch, r *letter.Renderer) (received int, err error) {
	if len(b.Items) == 0 && (p.waits || p.follows) {
		return 0, nil
	}
	if !p.peeks {
		if err := p.s.MayWrite(); err != nil { // its runner may have begun meanwhile
			return 0, err
		}
	}
	b.Items = slices.Concat(b.Items, p.again)
	l := p.afterReading(b)
	isJSON, isVia := p.c.Bool("json"), command.Via(p.c) != ""
	var pieces [][]byte
	if !isJSON || isVia {
		r.Digits = letter.ShortLength(append(l.ids(), l.Owed...))
		for _, id := range p.options.IDs {
			r.Digits = max(r.Digits, p.s.Digits(id))
		}
		pieces = command.Letters(r, b.Items, b.Ahead)
		if !p.follows {
			pieces = append(pieces, []byte(p.foot(b, l.Owed)))
		}
	}
	if !isJSON {
		return showPieces(ctx, pieces...)
	}
	var document any = l
	if p.follows {
		document = map[string]message{"message": l.Messages[0]}
	}
	if isVia {
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

// afterReading lists a batch as its messages are once they have been read, and what is owed then.
func (p *page) afterReading(b mailbox.Batch) *listing {
	l := newListing(b.Items)
	l.More = b.More
	if b.Unmarked != nil {
		l.Error = command.Explain(p.c, notMarked(b.Unmarked))
	}
	if !p.follows {
		l.addOwed(p.s.Me)
	}
	flags := mailbox.Flags(b.Items, b.Ahead)
	for i, it := range b.Items {
		after := *it
		after.SupersededBy = flags[i].SupersededBy
		l.Messages[i].Item = &after
		if it.State != mailbox.Unread || p.peeks || b.Unmarked != nil {
			continue
		}
		after.State = mailbox.Done
		if it.RequiresAck && !p.s.Me.HasAcked(it.ID) {
			after.State = mailbox.Owed
			l.Owed = append(l.Owed, it.ID)
		}
	}
	return l
}

const mostOwed = 6 // are named: there may be hundreds

// foot says what is left, and what is owed: how many, and the newest of them.
func (p *page) foot(b mailbox.Batch, owed []wire.ID) (foot string) {
	if len(b.Items) == 0 {
		foot = "no new messages\n"
	}
	if b.More > 0 {
		foot += fmt.Sprintf("%d more: atm read%s\n", b.More, p.s.Flags())
	}
	return foot + awaited(owed, p.s.Flags())
}

// awaited says what is owed; "": nothing.
func awaited(owed []wire.ID, flags string) string {
	switch {
	case len(owed) == 0:
		return ""
	case len(owed) == 1:
		return fmt.Sprintf("1 awaits your ack: %s\n", command.Shorts(owed))
	case len(owed) > mostOwed:
		return fmt.Sprintf("%d await your ack: %s … atm ls --owed%s\n", len(owed), command.Shorts(owed[len(owed)-mostOwed:]), flags)
	}
	return fmt.Sprintf("%d await your ack: %s\n", len(owed), command.Shorts(owed))
}

// wait shows mail as soon as there is any. Another reader may be quicker: then the wait goes on.
func (p *page) wait(ctx context.Context) error {
	timeout := command.Duration(p.c, "timeout")
	err := await(ctx, timeout, []*mailbox.Box{p.s.Me}, false, func(entry) (bool, error) { return p.show(ctx) })
	if errors.Is(err, errTimeout) {
		none := newListing(nil)
		none.addOwed(p.s.Me)
		owed := strings.TrimRight("; "+awaited(none.Owed, p.s.Flags()), "; \n")
		e := command.Timeout("no mail within %s%s", timeout, owed).
			WithHint("do other work, or end your turn; later: atm read%s", p.s.Flags())
		e.Extra["messages"], e.Extra["more"], e.Extra["owed"] = none.Messages, none.More, none.Owed
		return e
	}
	return err
}

// follow shows what is unread and what comes.
func (p *page) follow(ctx context.Context) error {
	return await(ctx, 0, []*mailbox.Box{p.s.Me}, false, func(entry) (bool, error) {
		for {
			if shown, err := p.show(ctx); !shown || err != nil {
				return false, err
			}
		}
	})
}
