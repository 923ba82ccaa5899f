package mail

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

var waitCommand = &cli.Command{
	Name: "wait", ArgsUsage: "[D]", Usage: "wait for mail, an answer, an ack, or an agent's state",
	UsageText:   "atm wait --reply 9f3a1c\natm wait --idle bob --timeout 10m",
	Description: "What is already so returns at once. Marks nothing: atm read does.\nExit 4: it did not come in time.",
	Flags: []cli.Flag{
		&cli.StringSliceFlag{Name: "reply", Usage: "an answer to the message `ID`"},
		&cli.StringSliceFlag{Name: "acked", Aliases: []string{"ack"}, Usage: "every recipient's ack of `ID`"},
		&cli.StringSliceFlag{Name: "idle", Usage: "`AGENT` has no open turn and is not blocked"},
		&cli.StringSliceFlag{Name: "busy", Usage: "`AGENT` is in a turn"},
		&cli.StringSliceFlag{Name: "turn-done", Aliases: []string{"done"}, Usage: "the turn of `AGENT|ID` is over"},
		&cli.StringSliceFlag{Name: "blocked", Usage: "`AGENT` asks for a permission or an answer"},
		&cli.StringSliceFlag{Name: "exit", Aliases: []string{"off", "stopped"}, Usage: "`AGENT` is off"},
		&cli.BoolFlag{Name: "every", Aliases: []string{"all"}, Usage: "all of what is named, not any"},
		command.TimeoutFlag(),
		hidden("mail", "message", "messages", "unread"),
		command.Meant("from", "atm read --wait --from NAME"),
	},
	Action: wait,
}

func wait(c *cli.Context) error {
	timeout := command.Duration(c, "timeout")
	if word := c.Args().First(); word != "" {
		var err error
		if timeout, err = command.ParseDuration(word); err != nil {
			return command.Usage("wait for what of %s?", letter.Escape(word)).WithHint("atm wait --idle %s, atm read --wait --from %s", word, word)
		}
	}
	s, err := openForWait(c)
	if err != nil {
		return err
	}
	return s.Await(func(ctx context.Context) error {
		conditions, err := conditionsOf(ctx, c, s)
		if err != nil {
			return err
		}
		w, err := newWaiter(ctx, conditions, c.Bool("every"))
		if err != nil {
			return err
		}
		defer w.close()
		for _, condition := range conditions {
			if agent, ok := condition.(*stateCondition); ok && agent.isOff() && agent.kind != "exit" {
				command.Warn(c, "%s", agent.standing())
			}
		}
		if err := w.wait(ctx, timeout); err != nil {
			if e, ok := errors.AsType[*command.Error](err); ok && e.Code == "timeout" {
				e.Hint += s.Flags()
			}
			return err
		}
		for _, met := range w.met {
			if met == nil {
				continue
			}
			if err := command.Print(c, met); err != nil {
				return err
			}
		}
		return nil
	})
}

// openForWait asks for an identity where what is waited for is mine.
func openForWait(c *cli.Context) (*command.Scope, error) {
	for _, flag := range []string{"idle", "busy", "turn-done", "blocked", "exit"} {
		if c.IsSet(flag) && !c.IsSet("reply") && !c.IsSet("acked") {
			return command.OpenMeIfSaid(c)
		}
	}
	return command.OpenMe(c)
}

