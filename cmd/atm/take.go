package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/outlet"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var takeVerb = &cmdline.Verb{
	Name: "take", Args: "[AGENT]", Summary: "one message of an inbox that several work off",
	Examples: []string{"atm take jobs --lease 10m", "atm take jobs --wait", "atm take --renew 9f3a1c"},
	Notes: []string{
		"The oldest unread message is yours until the lease runs out; nobody else gets it",
		"meanwhile. atm ack finishes it, atm unread gives it back, --renew ID extends the lease.",
		"Without AGENT it is taken from your own inbox; another's must be shared:",
		"atm team add jobs --shared.",
	},
	Flags: []cmdline.Flag{
		{Name: "lease", Kind: cmdline.Duration, Arg: "D", Default: "10m", Usage: "for that long, up to 24h"},
		{Name: "wait", Usage: "until there is one"},
		{Name: "timeout", Kind: cmdline.Duration, Arg: "D", Default: "90s", Usage: "of waiting, 0: for ever"},
		{Name: "renew", Kind: cmdline.String, Arg: "ID", Usage: "hold it for --lease from now on"},
	},
	Guesses: []string{"claim", "lease", "work"},
	MaxArgs: 1,
	Run:     run(take),
}

func take(ctx context.Context, e *env) error {
	if err := e.NotBoth("renew", "wait"); err != nil {
		return err
	}
	if err := e.who(); err != nil {
		return err
	}
	if err := e.mine(); err != nil {
		return err
	}
	lease := e.Duration("lease")
	if lease <= 0 || lease > mailbox.MaxLease {
		return cmdline.Usage("--lease %s: it may be up to %s", lease, mailbox.MaxLease).WithHint("--lease 10m, and --renew for more")
	}
	if e.Given("renew") {
		return e.renew(ctx, lease)
	}
	e.warnUnaccepted()
	box := e.me
	if len(e.Args) > 0 {
		var err error
		if box, err = e.member(e.Args[0]); err != nil {
			return err
		}
	}
	if err := teams.MayTake(box, e.me.Address()); err != nil {
		return err
	}
	if !e.Bool("wait") {
		taken, err := e.takeOne(ctx, box, lease)
		switch {
		case taken || err != nil:
			return err
		case e.JSON():
			return e.PrintJSON(map[string]any{"message": nil})
		}
		return e.print("nothing to take")
	}
	return e.interruptible(ctx, func(ctx context.Context) error { return e.takeWaiting(ctx, box, lease) })
}

// renew extends the lease of a message that I took.
func (e *env) renew(ctx context.Context, lease time.Duration) error {
	it, box, theirs, err := e.held(e.String("renew"))
	switch {
	case err != nil:
		return err
	case theirs != nil:
		return theirs
	case it == nil:
		if it, _, err = e.find(ctx, e.String("renew"), false); err != nil {
			return err
		}
		return fmt.Errorf("message %s %w", it.ID.Short(6), mailbox.ErrNotHeld)
	}
	until, err := box.RenewLease(ctx, it.ID, e.me.Address(), lease)
	if err != nil {
		return err
	}
	if e.JSON() {
		return e.PrintJSON(map[string]any{"id": it.ID, "until": until.UTC()})
	}
	return e.print("%s is yours until %s", it.ID.Short(6), stamp(until))
}

// takeOne takes a message and shows it; it is mine once it was received. It reports
// whether there was one.
func (e *env) takeOne(ctx context.Context, box *mailbox.Box, lease time.Duration) (bool, error) {
	if info, err := e.Stdout.Stat(); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		outlet.IgnoreSIGPIPE()
	}
	shown := false
	_, _, err := box.Lease(ctx, mailbox.LeaseOptions{By: e.me.Address(), For: lease}, func(it *mailbox.Item, l mailbox.Lease) (bool, error) {
		shown = true
		piece := outlet.Piece{Text: e.takenText(it, l), Message: true}
		n, err := (&outlet.Outlet{File: e.Stdout, Patience: patience, Whole: true}).Show(ctx, []outlet.Piece{piece})
		if errors.Is(err, syscall.EPIPE) {
			e.Warn("the reader of the output left early; the message is in nobody's hands")
		}
		return n > 0, err
	})
	return shown, err
}

