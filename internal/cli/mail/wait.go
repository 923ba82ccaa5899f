package mail

import (
	"cmp"
	"context"
	"errors"
	"maps"
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
	Name: "wait", ArgsUsage: "[AGENT] [STATE] [D]", Usage: "wait for mail, an answer, an ack, or an agent's state",
	UsageText: "atm wait --reply 9f3a1c\natm wait --idle bob --timeout 10m",
	Description: "What is already so returns at once; after a send --turn-done ID is what to wait for.\n" +
		"Marks nothing: atm read does. Exit 4: it did not come in time.",
	Flags:  waitFlags,
	Action: command.With(command.OpenMeIfSaid, wait),
}

var waitFlags = []cli.Flag{
	&cli.StringSliceFlag{Name: "reply", Aliases: []string{"for-reply"}, Usage: "an answer to the message `ID`"},
	&cli.StringSliceFlag{Name: "acked", Aliases: []string{"ack"}, Usage: "every recipient's ack of `ID`"},
	&cli.StringSliceFlag{Name: "idle", Usage: "`AGENT` has no open turn and is not blocked"},
	&cli.StringSliceFlag{Name: "busy", Usage: "`AGENT` is in a turn"},
	&cli.StringSliceFlag{Name: "turn-done", Aliases: []string{"done"}, Usage: "the turn of `AGENT|ID` is over"},
	&cli.StringSliceFlag{Name: "blocked", Usage: "`AGENT` asks for a permission or an answer"},
	&cli.StringSliceFlag{Name: "exit", Aliases: []string{"off", "stopped"}, Usage: "`AGENT` is off"},
	&cli.BoolFlag{Name: "every", Aliases: []string{"all"}, Usage: "all of what is named, not any; answers from everybody"},
	command.TimeoutFlag(),
	hidden("mail", "message", "messages", "unread", "any"),
}

func wait(c *cli.Context, s *command.Scope) error {
	if err := readWords(c, s); err != nil {
		return err
	}
	return s.Await(func(ctx context.Context) error {
		conditions, err := namedConditions(ctx, c, s)
		if err != nil {
			return err
		}
		if err := waitFor(ctx, c, s, conditions, c.Bool("every")); err != nil {
			return err
		}
		var all []*met
		text := ""
		for _, one := range conditions {
			if one.met != nil {
				all = append(all, one.met)
				text += one.met.Matched + ": " + one.met.text + "\n"
			}
		}
		all[0].And = all[1:]
		return command.PrintAs(c, all[0], text)
	})
}

// readWords sets the flags that the words mean, in any order: bob idle, idle bob 30s.
func readWords(c *cli.Context, s *command.Scope) error {
	state, who := "", ""
	for _, word := range c.Args().Slice() {
		isFlag := func(f cli.Flag) bool { return slices.Contains(f.Names(), word) }
		_, notDuration := command.ParseDuration(word)
		switch {
		case slices.Contains([]string{"for", "until", "mail", "message", "messages", "unread"}, word):
		case notDuration == nil:
			c.Set("timeout", word)
		case slices.ContainsFunc(waitFlags, isFlag):
			state = word
		default:
			who = word
		}
	}
	if state != "" && who != "" {
		return c.Set(state, who)
	}
	if state == "" && who == "" {
		return nil
	}
	hint := "atm wait --idle %s, atm read --wait --from %[1]s, atm wait 30s"
	if isID(s, who) {
		hint = "atm wait --reply %s, atm wait --acked %[1]s, atm wait --turn-done %[1]s"
	}
	return command.Usage("wait for what of %s?", cmp.Or(who, state)).WithHint(hint, cmp.Or(who, "NAME"))
}

