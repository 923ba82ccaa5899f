package mail

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
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
			return command.Usage("wait for what of %s?", word).WithHint("atm wait --idle %s, atm read --wait --from %s, atm wait 30s", word, word)
		}
	}
	open := command.OpenMe
	if slices.ContainsFunc(agentConditions, c.IsSet) && !c.IsSet("reply") && !c.IsSet("acked") {
		open = command.OpenMeIfSaid // nothing of mine is waited for
	}
	s, err := open(c)
	if err != nil {
		return err
	}
	return s.Await(func(ctx context.Context) error {
		conditions, err := conditionsOf(ctx, c, s)
		if err != nil {
			return err
		}
		w, err := newWaiter(ctx, s, conditions, c.Bool("every"))
		if err != nil {
			return err
		}
		defer w.close()
		for _, condition := range conditions {
			if agent, ok := condition.(*stateCondition); ok && agent.now.State == reducer.WordOff && agent.kind != "exit" {
				command.Warn(c, "%s", agent.standing())
			}
		}
		if err := w.wait(ctx, timeout); err != nil {
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

// agentConditions are the flags that wait for something of an agent.
var agentConditions = []string{"idle", "busy", "blocked", "exit", "turn-done"}

// conditionsOf are what the command line names; mail for me when it names nothing.
func conditionsOf(ctx context.Context, c *cli.Context, s *command.Scope) (out []condition, err error) {
	for _, kind := range []string{"reply", "acked"} {
		for _, word := range c.StringSlice(kind) {
			it, err := mySent(ctx, s, word)
			if err != nil {
				return nil, err
			}
			out = append(out, &answerCondition{s: s, kind: kind, message: it.Message})
		}
	}
	for _, kind := range agentConditions {
		for _, word := range c.StringSlice(kind) {
			var one condition
			if kind == "turn-done" && !s.IsMember(word) {
				one, err = newTurnCondition(ctx, s, word)
			} else {
				one, err = newStateCondition(ctx, s, kind, word)
			}
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
	s          *command.Scope
	conditions []condition
	every      bool   // all of them, not any
	met        []*met // of each, as it was looked at last
	watcher    *watcher.Watcher
}

func newWaiter(ctx context.Context, s *command.Scope, conditions []condition, every bool) (*waiter, error) {
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
	return &waiter{s, conditions, every, make([]*met, len(conditions)), w}, err
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
	var entry watcher.Entry
	for {
		enough, err := w.look(ctx, entry)
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
		entry, err = w.watcher.Next(next)
		stop()
		if err != nil && next.Err() == nil {
			return err
		}
	}
}

// look looks at every condition, and reports whether enough of them are met.
func (w *waiter) look(ctx context.Context, entry watcher.Entry) (enough bool, err error) {
	n := 0
	for i, c := range w.conditions {
		if w.met[i], err = c.look(ctx, entry); err != nil {
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
	what, flags, standing := "no mail", "", ""
	for i, c := range w.conditions {
		if w.met[i] != nil {
			continue
		}
		flags += c.flag()
		switch c := c.(type) {
		case *answerCondition:
			what = "no " + map[string]string{"reply": "answer", "acked": "ack"}[c.kind]
		case *turnCondition:
			what = "turn not over"
		case *stateCondition:
			what, standing = "not "+c.kind, ": "+c.standing()
		}
	}
	if strings.Count(flags, "--") > 1 && w.every {
		flags += " --every"
	}
	return command.Timeout("%s within %s%s", what, timeout, standing).WithHint("do other work, or again: atm wait%s%s", flags, w.s.Flags())
}
