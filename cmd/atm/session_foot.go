package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/foot"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

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
	c.foot = foot.New(c.Stdout, 80)
	c.resize()
	c.foot.Begin()
	return func() {
		c.foot.End()
		term.Restore(int(c.Stdin.Fd()), before)
	}, nil
}

// sizeEvery is how often it is looked how large the terminal is: a system call,
// and not every system tells of a change.
const sizeEvery = 200 * time.Millisecond

func (c *conversation) resize() {
	if c.foot == nil {
		return
	}
	if w, _, err := term.GetSize(int(c.Stdout.Fd())); err == nil && w > 0 {
		c.foot.Resize(w)
	}
}

// read reads keys, or lines where there is no terminal, until there are no more.
func (c *conversation) read(lines chan<- typed) {
	if c.foot == nil {
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
	for {
		keys := make([]byte, 4096)
		n, err := c.Stdin.Read(keys)
		if n > 0 {
			lines <- typed{keys: keys[:n]}
		}
		if err != nil {
			lines <- typed{err: err}
			return
		}
	}
}

// typed is a line that was typed, or keys of a terminal, or the end of both.
type typed struct {
	text string
	keys []byte
	err  error
}

// line shows a line above what is being typed.
func (c *conversation) line(text string) error {
	if c.foot == nil {
		return c.print("%s", text)
	}
	c.resize()
	return c.foot.Print(text)
}

// note says something that nobody in the session said.
func (c *conversation) note(format string, args ...any) {
	if c.foot == nil {
		c.Warn(format, args...)
		return
	}
	c.line(cmdline.Escape("-- " + fmt.Sprintf(format, args...)))
}

// status shows, before what is being typed, how the agent is and what waits.
func (c *conversation) status(s *session.Session) {
	if c.foot == nil {
		return
	}
	state := "unknown"
	if m, err := c.team.Summary(c.box.Agent()); err == nil {
		if state = string(m.State); m.Detail != "" {
			state += ", " + letter.Clip(letter.Escape(m.Detail), 30)
		}
		if m.State == reducer.WordBlocked && m.Running && !c.readOnly {
			state += ": /approve or /reject"
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
	if c.readOnly {
		state += ", read only"
	}
	c.resize()
	c.foot.Status(fmt.Sprintf("[%s %s]", s.AgentID, state))
}

// typed does what was typed, and reports whether that is to leave.
func (c *conversation) typed(ctx context.Context, l typed) (leave bool, err error) {
	if c.foot == nil {
		return c.handle(ctx, l.text), nil
	}
	c.resize()
	entered, leave, err := c.foot.Type(l.keys)
	for _, text := range entered {
		leave = c.handle(ctx, text) || leave
	}
	return leave, err
}
