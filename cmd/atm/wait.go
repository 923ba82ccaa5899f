package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/outlet"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var waitVerb = &cmdline.Verb{
	Name: "wait", Args: "[AGENT]", Summary: "wait for mail, an answer, an ack, or an agent's state",
	Examples: []string{"atm wait --reply 9f3a1c", "atm wait --idle bob --timeout 10m"},
	Notes: []string{
		"What is already so returns at once. Marks nothing: atm read does.",
		"Exit 4: waited in vain.",
	},
	Flags: []cmdline.Flag{
		{Name: "reply", Kind: cmdline.Strings, Arg: "ID", Usage: "an answer to that message"},
		{Name: "acked", Kind: cmdline.Strings, Arg: "ID", Usage: "every recipient's ack of it"},
		{Name: "idle", Kind: cmdline.Strings, Arg: "AGENT", Usage: "no open turn, not blocked"},
		{Name: "busy", Kind: cmdline.Strings, Arg: "AGENT", Usage: "in a turn"},
		{Name: "turn-done", Kind: cmdline.Strings, Arg: "AGENT|ID", Usage: "its turn is over; the one that got ID"},
		{Name: "confirming", Kind: cmdline.Strings, Arg: "AGENT", Usage: "it asks for a permission"},
		{Name: "blocked", Kind: cmdline.Strings, Arg: "AGENT", Usage: "it asks for that, or a question"},
		{Name: "exit", Kind: cmdline.Strings, Arg: "AGENT", Aliases: []string{"off"}, Usage: "it is off"},
		{Name: "event", Kind: cmdline.Strings, Arg: "KIND", Usage: "of AGENT, from now or --since"},
		{Name: "since", Kind: cmdline.Int, Arg: "SEQ", Usage: "with --event: after that one"},
		{Name: "every", Usage: "all of what is named, not any"},
		{Name: "timeout", Kind: cmdline.Duration, Arg: "D", Default: "90s", Usage: "0: for ever"},
	},
	MaxArgs: 1,
	Run:     long(wait),
}

func wait(ctx context.Context, e *env) error {
	goals, err := e.goals(ctx)
	if err != nil {
		return err
	}
	w, err := e.newWaiter(ctx, goals)
	if err != nil {
		return err
	}
	defer w.close()
	if why := w.w.Polling(); why != "" {
		e.Warn("%s: looking every second instead", why)
	}
	err = e.whileWanted(ctx, func(ctx context.Context) error {
		return w.meet(ctx, e, e.Duration("timeout"), e.Bool("every"))
	})
	if err != nil {
		return e.inVain(err, goals)
	}
	for _, g := range goals {
		if g.done {
			if err := e.met(g); err != nil {
				return err
			}
		}
	}
	return nil
}

// goals are what the command line names; mail for me when it names nothing.
func (e *env) goals(ctx context.Context) ([]*goal, error) {
	switch given := e.Given("event"); {
	case len(e.Args) > 0 && !given:
		return nil, cmdline.Usage("wait for what of %s?", cmdline.Escape(e.Args[0])).WithHint("atm wait --idle %s", cmdline.Escape(e.Args[0]))
	case e.Given("since") && !given:
		return nil, cmdline.Usage("--since goes with --event").WithHint("atm wait --event turn_completed AGENT --since 0")
	}
	kinds := []string{"reply", "acked", "idle", "busy", "turn-done", "confirming", "blocked", "exit", "event"}
	named := slices.ContainsFunc(kinds, e.Given)
	mine := !named || e.Given("reply") || e.Given("acked")
	open := e.open
	if mine {
		open = e.who
	}
	if err := open(); err != nil {
		return nil, err
	}
	var out []*goal
	for _, kind := range kinds {
		for _, s := range e.Strings(kind) {
			g := &goal{kind: kind, word: s}
			var err error
			switch kind {
			case "reply", "acked":
				err = e.messageGoal(ctx, g)
			case "event":
				err = e.eventGoal(g)
			case "turn-done":
				if _, bad := wire.ParseAddress(s, e.team.Name); bad == nil && e.team.Box(wire.Name(s)).Exists() {
					err = e.agentGoal(g, s)
				} else {
					err = e.turnGoal(ctx, g)
				}
			default:
				err = e.agentGoal(g, s)
			}
			if err != nil {
				return nil, err
			}
			out = append(out, g)
		}
	}
	if len(out) == 0 {
		out = append(out, &goal{kind: "mail", box: e.me})
	}
	return out, nil
}