// namedConditions are those that the flags name; without any it is mail for me.
func namedConditions(ctx context.Context, c *cli.Context, s *command.Scope) (out []*condition, err error) {
	for _, kind := range []string{"reply", "acked", "idle", "busy", "blocked", "exit", "turn-done"} {
		for _, words := range c.StringSlice(kind) {
			for word := range strings.SplitSeq(words, ",") {
				some, err := newConditions(ctx, c, s, kind, word)
				if err != nil {
					return nil, err
				}
				out = append(out, some...)
			}
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	if _, err := s.MemberOrMe(""); err != nil {
		return nil, err
	}
	warnWaiting(c, s.Me)
	return []*condition{unreadCondition(ctx, s)}, nil
}

// newConditions are those of a flag: with --every there is one for the answer of each recipient.
func newConditions(ctx context.Context, c *cli.Context, s *command.Scope, kind, word string) ([]*condition, error) {
	switch {
	case kind == "turn-done" && isID(s, word):
		return turnCondition(ctx, s, word)
	case kind != "reply" && kind != "acked":
		return stateCondition(s, kind, word)
	}
	if _, err := s.MemberOrMe(""); err != nil {
		return nil, err
	}
	m, err := findSent(s, word)
	if err != nil {
		return nil, err
	}
	if kind == "acked" {
		return []*condition{ackCondition(ctx, s, m)}, nil
	}
	if !c.Bool("every") {
		return []*condition{replyCondition(ctx, s, m, wire.Address{})}, nil
	}
	var out []*condition
	for _, a := range m.To {
		out = append(out, replyCondition(ctx, s, m, a))
	}
	return out, nil
}

func isID(s *command.Scope, word string) bool {
	_, notID := wire.ParseFragment(strings.TrimPrefix(word, "#"))
	return notID == nil && !s.IsMember(word)
}

// waitFor waits until any condition is met, or every one. Of agents that are off it says so at once.
func waitFor(ctx context.Context, c *cli.Context, s *command.Scope, conditions []*condition, every bool) error {
	boxes, err := watchedBoxes(s, conditions)
	if err != nil {
		return err
	}
	err = await(ctx, command.Duration(c, "timeout"), boxes, true, func(e entry) (bool, error) {
		isAny, isEvery, lost := false, true, 0
		var withdrawn error
		for _, one := range conditions {
			one.met, err = one.look(e)
			if errors.Is(err, mailbox.ErrWithdrawn) {
				withdrawn, lost = err, lost+1
			} else if err != nil {
				return false, err
			}
			isAny, isEvery = isAny || one.met != nil, isEvery && one.met != nil
		}
		isDone := isEvery || isAny && !every
		if !isDone && (every && lost > 0 || lost == len(conditions)) {
			return false, withdrawn
		}
		if e == (entry{}) && !isDone && !isAwaited(c) { // send says it
			sayOff(c, s, conditions)
		}
		return isDone, nil
	})
	if errors.Is(err, errTimeout) {
		return inVain(c, s, conditions, every)
	}
	return err
}

// watchedBoxes are the mailboxes to watch on this machine. The tick looks at another host.
func watchedBoxes(s *command.Scope, conditions []*condition) (_ []*mailbox.Box, err error) {
	boxes := map[wire.Address]*mailbox.Box{}
	for _, one := range conditions {
		for _, a := range one.watched {
			if a.Host != "" {
				continue
			}
			if boxes[a], err = s.Root.Mailbox(a); err != nil {
				return nil, err
			}
		}
	}
	return slices.Collect(maps.Values(boxes)), nil
}

func sayOff(c *cli.Context, s *command.Scope, conditions []*condition) {
	for _, one := range conditions {
		for _, a := range one.of {
			if now, err := s.Root.Summary(a); one.met == nil && err == nil && now.State == reducer.WordOff {
				command.Warn(c, "%s", describe(now))
			}
		}
	}
}

// inVain says what did not come in time, and how to wait for that again.
func inVain(c *cli.Context, s *command.Scope, conditions []*condition, every bool) error {
	var vain, flags []string
	state := ""
	for _, one := range conditions {
		if one.met != nil {
			continue
		}
		vain, state = append(vain, one.vain), one.state
		flags = append(flags, one.flag)
	}
	again := strings.Join(slices.Compact(flags), "") // an answer from each is one flag
	if every && len(conditions) > 1 {
		again += " --every"
	}
	return command.Timeout("%s within %s%s", strings.Join(vain, ", "), command.Duration(c, "timeout"), state).
		WithHint("do other work, or again: atm wait%s%s", again, s.Flags())
}

// tick is how often what writes no event is looked at: a runner that was killed, a lease that ran out, another host.
const tick = time.Second

var errTimeout = errors.New("waited in vain")

type lookFunc func(entry) (done bool, err error)

// await calls look until it is done: at once, with each message (and each event, if they are asked for) that is new in
// the mailboxes since then, and at each tick. A timeout of 0 is for ever; errTimeout.
func await(ctx context.Context, timeout time.Duration, boxes []*mailbox.Box, events bool, look lookFunc) error {
	w, err := watcher.Open(ctx, boxes, watcher.Options{Messages: true, Events: events})
	if err != nil {
		return err
	}
	defer w.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(timeout, 1<<62), errTimeout)
	defer cancel()
	var e entry
	for {
		if done, err := look(e); done || err != nil {
			return err
		}
		for _, box := range boxes { // of a retired member nothing comes any more
			if gone := box.Present(); errors.Is(gone, mailbox.ErrNoAgent) {
				return gone
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if e, err = next(ctx, w); err != nil {
			return err
		}
	}
}

// next is the next entry; an Err alone is the tick, or the end of the context.
func next(ctx context.Context, w *watcher.Watcher) (entry, error) {
	ctx, stop := context.WithTimeout(ctx, tick)
	defer stop()
	e, err := w.Next(ctx)
	if err != nil && ctx.Err() != nil {
		return entry{Err: err}, nil
	}
	return e, err
}
