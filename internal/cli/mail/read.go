package mail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// readerPatience is how long a reader that is there and does not read is waited
// for: a little less than Read keeps the lock, so that what then counts as received
// is marked before another reader can choose it.
const readerPatience = 1800 * time.Millisecond

var readCommand = &cli.Command{
	Name: "read", Aliases: []string{"recv", "receive", "check", "fetch"}, ArgsUsage: "[ID…]", Usage: "show unread mail and mark it",
	UsageText: "atm read\natm read --wait 5m --from alice\natm read --limit 5",
	Description: "At most 20 messages, 8 KiB and 200 lines at a time; then it says how many more there are.\n" +
		"A message counts as read once its reader has received it: a cut pipe shows it again.\n" +
		"Exit 0 without mail; 4 when --wait waited in vain.",
	Flags: []cli.Flag{
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most `N` messages"},
		&cli.StringFlag{Name: "from", Usage: "from this `NAME`"},
		&cli.StringFlag{Name: "thread", Usage: "of the thread of `ID`"},
		&cli.BoolFlag{Name: "urgent", Usage: "urgent ones"},
		&cli.BoolFlag{Name: "peek", Aliases: []string{"no-mark"}, Usage: "mark nothing"},
		&cli.BoolFlag{Name: "full", Usage: "no cap"},
		&cli.BoolFlag{Name: "last", Usage: "the last batch again"},
		&cli.BoolFlag{Name: "wait", Aliases: []string{"w", "block"}, Usage: "until there is mail"},
		&cli.BoolFlag{Name: "follow", Usage: "go on showing what comes"},
		command.TimeoutFlag(),
		hidden("unread", "new", "u", "mark", "inbox"),
		command.Meant("all", "atm ls --all lists what was read as well; atm read --full has no cap"),
		command.Meant("a", "atm ls --all lists what was read as well; atm read --full has no cap"),
		&cli.StringSliceFlag{Name: "id", Hidden: true},
		command.Meant("agent", "--as NAME says who you are; atm ls NAME looks at somebody's inbox"),
		command.Meant("since", "atm ls --all --since D"),
		command.Meant("sent", "atm ls --sent"),
		command.Meant("owed", "atm ls --owed"),
		command.Meant("count", "atm ls --count"),
	},
	Action: read,
}

func read(c *cli.Context) error {
	for _, pair := range [][]string{{"peek", "follow"}, {"last", "wait"}, {"last", "follow"}, {"wait", "follow"}} {
		if err := command.NotBoth(c, pair...); err != nil {
			return err
		}
	}
	s, err := command.OpenMe(c)
	if err != nil {
		return readWhose(c, s, err)
	}
	s.WarnUnaccepted()
	if c.Bool("last") {
		return readLast(c, s)
	}
	if !c.Bool("peek") {
		if err := s.MayWrite(); err != nil {
			return err
		}
	}
	p, err := newPage(c, s)
	if err != nil {
		return err
	}
	if c.Bool("follow") {
		return s.Follow(func(ctx context.Context) error { return p.follow(ctx) })
	}
	if !c.Bool("wait") {
		_, err := p.show(c.Context)
		return err
	}
	return s.Await(func(ctx context.Context) error { return p.waitAndShow(ctx) })
}

// readWhose explains `read bob` to somebody who has not said who they are.
func readWhose(c *cli.Context, s *command.Scope, err error) error {
	name := c.Args().First()
	if s != nil && s.Team != nil && s.Me == nil && name != "" && s.IsMember(name) {
		return command.Usage("whose mail? say who you are").
			WithHint("atm read --as %s, if you are %s; atm ls %s looks without marking", name, name, name)
	}
	return err
}

// A page is what one read shows.
type page struct {
	c       *cli.Context
	s       *command.Scope
	options mailbox.ReadOptions
	again   []*mailbox.Item // messages named that were read already: they are shown as well
}

