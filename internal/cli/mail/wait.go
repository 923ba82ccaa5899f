package mail

import (
	"cmp"
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
	&cli.BoolFlag{Name: "every", Aliases: []string{"all"}, Usage: "all of what is named, not any"},
	command.TimeoutFlag(),
	hidden("mail", "message", "messages", "unread", "any"),
}

func wait(c *cli.Context, s *command.Scope) (err error) {
	timeout, state, who := command.Duration(c, "timeout"), "", ""
	for _, word := range c.Args().Slice() { // in any order: bob idle, idle bob 30s
		d, err := command.ParseDuration(word)
		isFlag := func(f cli.Flag) bool { return slices.Contains(f.Names(), word) }
		switch {
		case err == nil:
			timeout = d
		case word == "for", word == "until": // wait for bob
		case slices.ContainsFunc(waitFlags, isFlag):
			state = word
		default:
			who = word
		}
	}
	switch {
	case state != "" && who != "":
		if err := c.Set(state, who); err != nil {
			return command.Usage("wait for %s of %s: %v", state, who, err)
		}
	case state != "" && !slices.Contains([]string{"mail", "message", "messages", "unread"}, state):
		value := map[string]string{"reply": "ID", "acked": "ID"}[state]
		return command.Usage("--%s needs a value", state).WithHint("atm wait --%s %s", state, cmp.Or(value, "NAME"))
	case who != "" && isID(s, who):
		return command.Usage("wait for what of %s?", who).WithHint("atm wait --reply %s, atm wait --acked %[1]s, atm wait --turn-done %[1]s", who)
	case who != "":
		return command.Usage("wait for what of %s?", who).WithHint("atm wait --idle %s, atm read --wait --from %s, atm wait 30s", who, who)
	}
	return s.Await(func(ctx context.Context) error {
		conditions, err := namedConditions(ctx, c, s)
		if err != nil {
			return err
		}
		err = waitFor(ctx, s, conditions, c.Bool("every"), timeout)
		for _, condition := range conditions {
			if m := condition.met; m != nil && err == nil {
				err = command.PrintAs(c, m, m.Matched+": "+m.text)
			}
		}
		return err
	})
}

