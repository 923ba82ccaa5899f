package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
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
	c := &conversation{env: e, id: id, box: e.team.Box(wire.Name(s.AgentID)), readOnly: readOnly, mine: map[time.Time]bool{}}
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

	screen *term.Terminal // nil: lines
	prompt string
	shown  uint64             // of the log
	mine   map[time.Time]bool // what I typed here, which stands on the screen already
}

// typed is a line that was typed, or the end of all typing.
type typed struct {
	text string
	err  error
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
	if !c.readOnly || c.screen != nil {
		go c.read(lines)
	} else if !c.Bool("follow") {
		// Nothing is read, so there is nothing whose end could be waited for.
		go func() { lines <- typed{err: io.EOF} }()
	}

	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for c.until.IsZero() || time.Now().Before(c.until) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-heard:
			// A burst is one look: each may mean writing the log anew.
			pause(ctx, 50*time.Millisecond)
		case l := <-lines:
			switch {
			case l.err == nil:
				if leave := c.handle(ctx, l.text); leave {
					return nil
				}
			case c.screen == nil && c.Bool("follow"):
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

// openScreen takes hold of the terminal, if stdin and stdout are one that can
// be painted on.
func (c *conversation) openScreen() (restore func(), err error) {
	if c.Stdin == nil || !term.IsTerminal(int(c.Stdin.Fd())) || !c.terminal() || c.JSON() || c.Getenv("TERM") == "dumb" {
		return func() {}, nil
	}
	before, err := term.MakeRaw(int(c.Stdin.Fd()))
	if err != nil {
		return nil, err
	}
	c.screen = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{c.Stdin, c.Stdout}, "")
	c.screen.SetBracketedPasteMode(true)
	c.resize()
	return func() {
		c.screen.SetBracketedPasteMode(false)
		c.screen.SetPrompt("")
		fmt.Fprint(c.Stdout, "\r\x1b[K") // of the line that was never sent
		term.Restore(int(c.Stdin.Fd()), before)
	}, nil
}

func (c *conversation) resize() {
	if w, h, err := term.GetSize(int(c.Stdout.Fd())); err == nil && w > 0 && h > 0 {
		c.screen.SetSize(w, h)
	}
}

// read reads lines until there are no more. What was pasted in several lines is
// one.
func (c *conversation) read(lines chan<- typed) {
	if c.screen == nil {
		// Of any length up to that of a message; a longer one is refused by its
		// check, not here.
		in := bufio.NewReader(c.Stdin)
		for {
			text, err := in.ReadString('\n')
			if text = strings.TrimRight(text, "\r\n"); text != "" {
				lines <- typed{text: text}
			}
			if err != nil {
				lines <- typed{err: io.EOF}
				return
			}
		}
	}
	var pasted []string
	for {
		text, err := c.screen.ReadLine()
		switch {
		case errors.Is(err, term.ErrPasteIndicator):
			pasted = append(pasted, text)
		case err != nil:
			lines <- typed{err: err}
			return
		default:
			lines <- typed{text: strings.Join(append(pasted, text), "\n")}
			pasted = nil
		}
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
	if c.screen != nil {
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
		s.See(string(c.me.Agent()), c.shown)
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
		plan = &teams.SessionPlan{}
	}
	s, err := c.team.Tend(ctx, c.id, plan)
	if err != nil && ctx.Err() == nil && !errors.Is(err, session.ErrNotFound) {
		if seen, bad := c.team.Sessions().Look(ctx, c.id); bad == nil {
			return seen, nil
		}
	}
	return s, err
}

// entry shows something that was said.
func (c *conversation) entry(m wire.SessionMessage, agent string) error {
	switch {
	case c.JSON():
		_, err := c.Stdout.Write(cmdline.EscapeJSON(append(wire.Encode(m), '\n')))
		return err
	case c.screen != nil && m.Sender == session.SenderHuman && c.mine[m.Timestamp.UTC()]:
		return nil
	}
	return c.line(entryText(m, agent, c.terminal()))
}

// line shows a line above what is being typed.
func (c *conversation) line(text string) error {
	if c.screen == nil {
		return c.print("%s", text)
	}
	_, err := c.screen.Write([]byte(text + "\n"))
	return err
}

// note says something that nobody in the session said.
func (c *conversation) note(format string, args ...any) {
	if c.screen == nil {
		c.Warn(format, args...)
		return
	}
	c.line(cmdline.Escape("-- " + fmt.Sprintf(format, args...)))
}

// status shows, before what is being typed, how the agent is and what waits.
func (c *conversation) status(s *session.Session) {
	if c.screen == nil {
		return
	}
	state := "unknown"
	if m, err := c.team.Glance(c.box.Agent()); err == nil {
		if state = string(m.State); m.Detail != "" {
			state += ", " + mailbox.Clip(mailbox.Escape(m.Detail), 30)
		}
	}
	if s.State != wire.SessionActive {
		state += ", session " + string(s.State)
	}
	waiting := 0
	if len(s.DraftIDs) > 0 {
		drafts, _ := c.team.Drafts(context.Background()) // what is not known is not counted
		for _, d := range drafts {
			if d.Session == c.id && d.Answer == nil {
				waiting++
			}
		}
	}
	if waiting > 0 {
		state += fmt.Sprintf(", %d to approve", waiting)
	}
	prompt := fmt.Sprintf("[%s %s] ", s.AgentID, state)
	if c.readOnly {
		prompt = fmt.Sprintf("[%s %s, read only] ", s.AgentID, state)
	}
	c.resize()
	if prompt != c.prompt {
		c.prompt = prompt
		c.screen.SetPrompt(prompt)
		c.screen.Write(nil)
	}
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
			s.SayOnce(session.SenderAgent, text, it.SentAt)
			ids = append(ids, it.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = c.me.Read(ctx, mailbox.ReadOptions{IDs: ids, Prompt: true}, func(b mailbox.Batch) (int, error) { return len(b.Items), nil })
	return err
}
