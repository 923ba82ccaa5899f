package mail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

var waitCommand = &cli.Command{
	Name: "wait", ArgsUsage: "[D]", Args: true, Usage: "wait for mail, an answer, an ack, or an agent's state",
	UsageText: `atm wait --reply 9f3a1c
atm wait --idle bob --timeout 10m`,
	Description: `Returns at once if it is already so; after a send, wait for --turn-done ID. An agent may end its
turn without a reply: atm history NAME. Marks nothing as read. Exit 4: it did not happen in time.`,
	Flags: []cli.Flag{
		cmdline.ListFlag("reply", "an answer to the message `ID`"),
		cmdline.ListFlag("acked", "every recipient's ack of `ID`", "ack"),
		cmdline.ListFlag("read", "every recipient has read `ID`"),
		cmdline.ListFlag("idle", "`AGENT` has no open turn and is not blocked"),
		cmdline.ListFlag("busy", "`AGENT` is in a turn"),
		cmdline.ListFlag("turn-done", "the turn of `AGENT|ID` has ended", "done"),
		cmdline.ListFlag("blocked", "`AGENT` asks for a permission or an answer"),
		cmdline.ListFlag("exit", "`AGENT` is off", "off", "stopped"),
		&cli.BoolFlag{Name: "every", Aliases: []string{"all"}, Usage: "wait for all of these, not any; with --reply, for every recipient"},
		cmdline.TimeoutFlag("t"),
		cmdline.NoFlag("mail message messages unread any inbox", "atm wait waits for mail; atm read --wait shows it as well"),
		cmdline.NoFlag("from", "atm read --wait --from NAME"),
		cmdline.NoFlag("agent name for", "atm wait --idle NAME, or --turn-done, --busy, --blocked, --exit"),
		cmdline.NoFlag("id message-id", "atm wait --reply ID, atm wait --acked ID, atm wait --read ID"),
		cmdline.NoFlag("until state status", "atm wait --idle NAME, --busy NAME, --blocked NAME, --exit NAME"),
	},
	Action: command.With(app.OpenMeIfGiven, wait),
}

// kinds are the flags that name a condition.
var kinds = []string{"reply", "acked", "read", "idle", "busy", "blocked", "exit", "turn-done"}

func wait(c *cli.Context, s *app.Scope) error {
	if err := refuseWords(c, s); err != nil {
		return err
	}
	return s.Await(func(ctx context.Context) error {
		conditions, err := newConditions(ctx, c, s)
		if err != nil {
			return err
		}
		met, err := await(ctx, c, s, conditions, c.Bool("every") || namesAll(c, s))
		if err != nil {
			return err
		}
		text := ""
		for _, m := range met {
			text += m.Matched + ": " + m.text + "\n"
		}
		met[0].And = met[1:]
		return command.PrintAs(c, met[0], text)
	})
}

// namesAll reports whether one of the flags is for all agents, which then must all meet it.
func namesAll(c *cli.Context, s *app.Scope) bool {
	return slices.ContainsFunc(kinds, func(kind string) bool {
		return slices.ContainsFunc(cmdline.List(c, kind), func(word string) bool { return isAll(s, word) })
	})
}

// refuseWords refuses all words but a duration, which is the timeout: a state is a flag.
func refuseWords(c *cli.Context, s *app.Scope) error {
	words := slices.DeleteFunc(c.Args().Slice(), func(word string) bool { return word == "" }) // "$UNSET"
	if len(words) == 0 {
		return nil
	}
	_, err := cmdline.ParseDuration(words[0])
	switch {
	case len(words) == 1 && err == nil:
		return c.Set("timeout", words[0])
	case errors.Is(err, cmdline.ErrNoUnit) && !isID(words[0]):
		return failure.Usage("%s %w", words[0], err).WithHint("atm wait %ss", words[0])
	}
	kind, names := "", []string{}
	for _, word := range words {
		if slices.Contains(kinds, word) {
			kind = word
		} else if s.IsMember(word) || word == "all" || isID(word) && kind == "" {
			names = append(names, word)
		}
	}
	e, who := failure.Usage("atm wait takes flags, not %q", letter.Clip(words[0], 40)), strings.Join(names, ",")
	switch {
	case kind != "":
		return e.WithHint("atm wait --%s %s", kind, cmp.Or(who, "NAME"))
	case len(names) > 0 && isID(names[0]):
		return e.WithHint("atm wait --reply %s, atm wait --acked %[1]s, atm wait --turn-done %[1]s", who)
	case len(names) > 0:
		return e.WithHint("atm wait --idle %s, atm read --wait --from %s, atm wait 30s", who, names[0])
	}
	return e.WithHint("atm wait waits for mail; atm wait --idle NAME, atm wait --reply ID")
}