// newPage makes the options of a read of the flags.
func newPage(c *cli.Context, s *command.Scope) (*page, error) {
	p := &page{c: c, s: s, options: mailbox.ReadOptions{Limit: letter.MaxMessages, LookAhead: 200, Owed: 5}}
	if c.Bool("json") {
		p.options.Owed = 1000
	}
	if c.Bool("full") {
		p.options.Limit = 0
	}
	if c.IsSet("limit") {
		p.options.Limit, p.options.LookAhead = c.Int("limit"), 0
		if p.options.Limit == 0 {
			return nil, command.Usage("--limit 0 shows nothing").WithHint("atm read --full shows all of it, atm ls --count counts")
		}
	}
	if err := p.choose(append(c.Args().Slice(), c.StringSlice("id")...)); err != nil {
		return nil, err
	}
	var err error
	p.options.Match, err = matching(c, s)
	return p, err
}

// choose limits the page to the messages that are named.
func (p *page) choose(words []string) error {
	if len(words) == 1 && p.s.IsMember(words[0]) {
		if words[0] == string(p.s.Me.Agent()) {
			return nil // read bob, by bob
		}
		return command.Usage("%q is a member, not the id of a message", words[0]).
			WithHint("atm read --from %s%s; atm ls %s looks at the inbox of %s", words[0], p.s.Flags(), words[0], words[0])
	}
	for _, word := range words {
		it, _, err := p.s.Find(p.c.Context, word, true)
		if err != nil {
			return err
		}
		if it.Lease != nil && !p.c.Bool("peek") {
			return &mailbox.LeasedError{ID: it.ID, By: it.Lease.By, Until: it.Lease.Until}
		}
		if p.options.IDs == nil {
			p.options.IDs = []wire.ID{}
		}
		if it.State == mailbox.Unread {
			p.options.IDs = append(p.options.IDs, it.ID)
		} else {
			p.again = append(p.again, it)
		}
	}
	return nil
}

// matching is what --from, --thread and --urgent choose; nil: everything.
func matching(c *cli.Context, s *command.Scope) (func(*wire.Message) bool, error) {
	if !isFiltered(c) {
		return nil, nil
	}
	var from wire.Address
	var thread wire.ID
	var err error
	if c.IsSet("from") {
		if from, err = sender(s, c.String("from")); err != nil {
			return nil, err
		}
	}
	if c.IsSet("thread") {
		it, _, err := s.Find(c.Context, c.String("thread"), false)
		if err != nil {
			return nil, err
		}
		thread = it.ThreadID()
	}
	urgent := c.Bool("urgent")
	return func(m *wire.Message) bool {
		return (from == wire.Address{} || m.From == from) && (thread == "" || m.ThreadID() == thread) && (!urgent || m.Urgent())
	}, nil
}

func isFiltered(c *cli.Context) bool { return c.IsSet("from") || c.IsSet("thread") || c.Bool("urgent") }

// show shows one batch, and marks it unless --peek.
func (p *page) show(ctx context.Context) (shown int, err error) {
	r := p.s.Renderer()
	options := p.options
	if !p.c.Bool("full") && !p.c.IsSet("limit") {
		options.Fits = r.LimitToPage()
	}
	var leftEarly error
	write := func(b mailbox.Batch) (int, error) {
		if len(b.Items) == 0 && p.c.Bool("wait") {
			return 0, nil
		}
		b.Items = append(b.Items[:len(b.Items):len(b.Items)], p.again...)
		n, err := p.write(ctx, b, r)
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, context.Canceled) {
			leftEarly, err = err, nil
		}
		return n, err
	}
	var b mailbox.Batch
	if p.c.Bool("peek") {
		if b, err = p.s.Me.Peek(ctx, options); err == nil {
			_, err = write(b)
		}
	} else {
		b, err = p.s.Me.Read(ctx, options, write)
	}
	if err != nil {
		return len(b.Items), err
	}
	p.warn(b)
	if errors.Is(leftEarly, syscall.EPIPE) {
		command.Warn(p.c, "the reader of the output left early; what it did not take is still unread. Fewer at a time: atm read --limit 3%s", p.s.Flags())
	}
	return len(b.Items), leftEarly
}

