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
	"github.com/agentteammail/atm/internal/outlet"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var takeVerb = &cmdline.Verb{
	Name: "take", Args: "[AGENT [-- CMD…]]", Summary: "one message of an inbox that several work off",
	Examples: []string{"atm take jobs --lease 10m", "atm take jobs --wait -- ./work.sh", "atm take --share --as jobs"},
	Notes: []string{
		"The oldest unread message is yours until the lease runs out; nobody else gets it",
		"meanwhile. atm ack ends it, atm unread gives it back, --renew ID holds on to it.",
		"CMD gets the body on stdin, its id in ATM_MESSAGE. While it runs the lease is renewed,",
		"when that is lost it is ended. Exit 0 acks; any other gives it back, and is atm's exit",
		"code. After five tries a message is set aside, and its sender told: atm ls jobs --aside.",
	},
	Flags: []cmdline.Flag{
		{Name: "lease", Kind: cmdline.Duration, Arg: "D", Default: "10m", Usage: "for that long, up to 24h"},
		{Name: "from", Kind: cmdline.String, Arg: "NAME", Usage: "of this sender"},
		{Name: "thread", Kind: cmdline.String, Arg: "ID", Usage: "of this thread"},
		{Name: "urgent", Usage: "urgent ones"},
		{Name: "wait", Usage: "until there is one"},
		{Name: "timeout", Kind: cmdline.Duration, Arg: "D", Default: "90s", Usage: "of waiting, 0: for ever"},
		{Name: "renew", Kind: cmdline.String, Arg: "ID", Usage: "hold it for --lease from now on"},
		{Name: "share", Usage: "let others take from my inbox"},
		{Name: "unshare", Usage: "let them no longer"},
	},
	Guesses: []string{"claim", "lease", "work"},
	MaxArgs: -1, StopAfter: 1,
	Run: run(take),
}

func take(ctx context.Context, e *env) error {
	if err := e.NotBoth("renew", "share", "unshare", "wait"); err != nil {
		return err
	}
	if err := e.who(); err != nil {
		return err
	}
	if e.Bool("share") || e.Bool("unshare") { // also while its owner runs: no mail is touched
		return e.share(ctx)
	}
	if pipe := e.Getenv(guardPipe); pipe != "" {
		return e.guardTaken(ctx, pipe)
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
	box, command := e.me, e.Args
	if len(e.Args) > 0 && e.Before != 0 { // what follows a -- at once is all CMD
		var err error
		if box, err = e.member(e.Args[0]); err != nil {
			return err
		}
		command = e.Args[1:]
	}
	if e.Before >= 0 && strings.TrimSpace(strings.Join(command, "")) == "" { // a variable that held nothing
		return cmdline.Usage("no command follows the --").WithHint("atm take %s%s -- CMD, or without the -- to see the message", box.Agent(), e.typed())
	}
	if err := teams.MayTake(box, e.me.Address()); err != nil {
		return err
	}
	match, err := e.matching(ctx)
	if err != nil {
		return err
	}
	opt := mailbox.HoldOptions{By: e.me.Address(), For: lease, Match: match}
	if len(command) > 0 {
		if !e.root.Accepted {
			return cmdline.Refused("take: nobody here made or accepted %s; it may have come with a clone", e.root.Path).WithHint("if it is yours: atm init")
		}
		return e.takeAndWork(ctx, box, opt, command)
	}
	if e.Bool("wait") {
		return e.interruptible(ctx, func(ctx context.Context) error { return e.takeOne(ctx, box, opt) })
	}
	return e.takeOne(ctx, box, opt)
}

// share says whether other members may take from my inbox.
func (e *env) share(ctx context.Context) error {
	if len(e.Args) > 0 {
		return cmdline.Usage("whose inbox it is says --as").WithHint("atm take --share --as %s", cmdline.Escape(e.Args[0]))
	}
	if err := e.mayAct("share", e.me.Agent()); err != nil {
		return err
	}
	yes := e.Bool("share")
	if err := e.me.Share(ctx, yes); err != nil {
		return err
	}
	if e.JSON() {
		return e.PrintJSON(map[string]any{"agent": e.me.Agent(), "shared": yes})
	}
	if yes {
		return e.print("members of %s may take from the inbox of %s: atm take %s", e.team.Name, e.me.Agent(), e.me.Agent())
	}
	return e.print("only %s takes from this inbox; what others hold stays theirs", e.me.Agent())
}

// renew holds on to a message that I took.
func (e *env) renew(ctx context.Context, lease time.Duration) error {
	it, box, theirs, err := e.inHand(e.String("renew"))
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
	until, err := box.Renew(ctx, it.ID, e.me.Address(), "", lease)
	if err != nil {
		return err
	}
	if e.JSON() {
		return e.PrintJSON(map[string]any{"id": it.ID, "until": until.UTC()})
	}
	return e.print("%s is yours until %s", it.ID.Short(6), stamp(until))
}

// takeOne takes a message and shows it; it is mine when that was taken.
func (e *env) takeOne(ctx context.Context, box *mailbox.Box, opt mailbox.HoldOptions) error {
	if info, err := e.Stdout.Stat(); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		outlet.IgnoreSIGPIPE()
	}
	var showErr error
	h, err := e.hold(ctx, box, opt, func(h *mailbox.Hold) (bool, error) {
		n, err := (&outlet.Outlet{File: e.Stdout, Patience: patience, Whole: true}).Show(ctx, e.takenPieces(h))
		if err != nil && (errors.Is(err, syscall.EPIPE) || errors.Is(err, context.Canceled)) {
			showErr, err = err, nil
		}
		return n > 0, err
	})
	switch {
	case err != nil:
		return err
	case showErr != nil:
		e.Warn("the reader of the output left early; the message is in nobody's hands")
		return showErr
	case h != nil:
		return nil
	case e.JSON():
		return e.PrintJSON(map[string]any{"message": nil})
	case e.filtered():
		return e.print("nothing to take that matches")
	}
	return e.print("nothing to take")
}