// namedConditions are what the command line names; mail for me when it names nothing.
func namedConditions(ctx context.Context, c *cli.Context, s *command.Scope) (out []*condition, err error) {
	for _, kind := range []string{"reply", "acked", "idle", "busy", "blocked", "exit", "turn-done"} {
		for _, word := range c.StringSlice(kind) {
			one, err := newCondition(ctx, c, s, kind, word)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	one, err := newCondition(ctx, c, s, "mail", "")
	return []*condition{one}, err
}

func newCondition(ctx context.Context, c *cli.Context, s *command.Scope, kind, word string) (*condition, error) {
	switch kind {
	case "mail", "reply", "acked":
		var m *wire.Message
		_, err := s.MemberOrMe("")
		if err == nil && kind != "mail" {
			m, err = findSent(s, word)
		}
		if err != nil {
			return nil, err
		}
		return mailCondition(ctx, s, kind, m), nil
	case "turn-done":
		if isID(s, word) {
			return turnCondition(s, word)
		}
	}
	return stateCondition(ctx, c, s, kind, word)
}

// isID reports whether a word is the id of a message rather than an agent's name.
func isID(s *command.Scope, word string) bool {
	_, notID := wire.ParseFragment(strings.TrimPrefix(word, "#"))
	return notID == nil && !s.IsMember(word)
}

// A condition is one thing that is waited for.
type condition struct {
	flag  string // waits for it again: " --reply 9f3a1c"
	after watched
	look  func(entry) (*met, error) // what came of it now; nil: it is not met
	vain  string                    // what is said when it is not met in time: "no answer"

	met   *met   // as it was looked at last
	state string // and how things were with the agent
}

// met is what came of a condition.
type met struct {
	Agent   wire.Name `json:"agent,omitempty"`
	Matched string    `json:"matched"`
	Message *message  `json:"message,omitempty"`

	text string
}

// waitFor returns when any condition, or every one at once, is met.
func waitFor(ctx context.Context, s *command.Scope, conditions []*condition, every bool, timeout time.Duration) error {
	after := watched{}
	for _, c := range conditions {
		for box, seq := range c.after {
			if first, known := after[box]; !known || seq < first {
				after[box] = seq
			}
		}
	}
	err := await(ctx, s, timeout, after, func(e entry) (done bool, err error) {
		n := 0
		for _, c := range conditions {
			if c.met, err = c.look(e); err != nil {
				return false, err
			}
			if c.met != nil {
				n++
			}
		}
		return n == len(conditions) || n > 0 && !every, nil
	})
	if !errors.Is(err, errTimeout) {
		return err
	}
	vain, state, flags := "", "", ""
	for _, c := range conditions {
		if c.met == nil {
			vain, state, flags = c.vain, c.state, flags+c.flag
		}
	}
	if strings.Count(flags, "--") > 1 && every {
		flags += " --every"
	}
	return command.Timeout("%s within %s%s", vain, timeout, state).WithHint("do other work, or again: atm wait%s%s", flags, s.Flags())
}

// mailCondition: there is unread mail for me (mail), or somebody has answered m (reply), or
// every recipient has acknowledged it (acked).
func mailCondition(ctx context.Context, s *command.Scope, kind string, m *wire.Message) *condition {
	find := func() (it *mailbox.Item, isMet bool, err error) {
		var items []*mailbox.Item
		switch kind {
		case "acked":
			it, isMet = s.Root.AckedBy(ctx, m, s.Me)
			return it, isMet, nil
		case "reply":
			items = teams.Replies(ctx, s.Me, m.ID, wire.Address{})
		case "mail":
			var b mailbox.Batch
			b, err = s.Me.Peek(ctx, mailbox.ReadOptions{Limit: 1})
			items = b.Items
		}
		if len(items) == 0 {
			return nil, false, err
		}
		return items[0], true, nil
	}
	vain := map[string]string{"mail": "no mail", "reply": "no answer", "acked": "no ack"}
	c := &condition{after: watchMail(s.Me), vain: vain[kind]}
	if m != nil {
		c.flag = " --" + kind + " " + m.ID.Short(6)
	}
	looked := false
	c.look = func(e entry) (*met, error) {
		if m != nil && (c.met != nil || looked && e.Message == nil) {
			return c.met, nil // no message has come since
		}
		looked = true
		it, isMet, err := find()
		if err != nil || !isMet {
			return nil, err
		}
		if it == nil { // acked by those that cannot send one
			return &met{Matched: kind, Agent: s.Me.Agent(), text: m.ID.Short(6)}, nil
		}
		text := s.Renderer().Header(it.Message, letter.Flags{})
		if it.State == mailbox.Unread {
			text += "; atm read " + it.ID.Short(6) + s.Flags()
		}
		return &met{s.Me.Agent(), kind, &message{Item: it}, text}, nil
	}
	return c
}

// stateCondition: an agent is idle, busy, blocked or off, or its turn is over.
func stateCondition(ctx context.Context, c *cli.Context, s *command.Scope, kind, word string) (*condition, error) {
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
	after := uint64(0)
	read := func(entry) (teams.Member, error) { return team.Remote(a.Agent, a.Host) }
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
		after = state.Seq
		read = func(e entry) (teams.Member, error) {
			if e.Event != nil && e.Box.Address() == a && e.Event.Seq > state.Seq {
				state.Apply(reducer.Input{Now: time.Now(), Event: e.Event})
			}
			return team.SummaryOf(a.Agent, state)
		}
	}
	one := &condition{flag: " --" + kind + " " + s.Renderer().Who(a), after: watched{a: after}, vain: "not " + kind}
	one.look = func(e entry) (*met, error) {
		now, err := read(e)
		if err != nil {
			return nil, err
		}
		if now.State == reducer.WordOff && kind != "exit" && one.state == "" { // at the first look
			command.Warn(c, "%s", describe(now))
		}
		one.state = ": " + describe(now)
		isMet := string(now.State) == kind
		switch kind {
		case "exit":
			hasNeverRun := now.Host == "" && now.State == reducer.WordUnknown && !now.Running && now.Started.IsZero() && now.Session == ""
			isMet = now.State == reducer.WordOff || hasNeverRun
		case "turn-done":
			isMet = now.State == reducer.WordOff || now.State == reducer.WordIdle || now.TurnStatus == reducer.TurnTerminal
		}
		if !isMet {
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

// describe is how things are with an agent.
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
	one := &condition{flag: " --turn-done " + it.ID.Short(6), after: watched{}, vain: "turn not over"}
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
				if t := s.Root.TraceTo(context.Background(), it.Message, a); t.Reached("turn_done") {
					ended = append(ended, s.Renderer().Who(a)+": over")
				}
				continue
			}
			t := turns[a]
			if e.Event != nil && a == e.Box.Address() && e.Event.Seq > t.Seq() {
				t.Apply(e.Event)
			}
			if turn := t.Delivery(it.ID).Turn; turn.HasEnded() {
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

// tick is how often what writes no event is looked at: a runner that was killed, a lease
// that ran out.
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
	var changed <-chan struct{} // rows of other hosts
	for a := range after {
		if a.Host != "" {
			if dirs, err := watcher.OpenDirs(); err == nil { // else the tick looks
				defer dirs.Close()
				dirs.Add(s.Root.Dir().Join(string(a.Team) + "/" + teams.RowsDir))
				changed = dirs.Changed()
			}
			continue
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
		done, err := look(e)
		for _, box := range boxes {
			if gone := box.Present(); !done && err == nil && errors.Is(gone, mailbox.ErrNoAgent) {
				err = gone // retired: what is awaited there does not come
			}
		}
		switch {
		case done || err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		next, stop := context.WithTimeout(ctx, tick)
		go func() {
			select {
			case <-changed:
				stop()
			case <-next.Done():
			}
		}()
		e, err = w.Next(next)
		stop()
		if err != nil && next.Err() == nil {
			return err
		}
	}
}
