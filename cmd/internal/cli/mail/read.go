package mail

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/wire"
)

var readCommand = &cli.Command{
	Name: "read", Category: "recv receive fetch pull mark-read check get-mail drain\npeek    atm read --peek\nlisten block    atm read --wait", ArgsUsage: "[ID…]", Usage: "show unread mail and mark it as read",
	UsageText: `atm read    new mail, each message once
atm read --wait 5m --from alice
atm read --limit 5`,
	Description: `Shows at most 20 messages, 8 KiB and 200 lines at a time, then how many more there are.
What is indented was written by the sender; a line that begins in column 0 is atm's.
A message counts as read once it was received: after a broken pipe it is shown again.
Exit 0 if there is no mail, 4 if --wait timed out.`,
	Flags: slices.Concat([]cli.Flag{
		limitFlag(),
		&cli.StringFlag{Name: "from", Category: "sender", Usage: "only from `NAME`"},
		&cli.StringFlag{Name: "since", Usage: "not older than `D`: 2h, 7d or a date"},
		&cli.BoolFlag{Name: "peek", Category: "no-mark dry-run", Usage: "mark nothing"},
		&cli.BoolFlag{Name: "full", Usage: "no cap"},
		&cli.BoolFlag{Name: "last", Usage: "show the last batch again"},
		&cli.BoolFlag{Name: "wait", Aliases: []string{"w"}, Category: "block", Usage: "wait until there is mail"},
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Category: "watch", Usage: "keep showing new mail"},
		cmdline.TimeoutFlag(),
	}, saysFlags),
	Action: command.With(app.OpenMe, read),
}

// ReadOptions are the flags and words of read.
type ReadOptions struct {
	IDs                  []string
	Filter               Filter
	Limit                int
	HasLimit             bool // it was typed
	Peeks, IsLast        bool
	full, follows, waits bool
	timeout, followFor   time.Duration
}

func read(c *cli.Context, s *app.Scope, p *command.Printer) error {
	if err := cmp.Or(cmdline.Only(c, "last", "full", "limit"), cmdline.NotBoth(c, "peek follow", "follow limit")); err != nil {
		return err
	}
	o := ReadOptions{
		IDs: c.Args().Slice(), IsLast: c.Bool("last"), full: c.Bool("full"), follows: c.Bool("follow"), Peeks: c.Bool("peek"),
		waits: c.Bool("wait"), Limit: c.Int("limit"), HasLimit: c.IsSet("limit"),
		timeout: cmdline.Duration(c, "timeout"), followFor: command.GivenTimeout(c),
	}
	var err error
	if o.Filter, err = newFilter(c, s); err != nil {
		return err
	}
	return Read(c.Context, s, p, o)
}

// Read prints unread mail, and marks what its reader has received as read.
func Read(ctx context.Context, s *app.Scope, p *command.Printer, o ReadOptions) error {
	s.WarnUnnoted()
	if o.IsLast {
		return showLastBatch(s, p, o)
	}
	g, err := newPage(s, p, o)
	if err == nil && !o.Filter.matchesAll() {
		g.options.Match = o.Filter.matches
		if g.options.IDs != nil {
			err = failure.Usage("a message is named by its id, or chosen by flags, not both").WithHint("`atm read %s`", policy.QuoteAll(o.IDs))
		}
	}
	if err == nil && !o.Peeks {
		err = s.MayWrite()
	}
	if err != nil {
		return err
	}
	if p.IsStream = o.follows; o.follows {
		return s.FollowFor(o.followFor, g.follow)
	} else if g.waits {
		return s.Await(g.wait)
	}
	_, err = g.show(ctx)
	return err
}

func showLastBatch(s *app.Scope, p *command.Printer, o ReadOptions) error {
	if len(o.IDs) > 0 {
		return failure.Usage("--last shows the last batch again and takes no number").WithHint("to list the newest: `atm ls --all --limit 5`")
	}
	items, err := inbox.LastBatch(s.Me)
	if err != nil {
		return err
	}
	r := p.Renderer(s)
	if !o.full {
		r.LimitToPage()
	}
	if !o.HasLimit {
		o.Limit = 0
	}
	return printLetters(s, p, r, items, o.Limit, "no last batch")
}

// A page prints unread mail, one batch at each show.
type page struct {
	ReadOptions
	s       *app.Scope
	p       *command.Printer
	options inbox.ReadOptions
	shown   map[wire.ID]bool // of this batch yet: it is shown inPortions
	again   []*wire.Item     // messages that were named and are not to be marked: printed as well

	inPortions bool
	unmarkable error // why what is shown cannot be marked
}