func (e *env) messageGoal(ctx context.Context, g *goal) error {
	it, _, err := e.find(ctx, g.word, false)
	if err != nil {
		return err
	}
	if it.From != e.me.Address() {
		return cmdline.Refused("message %s is from %s, who gets what answers it", it.ID.Short(6), it.From).
			WithHint("atm trace %s tells how far it got", it.ID.Short(6))
	}
	g.id, g.msg, g.box = it.ID, it.Message, e.me
	return nil
}

func (e *env) agentGoal(g *goal, name string) (err error) {
	g.box, err = e.member(name)
	return err
}

// eventGoal waits for an event of the agent named beside it, else of mine.
func (e *env) eventGoal(g *goal) error {
	g.since = -1
	if e.Given("since") {
		g.since = e.Int("since")
	}
	if len(e.Args) > 0 {
		return e.agentGoal(g, e.Args[0])
	}
	if err := e.who(); err != nil {
		return err
	}
	g.box = e.me
	return nil
}

// turnGoal waits for the end of the turn that a message was handed into.
func (e *env) turnGoal(ctx context.Context, g *goal) error {
	if err := e.whoIfSaid(); err != nil {
		return err
	}
	it, _, err := e.find(ctx, g.word, false)
	var u *teams.UnknownError
	if errors.As(err, &u) || err != nil && wire.Reserved(g.word) {
		return err
	}
	if err != nil {
		return err
	}
	g.id, g.msg = it.ID, it.Message
	for _, a := range it.To {
		b, err := e.root.Mailbox(a)
		if err != nil {
			return err
		}
		t, err := e.root.Team(a.Team)
		if err != nil {
			return err
		}
		turns, err := t.Turns(b.Agent(), it.SentAt.Add(-24*time.Hour))
		if err != nil {
			return err
		}
		turn := func() *teams.Turn { return turns.Delivery(it.ID).Turn }
		g.ways = append(g.ways, &way{box: b, turns: turns, turn: turn})
	}
	return nil
}

// met prints what came of a goal.
func (e *env) met(g *goal) error {
	if e.JSON() {
		out := map[string]any{"matched": g.kind}
		if g.box != nil {
			out["agent"] = g.box.Agent()
		}
		if g.met != nil {
			out["message"] = jsonItem{Item: g.met}
		}
		if g.event != nil {
			out["event"] = g.event
		}
		if g.row != nil {
			out["state"] = g.row.State
			if g.row.Detail != "" {
				out["detail"] = g.row.Detail
			}
		}
		if g.kind == "turn-done" && len(g.ways) > 0 {
			out["id"] = g.id
		}
		return e.PrintJSON(out)
	}
	l := e.renderer()
	switch {
	case g.event != nil:
		return e.print("event: %s of %s, seq %d", letter.Escape(g.event.Kind), l.Who(g.box.Address()), g.event.Seq)
	case g.row != nil:
		s := string(g.row.State)
		if g.row.Detail != "" {
			s += ", " + letter.Escape(g.row.Detail)
		}
		return e.print("%s: %s is %s", g.kind, l.Who(g.box.Address()), s)
	case len(g.ways) > 0:
		var parts []string
		for _, w := range g.ways {
			status := w.turn().Status
			if status == "" {
				status = "over"
			}
			parts = append(parts, l.Who(w.box.Address())+": "+status)
		}
		return e.print("turn-done: %s (%s)", g.id.Short(6), strings.Join(parts, ", "))
	case g.met == nil:
		return e.print("%s: %s", g.kind, g.id.Short(6))
	case g.met.State == mailbox.Unread:
		return e.print("%s: %s; atm read %s%s", g.kind, l.Header(g.met.Message, letter.Flags{}), g.met.ID.Short(6), e.typed())
	}
	return e.print("%s: %s", g.kind, l.Header(g.met.Message, letter.Flags{}))
}

