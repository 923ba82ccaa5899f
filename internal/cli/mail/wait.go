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

	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

var waitCommand = &cli.Command{
	Name: "wait", ArgsUsage: "[AGENT…] [STATE] [D]", Usage: "wait for mail, an answer, an ack, or an agent's state",
	UsageText: "atm wait --reply 9f3a1c\natm wait --idle bob --timeout 10m",
	Description: "Returns at once if it is already so; after a send, wait for --turn-done ID.\n" +
		"Marks nothing as read. Exit 4: it did not happen in time.",
	Flags:  waitFlags,
	Action: command.With(command.OpenMeIfGiven, wait),
}

var waitFlags = []cli.Flag{
	&cli.StringSliceFlag{Name: "reply", Aliases: []string{"for-reply"}, Usage: "an answer to the message `ID`"},
	&cli.StringSliceFlag{Name: "acked", Aliases: []string{"ack"}, Usage: "every recipient's ack of `ID`"},
	&cli.StringSliceFlag{Name: "idle", Usage: "`AGENT` has no open turn and is not blocked"},
	&cli.StringSliceFlag{Name: "busy", Usage: "`AGENT` is in a turn"},
	&cli.StringSliceFlag{Name: "turn-done", Aliases: []string{"done", "turn"}, Usage: "the turn of `AGENT|ID` has ended"},
	&cli.StringSliceFlag{Name: "blocked", Usage: "`AGENT` asks for a permission or an answer"},
	&cli.StringSliceFlag{Name: "exit", Aliases: []string{"off", "stopped"}, Usage: "`AGENT` is off"},
	&cli.BoolFlag{Name: "every", Aliases: []string{"all"}, Usage: "wait for all of these, not any; with --reply, for every recipient"},
	cmdline.TimeoutFlag(),
	hidden("mail", "message", "messages", "unread", "any", "any-mail", "inbox", "for-mail", "for-message"),
}

func wait(c *cli.Context, s *command.Scope) error {
	if err := setFlagsOfWords(c, s); err != nil {
		return err
	}
	return s.Await(func(ctx context.Context) error {
		conditions, err := namedConditions(ctx, c, s)
		if err != nil {
			return err
		}
		w := waiting{conditions: conditions, wantsEvery: c.Bool("every"), warnsOfOff: true}
		if err := w.await(ctx, c, s); err != nil {
			return err
		}
		var all []*match
		text := ""
		for _, cond := range conditions {
			if cond.match != nil {
				all = append(all, cond.match)
				text += cond.match.Matched + ": " + cond.match.text + "\n"
			}
		}
		all[0].And = all[1:]
		return command.PrintAs(c, all[0], text)
	})
}

// setFlagsOfWords sets the flags that words stand for, in any order: bob idle, idle bob 30s, bob carol idle.
func setFlagsOfWords(c *cli.Context, s *command.Scope) error {
	state, name := "", ""
	for _, word := range c.Args().Slice() {
		isFlag := func(f cli.Flag) bool { return slices.Contains(f.Names(), word) }
		_, notDuration := cmdline.ParseDuration(word)
		switch {
		case slices.Contains([]string{"for", "until", "mail", "message", "messages", "unread", "agent", "to", "be"}, word) && !s.IsMember(word):
		case notDuration == nil && c.IsSet("timeout"):
			return failure.Usage("%s and --timeout contradict each other", word).WithHint("leave one out")
		case notDuration == nil:
			c.Set("timeout", word)
		case slices.ContainsFunc(waitFlags, isFlag):
			state = word
		default:
			name = strings.TrimPrefix(name+","+word, ",")
		}
	}
	isGiven := func(f cli.Flag) bool { return len(c.StringSlice(f.Names()[0])) > 0 }
	if n := slices.IndexFunc(waitFlags, isGiven); state == "" && n >= 0 { // --idle bob carol
		state = waitFlags[n].Names()[0]
	}
	if state != "" && name != "" {
		return c.Set(state, name)
	}
	if name == "" && (state == "" || len(c.StringSlice(state)) > 0) {
		return nil
	}
	hint := "atm wait --idle %s, atm read --wait --from %[1]s, atm wait 30s"
	switch {
	case state == "reply" || state == "acked":
		hint, name = "atm ls --sent shows the ids; atm wait --%s ID", state
	case strings.Contains(name, ","): // --from takes one
		hint = "atm wait --idle %s, atm wait 30s"
	case isID(s, name):
		hint = "atm wait --reply %s, atm wait --acked %[1]s, atm wait --turn-done %[1]s"
	}
	return failure.Usage("%s alone does not say what to wait for", cmp.Or(name, state)).WithHint(hint, cmp.Or(name, "NAME"))
}

// namedConditions returns the conditions that the flags name, by default mail for me.
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