func newPage(s *app.Scope, p *command.Printer, o ReadOptions) (*page, error) {
	g := &page{ReadOptions: o, s: s, p: p}
	// A message marked in a shared inbox would be hidden from everybody, and nobody would hold it.
	if isShared, _ := claim.Shared(s.Me); isShared && !o.Peeks {
		return nil, failure.Refused("%s is a shared inbox, where read marks nothing", s.Me.Agent()).
			WithHint("`atm take %s --as NAME` takes a message; `atm read --peek` looks", s.Me.Agent())
	}
	g.options = inbox.ReadOptions{Limit: o.Limit}
	if o.follows {
		g.options.Limit = 1
	} else if o.full && !o.HasLimit {
		g.options.Limit = 0
	}
	for _, word := range o.IDs {
		if word == string(s.Me.Agent()) {
			continue // `atm read bob --as bob`
		}
		it, box, err := s.Find(word)
		if err == nil && (box.Address() != s.Me.Address() || it.State == "") { // "": what I sent
			err = failure.NotFound("message %s is not in your inbox", it.ID.Short(6)).WithHint("`atm show %s` shows it", it.ID.Short(6))
		}
		if err != nil {
			return nil, err
		}
		if g.options.IDs = append(g.options.IDs, it.ID); it.State != wire.Unread || o.Peeks {
			g.again = append(g.again, it)
		}
	}
	if o.Peeks && len(g.options.IDs) > 0 { // also what somebody has claimed
		g.options.IDs = []wire.ID{}
	}
	g.waits = o.waits && len(g.again) == 0
	return g, nil
}

// maxPortion is how many bytes of messages are held at a time. A JSON document holds all.
const maxPortion = 16 << 20

// show prints and marks a batch, in portions if it is large, and reports whether there was any mail.
func (g *page) show(ctx context.Context) (hasMail bool, err error) {
	r, options := g.p.RendererFor(g.s, g.s.Me), g.options
	isPage := !g.full && !g.follows && g.Limit > 0 // --limit 0 is all
	if isPage {
		options.Fits = r.LimitToPage()
	}
	if g.inPortions = !isPage && !g.p.IsJSON; isPage || g.inPortions {
		options.MaxBytes = maxPortion
	}
	g.shown = map[wire.ID]bool{}
	for batch := wire.NewID(); ; {
		b, err := g.showPortion(ctx, r, options, batch)
		for _, it := range b.Items {
			g.shown[it.ID] = true
		}
		if err != nil || g.isLast(b) {
			return len(g.shown) > 0, err
		}
		options.Limit = max(options.Limit-len(b.Items), 0) // 0 stays 0: a batch at its limit is not cut
		if options.IDs == nil {
			if options.IDs, err = g.s.Me.UnreadIDs(); err != nil {
				return true, err
			}
		}
		options.IDs = slices.DeleteFunc(slices.Clone(options.IDs), func(id wire.ID) bool { return g.shown[id] })
	}
}

// isLast reports whether the batch has no further portion.
func (g *page) isLast(b inbox.Batch) bool { return !b.IsCut || !g.inPortions }

func (g *page) showPortion(ctx context.Context, r *letter.Renderer, options inbox.ReadOptions, batch wire.ID) (b inbox.Batch, err error) {
	if b, err = inbox.Peek(ctx, g.s.Me, options); err != nil {
		return b, err
	}
	if !g.Peeks {
		g.unmarkable = inbox.CheckMark(g.s.Me, b.Items...)
	}
	received, err := g.write(ctx, b, r)
	marked := g.unmarkable
	if marked == nil {
		marked = inbox.MarkShown(ctx, g.s.Me, batch, b.Items[:min(received, len(b.Items))]...)
	}
	if b.Bad > 0 && !g.follows && g.isLast(b) {
		g.p.Warn("%s cannot be read as mail: `atm ls --bad` and `atm doctor` say why", letter.Many(b.Bad, "file"))
	}
	if unlogged, ok := errors.AsType[*maildir.UnloggedError](marked); ok {
		g.p.Warn("%v; `atm read --last` does not show this batch", unlogged)
	}
	if unmarked, ok := errors.AsType[*inbox.UnmarkedError](marked); ok && err == nil && g.isLast(b) {
		err = notMarked(unmarked)
	}
	return b, err
}

