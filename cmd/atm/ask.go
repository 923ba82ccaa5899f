package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/outlet"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var askVerb = &cmdline.Verb{
	Name: "ask", Args: "NAME TEXT…", Summary: "send, wait, and print the answer",
	Examples: []string{`atm ask bob "Which branch are you on?"`},
	Notes: []string{
		"The answer is a reply, or what the turn that it began has said in the end. In vain:",
		"exit 4; the message stays sent, and asking again sends another.",
	},
	Flags: []cmdline.Flag{
		{Name: "message", Aliases: []string{"m", "body"}, Kind: cmdline.String, Arg: "TEXT", Usage: "the text"},
		{Name: "file", Kind: cmdline.String, Arg: "F", Usage: "text from a file"},
		{Name: "subject", Kind: cmdline.String, Arg: "S", Usage: "a subject"},
		{Name: "urgent", Usage: "may interrupt a turn"},
		{Name: "timeout", Kind: cmdline.Duration, Arg: "D", Default: "90s", Usage: "of waiting, 0: for ever"},
	},
	Guesses: []string{"prompt", "chat"},
	MinArgs: 1, MaxArgs: -1,
	Run: long(ask),
}

// answered is what came of asking.
type answered struct {
	ID       wire.ID   `json:"id"`
	Response string    `json:"response"`
	MS       int64     `json:"duration_ms"`
	TurnID   string    `json:"turn_id"`
	Status   string    `json:"status"` // replied, or how the turn ended: completed, interrupted, failed
	Reply    *jsonItem `json:"reply,omitempty"`
}

// statusReplied is the status where a reply was the answer.
const statusReplied = "replied"

func ask(ctx context.Context, e *env) error {
	if err := e.who(); err != nil {
		return err
	}
	if err := e.mine(); err != nil {
		return err
	}
	box, err := e.member(e.Args[0])
	if err != nil {
		return err
	}
	if box.Address() == e.me.Address() {
		return cmdline.Usage("%s is you", e.me.Agent()).WithHint("members: %s", join(e.memberNames()))
	}
	text, err := e.text(e.Args[1:])
	if err != nil {
		return err
	}
	m := &wire.Message{
		ID: wire.NewID(), Body: text, Subject: e.String("subject"), ReplyWanted: "yes", Origin: e.origin(), SentAt: time.Now().UTC(),
	}
	if e.Bool("urgent") {
		m.Priority = "urgent"
	}
	o := &teams.Outgoing{From: e.me, To: []wire.Address{box.Address()}, Message: m, Person: e.person()}
	if err := e.root.Prepare(o); err != nil {
		return err
	}
	if len(o.Failed) > 0 {
		return o.Failed[0].Err
	}
	// Watching begins before the message is sent: nothing that comes of it is missed.
	goals, err := e.answerGoals(box, m)
	if err != nil {
		return err
	}
	w, err := e.newWaiter(ctx, goals)
	if err != nil {
		return err
	}
	defer w.close()
	mailbox.Deliver(ctx, o.Post)
	if err := o.Post.Outcomes[0].Err; err != nil {
		return err
	}
	e.warnAsked(box)
	begun := time.Now()
	if err := w.meet(ctx, e, e.Duration("timeout"), false); err != nil {
		return e.unanswered(err, m, box)
	}
	return e.printAnswer(ctx, box, m, goals, begun)
}

// answerGoals are a reply to a message, and the end of the turn that it was
// handed into.
func (e *env) answerGoals(box *mailbox.Box, m *wire.Message) ([]*goal, error) {
	t, err := e.root.Team(box.Address().Team)
	if err != nil {
		return nil, err
	}
	p, last, err := t.Passage(box, m)
	if err != nil {
		return nil, err
	}
	reply := &goal{kind: "reply", id: m.ID, box: e.me}
	turn := &goal{kind: "turn-done", id: m.ID, msg: m, ways: []*way{{box: box, passage: p, after: last}}}
	return []*goal{reply, turn}, nil
}

// warnAsked says at once where there is little to hope for.
func (e *env) warnAsked(box *mailbox.Box) {
	t, err := e.root.Team(box.Address().Team)
	if err != nil {
		return
	}
	m, err := t.Glance(box.Agent())
	if err != nil {
		return
	}
	switch {
	case m.State == reducer.WordOff, m.State == reducer.WordBlocked, m.State == reducer.WordError:
		e.Warn("%s is %s", m.Name, m.Word(time.Now()))
	case m.State == reducer.WordPerson:
		e.Warn("%s is a person, who answers when they read it", m.Name)
	case !m.Running && m.Transport != "hook":
		e.Warn("no runner brings mail to %s, who reads it with atm read", m.Name)
	}
}

