// Package hook is what the hooks of coding agents say to atm, and what atm answers: the programs call
// `atm hook TOOL` with JSON on stdin, and read JSON from its stdout. A call becomes events of the
// agent's log, and unread mail goes out with the answer where the program puts that before its model:
//
//		tool       mail goes out at                            and continues it at
//		claude     UserPromptSubmit SessionStart PostToolBatch Stop TeammateIdle
//		codex      UserPromptSubmit SessionStart PostToolUse   Stop
//		gemini     BeforeAgent SessionStart AfterTool          AfterAgent
//		opencode   never: its plugins can say states only
//
//	  - It fails open: Handle returns an error to be said on stderr, and nothing has gone
//	    to stdout.
//	  - Unknown events and fields are passed over; wrong types are as if absent.
//	  - Events have an event_id made of what identifies the call (session, turn, tool
//	    call), or, where a tool gives too little, of the call's text, the moment and what
//	    was said in between: hooks that are installed twice say things once.
//	  - Of a sub-agent's calls only a permission dialog counts: it blocks the agent.
//	  - What has expired or was superseded goes out where a turn begins, marked. It keeps
//	    no turn going.
//	  - Each message goes out once, and once more, marked, when nothing showed that it was
//	    taken (mailbox.Box.HandOver).
package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Tool is a program whose hooks are understood.
type Tool string

// CodexNotify is what Codex calls at the end of a turn, with its JSON as an argument, where it has no hooks.
const (
	Claude      Tool = "claude"
	Codex       Tool = "codex"
	CodexNotify Tool = "codex-notify"
	Gemini      Tool = "gemini"
	OpenCode    Tool = "opencode"
)

var tools = map[Tool]func(*call){
	Claude: (*call).claude, Codex: (*call).codex, CodexNotify: (*call).codexNotify, Gemini: (*call).gemini, OpenCode: (*call).opencode,
}

// ParseTool is the tool of that name.
func ParseTool(name string) (Tool, error) {
	if tools[Tool(name)] == nil {
		return "", fmt.Errorf("no hook of %q is known; there are claude, codex, gemini, opencode", wire.Clip(name, 40))
	}
	return Tool(name), nil
}

// Options are the surroundings of a call.
type Options struct {
	Box    *mailbox.Box
	Now    time.Time                      // zero: the present
	State  func() (*reducer.State, error) // the fold of its events, asked for at most once; nil: nothing is known
	Pass   func(*mailbox.Item) bool       // which messages go out unasked; nil: all
	Primer func() string                  // what an agent is told when its session begins; nil: nothing
	Runs   func() map[string]wire.Name    // letter.Renderer's
	Flags  string                         // what a command needs to act as this agent: " --as bob"

	Stdout, Stderr io.Writer // of the process
}

// Handle takes in one call and answers it. exit is the process's code: 2 where that is how the tool is
// told something, else 0. The error is to be said on stderr, and is no reason for another code.
func Handle(ctx context.Context, tool Tool, in []byte, o Options) (exit int, err error) {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	c, err := understand(tool, in, o)
	if err != nil {
		return 0, fmt.Errorf("hook of %s: %w", tool, err)
	}
	return c.carryOut(ctx)
}

func understand(tool Tool, in []byte, o Options) (*call, error) {
	if _, err := ParseTool(string(tool)); err != nil {
		return nil, err
	}
	c := &call{tool: tool, sent: in, o: o, HookCall: mailbox.HookCall{Now: o.Now}}
	var err error
	if c.in, err = wire.ReadObject(in); err == nil {
		tools[tool](c)
	}
	return c, cmp.Or(err, c.err)
}

func (c *call) carryOut(ctx context.Context) (exit int, err error) {
	if c.primes && c.o.Primer != nil {
		c.text.WriteString(c.o.Primer())
	}
	h := &mailbox.Handover{}
	if c.Shows || c.Begins || c.Ends || c.replyAs != none {
		h, err = c.handOver(ctx)
	}
	log := c.o.Box.Log()
	keepsGoing := (c.replyAs == asBlock || c.replyAs == onStderr) && (len(h.Items) > 0 || h.Repeated)
	events := append(c.inTurn(h.Received), c.events...)
	if !keepsGoing {
		events = append(events, c.ending...)
	}
	if err = errors.Join(err, log.Append(ctx, events...)); err == nil {
		exit, err = c.answer()
	}
	if err != nil {
		wrong := []error{err, h.NotSent(ctx)}
		if keepsGoing && !h.Repeated { // it does not, as nothing was answered
			wrong = append(wrong, log.Append(ctx, c.ending...))
		}
		return 0, errors.Join(wrong...)
	}
	announced, err := h.Sent(ctx)
	return exit, errors.Join(err, log.Append(ctx, c.inTurn(announced)...))
}

// handOver chooses the mail that goes out with the answer, and writes it down.
func (c *call) handOver(ctx context.Context) (*mailbox.Handover, error) {
	box := c.o.Box
	c.Session, c.Want = cmp.Or(c.Session, "unnamed"), c.replyAs != none
	if c.Begins { // a runner types it; with this answer it would wait for the first prompt
		c.Want = c.Want && !c.hasRunner()
	}
	l := &letter.Renderer{Now: c.Now, Team: box.Address().Team, Digits: 6, Terminal: true, Runs: c.o.Runs}
	h, err := box.HandOver(ctx, c.HookCall, mailbox.ReadOptions{
		Limit: letter.MaxMessages, LookAhead: 200, Fits: l.LimitToPage(), Match: c.o.Pass, Current: !beginsTurn[c.kind],
	})
	if len(h.Items) > 0 {
		c.write(h, l)
	}
	return h, err
}

func (c *call) inTurn(events []wire.Event) []wire.Event {
	for i := range events {
		events[i].TurnID = c.turn
	}
	return events
}