// needsID is the error for a word that is not the id that a flag needs.
func needsID(flag, word string) error {
	return failure.Usage("--%s needs the id of a message that you sent, not %q", flag, word).
		WithHint("atm ls --sent shows the ids; any new mail: atm read --wait --from NAME")
}

func isID(word string) bool {
	_, err := wire.ParseFragment(strings.TrimPrefix(word, "#"))
	return err == nil
}

// A condition is one of the things that a command waits for.
type condition struct {
	flag    string                      // of atm wait, to wait for it again: " --reply 9f3a1c"
	unmet   string                      // what a timeout says of it: "no answer"
	agents  []wire.Address              // who can meet it
	watched []wire.Address              // whose mailboxes show it; members of other hosts are looked at with each tick
	look    func(entry) (*match, error) // looks after each entry; nil: not met yet

	sent     *wire.Message // the message that the agents must have; nil: none
	needsAll bool          // all of the agents must meet it, not one

	noReply func(wire.Address) error // why one of the agents will not meet it, as it looks; nil: not looked for
}

// inVain says why the condition cannot be met any more: the message was withdrawn, its recipient retired, or its turn is
// over.
func (cond *condition) inVain(s *app.Scope) (why error) {
	if cond.sent == nil {
		return nil
	}
	for _, a := range cond.agents {
		var gone error
		if copyAt(s, cond.sent, a).State == mailbox.Withdrawn {
			gone = withdrawnError(cond.sent.ID)
		} else if _, err := s.Root.Mailbox(a); a.Host == "" && errors.Is(err, mailbox.ErrNoAgent) {
			gone = err
		} else if cond.noReply != nil {
			gone = cond.noReply(a)
		}
		if gone == nil && !cond.needsAll {
			return nil
		} else if gone != nil && cond.needsAll {
			return gone
		}
		why = gone
	}
	return why
}

// A match is the evidence that a condition is met.
type match struct {
	Agent   wire.Name `json:"agent"` // "": several recipients
	Matched string    `json:"matched"`
	Message *message  `json:"message"`
	And     []*match  `json:"and,omitempty"` // further conditions that are met

	text string
}

// An entry is what is new in a mailbox. The first look gets an empty one, a tick has an Err alone.
type entry = watcher.Entry

