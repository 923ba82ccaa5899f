package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/foot"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

var sessionAttachVerb = &cmdline.Verb{
	Name: "attach", Aliases: []string{"join"}, Args: "ID", Summary: "sit in it: what its agent says, and a line to type",
	Examples: []string{"atm session attach bob", "atm session attach bob --read-only"},
	Notes: []string{
		"Begins with what was said since you were here last. /help lists what else can be done;",
		"Ctrl-D leaves, and the session goes on. Without a terminal: a line in is a message, and",
		"it ends with stdin unless --follow. What the agent mails to you is shown, and read.",
	},
	Flags: []cmdline.Flag{
		{Name: "read-only", Usage: "look only"},
		{Name: "follow", Usage: "without a terminal: stay until the session is over"},
		{Name: "timeout", Kind: cmdline.Duration, Arg: "D", Usage: "leave after that"},
	},
	MinArgs: 1, MaxArgs: 1,
	Run: long(sessionAttach),
}

func sessionAttach(ctx context.Context, e *env) error {
	readOnly := e.Bool("read-only")
	open := e.speaker
	if readOnly {
		open = e.open
	}
	if err := open(); err != nil {
		return err
	}
	id, err := e.sessionNamed(e.Args[0])
	if err != nil {
		return err
	}
	if plan, err := e.sessionPlan(); !readOnly && (err != nil || !plan.AllowHumanInput) {
		readOnly = true
		if err != nil {
			e.Warn("%v; nothing is sent", err)
		} else {
			e.Warn("%v; nothing is sent", teams.ErrNoHumanInput)
		}
	}
	s, err := e.tended(ctx, id)
	if err != nil {
		return explainSession(err)
	}
	c := &conversation{env: e, id: id, box: e.team.Box(wire.Name(s.AgentID)), readOnly: readOnly}
	if e.Given("timeout") && e.Duration("timeout") > 0 {
		c.until = time.Now().Add(e.Duration("timeout"))
	}
	return e.following(ctx, func(ctx context.Context) error { return c.hold(ctx, s) })
}

// backlog is how much of the log who has not been here sees.
const backlog = 20

// A conversation is a session on this terminal, or in lines where there is none.
//
// Two goroutines beside its own: one reads what is typed, until the process
// ends, and one hears the mailboxes, until hold returns.
type conversation struct {
	*env
	id       wire.UUID
	box      *mailbox.Box // the agent's
	readOnly bool
	until    time.Time

	foot  *foot.Foot // of this terminal; nil: lines
	shown uint64     // of the log
}

func (c *conversation) hold(ctx context.Context, s *session.Session) error {
	boxes := []*mailbox.Box{c.box}
	if c.me != nil && c.me.Address() != c.box.Address() {
		boxes = append(boxes, c.me)
	}
	// Before the first look: what comes between is not missed.
	w, err := watcher.Open(ctx, boxes, watcher.Options{Messages: true, Events: true})
	if err != nil {
		return err
	}
	heard := make(chan struct{}, 1)
	ended := make(chan struct{})
	defer func() {
		w.Close()
		<-ended
	}()
	go func() {
		defer close(ended)
		for {
			if _, err := w.Next(context.Background()); err != nil {
				return // closed
			}
			select {
			case heard <- struct{}{}:
			default:
			}
		}
	}()

	restore, err := c.openScreen()
	if err != nil {
		return err
	}
	defer restore()
	c.begin(s)
	defer c.leave()
	// The status line before anybody reads: reading draws it first.
	if over, err := c.refresh(ctx); over || err != nil {
		return err
	}
	lines := make(chan typed)
	if !c.readOnly || c.foot != nil {
		go c.read(lines)
	} else if !c.Bool("follow") {
		// Nothing is read, so there is nothing whose end could be waited for.
		go func() { lines <- typed{err: io.EOF} }()
	}

	tick, shape := time.NewTicker(time.Second), time.NewTicker(sizeEvery)
	defer tick.Stop()
	defer shape.Stop()
	for c.until.IsZero() || time.Now().Before(c.until) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-shape.C:
			c.resize()
			continue
		case <-tick.C:
		case <-heard:
			// A burst is one look: each may mean writing the log anew.
			pause(ctx, 50*time.Millisecond)
		case l := <-lines:
			switch {
			case l.err == nil:
				if leave, err := c.typed(ctx, l); leave || err != nil {
					return err
				}
			case c.foot == nil && c.Bool("follow"):
				lines = nil
			default:
				_, err := c.refresh(ctx)
				return err
			}
		}
		if over, err := c.refresh(ctx); over || err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// begin says where we are and how much is not shown.
