package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/outlet"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// patience is how long a reader that is there and does not read is waited for:
// a little less than Read keeps the lock, so that what then counts as taken is
// marked before another reader can choose it.
const patience = 1800 * time.Millisecond

var readVerb = &cmdline.Verb{
	Name: "read", Args: "[ID…]", Summary: "show unread mail and mark it",
	Examples: []string{"atm read", "atm read --wait --from alice", "atm read --limit 5"},
	Notes: []string{
		"At most 20 messages, 8 KiB and 200 lines at a time; what is left is said.",
		"Marked is what was taken: a killed reader or a cut pipe sees it again.",
		"Exit 0 without mail; 4 when --wait waited in vain.",
	},
	Flags: []cmdline.Flag{
		{Name: "limit", Aliases: []string{"n"}, Kind: cmdline.Int, Arg: "N", Usage: "at most N messages"},
		{Name: "from", Kind: cmdline.String, Arg: "NAME", Usage: "of this sender"},
		{Name: "thread", Kind: cmdline.String, Arg: "ID", Usage: "of this thread"},
		{Name: "urgent", Usage: "urgent ones"},
		{Name: "peek", Usage: "mark nothing"},
		{Name: "full", Usage: "no cap"},
		{Name: "last", Usage: "the last batch again"},
		{Name: "wait", Usage: "until there is mail"},
		{Name: "follow", Usage: "go on showing what comes"},
		{Name: "timeout", Kind: cmdline.Duration, Arg: "D", Default: "90s", Usage: "of waiting, 0: for ever"},
	},
	MaxArgs: -1,
	Run:     run(read),
}

func read(ctx context.Context, e *env) error {
	for _, pair := range [][]string{{"peek", "follow"}, {"last", "wait"}, {"last", "follow"}, {"wait", "follow"}} {
		if err := e.NotBoth(pair...); err != nil {
			return err
		}
	}
	if err := e.who(); err != nil {
		return err
	}
	e.warnUnaccepted()
	if e.Bool("last") {
		return e.readLast()
	}
	if !e.Bool("peek") {
		if err := e.mine(); err != nil {
			return err
		}
	}
	opt, again, err := e.choice(ctx)
	if err != nil {
		return err
	}
	if e.Bool("follow") {
		return e.interruptible(ctx, func(ctx context.Context) error {
			return e.following(ctx, func(ctx context.Context) error { return e.follow(ctx, opt) })
		})
	}
	if info, err := e.Stdout.Stat(); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		outlet.IgnoreSIGPIPE()
	}
	if !e.Bool("wait") {
		_, err = e.readOnce(ctx, opt, again)
		return err
	}
	return e.interruptible(ctx, func(ctx context.Context) error {
		// Another reader may be quicker: then the wait goes on.
		for deadline := time.Now().Add(e.Duration("timeout")); ; {
			if err := e.waitForMail(ctx, opt, deadline); err != nil {
				return err
			}
			if shown, err := e.readOnce(ctx, opt, again); shown > 0 || err != nil {
				return err
			}
		}
	})
}

// choice makes the options of a read of the flags. again are messages named
// that are read already: they are shown as well.
func (e *env) choice(ctx context.Context) (opt mailbox.ReadOptions, again []*mailbox.Item, err error) {
	opt.Limit = letter.MaxMessages
	opt.LookAhead = 200
	if e.Bool("full") {
		opt.Limit = 0
	}
	if e.Given("limit") {
		opt.Limit, opt.LookAhead = e.Int("limit"), 0
		if opt.Limit == 0 {
			return opt, nil, cmdline.Usage("--limit 0 shows nothing").WithHint("atm read --full shows all of it, atm ls --count counts")
		}
	}
	if len(e.Args) > 0 {
		items, err := e.findAll(ctx, e.Args, true)
		if err != nil {
			return opt, nil, err
		}
		opt.IDs = []wire.ID{}
		for _, it := range items {
			if it.Lease != nil && !e.Bool("peek") {
				return opt, nil, &mailbox.LeasedError{ID: it.ID, By: it.Lease.By, Until: it.Lease.Until}
			}
			if it.State == mailbox.Unread {
				opt.IDs = append(opt.IDs, it.ID)
			} else {
				again = append(again, it)
			}
		}
	}
	opt.Match, err = e.matching(ctx)
	return opt, again, err
}