// unanswered says what keeps the answer.
func (e *env) unanswered(err error, m *wire.Message, box *mailbox.Box) error {
	var c *cmdline.Error
	if !errors.As(err, &c) || c.Code != "timeout" {
		return err
	}
	id := m.ID.Short(6)
	c.Message = fmt.Sprintf("sent %s, but %s for an answer of %s", id, c.Message, box.Agent())
	if c.Extra == nil {
		c.Extra = map[string]any{}
	}
	c.Extra["id"] = m.ID
	if t, bad := e.root.Team(box.Address().Team); bad == nil {
		if row, bad := t.Glance(box.Agent()); bad == nil && row.State == reducer.WordBlocked {
			return c.WithHint("%s waits for an answer itself: atm pending%s", box.Agent(), e.typed())
		}
	}
	return c.WithHint("not yet: atm wait --reply %s%s, or atm trace %s says what keeps it", id, e.typed(), id)
}

// answerFollows is how long is waited for what a turn has said, when its end is
// known: a screen may show that before a hook tells.
const answerFollows = 1500 * time.Millisecond

// printAnswer prints the reply, else what the turn said in the end.
func (e *env) printAnswer(ctx context.Context, box *mailbox.Box, m *wire.Message, goals []*goal, begun time.Time) error {
	reply, turn := goals[0], goals[1].ways[0]
	a := answered{ID: m.ID, TurnID: turn.passage.Turn}
	if reply.met == nil {
		// One that was sent within the turn came before its end.
		if err := reply.look(ctx, e, nil); err != nil {
			return err
		}
	}
	if reply.met != nil {
		a.Status, a.Response = statusReplied, reply.met.Body
		a.MS = time.Since(begun).Milliseconds()
		return e.showReply(ctx, reply.met, a)
	}
	a.Status = turn.passage.Status
	a.MS = turn.passage.Ended.At.Sub(m.SentAt).Milliseconds()
	var err error
	if a.Response, err = e.responseOf(ctx, box, turn.passage); err != nil {
		return err
	}
	if a.Status == "" {
		a.Status = reducer.Completed
	}
	failed := a.Status != reducer.Completed && a.Response == ""
	switch {
	case failed:
		f := cmdline.Failed("the turn of %s was %s, without an answer", box.Agent(), a.Status).WithHint("atm screen %s", box.Agent())
		f.Extra = map[string]any{"id": m.ID, "turn_id": a.TurnID, "status": a.Status, "duration_ms": a.MS}
		return f
	case e.JSON():
		return e.PrintJSON(a)
	case a.Response == "":
		e.Warn("the turn of %s is over; nothing tells what it said: atm screen %s", box.Agent(), box.Agent())
		return nil
	case e.terminal():
		return e.print("%s", mailbox.EscapeBody(a.Response))
	}
	return e.print("%s", a.Response)
}

// showReply prints a reply, which is read with that.
func (e *env) showReply(ctx context.Context, it *mailbox.Item, a answered) error {
	text := it.Body + "\n"
	if e.terminal() {
		text = mailbox.EscapeBody(it.Body) + "\n"
	}
	if e.JSON() {
		a.Reply = &jsonItem{Item: it}
		text = string(marshalLine(a))
	}
	batch, err := e.me.Read(ctx, mailbox.ReadOptions{IDs: []wire.ID{it.ID}}, func(mailbox.Batch) (int, error) {
		out := &outlet.Outlet{File: e.Stdout, Patience: patience}
		return out.Show(ctx, []outlet.Piece{{Text: []byte(text), Message: true}})
	})
	if err == nil && batch.Unmarked != nil {
		e.Warn("the reply could not be marked as read: %v", batch.Unmarked)
	}
	return err
}

// responseOf is what the turn of a passage has said in the end, "" where no
// event tells.
func (e *env) responseOf(ctx context.Context, box *mailbox.Box, p *teams.Passage) (string, error) {
	t, err := e.root.Team(box.Address().Team)
	if err != nil {
		return "", err
	}
	limit, cancel := context.WithTimeout(ctx, answerFollows)
	defer cancel()
	g := &goal{kind: "event", word: wire.TurnCompleted, box: box, since: int(p.Ended.Seq)}
	w, err := e.newWaiter(limit, []*goal{g})
	if err != nil {
		return "", err
	}
	defer w.close()
	for {
		turns, err := t.History(box.Agent(), 4)
		if err != nil {
			return "", err
		}
		for _, past := range turns {
			if past.ID == p.Turn && past.Response != "" {
				return past.Response, nil
			}
		}
		// The turn's own completion is its last word.
		if p.Status != "" || g.done {
			return "", ctx.Err()
		}
		if ok, err := w.next(limit, limit, e, true); !ok && err != nil {
			return "", ctx.Err()
		}
	}
}
