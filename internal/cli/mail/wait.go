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
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

var waitCommand = &cli.Command{
	Name: "wait", ArgsUsage: "[AGENT] [STATE] [D]", Usage: "wait for mail, an answer, an ack, or an agent's state",
	UsageText:   "atm wait --reply 9f3a1c\natm wait --idle bob --timeout 10m",
	Description: "What is already so returns at once. Marks nothing: atm read does.\nExit 4: it did not come in time.",
	Flags:       waitFlags,
	Action:      command.With(command.OpenMeIfSaid, wait),
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

func wait(c *cli.Context, s *command.Scope) (err error) {
	timeout, state, who := command.Duration(c, "timeout"), "", ""
	for _, word := range c.Args().Slice() { // in any order: bob idle, idle bob 30s
		isFlag := func(f cli.Flag) bool { return slices.Contains(f.Names(), word) }
		if word == "for" || word == "until" { // wait for bob
			continue
		}
		if d, err := command.ParseDuration(word); err == nil {
			timeout = d
		} else if slices.ContainsFunc(waitFlags, isFlag) {
			state = word
		} else {
			who = word
		}
	}
	isMail := slices.Contains([]string{"mail", "message", "messages", "unread"}, state)
	switch {
	case state != "" && who != "":
		if err := c.Set(state, who); err != nil {
			return command.Usage("wait for %s of %s: %v", state, who, err)
		}
	case state != "" && !isMail:
		return command.Usage("--%s needs a value", state).WithHint("atm wait --idle NAME, atm wait --reply ID, atm wait --acked ID")
	case who != "" && isID(s, who):
		return command.Usage("wait for what of %s?", who).WithHint("atm wait --reply %s, atm wait --acked %[1]s, atm wait --turn-done %[1]s", who)
	case who != "":
		return command.Usage("wait for what of %s?", who).WithHint("atm wait --idle %s, atm read --wait --from %[1]s, atm wait 30s", who)
	}
	return s.Await(func(ctx context.Context) error {
		conditions, err := namedConditions(ctx, c, s)
		if err != nil {
			return err
		}
		if err := waitFor(ctx, c, s, conditions, c.Bool("every"), timeout); err != nil {
			return err
		}
		var first *met
		text := ""
		for _, condition := range conditions {
			m := condition.met
			if m == nil {
				continue
			}
			if text += m.Matched + ": " + m.text + "\n"; first == nil {
				first = m
			} else {
				first.And = append(first.And, m)
			}
		}
		return command.PrintAs(c, first, text)
	})
}

func namedConditions(ctx context.Context, c *cli.Context, s *command.Scope) (out []*condition, err error) {
	for _, kind := range []string{"reply", "acked", "idle", "busy", "blocked", "exit", "turn-done"} {
		for _, word := range c.StringSlice(kind) {
			some, err := newConditions(ctx, c, s, kind, word)
			if err != nil {
				return nil, err
			}
			out = append(out, some...)
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

// newConditions are those that a flag names: with --every an answer from each recipient is one.
func newConditions(ctx context.Context, c *cli.Context, s *command.Scope, kind, word string) (out []*condition, err error) {
	if kind == "turn-done" && isID(s, word) {
		one, err := turnCondition(s, word)
		return []*condition{one}, err
	}
	if kind != "reply" && kind != "acked" {
		one, err := stateCondition(ctx, s, kind, word)
		return []*condition{one}, err
	}
	if _, err := s.MemberOrMe(""); err != nil {
		return nil, err
	}
	m, err := findSent(s, word)
	if err != nil {
		return nil, err
	}
	one := replyCondition(ctx, s, m, wire.Address{})
	if kind == "acked" {
		one = ackCondition(ctx, s, m)
	}
	if one.on = m.To; kind == "acked" || !c.Bool("every") {
		return []*condition{one}, nil
	}
	for _, a := range m.To {
		one := replyCondition(ctx, s, m, a)
		one.flag, one.vain, one.on = one.flag+everyFlag, "no answer from "+s.Renderer().Who(a), []wire.Address{a}
		out = append(out, one)
	}
	return out, nil
}

func isID(s *command.Scope, word string) bool {
	_, notID := wire.ParseFragment(strings.TrimPrefix(word, "#"))
	return notID == nil && !s.IsMember(word)
}

type condition struct {
	flag  string // waits for it again: " --reply 9f3a1c"
	after watched
	on    []wire.Address            // of these it is said where they are off
	look  func(entry) (*met, error) // what came of it now; nil: it is not met
	vain  string                    // what is said when it is not met in time: "no answer"

	met   *met   // as it was looked at last
	state string // and how things were with the agent
}

type met struct {
	Agent   wire.Name `json:"agent,omitempty"`
	Matched string    `json:"matched"`
	Message *message  `json:"message"`
	And     []*met    `json:"and,omitempty"` // what else was so

	text string
}

const everyFlag = " --every"

// waitFor waits until any condition is met, or every one. Of agents that are off it says so at once.
func waitFor(ctx context.Context, c *cli.Context, s *command.Scope, conditions []*condition, every bool, timeout time.Duration) error {
	after, isFirst := watched{}, true
	for _, one := range conditions {
		for box, seq := range one.after {
			if first, known := after[box]; !known || seq < first {
				after[box] = seq
			}
		}
	}
	err := await(ctx, s, timeout, after, func(e entry) (done bool, err error) {
		isAny, isEvery := false, true
		for _, one := range conditions {
			if one.met, err = one.look(e); err != nil {
				return false, err
			}
			isAny, isEvery = isAny || one.met != nil, isEvery && one.met != nil
		}
		if done = isEvery || isAny && !every; isFirst && !done {
			sayOff(c, s, conditions)
		}
		isFirst = false
		return done, nil
	})
	if !errors.Is(err, errTimeout) {
		return err
	}
	var vain []string
	state, flags := "", ""
	for _, one := range conditions {
		if one.met != nil {
			continue
		}
		vain, state = append(vain, one.vain), one.state
		if !strings.Contains(flags, one.flag) {
			flags += one.flag
		}
	}
	if every && strings.Count(flags, " --") > 1 {
		flags = strings.ReplaceAll(flags, everyFlag, "") + everyFlag
	}
	return command.Timeout("%s within %s%s", strings.Join(vain, ", "), timeout, state).WithHint("do other work, or again: atm wait%s%s", flags, s.Flags())
}

func sayOff(c *cli.Context, s *command.Scope, conditions []*condition) {
	for _, one := range conditions {
		for _, a := range one.on {
			if now, err := s.Root.Summary(a); one.met == nil && err == nil && now.State == reducer.WordOff {
				command.Warn(c, "%s", describe(now))
			}
		}
	}
}

func unreadCondition(ctx context.Context, s *command.Scope) *condition {
	return &condition{after: watchMail(s.Me), vain: "no mail", look: func(entry) (*met, error) {
		unread, err := s.Me.Peek(ctx, mailbox.ReadOptions{Limit: 1})
		if err != nil || len(unread.Items) == 0 {
			return nil, err
		}
		return metBy(s, "mail", unread.Items[0]), nil
	}}
}

// replyCondition: a recipient has answered a message of mine, or anybody has.
func replyCondition(ctx context.Context, s *command.Scope, m *wire.Message, from wire.Address) *condition {
	return sentCondition(s, "reply", "no answer", m, func() *met {
		replies := teams.Replies(ctx, s.Me, m.ID, from)
		if len(replies) == 0 {
			return nil
		}
		return metBy(s, "reply", replies[0])
	})
}

// ackCondition: every recipient of a message of mine has acknowledged it.
func ackCondition(ctx context.Context, s *command.Scope, m *wire.Message) *condition {
	var one *condition
	one = sentCondition(s, "acked", "", m, func() *met {
		last, missing := s.Root.AckedBy(ctx, m, s.Me)
		if len(missing) > 0 {
			one.vain = "no ack from " + whose(s, missing)
			return nil
		}
		if last == nil { // by those that cannot send an ack
			return &met{Matched: "acked", Agent: s.Me.Agent(), text: m.ID.Short(6)}
		}
		return metBy(s, "acked", last)
	})
	return one
}

func whose(s *command.Scope, who []wire.Address) string {
	names := make([]string, len(who))
	for i, a := range who {
		names[i] = s.Renderer().Who(a)
	}
	return strings.Join(names, ", ")
}

// sentCondition is about a message of mine: find looks at first, and again whenever a message has come.
func sentCondition(s *command.Scope, kind, vain string, m *wire.Message, find func() *met) *condition {
	var found *met
	isFirst := true
	look := func(e entry) (*met, error) {
		if found == nil && (isFirst || e.Message != nil) {
			found = find()
		}
		isFirst = false
		return found, nil
	}
	return &condition{flag: " --" + kind + " " + m.ID.Short(6), after: watchMail(s.Me), vain: vain, look: look}
}

func metBy(s *command.Scope, kind string, it *mailbox.Item) *met {
	text := s.Renderer().Header(it.Message, letter.Flags{})
	if it.State == mailbox.Unread {
		text += "; atm read " + it.ID.Short(6) + s.Flags()
	}
	return &met{Agent: s.Me.Agent(), Matched: kind, Message: &message{Item: it}, text: text}
}

// stateCondition: an agent is idle, busy, blocked or off, or its turn is over.
func stateCondition(ctx context.Context, s *command.Scope, kind, word string) (*condition, error) {
	if first, second, several := strings.Cut(word, ","); several {
		return nil, command.Usage("%q is more than one agent", word).
			WithHint("the flag again for each: --%s %s --%[1]s %[3]s", kind, first, second)
	}
	a, err := s.Address(word)
	if err != nil {
		return nil, err
	}
	team, err := s.Root.Team(a.Team)
	if err != nil {
		return nil, err
	}
	one := &condition{flag: " --" + kind + " " + s.Renderer().Who(a), after: watched{a: 0}, on: []wire.Address{a}, vain: "not " + kind}
	read := func(entry) (teams.Member, error) { return s.Root.Summary(a) }
	if a.Host == "" {
		box, err := team.Member(a.Agent)
		if err != nil {
			return nil, err
		}
		box.TakeIn(ctx)
		state, err := team.State(a.Agent)
		if err != nil {
			return nil, err
		}
		one.after[a] = state.Seq
		read = func(e entry) (teams.Member, error) {
			if e.Event != nil && e.Box.Address() == a && e.Event.Seq > state.Seq {
				state.Apply(reducer.Input{Now: time.Now(), Event: e.Event})
			}
			return team.SummaryOf(a.Agent, state)
		}
	}
	one.look = func(e entry) (*met, error) {
		now, err := read(e)
		if err != nil {
			return nil, err
		}
		one.state = ": " + describe(now)
		if kind == "exit" && now.State == reducer.WordStarting && strings.HasPrefix(now.Detail, "restart") {
			one.state = ": " + string(now.Name) + " has ended, and is to be started again"
		}
		if !isIn(now, kind) {
			return nil, nil
		}
		text := string(now.Name) + " is " + string(now.State)
		if now.State == reducer.WordUnknown {
			text = string(now.Name) + " has never run"
		}
		if now.Detail != "" {
			text += ", " + letter.Escape(now.Detail)
		}
		return &met{Matched: kind, Agent: now.Name, text: text}, nil
	}
	return one, nil
}

func isIn(m teams.Member, state string) bool {
	switch state {
	case "exit":
		hasNeverRun := m.Host == "" && m.State == reducer.WordUnknown && !m.Running && m.Started.IsZero() && m.Session == ""
		isGivenUp := m.State == reducer.WordError && m.Presence == reducer.Offline
		return m.State == reducer.WordOff || isGivenUp || hasNeverRun
	case "turn-done":
		return m.State == reducer.WordOff || m.State == reducer.WordIdle || m.TurnStatus == reducer.TurnTerminal
	}
	return string(m.State) == state
}

func describe(m teams.Member) string {
	text := string(m.Name) + " is " + string(m.State)
	if m.Since != nil {
		text += " since " + letter.Span(time.Since(*m.Since))
	}
	if m.Detail != "" {
		text += " (" + letter.Escape(m.Detail) + ")"
	}
	if m.Host != "" {
		text += ", " + m.Seen(time.Now())
	}
	return text
}

// turnCondition: the turns that a message was handed into are over, at every recipient.
func turnCondition(s *command.Scope, word string) (*condition, error) {
	it, _, err := s.Find(word)
	if err != nil {
		return nil, err
	}
	one := &condition{flag: " --turn-done " + it.ID.Short(6), after: watched{}, on: it.To, vain: "turn not over"}
	turns := map[wire.Address]*teams.Turns{}
	for _, a := range it.To {
		if a.Host != "" {
			continue // the tick looks there
		}
		team, err := s.Root.Team(a.Team)
		if err == nil {
			turns[a], err = team.Turns(a.Agent, it.SentAt.Add(-24*time.Hour))
		}
		if err != nil {
			return nil, err
		}
		one.after[a] = turns[a].Seq()
	}
	one.look = func(e entry) (*met, error) {
		var ended []string
		for _, a := range it.To {
			if a.Host != "" {
				trace := s.Root.Trace(context.Background(), it.Message, a)
				if trace.Reached("turn_done") {
					ended = append(ended, s.Renderer().Who(a)+": over")
				}
				continue
			}
			if e.Event != nil && a == e.Box.Address() && e.Event.Seq > turns[a].Seq() {
				turns[a].Apply(e.Event)
			}
			if turn := turns[a].Delivery(it.ID).Turn; turn.HasEnded() {
				ended = append(ended, string(a.Agent)+": "+string(turn.Status))
			}
		}
		if len(ended) < len(it.To) {
			return nil, nil
		}
		slices.Sort(ended)
		return &met{Matched: "turn-done", text: it.ID.Short(6) + " (" + strings.Join(ended, ", ") + ")"}, nil
	}
	return one, nil
}

// tick is how often what writes no event is looked at: a runner that was killed, a lease that ran out, another host.
const tick = time.Second

var errTimeout = errors.New("waited in vain")

// An entry is something new in a mailbox; the empty one: only time has passed.
type entry = watcher.Entry

// watched are mailboxes to watch, and after which event.
type watched = map[wire.Address]uint64

// watchMail watches a mailbox for messages: no event comes after that number.
func watchMail(box *mailbox.Box) watched { return watched{box.Address(): ^uint64(0) >> 2} }

// await calls look until it is done: at once, with everything that is new in the
// mailboxes since then, and at each tick. A timeout of 0 is for ever; errTimeout.
func await(ctx context.Context, s *command.Scope, timeout time.Duration, after watched, look func(entry) (done bool, err error)) error {
	var boxes []*mailbox.Box
	for a := range after {
		if a.Host != "" {
			continue // the tick looks there
		}
		box, err := s.Root.Mailbox(a)
		if err != nil {
			return err
		}
		boxes = append(boxes, box)
	}
	// Messages even where only events count: a dropped file may be either.
	w, err := watcher.Open(ctx, boxes, watcher.Options{Messages: true, Events: true, After: after})
	if err != nil {
		return err
	}
	defer w.Close()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimeout)
		defer cancel()
	}
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
		ticked, stop := context.WithTimeout(ctx, tick)
		e, err = w.Next(ticked)
		isTick := ticked.Err() != nil
		if stop(); err != nil && !isTick {
			return err
		}
	}
}