// newConditions returns the conditions that the flags name, by default mail for me.
func newConditions(ctx context.Context, c *cli.Context, s *app.Scope) (out []*condition, err error) {
	for _, kind := range kinds {
		for _, words := range cmdline.List(c, kind) {
			for word := range strings.SplitSeq(words, ",") {
				some, err := conditionsOf(ctx, c, s, kind, word)
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
	look := func(entry) (*match, error) {
		unread, err := s.Me.Peek(ctx, mailbox.ReadOptions{Limit: 1})
		if err != nil || len(unread.Items) == 0 {
			return nil, err
		}
		return matchOf(s, "mail", unread.Items[0]), nil
	}
	return []*condition{{unmet: "no mail", watched: []wire.Address{s.Me.Address()}, look: look}}, nil
}

// conditionsOf returns the conditions of one flag. To wait for every reply is one for each recipient.
func conditionsOf(ctx context.Context, c *cli.Context, s *app.Scope, kind, word string) (out []*condition, err error) {
	switch {
	case kind == "turn-done" && isID(word) && !s.IsMember(word):
		it, _, err := s.Find(word)
		if err != nil {
			return nil, err
		}
		return []*condition{stageCondition(ctx, s, kind, it.Message)}, nil
	case kind != "reply" && kind != "acked" && kind != "read" && isAll(s, word):
		return allInState(s, kind)
	case kind != "reply" && kind != "acked" && kind != "read":
		cond, err := stateCondition(s, kind, word)
		return []*condition{cond}, err
	case !isID(word):
		return nil, needsID(kind, word)
	}
	if _, err := s.MemberOrMe(""); err != nil {
		return nil, err
	}
	m, err := findSent(s, word)
	switch {
	case err != nil:
		return nil, err
	case kind != "reply":
		return []*condition{stageCondition(ctx, s, kind, m)}, nil
	case !c.Bool("every"):
		return []*condition{replyCondition(ctx, c, s, m, wire.Address{})}, nil
	}
	for _, a := range m.To {
		out = append(out, replyCondition(ctx, c, s, m, a))
	}
	return out, nil
}

func matchOf(s *app.Scope, kind string, it *mailbox.Item) *match {
	text := command.Renderer(s).Header(it.Message, letter.Flags{})
	if it.Subject != "" {
		text += ", " + letter.Quote(it.Subject, 100)
	}
	if it.State == mailbox.Unread {
		text += "; atm read " + it.ID.Short(6) + s.Given.Flags("", "root", "team", "as")
	}
	return &match{Agent: s.Me.Agent(), Matched: kind, Message: &message{Item: it}, text: text}
}

// replyCondition is met when from, or anybody if that is zero, has answered a message of mine. An agent whose turn is
// over without a reply, as Ask sees it, has said its answer there: send ends with that, and wait, which may be for a
// later reply, says it.
func replyCondition(ctx context.Context, c *cli.Context, s *app.Scope, m *wire.Message, from wire.Address) *condition {
	cond := &condition{flag: " --reply " + m.ID.Short(6), unmet: "no answer", sent: m, agents: m.To, watched: []wire.Address{s.Me.Address()}}
	if from != (wire.Address{}) {
		cond.unmet, cond.agents = "no answer from "+command.Renderer(s).Who(from), []wire.Address{from}
	}
	isKnown, isTold := map[wire.ID]bool{}, map[wire.Address]bool{}
	cond.noReply = func(a wire.Address) error {
		if isTold[a] || !s.Root.IsTurnOver(ctx, m, a) {
			return nil
		}
		where := "atm history " + string(a.Agent)
		if a.Host != "" {
			where = "atm trace " + m.ID.Short(6)
		}
		ended := fmt.Sprintf("the turn of %s ended without a reply", command.Renderer(s).Who(a))
		if c.Command.Name != "wait" {
			return failure.Timeout("%s", ended).WithHint("%s shows what it said; wait on: atm wait%s%s", where, cond.flag, s.Given.Flags("", "root", "team", "as"))
		}
		isTold[a] = true
		command.Warn(c, "%s: %s", ended, where)
		return nil
	}
	cond.look = func(entry) (*match, error) {
		replies := s.Root.Replies(ctx, s.Me, m, from)
		if len(replies.Counted) > 0 {
			return matchOf(s, "reply", replies.Counted[0]), nil
		}
		for _, other := range replies.Others {
			if !isKnown[other.ID] {
				command.WarnNoAnswer(c, s, other)
			}
			isKnown[other.ID] = true
		}
		return nil, nil
	}
	return cond
}

// stageEvents are the events that may bring a message to the stage of stageCondition.
var stageEvents = []string{
	wire.TurnCompleted, wire.TurnIdle, "exited", wire.EventStage, wire.EventRead, wire.EventInjected, wire.EventAcked,
}

// stageCondition is met when every recipient of a message has read it, has acknowledged it, or has finished the turn
// into which it was handed.
func stageCondition(ctx context.Context, s *app.Scope, kind string, m *wire.Message) *condition {
	cond := &condition{flag: " --" + kind + " " + m.ID.Short(6), sent: m, needsAll: true, agents: m.To, watched: m.To}
	if kind == "acked" {
		cond.watched = []wire.Address{s.Me.Address()}
	}
	hasReached := func(a wire.Address) bool {
		if kind == "turn-done" {
			return s.Root.IsTurnOver(ctx, m, a)
		}
		t := s.Root.Trace(ctx, m, a)
		return t.Reached(kind)
	}
	var met *match
	cond.look = func(e entry) (*match, error) {
		if met != nil || e.Event != nil && !slices.Contains(stageEvents, e.Event.Kind) {
			return met, nil
		}
		cond.agents = slices.DeleteFunc(slices.Clone(m.To), hasReached)
		var names []string
		for _, a := range cond.agents {
			names = append(names, command.Renderer(s).Who(a))
		}
		late := strings.Join(names, ", ")
		cond.unmet = map[string]string{"acked": "no ack from " + late, "read": "not read by " + late, "turn-done": "turn not over"}[kind]
		if len(cond.agents) > 0 {
			return nil, nil
		}
		met = &match{Matched: kind, text: m.ID.Short(6)}
		if len(m.To) == 1 {
			met.Agent = m.To[0].Agent
		}
		for _, a := range m.To {
			if kind != "acked" {
				break
			} else if ack, err := s.Root.AckOf(m, a); err == nil {
				met = matchOf(s, kind, ack)
			} else if replies := s.Root.Replies(ctx, s.Me, m, a).Counted; len(replies) > 0 {
				met = matchOf(s, kind, replies[0])
			}
		}
		return met, nil
	}
	return cond
}

// stateCondition is met when an agent has a state or its turn is over.
func stateCondition(s *app.Scope, kind, word string) (*condition, error) {
	a, err := s.Address(word)
	if err != nil {
		return nil, err
	}
	team, err := s.Root.Team(a.Team)
	if err != nil {
		return nil, err
	}
	unmet := cmp.Or(map[string]string{"exit": "not off", "turn-done": "turn not over"}[kind], "not "+kind)
	agents := []wire.Address{a}
	cond := &condition{flag: " --" + kind + " " + command.Renderer(s).Who(a), unmet: unmet, agents: agents, watched: agents}
	var state *reducer.State
	cond.look = func(e entry) (_ *match, err error) {
		var now teams.Member
		if a.Host != "" {
			now, err = team.Remote(a.Agent, a.Host)
		} else if state == nil {
			state, err = team.State(a.Agent)
		} else if e.Event != nil && e.Box.Address() == a && e.Event.Seq > state.Seq {
			state.Apply(reducer.Input{Now: time.Now(), Event: e.Event}) // each one, so that no short state is missed
		}
		if err == nil && a.Host == "" {
			now, err = team.SummaryOf(a.Agent, state)
		}
		if err != nil || !hasState(now, kind) {
			return nil, err
		}
		text := app.JoinFilled(", ", isInState(now), now.StateDetail())
		return &match{Matched: kind, Agent: now.Name, text: text}, nil
	}
	return cond, nil
}

func isAll(s *app.Scope, word string) bool { return word == "all" && !s.IsMember(word) }

// allInState returns a condition for each agent of this machine but me.
func allInState(s *app.Scope, kind string) (out []*condition, err error) {
	for _, name := range s.Names() {
		a := wire.Address{Agent: name, Team: s.Team.Name}
		if s.Root.IsPerson(a) || s.Me != nil && s.Me.Address() == a {
			continue
		}
		cond, err := stateCondition(s, kind, string(name))
		if err != nil {
			return nil, err
		}
		out = append(out, cond)
	}
	if len(out) == 0 {
		err = failure.Usage("there is no other agent in team %q", s.Team.Name).WithHint("atm team add NAME")
	}
	return out, err
}

func hasState(m teams.Member, state string) bool {
	switch state {
	case "exit":
		hasNeverRun := m.Host == "" && m.State == reducer.WordUnknown && !m.Running && m.Session == ""
		isGivenUp := m.State == reducer.WordError && m.Presence == reducer.Offline
		return m.State == reducer.WordOff || isGivenUp || hasNeverRun
	case "blocked": // State may be that of another of its sessions
		return m.State == reducer.WordBlocked || m.WaitingOn != nil
	case "turn-done":
		return m.State == reducer.WordOff || m.State == reducer.WordIdle || m.TurnStatus == reducer.TurnTerminal
	}
	return string(m.State) == state
}

// await waits, at most for --timeout, for one of the conditions, or for every one, and returns what met them.
func await(ctx context.Context, c *cli.Context, s *app.Scope, conditions []*condition, every bool) (met []*match, err error) {
	boxes := map[wire.Address]*mailbox.Box{}
	for _, cond := range conditions {
		for _, a := range cond.watched {
			if a.Host != "" {
				continue
			}
			if boxes[a], err = s.Root.Mailbox(a); err != nil {
				return nil, err
			}
		}
	}
	timeout := cmdline.Duration(c, "timeout")
	var unmet []*condition
	o := watcher.Options{Messages: true, Events: true}
	err = until(ctx, timeout, slices.Collect(maps.Values(boxes)), o, func(e entry) (bool, error) {
		met, unmet = nil, nil
		var why error
		vain := 0
		for _, cond := range conditions {
			m, err := cond.look(e)
			if m == nil && err == nil {
				if gone := cond.inVain(s); gone != nil {
					if m, err = cond.look(entry{}); m == nil { // it may have been met just before
						vain, why = vain+1, gone
					}
				}
			}
			if err != nil {
				return false, err
			}
			if m != nil {
				met = append(met, m)
			} else {
				unmet = append(unmet, cond)
			}
		}
		isDone := len(unmet) == 0 || len(met) > 0 && !every
		if !isDone && vain > 0 && (every || vain == len(conditions)) {
			return false, why
		}
		if e == (entry{}) && !isDone && c.Command.Name == "wait" {
			warnOff(c, s, unmet)
		}
		return isDone, nil
	})
	if errors.Is(err, errTimeout) {
		err = timeoutError(s, unmet, timeout, every && len(conditions) > 1)
	}
	return met, err
}

func warnOff(c *cli.Context, s *app.Scope, unmet []*condition) {
	for _, cond := range unmet {
		for _, a := range cond.agents {
			if now, err := s.Root.Summary(a); err == nil && now.State == reducer.WordOff {
				command.Warn(c, "%s", describe(now))
			}
		}
	}
}

// timeoutError says what was not met in time, what the agents do that could meet it, and how to wait for it again.
func timeoutError(s *app.Scope, unmet []*condition, timeout time.Duration, every bool) error {
	var what, states, flags []string
	for _, cond := range unmet {
		what, flags = append(what, cond.unmet), append(flags, cond.flag)
		for _, a := range cond.agents {
			if now, err := s.Root.Summary(a); err == nil && now.State != reducer.WordPerson {
				states = append(states, describe(now))
			}
		}
	}
	again := strings.Join(slices.Compact(flags), "")
	if every {
		again += " --every"
	}
	slices.Sort(states)
	late := strings.Join(slices.Compact(what), ", ") + " within " + timeout.String()
	return failure.Timeout("%s", app.JoinFilled(": ", late, strings.Join(slices.Compact(states), ", "))).
		WithHint("do other work, or wait again: atm wait%s%s", again, s.Given.Flags("", "root", "team", "as"))
}

// isInState says in which state a member is.
func isInState(m teams.Member) string {
	switch m.State {
	case reducer.WordUnknown:
		return "the state of " + string(m.Name) + " is unknown"
	case reducer.WordPerson:
		return string(m.Name) + " is a person"
	case reducer.WordError:
		return string(m.Name) + " is in error"
	}
	return string(m.Name) + " is " + string(m.State)
}

func describe(m teams.Member) string {
	text := isInState(m)
	if m.Since != nil && m.State != reducer.WordUnknown && m.State != reducer.WordError {
		text = string(m.Name) + " has been " + string(m.State) + " for " + letter.Span(time.Since(*m.Since))
	}
	if m.Detail != "" {
		text += " (" + letter.Name(m.Detail, 80) + ")"
	}
	if m.Host != "" {
		text += ", " + m.EvidenceAge(time.Now())
	}
	return text
}

var errTimeout = errors.New("timeout")

// until watches mailboxes until look is done, or fails, or a mailbox is retired. It returns errTimeout after a timeout
// that is not 0.
func until(ctx context.Context, timeout time.Duration, boxes []*mailbox.Box, o watcher.Options, look func(entry) (done bool, err error)) error {
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

// untilMail is until for the messages of one mailbox.
func untilMail(ctx context.Context, timeout time.Duration, box *mailbox.Box, look func() (done bool, err error)) error {
	return until(ctx, timeout, []*mailbox.Box{box}, watcher.Options{Messages: true}, func(entry) (bool, error) { return look() })
}