// newConditions returns the conditions of one flag. With --every, --reply has one for each recipient.
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
	if !isFragment(word) {
		return nil, failure.Usage("--%s needs the id of a message that you sent, not %q", kind, word).
			WithHint("atm ls --sent shows the ids; any new mail: atm read --wait --from NAME")
	}
	m, err := findSent(s, word)
	if err != nil {
		return nil, err
	}
	if kind == "acked" {
		if !m.RequiresAck {
			command.Warn(c, "message %s asked for no ack", m.ID.Short(6))
		}
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
	return isFragment(word) && !s.IsMember(word)
}

func isFragment(word string) bool {
	_, notID := wire.ParseFragment(strings.TrimPrefix(word, "#"))
	return notID == nil
}

// A waiting is a wait for any of some conditions, or for every one.
type waiting struct {
	conditions []*condition
	wantsEvery bool
	warnsOfOff bool // at once, of agents that are off or gone
}

func (w *waiting) await(ctx context.Context, c *cli.Context, s *command.Scope) error {
	boxes, err := w.watched(s)
	if err != nil {
		return err
	}
	timeout := cmdline.Duration(c, "timeout")
	err = await(ctx, timeout, boxes, watcher.Options{Messages: true, Events: true}, func(e entry) (bool, error) {
		done, err := w.look(e)
		if isFirst := e == (entry{}); isFirst && w.warnsOfOff && !done && err == nil {
			w.warnOff(c, s)
		}
		return done, err
	})
	if errors.Is(err, errTimeout) {
		return w.timeoutError(s, timeout)
	}
	return err
}

// look reports whether enough conditions are met. Once they cannot be met any more, it says why.
func (w *waiting) look(e entry) (done bool, err error) {
	met, vain, why := 0, 0, error(nil)
	for _, cond := range w.conditions {
		cond.match, err = cond.look(e)
		switch {
		case errors.Is(err, mailbox.ErrWithdrawn), errors.Is(err, mailbox.ErrNoAgent):
			vain, why = vain+1, err
		case err != nil:
			return false, err
		case cond.match != nil:
			met++
		}
	}
	needed := 1
	if w.wantsEvery {
		needed = len(w.conditions)
	}
	switch {
	case met >= needed:
		return true, nil
	case len(w.conditions)-vain < needed:
		return false, why
	}
	return false, nil
}

// watched returns the local mailboxes to watch. Members of other hosts are looked at with each tick.
func (w *waiting) watched(s *command.Scope) (_ []*mailbox.Box, err error) {
	boxes := map[wire.Address]*mailbox.Box{}
	for _, cond := range w.conditions {
		for _, a := range cond.watched {
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

func (w *waiting) warnOff(c *cli.Context, s *command.Scope) {
	for _, cond := range w.conditions {
		if cond.match != nil {
			continue
		}
		for _, a := range cond.agents {
			now, err := s.Root.Summary(a)
			if errors.Is(err, mailbox.ErrNoAgent) { // retired since
				command.Warn(c, "%v", err)
			} else if err == nil && now.State == reducer.WordOff {
				command.Warn(c, "%s", describe(now))
			}
		}
	}
}

// timeoutError names the conditions that were not met in time, what the agents do that could meet them, and the command
// that waits for them again.
func (w *waiting) timeoutError(s *command.Scope, timeout time.Duration) error {
	var unmet, states, flags []string
	for _, cond := range w.conditions {
		if cond.match != nil {
			continue
		}
		unmet, flags = append(unmet, cond.unmet), append(flags, cond.flag)
		for _, a := range cond.agents {
			if now, err := s.Root.Summary(a); err == nil && now.State != reducer.WordPerson {
				states = append(states, describe(now))
			}
		}
	}
	again := strings.Join(slices.Compact(flags), "") // --reply --every is one flag, with a condition for each recipient
	if w.wantsEvery && len(w.conditions) > 1 {
		again += " --every"
	}
	slices.Sort(states)
	late := strings.Join(slices.Compact(unmet), ", ") + " within " + timeout.String()
	return failure.Timeout("%s", command.JoinFilled(": ", late, command.JoinFilled(", ", slices.Compact(states)...))).
		WithHint("do other work, or wait again: atm wait%s%s", again, s.Flags())
}

var errTimeout = errors.New("timeout")

// await watches mailboxes until look is done, or fails, or a mailbox is retired. It returns errTimeout after a timeout
// that is not 0.
func await(ctx context.Context, timeout time.Duration, boxes []*mailbox.Box, o watcher.Options, look func(entry) (done bool, err error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(timeout, 1<<62), errTimeout)
	defer cancel()
	return watcher.Until(ctx, boxes, o, func(e entry) (bool, error) {
		done, err := look(e)
		if !done && err == nil && errors.Is(e.Err, mailbox.ErrNoAgent) {
			err = e.Err
		}
		return done, err
	})
}

// awaitMail is await for the messages of one mailbox, without its events.
func awaitMail(ctx context.Context, timeout time.Duration, box *mailbox.Box, look func() (done bool, err error)) error {
	return await(ctx, timeout, []*mailbox.Box{box}, watcher.Options{Messages: true}, func(entry) (bool, error) { return look() })
}