// matching is what --from, --thread and --urgent choose; nil: everything.
func (e *env) matching(ctx context.Context) (func(*wire.Message) bool, error) {
	if !e.filtered() {
		return nil, nil
	}
	var from wire.Address
	var thread wire.ID
	var err error
	if e.Given("from") {
		if from, err = e.sender(e.String("from")); err != nil {
			return nil, err
		}
	}
	if e.Given("thread") {
		it, _, err := e.find(ctx, e.String("thread"), false)
		if err != nil {
			return nil, err
		}
		thread = it.ThreadID()
	}
	urgent := e.Bool("urgent")
	return func(m *wire.Message) bool {
		return (from == wire.Address{} || m.From == from) && (thread == "" || m.ThreadID() == thread) && (!urgent || m.Urgent())
	}, nil
}

// sender is an address that mail may come from; it need not live any more, but
// a name that is near a member's and nobody's is a mistake.
func (e *env) sender(s string) (wire.Address, error) {
	a, err := wire.ParseAddress(s, e.team.Name)
	if err != nil {
		return a, cmdline.Usage("%v", err)
	}
	if a.Agent != "drop" {
		if _, err := e.root.Mailbox(a); err != nil {
			return a, err
		}
	}
	return a, nil
}

// readOnce shows one batch, and marks it unless --peek.
func (e *env) readOnce(ctx context.Context, opt mailbox.ReadOptions, again []*mailbox.Item) (shown int, err error) {
	l := e.renderer()
	capped := !e.Bool("full") && !e.Given("limit")
	if capped {
		opt.Fits = l.LimitToPage()
	}
	opt.Owed = e.owedShown()
	var showErr error
	show := func(b mailbox.Batch) (int, error) {
		if len(b.Items) == 0 && e.Bool("wait") {
			return 0, nil
		}
		b.Items = append(b.Items[:len(b.Items):len(b.Items)], again...)
		pieces := e.batchPieces(b, l)
		out := &outlet.Outlet{File: e.Stdout, Whole: e.JSON(), Patience: patience}
		n, err := out.Show(ctx, pieces)
		if e.JSON() && n > 0 {
			n = len(b.Items) // one document for all of them
		}
		if err != nil && (errors.Is(err, syscall.EPIPE) || errors.Is(err, context.Canceled)) {
			showErr, err = err, nil
		}
		return n, err
	}
	var b mailbox.Batch
	if e.Bool("peek") {
		if b, err = e.me.Peek(ctx, opt); err == nil {
			_, err = show(b)
		}
	} else {
		b, err = e.me.Read(ctx, opt, show)
	}
	if err != nil {
		return len(b.Items), err
	}
	if b.SetAside > 0 {
		what := "1 file was no message and was"
		if b.SetAside > 1 {
			what = fmt.Sprintf("%d files were no messages and were", b.SetAside)
		}
		e.Warn("%s set aside: atm ls --bad%s says why", what, e.typed())
	}
	if b.Unreadable > 0 {
		e.Warn("%d messages in %s/inbox/new cannot be read by this user", b.Unreadable, e.me.Path())
	}
	if b.Unmarked != nil {
		e.Warn("shown, but not marked as read: %v", b.Unmarked)
		if errors.Is(b.Unmarked, durable.ErrNotDirectory) {
			e.Warn("hint: atm doctor")
		}
	} else if b.Unlogged != nil {
		e.Warn("marked, but not noted in the event log: %v", b.Unlogged)
	}
	if errors.Is(showErr, syscall.EPIPE) {
		e.Warn("the reader of the output left early; what it did not take is still unread. Fewer at a time: atm read --limit 3%s", e.typed())
	}
	return len(b.Items), showErr
}

// owedShown is how many ids are shown of what waits for an ack.
func (e *env) owedShown() int {
	if e.JSON() {
		return 1000
	}
	return 5
}

// batchPieces renders a batch for an outlet: a piece a message, then the foot.
func (e *env) batchPieces(b mailbox.Batch, l *letter.Renderer) []outlet.Piece {
	show, owed, owedTotal := e.owedShown(), b.Owed, b.OwedTotal
	ids := make([]wire.ID, 0, len(b.Items)+len(owed))
	for _, it := range b.Items {
		ids = append(ids, it.ID)
		if it.RequiresAck && it.State == mailbox.Unread && !e.Bool("peek") && !e.me.HasAcked(it.ID) {
			owedTotal++
			if len(owed) < show {
				owed = append(owed, it.ID)
			}
		}
	}
	if e.JSON() {
		list := newListing(jsonItems(b.Items), b.More)
		list.Owed = append(list.Owed, owed...)
		return []outlet.Piece{{Text: marshalLine(list), Message: true}}
	}
	l.Digits = letter.ShortLength(append(ids, owed...))
	pieces := make([]outlet.Piece, 0, len(b.Items)+1)
	for i, f := range flagsOf(b.Items, b.Ahead, l.Now) {
		pieces = append(pieces, outlet.Piece{Text: l.Render(b.Items[i].Message, f), Message: true})
	}
	var foot strings.Builder
	if len(b.Items) == 0 {
		if len(b.Ahead) > 0 && e.filtered() {
			foot.WriteString("no new messages that match\n")
		} else {
			foot.WriteString("no new messages\n")
		}
	}
	if b.More > 0 {
		fmt.Fprintf(&foot, "%d more: %s\n", b.More, e.readAgain())
	}
	if owedTotal > 0 {
		short := make([]string, len(owed))
		for i, id := range owed {
			short[i] = l.Short(id)
		}
		verb := "await"
		if owedTotal == 1 {
			verb = "awaits"
		}
		fmt.Fprintf(&foot, "%d %s your ack: %s", owedTotal, verb, strings.Join(short, " "))
		if owedTotal > len(owed) {
			foot.WriteString(" … atm ls --owed")
		}
		foot.WriteByte('\n')
	}
	if foot.Len() > 0 {
		pieces = append(pieces, outlet.Piece{Text: []byte(foot.String())})
	}
	return pieces
}