// takeWaiting is takeOne as soon as there is a message. A lease that runs out leaves no
// trace in the inbox that could be watched, so it is looked at again every second.
func (e *env) takeWaiting(ctx context.Context, box *mailbox.Box, lease time.Duration) error {
	began, timeout := time.Now(), e.Duration("timeout")
	for {
		if taken, err := e.takeOne(ctx, box, lease); taken || err != nil {
			return err
		}
		pause := time.Second
		if timeout > 0 {
			left := timeout - time.Since(began)
			if left <= 0 {
				t := cmdline.Timeout("nothing to take within %s", timeout).WithHint("do other work, or again: atm take %s --wait%s", box.Agent(), e.typed())
				t.Extra = map[string]any{"timeout": true}
				return t
			}
			pause = min(pause, left)
		}
		before, _, err := box.UnreadIDs()
		if err != nil {
			return err
		}
		there := *e
		there.me = box
		err = there.whenMail(ctx, pause, func() (bool, error) {
			now, _, err := box.UnreadIDs()
			return len(now) > len(before), err
		})
		var in *cmdline.Error
		if err != nil && !(errors.As(err, &in) && in.Code == "timeout") {
			return err
		}
	}
}

// takenText shows what was taken.
func (e *env) takenText(it *mailbox.Item, lease mailbox.Lease) []byte {
	if e.JSON() {
		return marshalLine(struct {
			Message jsonItem  `json:"message"`
			Until   time.Time `json:"until"`
			Times   int       `json:"times"` // given out, this time included
		}{jsonItem{Item: it}, lease.Until.UTC(), it.Times + 1})
	}
	l := e.renderer()
	id := l.Short(it.ID) + e.typed()
	text := l.Render(it.Message, letter.Flags{TimesTaken: it.Times})
	return fmt.Appendf(text, "yours until %s: atm ack %s when it is done, atm unread %s gives it back, atm take --renew %s extends it\n", stamp(lease.Until), id, id, id)
}

// held is the message that I took, in whichever inbox of the team, and that a fragment
// of an id means; nil if none. theirs is then one that others took, or why that cannot be
// said.
func (e *env) held(fragment string) (it *mailbox.Item, box *mailbox.Box, theirs error, err error) {
	f, err := wire.ParseFragment(fragment)
	if err != nil {
		return nil, nil, nil, nil // for who looks for it elsewhere to say
	}
	boxes, err := e.team.Boxes()
	if err != nil {
		return nil, nil, nil, err
	}
	var found []wire.ID
	var errs []error
	for _, b := range boxes {
		leases, err := b.Leases()
		errs = append(errs, err)
		for id, lease := range leases {
			switch {
			case !f.Matches(id):
			case lease.By == e.me.Address():
				found, box = append(found, id), b
			case lease.Until.After(time.Now()):
				theirs = &mailbox.LeasedError{ID: id, By: lease.By, Until: lease.Until}
			case theirs == nil:
				theirs = fmt.Errorf("message %s %w", id.Short(6), mailbox.ErrNotHeld)
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, nil, cmp.Or(theirs, errors.Join(errs...)), nil
	case 1:
		it, err = box.Get(found[0])
		return it, box, nil, err
	}
	return nil, nil, nil, &teams.AmbiguousError{Fragment: fragment, Candidates: found}
}

// takeAnother is the command that takes another message of the inbox in which one lies
// that somebody holds.
func (e *env) takeAnother(id wire.ID) string {
	boxes, _ := e.team.Boxes()
	for _, b := range boxes {
		leases, _ := b.Leases()
		if lease, ok := leases[id]; ok && lease.Until.After(time.Now()) {
			return "atm take " + string(b.Agent()) + e.typed()
		}
	}
	return "atm take" + e.typed()
}

// findMineOrTaken finds messages in my mailbox, and those that I took in any of the
// team's: of these it says which. Who names one in my mailbox that somebody else holds
// is told so.
func (e *env) findMineOrTaken(ctx context.Context, fragments []string) (items []*mailbox.Item, taken []*mailbox.Box, err error) {
	for _, f := range fragments {
		it, box, theirs, err := e.held(f)
		if err == nil && it == nil {
			it, _, err = e.find(ctx, f, true)
			if theirs != nil && (errors.Is(err, mailbox.ErrNotFound) || err == nil && it.State == "") {
				err = theirs
			}
		}
		if err != nil {
			return nil, nil, err
		}
		items, taken = append(items, it), append(taken, box)
	}
	return items, taken, nil
}