func (c *conversation) begin(s *session.Session) {
	_, all := s.Entries(0)
	from := all - min(all, backlog)
	if c.me != nil {
		if n, been := s.Seen(string(c.me.Agent())); been {
			from = min(n, all)
		}
	}
	entries, _ := s.Entries(from)
	before := all - uint64(len(entries))
	c.shown = before
	line := fmt.Sprintf("session %s with %s, %s for %s", wire.ID(c.id).Short(6), s.AgentID, s.State, lived(s))
	if before > 0 {
		line += fmt.Sprintf("; %d before: atm session show %s", before, wire.ID(c.id).Short(6))
	}
	if c.foot != nil {
		line += "; /help"
	}
	c.note("%s", line)
}

// leave notes how far I have seen the log. Killed before that, who comes back
// sees the last of it again.
func (c *conversation) leave() {
	if c.me == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := c.team.Sessions().Change(ctx, c.id, func(s *session.Session) error {
		s.MarkSeen(string(c.me.Agent()), c.shown)
		return nil
	})
	if err != nil {
		c.note("what you have seen could not be noted: %v", err)
	}
}

// refresh shows what is new, and reports whether the session is over.
func (c *conversation) refresh(ctx context.Context) (over bool, err error) {
	if err := c.takeMail(ctx); err != nil {
		return false, err
	}
	s, err := c.look(ctx)
	if err != nil {
		return false, explainSession(err)
	}
	entries, all := s.Entries(c.shown)
	if lost := all - c.shown - uint64(len(entries)); all > c.shown && lost > 0 {
		c.note("%d messages are no longer in the log: atm events %s", lost, s.AgentID)
	}
	for i, m := range entries {
		if err := c.entry(m, s.AgentID); err != nil {
			return false, err
		}
		c.shown = all - uint64(len(entries)-i-1)
	}
	c.shown = all
	c.status(s)
	return !s.State.Alive(), nil
}

// look is the session as it is now; where it cannot be written, because the
// disk is full or somebody holds the lock, as it would be.
func (c *conversation) look(ctx context.Context) (*session.Session, error) {
	plan, err := c.sessionPlan()
	if err != nil {
		plan = &config.Session{}
	}
	s, err := c.team.RefreshSession(ctx, c.id, plan)
	if err != nil && ctx.Err() == nil && !errors.Is(err, session.ErrNotFound) {
		if seen, bad := c.team.Sessions().Look(ctx, c.id); bad == nil {
			return seen, nil
		}
	}
	return s, err
}

// entry shows something that was said.
func (c *conversation) entry(m wire.SessionMessage, agent string) error {
	if c.JSON() {
		line, err := wire.Marshal(m)
		if err != nil {
			return err
		}
		_, err = c.Stdout.Write(cmdline.EscapeJSON(append(line, '\n')))
		return err
	}
	return c.line(entryText(m, agent, c.terminal()))
}

// takeMail takes what the agent has mailed to me into the log: its answers to
// what I said come that way. It is read with that. (Noted first and marked
// after: killed in between it is marked the next time, and noted once.)
func (c *conversation) takeMail(ctx context.Context) error {
	if c.me == nil || c.readOnly {
		return nil
	}
	from := c.box.Address()
	match := func(m *wire.Message) bool { return m.From == from && m.Kind() == wire.TypeMessage }
	batch, err := c.me.Peek(ctx, mailbox.ReadOptions{Match: match})
	if err != nil || len(batch.Items) == 0 {
		return err
	}
	var ids []wire.ID
	_, err = c.team.Sessions().Change(ctx, c.id, func(s *session.Session) error {
		for _, it := range batch.Items {
			text := it.Body
			if it.RequiresAck {
				text += "\n(wants ack: atm ack " + it.ID.Short(6) + ")"
			}
			s.AddMessageOnce(session.SenderAgent, text, it.SentAt)
			ids = append(ids, it.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = c.me.Read(ctx, mailbox.ReadOptions{IDs: ids}, func(b mailbox.Batch) (int, error) { return len(b.Items), nil })
	return err
}
