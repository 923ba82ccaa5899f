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
		conditions, err := namedConditions(ctx, c, s)
		if err != nil {
			return err
		}
		if err := waitFor(ctx, s, conditions, c.Bool("every"), timeout); err != nil {
			return err
		}
		for _, condition := range conditions {
			if condition.met == nil {
				continue
			}
			if err := command.Print(c, condition.met); err != nil {
				return err
			}
		}
		return nil
	})
}

// agentConditions are the flags that wait for something of an agent.
var agentConditions = []string{"idle", "busy", "blocked", "exit", "turn-done"}

// namedConditions are what the command line names; mail for me when it names nothing.
func namedConditions(ctx context.Context, c *cli.Context, s *command.Scope) (out []*condition, err error) {
	for _, kind := range append([]string{"reply", "acked"}, agentConditions...) {
		for _, word := range c.StringSlice(kind) {
			_, notID := wire.ParseFragment(strings.TrimPrefix(word, "#"))
			var one *condition
			switch {
			case kind == "turn-done" && notID == nil && !s.IsMember(word):
				one, err = turnCondition(ctx, s, word)
			case slices.Contains(agentConditions, kind):
				one, err = stateCondition(ctx, c, s, kind, word)
			default:
				var it *mailbox.Item
				if it, err = findSent(ctx, s, word); err == nil {
					one = answerCondition(ctx, s, kind, it.Message)
				}
			}
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
	}
	if len(out) == 0 {
		out = append(out, mailCondition(ctx, s))
	}
	return out, nil
}

// A condition is one thing that is waited for.
type condition struct {
	flag  string // waits for it again: " --reply 9f3a1c"
	boxes watched
	look  func(entry) (*met, error) // what came of it now; nil: it is not met
	not   func() (what, state string)

	met *met // as it was looked at last
}

// met is what came of a condition.
type met struct {
	Agent   wire.Name `json:"agent,omitempty"`
	Matched string    `json:"matched"`
	Message *message  `json:"message,omitempty"`

	text string
}

func (m met) String() string { return m.Matched + ": " + m.text }

// waitFor returns when any condition, or every one at once, is met.
func waitFor(ctx context.Context, s *command.Scope, conditions []*condition, every bool, timeout time.Duration) error {
	var boxes []watched
	for _, c := range conditions {
		boxes = append(boxes, c.boxes)
	}
	err := await(ctx, timeout, boxes, func(e entry) (bool, error) {
		n := 0
		for _, c := range conditions {
			var err error
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
	what, state, flags := "", "", ""
	for _, c := range conditions {
		if c.met == nil {
			what, state = c.not()
			flags += c.flag
		}
	}
	if strings.Count(flags, "--") > 1 && every {
		flags += " --every"
	}
	return command.Timeout("%s within %s%s", what, timeout, state).WithHint("do other work, or again: atm wait%s%s", flags, s.Flags())
}

// mailCondition: there is unread mail for me.
func mailCondition(ctx context.Context, s *command.Scope) *condition {
	return &condition{
		boxes: watchMail(s.Me)[0],
		not:   func() (string, string) { return "no mail", "" },
		look: func(entry) (*met, error) {
			b, err := s.Me.Peek(ctx, mailbox.ReadOptions{Limit: 1})
			if err != nil || len(b.Items) == 0 {
				return nil, err
			}
			return metBy(s, "mail", b.Items[0]), nil
		},
	}
}

func metBy(s *command.Scope, kind string, it *mailbox.Item) *met {
	text := s.Renderer().Header(it.Message, letter.Flags{})
	if it.State == mailbox.Unread {
		text += "; atm read " + it.ID.Short(6) + s.Flags()
	}
	return &met{s.Me.Agent(), kind, &message{Item: it}, text}
}

// answerCondition: somebody has answered a message of mine (reply), or every recipient
// has acknowledged it (acked).
func answerCondition(ctx context.Context, s *command.Scope, kind string, m *wire.Message) *condition {
	var found *met
	looked := false
	return &condition{
		flag:  " --" + kind + " " + m.ID.Short(6),
		boxes: watchMail(s.Me)[0],
		not:   func() (string, string) { return "no " + map[string]string{"reply": "answer", "acked": "ack"}[kind], "" },
		look: func(e entry) (*met, error) {
			if found != nil || looked && e.Message == nil {
				return found, nil // no message has come since
			}
			looked = true
			if kind == "reply" {
				if replies := teams.Replies(ctx, s.Me, m.ID, wire.Address{}); len(replies) > 0 {
					found = metBy(s, kind, replies[0])
				}
				return found, nil
			}
			last, all := s.Root.AckedBy(ctx, m, s.Me)
			if all && last != nil {
				found = metBy(s, kind, last)
			} else if all {
				found = &met{Matched: kind, Agent: s.Me.Agent(), text: m.ID.Short(6)}
			}
			return found, nil
		},
	}
}

// stateCondition: an agent is idle, busy, blocked or off, or its turn is over.
func stateCondition(ctx context.Context, c *cli.Context, s *command.Scope, kind, word string) (*condition, error) {
	box, err := s.Member(word)
	if err != nil {
		return nil, err
	}
	team, err := s.Root.Team(box.Address().Team)
	if err != nil {
		return nil, err
	}
	box.TakeIn(ctx)
	state, err := team.State(box.Agent())
	if err != nil {
		return nil, err
	}
	var now teams.Member
	condition := &condition{
		flag:  " --" + kind + " " + string(box.Agent()),
		boxes: watched{box: state.Seq},
		not:   func() (string, string) { return "not " + kind, ": " + describe(now) },
		look: func(e entry) (*met, error) {
			if e.Event != nil && e.Box.Address() == box.Address() && e.Event.Seq > state.Seq {
				state.Apply(reducer.Input{Now: time.Now(), Event: e.Event})
			}
			if now, err = team.SummaryOf(box.Agent(), state, time.Now()); err != nil {
				return nil, err
			}
			off := now.State == reducer.WordOff
			over := off || now.State == reducer.WordIdle || now.TurnStatus == reducer.TurnTerminal
			if string(now.State) != kind && !(kind == "exit" && off) && !(kind == "turn-done" && over) {
				return nil, nil
			}
			text := string(now.Name) + " is " + string(now.State)
			if now.Detail != "" {
				text += ", " + letter.Escape(now.Detail)
			}
			return &met{Matched: kind, Agent: now.Name, text: text}, nil
		},
	}
	_, err = condition.look(entry{})
	if now.State == reducer.WordOff && kind != "exit" {
		command.Warn(c, "%s", describe(now))
	}
	return condition, err
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
	return text
}

// turnCondition: the turns that a message was handed into are over, at every recipient.
func turnCondition(ctx context.Context, s *command.Scope, word string) (*condition, error) {
	it, _, err := s.Find(ctx, word, false)
	if err != nil {
		return nil, err
	}
	boxes, turns := watched{}, map[wire.Address]*teams.Turns{}
	for _, a := range it.To {
		box, err := s.Root.Mailbox(a)
		if err != nil {
			return nil, err
		}
		team, err := s.Root.Team(a.Team)
		if err == nil {
			turns[a], err = team.Turns(a.Agent, it.SentAt.Add(-24*time.Hour))
		}
		if err != nil {
			return nil, err
		}
		boxes[box] = turns[a].Seq()
	}
	return &condition{
		flag:  " --turn-done " + it.ID.Short(6),
		boxes: boxes,
		not:   func() (string, string) { return "turn not over", "" },
		look: func(e entry) (*met, error) {
			var ended []string
			for a, t := range turns {
				if e.Event != nil && a == e.Box.Address() && e.Event.Seq > t.Seq() {
					t.Apply(e.Event)
				}
				if turn := t.Delivery(it.ID).Turn; turn.HasEnded() {
					ended = append(ended, string(a.Agent)+": "+string(turn.Status))
				}
			}
			if len(ended) < len(turns) {
				return nil, nil
			}
			slices.Sort(ended)
			return &met{Matched: "turn-done", text: it.ID.Short(6) + " (" + strings.Join(ended, ", ") + ")"}, nil
		},
	}, nil
}

// tick is how often what writes no event is looked at: a runner that was killed, a lease
// that ran out.
const tick = time.Second

var errTimeout = errors.New("waited in vain")

// An entry is something new in a mailbox; the empty one: only time has passed.
type entry = watcher.Entry

// watched are mailboxes to watch, and after which event.
type watched map[*mailbox.Box]uint64

// watchMail watches a mailbox for messages: no event comes after that number.
func watchMail(box *mailbox.Box) []watched { return []watched{{box: ^uint64(0) >> 2}} }

// await calls look until it is done: at once, with everything that is new in the
// mailboxes since then, and at each tick. A timeout of 0 is for ever; errTimeout.
func await(ctx context.Context, timeout time.Duration, boxes []watched, look func(entry) (done bool, err error)) error {
	// Messages even where only events count: a dropped file may be either.
	options := watcher.Options{Messages: true, Events: true, After: map[wire.Address]uint64{}}
	var list []*mailbox.Box
	for _, some := range boxes {
		for box, after := range some {
			old, known := options.After[box.Address()]
			if !known {
				list, old = append(list, box), after
			}
			options.After[box.Address()] = min(old, after)
		}
	}
	w, err := watcher.Open(ctx, list, options)
	if err != nil {
		return err
	}
	defer w.Close()
	limited, cancel := context.WithCancel(ctx)
	if timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	var e entry
	for {
		done, err := look(e)
		switch {
		case done || err != nil && !errors.Is(err, mailbox.ErrNoAgent): // a directory that is moved may come back
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case limited.Err() != nil:
			return errTimeout
		}
		next, stop := context.WithTimeout(limited, tick)
		e, err = w.Next(next)
		stop()
		if err != nil && next.Err() == nil {
			return err
		}
	}
}