// warn says what went wrong beside the reading.
func (p *page) warn(b mailbox.Batch) {
	if b.SetAside == 1 {
		command.Warn(p.c, "1 file was not a message and was set aside: atm ls --bad%s says why", p.s.Flags())
	}
	if b.SetAside > 1 {
		command.Warn(p.c, "%d files were not messages and were set aside: atm ls --bad%s says why", b.SetAside, p.s.Flags())
	}
	if b.Unreadable > 0 {
		command.Warn(p.c, "%d messages in %s/inbox/new cannot be read by this user", b.Unreadable, p.s.Me.Path())
	}
	if b.Unmarked != nil {
		command.Warn(p.c, "shown, but not marked as read: %v", b.Unmarked)
		if errors.Is(b.Unmarked, durable.ErrNotDirectory) {
			command.Warn(p.c, "hint: atm doctor")
		}
	} else if b.Unlogged != nil {
		command.Warn(p.c, "marked, but not noted in the event log: %v", b.Unlogged)
	}
}

// write writes a batch and returns how many of its messages were received.
func (p *page) write(ctx context.Context, b mailbox.Batch, r *letter.Renderer) (received int, err error) {
	owed := p.owedAfter(&b)
	if !p.c.Bool("json") {
		return showPieces(ctx, p.pieces(b, owed, r))
	}
	l := command.NewListing(b.Items, b.More)
	l.Owed = append(l.Owed, owed...)
	doc, err := command.JSON(l)
	if err != nil {
		return 0, err
	}
	n, err := showPieces(ctx, [][]byte{doc})
	return n * len(b.Items), err // one document for all of them
}

// showPieces writes pieces to stdout and returns how many were received.
func showPieces(ctx context.Context, pieces [][]byte) (received int, err error) {
	return output.Show(ctx, os.Stdout, readerPatience, pieces)
}

// owedAfter are the ids of what waits for an ack once the batch is read, as many
// as are shown; b.OwedTotal counts them all.
func (p *page) owedAfter(b *mailbox.Batch) []wire.ID {
	owed := b.Owed
	for _, it := range b.Items {
		if it.RequiresAck && it.State == mailbox.Unread && !p.c.Bool("peek") && !p.s.Me.HasAcked(it.ID) {
			b.OwedTotal++
			if len(owed) < p.options.Owed {
				owed = append(owed, it.ID)
			}
		}
	}
	return owed
}

// pieces are a piece a message, then the foot.
func (p *page) pieces(b mailbox.Batch, owed []wire.ID, r *letter.Renderer) [][]byte {
	r.Digits = letter.ShortLength(append(command.IDs(b.Items), owed...))
	var pieces [][]byte
	for i, flags := range command.HeaderFlags(b.Items, b.Ahead) {
		pieces = append(pieces, r.Render(b.Items[i].Message, flags))
	}
	var foot strings.Builder
	if len(b.Items) == 0 && len(b.Ahead) > 0 && isFiltered(p.c) {
		foot.WriteString("no new messages that match\n")
	} else if len(b.Items) == 0 {
		foot.WriteString("no new messages\n")
	}
	if b.More > 0 {
		fmt.Fprintf(&foot, "%d more: %s\n", b.More, p.commandForMore())
	}
	if b.OwedTotal > 0 {
		short := make([]string, len(owed))
		for i, id := range owed {
			short[i] = r.Short(id)
		}
		verb := "await"
		if b.OwedTotal == 1 {
			verb = "awaits"
		}
		fmt.Fprintf(&foot, "%d %s your ack: %s", b.OwedTotal, verb, strings.Join(short, " "))
		if b.OwedTotal > len(owed) {
			foot.WriteString(" … atm ls --owed")
		}
		foot.WriteString("\n")
	}
	if foot.Len() > 0 {
		pieces = append(pieces, []byte(foot.String()))
	}
	return pieces
}

