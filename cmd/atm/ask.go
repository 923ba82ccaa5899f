package main

import (
	"context"
	"errors"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/outlet"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var askVerb = &cmdline.Verb{
	Name: "ask", Args: "NAME TEXT…", Summary: "send, wait, and print the answer",
	Examples: []string{`atm ask bob "Which branch are you on?"`},
	Notes: []string{
		"The answer is a reply, or what the turn that it began has said in the end; stderr says",
		"how long it took. In vain: exit 4; the message stays sent, and asking again sends",
		"another, but under the same --once or --id: then it goes on waiting, and what a turn",
		"that was cut short left unanswered is handed over again.",
	},
	Flags: []cmdline.Flag{
		{Name: "message", Aliases: []string{"m", "body"}, Kind: cmdline.String, Arg: "TEXT", Usage: "the text"},
		{Name: "file", Kind: cmdline.String, Arg: "F", Usage: "text from a file"},
		{Name: "subject", Kind: cmdline.String, Arg: "S", Usage: "a subject"},
		{Name: "urgent", Usage: "may interrupt a turn"},
		{Name: "id", Kind: cmdline.String, Arg: "UUID", Usage: "for a safe retry"},
		{Name: "once", Kind: cmdline.String, Arg: "NAME", Usage: "the same by a name of yours: one message, however often asked"},
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
	o, err := e.inquiry(box)
	if err != nil {
		return err
	}
	return e.whileWanted(ctx, func(ctx context.Context) error { return e.askAndWait(ctx, box, o) })
}

// inquiry makes the message of the command line.
func (e *env) inquiry(box *mailbox.Box) (*teams.Outgoing, error) {
	if err := e.NotBoth("id", "once"); err != nil {
		return nil, err
	}
	id, err := e.ownID()
	if err != nil {
		return nil, err
	}
	text, err := e.text(e.Args[1:])
	if err != nil {
		return nil, err
	}
	m := &wire.Message{ID: id, Body: text, Subject: e.String("subject"), ReplyWanted: "yes", Origin: e.origin(), SentAt: time.Now().UTC()}
	if e.Bool("urgent") {
		m.Priority = "urgent"
	}
	o := &teams.Outgoing{From: e.me, To: []wire.Address{box.Address()}, Message: m, Given: id != "", Person: e.person()}
	if err := e.root.Prepare(o); err != nil {
		return nil, err
	}
	if len(o.Failed) > 0 {
		return nil, o.Failed[0].Err
	}
	return o, e.named(o)
}

// whileWanted calls f, which waits for what it is to print, with a context that
// ends when nobody reads that any more: `$(atm ask …)` of a script that was killed
// waits for nothing. It ends with the team as well.
func (e *env) whileWanted(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, stop := outlet.WhileRead(ctx, e.Stdout)
	defer stop()
	err := e.whileThere(ctx, f)
	if context.Cause(ctx) == outlet.ErrReaderGone {
		return &cmdline.Error{Exit: cmdline.ExitInterrupted, Printed: true}
	}
	return err
}

func (e *env) askAndWait(ctx context.Context, box *mailbox.Box, o *teams.Outgoing) error {
	timeout := e.Duration("timeout")
	limited, cancel := context.WithCancel(ctx)
	if timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	another := false
	unheed := func() {}
	defer func() { unheed() }()
	r, err := e.root.Ask(limited, o, func(r *teams.Response) {
		if r.Known && e.differs(box, o.Message) {
			another = true // its answer is none to this
			cancel()
			return
		}
		if r.Again {
			e.Warn("%s was cut short and is handed to %s again", r.ID.Short(6), box.Agent())
		}
		if r.Reply == nil {
			unheed = e.heed(ctx, box)
			e.warnAsked(box)
		}
	})
	var cut *teams.CutShortError
	var ended *teams.EndedError
	switch {
	case another:
		return e.anothers(o.Message.ID)
	case errors.As(err, &ended):
		f := cmdline.Failed("%w", err).WithHint("atm trace %s says what became of the question; %s shows the end", r.ID.Short(6), playRecording(box))
		f.Extra = map[string]any{"id": r.ID, "exit": ended.Code}
		return f
	case errors.As(err, &cut):
		f := cmdline.Failed("%w", err).WithHint("%s", looksAt(box))
		f.Extra = map[string]any{"id": r.ID, "turn_id": r.Turn, "status": r.Status, "duration_ms": r.Took.Milliseconds()}
		return f
	case errors.Is(err, mailbox.ErrWithdrawn):
		return cmdline.Refused("message %s was withdrawn", r.ID.Short(6)).WithHint("another name, or id, asks anew")
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return e.unanswered(timeout, r, box)
	case err != nil:
		return err
	}
	return e.printAnswer(ctx, box, r)
}

// warnAsked says at once where there is little to hope for.
func (e *env) warnAsked(box *mailbox.Box) {
	t, err := e.root.Team(box.Address().Team)
	if err != nil {
		return
	}
	m, err := t.Summary(box.Agent())
	if err != nil {
		return
	}
	switch {
	case m.State == reducer.WordOff, m.State == reducer.WordBlocked, m.State == reducer.WordError:
		e.Warn("%s is %s", m.Name, m.Forecast(time.Now(), false))
	case m.State == reducer.WordPerson:
		e.Warn("%s is a person, who answers when they read it", m.Name)
	case m.Running && m.Inject == "off":
		e.Warn("nothing is typed into %s (inject is off), who reads it with atm read", m.Name)
	case !m.Running && m.Transport != "hook":
		e.Warn("no runner brings mail to %s, who reads it with atm read", m.Name)
	}
}

// offLooks is how often in a row somebody is found off before that is said: their
// program may be started again, and Ask itself ends with one that has ended.
const offLooks = 3

// heed says, while an answer is waited for, when who is to give it comes to ask
// something or is off: once each time. It looks in a goroutine of its own, which
// has ended when stop returns.
func (e *env) heed(ctx context.Context, boxes ...*mailbox.Box) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	was := make([]reducer.Word, len(boxes))
	for i, b := range boxes {
		was[i] = e.glance(b).State
	}
	go func() {
		defer close(ended)
		off := make([]int, len(boxes)) // looks in a row
		tick := time.NewTicker(tick)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for i, b := range boxes {
				m := e.glance(b)
				off[i]++
				if m.State != reducer.WordOff {
					off[i] = 0
				}
				if m.State == was[i] || off[i] > 0 && off[i] < offLooks {
					continue
				}
				was[i] = m.State
				e.warnHindered(b, m)
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// glance is what is known of somebody now; nothing, where that cannot be read.
func (e *env) glance(b *mailbox.Box) teams.Member {
	t, err := e.root.Team(b.Address().Team)
	if err != nil {
		return teams.Member{}
	}
	m, _ := t.Summary(b.Agent())
	return m
}

// warnHindered says why somebody will not answer just now, where they will not.
func (e *env) warnHindered(b *mailbox.Box, m teams.Member) {
	switch m.State {
	case reducer.WordOff:
		e.Warn("%s is off now; what it has not read waits: %s", b.Agent(), e.runAgain(b))
	case reducer.WordBlocked:
		what := m.Forecast(time.Now(), false)
		if t, err := e.root.Team(b.Address().Team); err == nil {
			if asked, _ := t.Questions(b.Agent()); len(asked) > 0 {
				what += " (" + about(asked[0], 100) + ")"
			}
		}
		e.Warn("%s is %s, and goes on when that is answered: atm pending%s", b.Agent(), what, e.typed())
	}
}

// looksAt is the command that shows an agent's screen, or what stood on it last.
func looksAt(box *mailbox.Box) string {
	if running, err := box.Store().Running(box.Agent()); err == nil && !running {
		return playRecording(box)
	}
	return "atm screen " + string(box.Agent())
}

// unanswered says what keeps the answer.
func (e *env) unanswered(timeout time.Duration, r *teams.Response, box *mailbox.Box) error {
	id := r.ID.Short(6)
	c := cmdline.Timeout("sent %s, but waited %s in vain for an answer of %s", id, timeout, box.Agent())
	c.Extra = map[string]any{"timeout": true, "id": r.ID}
	if t, bad := e.root.Team(box.Address().Team); bad == nil {
		if row, bad := t.Summary(box.Agent()); bad == nil && row.State == reducer.WordBlocked {
			return c.WithHint("%s waits for an answer itself: atm pending%s", box.Agent(), e.typed())
		}
	}
	return c.WithHint("not yet: atm wait --reply %s%s, or atm trace %s says what keeps it", id, e.typed(), id)
}

// printAnswer prints the reply, else what the turn said in the end; and beside it
// how long that took: `$(atm ask …)` is the answer alone.
func (e *env) printAnswer(ctx context.Context, box *mailbox.Box, r *teams.Response) error {
	a := answered{ID: r.ID, Response: r.Text, MS: r.Took.Milliseconds(), TurnID: r.Turn, Status: r.Status}
	var err error
	switch {
	case r.Reply != nil:
		err = e.showReply(ctx, r.Reply, a)
	case e.JSON():
		return e.PrintJSON(a)
	case r.Text == "":
		e.Warn("the turn of %s is over; nothing tells what it said: %s", box.Agent(), looksAt(box))
	case e.terminal():
		err = e.print("%s", letter.EscapeBody(r.Text))
	default:
		err = e.print("%s", r.Text)
	}
	if !e.JSON() {
		e.Warn("%s after %s", r.Status, r.Took.Round(time.Millisecond))
	}
	return err
}

// showReply prints a reply, which is read with that.
func (e *env) showReply(ctx context.Context, it *mailbox.Item, a answered) error {
	text := it.Body + "\n"
	if e.terminal() {
		text = letter.EscapeBody(it.Body) + "\n"
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