// readAgain is the command that shows the rest.
func (e *env) readAgain() string {
	s := "atm read"
	for _, f := range []string{"from", "thread"} {
		if e.Given(f) {
			s += " --" + f + " " + cmdline.Escape(e.String(f))
		}
	}
	if e.Bool("urgent") {
		s += " --urgent"
	}
	return s + e.typed()
}

func (e *env) filtered() bool { return e.Given("from") || e.Given("thread") || e.Bool("urgent") }

// readLast shows the last batch again.
func (e *env) readLast() error {
	items, err := e.me.LastBatch()
	if err != nil {
		return err
	}
	l := e.renderer()
	if !e.Bool("full") {
		l.Bytes, l.Lines = letter.MaxBytes, letter.MaxLines
	}
	if e.JSON() {
		return e.PrintJSON(newListing(jsonItems(items), 0))
	}
	if len(items) == 0 {
		return e.print("no batch to show again")
	}
	l.Digits = letter.ShortLength(idsOf(items))
	for i, f := range flagsOf(items, nil, l.Now) {
		if _, err := e.Stdout.Write(l.Render(items[i].Message, f)); err != nil {
			return err
		}
	}
	return nil
}

// waitForMail returns when there is unread mail that the options choose. A --timeout
// of 0 is for ever, whatever the deadline.
func (e *env) waitForMail(ctx context.Context, opt mailbox.ReadOptions, deadline time.Time) error {
	opt.Fits, opt.LookAhead, opt.Limit = nil, 0, 1
	var left time.Duration
	if e.Duration("timeout") > 0 {
		left = max(time.Until(deadline), time.Millisecond)
	}
	err := e.whenMail(ctx, left, func() (bool, error) {
		b, err := e.me.Peek(ctx, opt)
		return len(b.Items) > 0, err
	})
	var c *cmdline.Error
	if errors.As(err, &c) && c.Code == "timeout" {
		c.Message = fmt.Sprintf("waited %s in vain", e.Duration("timeout"))
		c.Extra["messages"] = []string{}
		c.WithHint("do other work, or end your turn; later: atm read%s", e.typed())
	}
	return err
}

// follow shows what is unread and what comes, until interrupted.
func (e *env) follow(ctx context.Context, opt mailbox.ReadOptions) error {
	opt.Limit, opt.LookAhead = 1, 0
	stop := errors.New("stop")
	patient := time.Duration(0)
	if e.Given("timeout") {
		patient = e.Duration("timeout")
	}
	err := e.whenMail(ctx, patient, func() (bool, error) {
		for {
			l := e.renderer()
			n := 0
			b, err := e.me.Read(ctx, opt, func(b mailbox.Batch) (int, error) {
				if n = len(b.Items); n == 0 {
					return 0, nil
				}
				text := l.Render(b.Items[0].Message, letter.Flags{})
				if e.JSON() {
					text = marshalLine(struct {
						Message jsonItem `json:"message"`
					}{jsonItem{Item: b.Items[0]}})
				}
				out := &outlet.Outlet{File: e.Stdout, Patience: patience}
				return out.Show(ctx, []outlet.Piece{{Text: text, Message: true}})
			})
			if errors.Is(err, syscall.EPIPE) {
				return false, stop
			}
			if err != nil || n == 0 {
				return false, err
			}
			if b.Unmarked != nil {
				return false, fmt.Errorf("shown, but not marked as read: %w", b.Unmarked)
			}
		}
	})
	var c *cmdline.Error
	if errors.Is(err, stop) || errors.As(err, &c) && c.Code == "timeout" {
		return nil // as long as was said
	}
	return err
}