// ahead returns more unread messages, without their texts: they may replace those of a batch, or follow them.
func (g *page) ahead(b inbox.Batch) (ahead []*wire.Item) {
	if g.follows || b.More == 0 && g.options.Match == nil {
		return nil
	}
	bytes := 0
	g.s.Me.Walk(maildir.Range{Unread: true, Limit: 200 + len(b.Items)}, func(it *wire.Item) bool {
		if !slices.ContainsFunc(b.Items, func(shown *wire.Item) bool { return it.ID == shown.ID }) {
			ahead = append(ahead, withoutText(it))
			bytes += len(it.Body)
		}
		return bytes < maxPortion
	})
	return ahead
}

func notMarked(why error) error { return fmt.Errorf("shown, but %w", why) }

// write prints a batch and returns how many messages were received.
func (g *page) write(ctx context.Context, b inbox.Batch, r *letter.Renderer) (received int, err error) {
	if len(b.Items) == 0 && (g.waits || g.follows) {
		return 0, nil
	}
	if len(b.Items) > 0 {
		g.s.WarnUnaccepted()
	}
	if g.isLast(b) {
		b.Items = slices.Concat(b.Items, g.again)
	}
	ahead := g.ahead(b)
	l := g.afterReading(b, ahead)
	r.Digits = l.setDigits()
	pieces := command.Letters(r, b.Items, ahead)
	var document any = l
	if g.follows {
		document = map[string]message{"message": l.Messages[0]}
	} else if g.isLast(b) {
		pieces = append(pieces, []byte(g.foot(l)))
	}
	if g.Peeks {
		return 0, g.p.PrintAs(document, string(bytes.Join(pieces, nil)))
	}
	return printReceived(ctx, g.s, g.p, document, pieces...)
}

// afterReading lists the messages of a batch with the states that they have once they are marked, and what I owe then.
func (g *page) afterReading(b inbox.Batch, ahead []*wire.Item) *listing {
	l := newListing(g.p, b.Items, g.s.Me)
	l.More = b.More
	if g.unmarkable != nil {
		l.Error = g.p.Explain(notMarked(g.unmarkable))
	}
	flags := maildir.Flags(b.Items, ahead)
	for i, it := range b.Items {
		after := *it
		l.Messages[i].Item, l.Messages[i].supersededBy = &after, flags[i].SupersededBy
		if it.State != wire.Unread || g.Peeks || g.unmarkable != nil {
			continue
		}
		after.State = wire.Done
		if it.RequiresAck {
			after.State = wire.Owed
			l.Owed = append(l.Owed, it.ID)
		}
	}
	return l
}

// foot says how many messages are left, and which I owe an ack.
func (g *page) foot(l *listing) (foot string) {
	if len(l.Messages) == 0 && len(g.shown) == 0 {
		foot = "no new messages\n"
	}
	if l.More > 0 {
		foot += fmt.Sprintf("%d more: %s\n", l.More, g.s.Given.Command("atm read"))
	}
	return foot + owedLine(l.Owed, g.s.Given)
}

// owedLine counts the messages that I owe an ack, and names the newest of them.
func owedLine(owed []wire.ID, g *app.Given) string {
	const most = 6
	switch n := len(owed); {
	case n == 0:
		return ""
	case n == 1:
		return "1 awaits your ack: " + app.Shorts(owed) + "\n"
	case n > most:
		return fmt.Sprintf("%d await your ack: %s … %s\n", n, app.Shorts(owed[n-most:]), g.Command("atm ls --owed"))
	default:
		return fmt.Sprintf("%d await your ack: %s\n", n, app.Shorts(owed))
	}
}

// wait prints mail as soon as there is any. If another reader has taken it, the wait goes on.
func (g *page) wait(ctx context.Context) error {
	err := app.UntilMail(ctx, g.timeout, g.s.Me, func() (bool, error) { return g.show(ctx) })
	if !errors.Is(err, app.ErrTimeout) {
		return err
	}
	none := newListing(g.p, nil, g.s.Me)
	owed := strings.TrimSpace(owedLine(none.Owed, g.s.Given))
	e := failure.Timeout("%s", app.JoinFilled("; ", "no mail within "+g.timeout.String(), owed)).
		WithHint("do other work, or end your turn; later: `atm read`")
	e.Done = none
	return e
}

// follow prints unread mail as it comes.
func (g *page) follow(ctx context.Context) error {
	return app.UntilMail(ctx, 0, g.s.Me, func() (done bool, err error) {
		for hasMail := true; hasMail && err == nil; {
			hasMail, err = g.show(ctx)
		}
		return false, err
	})
}

// withoutText returns what an item says about others.
func withoutText(it *wire.Item) *wire.Item {
	brief := *it
	brief.Message = &wire.Message{ID: it.ID, From: it.From, Supersedes: it.Supersedes}
	return &brief
}