// inVain says what did not come.
func (e *env) inVain(err error, goals []*goal) error {
	var c *cmdline.Error
	if !errors.As(err, &c) || c.Code != "timeout" {
		return err
	}
	var missing, now []string
	for _, g := range goals {
		if !g.done && g.row != nil {
			s := fmt.Sprintf("%s is %s%s", g.row.Name, g.row.State, since(*g.row))
			if about := letter.Escape(g.row.Detail); about != "" {
				s += " (" + about + ")"
			}
			now = append(now, s)
		}
		switch {
		case g.done || g.kind == "mail":
		case g.id != "":
			missing = append(missing, "--"+g.kind+" "+g.id.Short(6))
		default:
			missing = append(missing, "--"+g.kind+" "+cmdline.Escape(g.word))
			if g.kind == "event" {
				if len(e.Args) > 0 {
					missing = append(missing, cmdline.Escape(e.Args[0]))
				}
				missing = append(missing, fmt.Sprintf("--since %d", max(0, g.since)))
			}
		}
	}
	if len(now) > 0 {
		c.Message += ": " + strings.Join(now, ", ")
	}
	if len(missing) > 1 && e.Has("every") && e.Bool("every") {
		missing = append(missing, "--every")
	}
	if len(missing) > 0 {
		return c.WithHint("not yet; do other work, or again: atm wait %s%s", strings.Join(missing, " "), e.typed())
	}
	return c.WithHint("no mail yet; do other work, or again: atm wait%s", e.typed())
}

// await waits for what send was asked to wait for. The reply is shown, and
// marked when it was taken.
func (e *env) await(ctx context.Context, w *waiter, o *teams.Outgoing, s sent) error {
	reply := &goal{kind: "reply", id: o.Message.ID, box: e.me}
	if e.Bool("wait-ack") {
		w.goals = append(w.goals, &goal{kind: "acked", id: o.Message.ID, msg: o.Message, box: e.me})
	}
	if e.Bool("wait-reply") {
		w.goals = append(w.goals, reply)
	}
	err := w.meet(ctx, e, e.Duration("timeout"), true)
	var c *cmdline.Error
	if errors.As(err, &c) && c.Code == "timeout" {
		c.Message = "sent " + o.Message.ID.Short(6) + ", but " + c.Message
		c.Extra["id"], c.Extra["delivered"] = s.ID, s.Delivered
		return e.inVain(c, w.goals)
	}
	if err != nil {
		return err
	}
	l := e.renderer()
	l.Bytes, l.Lines = letter.MaxBytes, letter.MaxLines
	switch {
	case reply.met == nil && e.JSON():
		return e.PrintJSON(s)
	case reply.met == nil:
		return e.sayAcks(ctx, o.Message)
	}
	text := l.Render(reply.met.Message, letter.Flags{})
	if e.JSON() {
		s.Reply = &jsonItem{Item: reply.met}
		text = marshalLine(s)
	}
	_, err = e.me.Read(ctx, mailbox.ReadOptions{IDs: []wire.ID{reply.met.ID}}, func(mailbox.Batch) (int, error) {
		out := &outlet.Outlet{File: e.Stdout, Patience: patience}
		return out.Show(ctx, []outlet.Piece{{Text: text, Message: true}})
	})
	return err
}

// sayAcks shows who acknowledged a message and with which words, which are
// read with that.
func (e *env) sayAcks(ctx context.Context, m *wire.Message) error {
	line := "acked " + m.ID.Short(6)
	read := []wire.ID{} // not nil, which would be everything
	for _, a := range m.To {
		ack, err := e.me.Get(teams.AckID(m.ID, a))
		if err != nil {
			continue
		}
		if ack.Body != "" {
			line += fmt.Sprintf(" (%s: %q)", a.Agent, letter.Clip(letter.Escape(ack.Body), 200))
		}
		read = append(read, ack.ID)
	}
	_, err := e.me.Read(ctx, mailbox.ReadOptions{IDs: read}, func(b mailbox.Batch) (int, error) {
		n, err := (&outlet.Outlet{File: e.Stdout, Patience: patience}).Show(ctx, []outlet.Piece{{Text: []byte(line + "\n")}})
		return n * len(b.Items), err
	})
	return err
}

// since is how long a member has been so, for a warning.
func since(m teams.Member) string {
	if m.Since == nil {
		return ""
	}
	return " since " + letter.Span(time.Since(*m.Since))
}
