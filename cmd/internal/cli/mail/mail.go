// Package mail holds the verbs that send, show and wait for messages, each in a file of its name. What they share:
//
//	deliver.go  what send and reply have filled in is sent, and what the flags say is waited for; batch.go: send --batch
//	ack.go      the messages that I hold, for unread and take, too
//	listing.go  what read, ls, thread and search print
package mail

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// Commands returns the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{
		sendCommand, replyCommand, readCommand, ackCommand, lsCommand, showCommand, unreadCommand,
		threadCommand, searchCommand, traceCommand, withdrawCommand, waitCommand, watchCommand, takeCommand,
	}
}

func limitFlag() cli.Flag {
	return cmdline.CountFlag("limit", letter.MaxMessages, "at most `N` (default 20); 0: all", "all", "n", "max")
}

func offsetFlag() cli.Flag {
	return cmdline.CountFlag("offset", 0, "leave out the first `N`", "none", "skip")
}

// sinceFlag parses --since or --until; without it the time is zero.
func sinceFlag(c *cli.Context, name string) (t time.Time, err error) {
	if !c.IsSet(name) {
		return t, nil
	}
	if t, err = cmdline.ParseSince(c.String(name)); err != nil {
		err = failure.Usage("--%s: %v", name, err).WithHint("`%s --%s 2h`", c.Command.HelpName, name)
	}
	return t, err
}

// threadFlag returns the thread of the message that --thread names; without the flag it is "".
func threadFlag(c *cli.Context, s *app.Scope) (wire.ID, error) {
	if !c.IsSet("thread") {
		return "", nil
	}
	return FindThread(s, c.String("thread"))
}

// FindThread returns the thread of a message. The first message of a thread need not be here: then word is its whole
// id.
func FindThread(s *app.Scope, word string) (wire.ID, error) {
	it, _, err := s.Find(word)
	if err == nil {
		return it.ThreadID(), nil
	}
	if id, notWhole := wire.ParseID(word); notWhole == nil && errors.Is(err, mailbox.ErrNotFound) {
		return id, nil
	}
	return "", err
}

// saysFlags select messages by what they say of themselves.
var saysFlags = []cli.Flag{
	&cli.BoolFlag{Name: "urgent", Usage: "only urgent ones"},
	&cli.StringFlag{Name: "thread", Category: "thread-id", Usage: "in the thread of `ID`"},
	&cli.StringFlag{Name: "type", Usage: "of type `T`"},
	cmdline.ListFlag("meta", "with label `K[=V]`, repeatable"),
}

// saysOf is what saysFlags select.
func saysOf(c *cli.Context, s *app.Scope) (says search.Says, err error) {
	says.Type, says.IsUrgent = c.String("type"), c.Bool("urgent")
	for _, pair := range cmdline.List(c, "meta") {
		if err := says.AddLabel(pair); err != nil {
			return says, failure.Usage("--meta: %v", err).WithHint("for example --meta build=42")
		}
	}
	says.Thread, err = threadFlag(c, s)
	return says, err
}

// A Filter is what --from, --to (of what I sent), --since and saysFlags select.
type Filter struct {
	search.Says
	From, to []wire.Address // nil: anybody
	since    time.Time      // zero: ever
}

func newFilter(c *cli.Context, s *app.Scope) (f Filter, err error) {
	if c.IsSet("from") {
		f.From, err = s.Correspondents(c.String("from"))
	}
	if err == nil && c.Bool("sent") && c.IsSet("to") {
		f.to, err = s.Members(c.String("to"))
	}
	if err == nil {
		f.Says, err = saysOf(c, s)
	}
	if err == nil {
		f.since, err = sinceFlag(c, "since")
	}
	return f, err
}

// matchesAll reports whether nothing is left out.
func (f Filter) matchesAll() bool {
	return f.From == nil && f.to == nil && f.since.IsZero() && f.IsAll()
}

func (f Filter) matches(m *wire.Item) bool {
	isTo := func(a wire.Address) bool { return slices.Contains(f.to, a) }
	switch {
	case f.From != nil && !slices.Contains(f.From, m.From),
		f.to != nil && !slices.ContainsFunc(m.To, isTo),
		!f.Matches(m.Message),
		!f.since.IsZero() && search.Written(m).Before(f.since):
		return false
	}
	return true
}

// printReceived prints a document with --json, else the pieces of its text. It returns how many pieces the reader of
// stdout has received: of a document, all or none. What the caller then marks must still be mine to mark: my runner may
// have started in the meantime.
func printReceived(ctx context.Context, s *app.Scope, p *command.Printer, document any, pieces ...[]byte) (received int, err error) {
	if err := s.MayWrite(); err != nil {
		return 0, err
	}
	if p.Answer != nil {
		isReceived, err := p.Answer(document, string(bytes.Join(pieces, nil)))
		if !isReceived {
			return 0, err
		}
		return len(pieces), err
	}
	if !p.IsJSON {
		return output.Show(ctx, p.Out, output.Patience, pieces)
	}
	text, err := command.JSON(document)
	if err != nil {
		return 0, err
	}
	p.SetPrinted()
	n, err := output.Show(ctx, p.Out, output.Patience, [][]byte{text})
	return n * len(pieces), err
}