func (p *page) commandForMore() string {
	text := "atm read"
	for _, flag := range []string{"from", "thread"} {
		if p.c.IsSet(flag) {
			text += " --" + flag + " " + letter.Escape(p.c.String(flag))
		}
	}
	if p.c.Bool("urgent") {
		text += " --urgent"
	}
	return text + p.s.Flags()
}

// readLast shows the last batch again.
func readLast(c *cli.Context, s *command.Scope) error {
	items, err := s.Me.LastBatch()
	if err != nil {
		return err
	}
	r := s.Renderer()
	if !c.Bool("full") {
		r.LimitToPage()
	}
	r.Digits = letter.ShortLength(command.IDs(items))
	var b strings.Builder
	for i, flags := range command.HeaderFlags(items, nil) {
		b.Write(r.Render(items[i].Message, flags))
	}
	if len(items) == 0 {
		b.WriteString("no batch to show again")
	}
	return command.Print(c, listing{command.NewListing(items, 0), b.String()})
}

// waitAndShow waits for mail and shows it. Another reader may be quicker: then the
// wait goes on.
func (p *page) waitAndShow(ctx context.Context) error {
	timeout := command.Duration(p.c, "timeout")
	deadline := time.Now().Add(timeout)
	for {
		left := time.Duration(0)
		if timeout > 0 {
			left = max(time.Until(deadline), time.Millisecond)
		}
		if err := p.waitForMail(ctx, left); err != nil {
			return p.inVain(err, timeout)
		}
		if shown, err := p.show(ctx); shown > 0 || err != nil {
			return err
		}
	}
}

// waitForMail returns when there is unread mail that the page chooses; a timeout
// of 0 is for ever.
func (p *page) waitForMail(ctx context.Context, timeout time.Duration) error {
	w, err := newWaiter(ctx, []condition{&mailCondition{s: p.s, options: p.options}}, false)
	if err != nil {
		return err
	}
	defer w.close()
	return w.wait(ctx, timeout)
}

func (p *page) inVain(err error, timeout time.Duration) error {
	var e *command.Error
	if !errors.As(err, &e) || e.Code != "timeout" {
		return err
	}
	e.Message = fmt.Sprintf("no mail within %s", timeout)
	e.Extra["messages"] = []string{}
	return e.WithHint("do other work, or end your turn; later: atm read%s", p.s.Flags())
}

// follow shows what is unread and what comes, until interrupted or, where a timeout
// was given, for that long.
func (p *page) follow(ctx context.Context) error {
	if p.c.IsSet("timeout") {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, command.Duration(p.c, "timeout"))
		defer cancel()
	}
	p.options.Limit, p.options.LookAhead, p.options.Owed = 1, 0, 0
	for {
		n, err := p.showNext(ctx)
		if err == nil && n == 0 {
			err = p.waitForMail(ctx, 0)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return nil // as long as was said
		}
		if err != nil {
			return err
		}
	}
}

// showNext shows and marks the oldest unread message.
func (p *page) showNext(ctx context.Context) (shown int, err error) {
	b, err := p.s.Me.Read(ctx, p.options, func(b mailbox.Batch) (int, error) {
		if shown = len(b.Items); shown == 0 {
			return 0, nil
		}
		text := p.s.Renderer().Render(b.Items[0].Message, letter.Flags{})
		if p.c.Bool("json") {
			var err error
			if text, err = command.JSON(map[string]command.Message{"message": {Item: b.Items[0]}}); err != nil {
				return 0, err
			}
		}
		return showPieces(ctx, [][]byte{text})
	})
	if err == nil && b.Unmarked != nil {
		err = fmt.Errorf("shown, but not marked as read: %w", b.Unmarked)
	}
	return shown, err
}