// conditionsOf are what the command line names; mail for me when it names nothing.
func conditionsOf(ctx context.Context, c *cli.Context, s *command.Scope) (out []condition, err error) {
	for _, kind := range []string{"reply", "acked", "idle", "busy", "blocked", "exit", "turn-done"} {
		for _, word := range c.StringSlice(kind) {
			one, err := conditionOf(ctx, s, kind, word)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
	}
	if len(out) == 0 {
		out = append(out, &mailCondition{s: s})
	}
	return out, nil
}

func conditionOf(ctx context.Context, s *command.Scope, kind, word string) (condition, error) {
	if kind != "reply" && kind != "acked" && (kind != "turn-done" || s.IsMember(word)) {
		return newStateCondition(ctx, s, kind, word)
	}
	if kind == "turn-done" {
		return newTurnCondition(ctx, s, word)
	}
	it, err := mySent(ctx, s, word)
	if err != nil {
		return nil, err
	}
	if kind == "reply" {
		return &replyCondition{s: s, id: it.ID}, nil
	}
	return &ackCondition{s: s, message: it.Message}, nil
}

// mySent is a message that I sent.
func mySent(ctx context.Context, s *command.Scope, word string) (*mailbox.Item, error) {
	it, _, err := s.Find(ctx, word, false)
	if err != nil {
		return nil, err
	}
	if it.From != s.Me.Address() {
		return nil, command.Refused("message %s is not yours but from %s", it.ID.Short(6), it.From).WithHint("atm ls --sent%s", s.Flags())
	}
	return it, nil
}

// lockTick is how often runners' locks are probed: a kill writes no event.
const lockTick = time.Second

// A waiter waits until conditions are met. It watches from the moment it is made,
// so that nothing between a look and the wait is missed.
type waiter struct {
	conditions []condition
	every      bool   // all of them, not any
	met        []*met // of each, as it was looked at last
	watcher    *watcher.Watcher
}

func newWaiter(ctx context.Context, conditions []condition, every bool) (*waiter, error) {
	// Messages even where only events count: a dropped file may be either.
	options := watcher.Options{Messages: true, Events: true, After: map[wire.Address]uint64{}}
	var boxes []*mailbox.Box
	for _, c := range conditions {
		for box, after := range c.watches() {
			old, known := options.After[box.Address()]
			if !known {
				boxes = append(boxes, box)
				old = after
			}
			options.After[box.Address()] = min(old, after)
		}
	}
	w, err := watcher.Open(ctx, boxes, options)
	return &waiter{conditions: conditions, every: every, met: make([]*met, len(conditions)), watcher: w}, err
}

func (w *waiter) close() { w.watcher.Close() }

// wait returns when any condition, or every one at once, is met. A timeout of 0 is
// for ever.
func (w *waiter) wait(ctx context.Context, timeout time.Duration) error {
	limited, cancel := context.WithCancel(ctx)
	if timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	for {
		enough, err := w.look(ctx)
		if enough || err != nil && !errors.Is(err, mailbox.ErrNoAgent) { // a directory that is moved may come back
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if limited.Err() != nil {
			return w.inVain(timeout)
		}
		next, stop := context.WithTimeout(limited, lockTick)
		entry, err := w.watcher.Next(next)
		stop()
		if err != nil && next.Err() == nil {
			return err
		}
		for _, c := range w.conditions {
			c.see(entry)
		}
	}
}

// look looks at every condition, and reports whether enough of them are met.
func (w *waiter) look(ctx context.Context) (enough bool, err error) {
	n := 0
	for i, c := range w.conditions {
		if w.met[i], err = c.look(ctx); err != nil {
			return false, err
		}
		if w.met[i] != nil {
			n++
		}
	}
	return n == len(w.conditions) || n > 0 && !w.every, nil
}

// inVain says what did not come, and how to wait for it again.
func (w *waiter) inVain(timeout time.Duration) *command.Error {
	hint, standing, what := "do other work, or again: atm wait", "", ""
	missing := 0
	for i, c := range w.conditions {
		if w.met[i] != nil {
			continue
		}
		missing++
		var flag string
		what, flag = c.missing()
		hint += flag
		if agent, ok := c.(*stateCondition); ok {
			standing += ": " + agent.standing()
		}
	}
	if missing > 1 && w.every {
		hint += " --every"
	}
	return command.Timeout("%s within %s%s", what, timeout, strings.TrimSpace(standing)).WithHint("%s", hint)
}