// hold takes a message, with --wait as soon as there is one. A nil show shows
// nothing.
func (e *env) hold(ctx context.Context, box *mailbox.Box, opt mailbox.HoldOptions, show func(*mailbox.Hold) (bool, error)) (*mailbox.Hold, error) {
	began, timeout := time.Now(), e.Duration("timeout")
	for {
		if err := e.root.Tidy(ctx, box, e.origin()); err != nil {
			e.Warn("%v", err)
		}
		_, were, err := box.UnreadIDs(1)
		if err != nil {
			return nil, err
		}
		shown := false
		once := show
		if show != nil {
			once = func(h *mailbox.Hold) (bool, error) { shown = true; return show(h) }
		}
		h, err := box.Hold(ctx, opt, once)
		if err != nil || h != nil || shown || !e.Bool("wait") {
			return h, err
		}
		// A lease that runs out, and one given back, leave no trace in the inbox
		// that could be watched: it is looked at again every second as well.
		pause := tick
		leases, err := box.Leases()
		if err != nil {
			return nil, err
		}
		for _, t := range leases {
			if k := t.Holder(time.Now()); k != nil {
				pause = max(min(pause, time.Until(k.Until())), time.Millisecond)
			}
		}
		if timeout > 0 {
			left := timeout - time.Since(began)
			if left <= 0 {
				t := cmdline.Timeout("waited %s in vain", timeout).WithHint("do other work, or again: atm take %s --wait%s", box.Agent(), e.typed())
				t.Extra = map[string]any{"timeout": true}
				return nil, t
			}
			pause = min(pause, left)
		}
		there := *e
		there.me = box
		err = there.whenMail(ctx, pause, func() (bool, error) {
			// More than there were: what was there may be in other hands.
			_, now, err := box.UnreadIDs(1)
			return now > were, err
		})
		var in *cmdline.Error
		if err != nil && !(errors.As(err, &in) && in.Code == "timeout") {
			return nil, err
		}
	}
}

// takenPieces renders what was taken.
func (e *env) takenPieces(h *mailbox.Hold) []outlet.Piece {
	// Had from when it is shown: what is said here is a moment early.
	until := time.Now().Add(e.Duration("lease"))
	if e.JSON() {
		return []outlet.Piece{{Message: true, Text: marshalLine(struct {
			Message jsonItem  `json:"message"`
			Key     wire.ID   `json:"lease"`
			Until   time.Time `json:"until"`
			Try     int       `json:"try"`
		}{jsonItem{Item: h.Item}, h.Key, until.UTC(), h.Takings.Tries() + 1})}}
	}
	l := e.renderer()
	id := l.Short(h.ID) + e.typed()
	text := l.Render(h.Message, letter.Flags{TimesTaken: h.Takings.Tries()})
	foot := fmt.Sprintf("yours until %s: atm ack %s when it is done, atm unread %s gives it back, atm take --renew %s holds on\n", stamp(until), id, id, id)
	return []outlet.Piece{{Text: append(text, foot...), Message: true}}
}

// inHand is the message that I took, in whichever inbox of the team, and that a
// fragment of an id means; nil if none. theirs is then one that others took.
func (e *env) inHand(fragment string) (it *mailbox.Item, box *mailbox.Box, theirs error, err error) {
	f, err := wire.ParseFragment(fragment)
	if err != nil {
		return nil, nil, nil, nil // for who looks for it elsewhere to say
	}
	boxes, err := e.team.Boxes()
	if err != nil {
		return nil, nil, nil, err
	}
	var found []wire.ID
	for _, b := range boxes {
		leases, err := b.Leases()
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			return nil, nil, nil, err
		}
		for id, t := range leases {
			switch k := t.Last(); {
			case !f.Matches(id):
			case k.Open() && k.By == e.me.Address():
				found, box = append(found, id), b
			case k.Holds(time.Now()):
				theirs = &mailbox.LeasedError{ID: id, By: k.By, Until: k.Until()}
			case theirs == nil:
				theirs = fmt.Errorf("message %s %w", id.Short(6), mailbox.ErrNotHeld)
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, nil, theirs, nil
	case 1:
		it, err = box.Get(found[0])
		return it, box, nil, err
	}
	return nil, nil, nil, &teams.AmbiguousError{Fragment: fragment, Candidates: found}
}

// takeAnother is the command that takes another message of the inbox in which one
// lies that somebody holds.
func (e *env) takeAnother(id wire.ID) string {
	boxes, _ := e.team.Boxes()
	for _, b := range boxes {
		leases, _ := b.Leases()
		if t := leases[id]; t != nil && t.Holder(time.Now()) != nil {
			return "atm take " + string(b.Agent()) + e.typed()
		}
	}
	return "atm take" + e.typed()
}

// findMineOrTaken finds messages in my mailbox, and those that I took in any of
// the team's: of these it says which. Who names one in my mailbox that somebody
// else holds is told so.
func (e *env) findMineOrTaken(ctx context.Context, fragments []string) (items []*mailbox.Item, taken []*mailbox.Box, err error) {
	for _, f := range fragments {
		it, box, theirs, err := e.inHand(f)
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
