package hook

import (
	"context"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// opencode understands the bus events of OpenCode (1.18) as a plugin passes
// them on: {"type","properties"}. They say states only. A turn is its
// session's with a counter; it begins when a session that was idle is busy.
//
// A session with a parent is a sub-agent. Only its creation says so, and it is
// remembered in the agent's run directory.
func (c *call) opencode(ctx context.Context) error {
	p := c.in.within("properties")
	info := p.within("info")
	part := p.within("part")
	event := c.in.text("type")
	c.names(or(p.text("sessionID"), or(info.text("id"), part.text("sessionID"))), event, "")
	c.dated = c.in.text("id") != ""
	if info.text("parentID") != "" && !strings.ContainsAny(c.session, " \t\r\n") {
		return addSubagent(c.o.Box, c.session)
	}
	if relevant(event) && isSubagent(c.o.Box, c.session) {
		c.child(event, p)
		return nil
	}
	switch event {
	case "session.created":
		c.opens("created")

	case "session.deleted":
		c.closes("deleted")

	case "session.status":
		c.status(p.within("status"))

	case "session.idle":
		c.rests()

	case "session.error":
		e := p.within("error")
		status := "failed"
		if e.text("name") == "MessageAbortedError" {
			status = "interrupted"
		} else {
			c.fails(strings.TrimPrefix(e.text("name")+": "+e.within("data").text("message"), ": "))
		}
		if t := c.now(); t.Open {
			c.turn = t.ID
			c.add(c.over(status, t.ID))
		}

	case "permission.asked", "permission.updated":
		c.turn = c.now().ID
		c.asks(asked(p))

	case "permission.replied":
		if c.now().Open {
			c.turn = c.now().ID
			if p.text("reply", "response") == "reject" {
				c.does("thinking", "")
			} else {
				c.does("tool_running", "")
			}
		}

	case "question.asked":
		c.turn = c.now().ID
		prompt := ""
		for _, raw := range p.each("questions") {
			q, _ := parse(raw)
			prompt = strings.TrimSpace(prompt + "\n" + q.text("question"))
		}
		c.wants(or(prompt, p.text("question")))

	case "question.replied", "question.rejected":
		c.turn = c.now().ID
		c.goesOn()

	case "message.part.updated":
		if part.text("type") == "tool" {
			c.toolIs(part.text("tool"), part.text("callID"), part.within("state"))
		}

	case "tool.execute.before":
		c.toolIs(p.text("tool"), p.text("callID"), object{{Name: "status", Value: []byte(`"running"`)}})

	case "tool.execute.after":
		c.toolIs(p.text("tool"), p.text("callID"), object{{Name: "status", Value: []byte(`"completed"`)}})
	}
	return nil
}

// relevant reports whether an event of a sub-agent's must be known as one.
func relevant(event string) bool {
	for _, prefix := range []string{"session.", "permission.", "question.", "message.part.", "tool."} {
		if strings.HasPrefix(event, prefix) {
			return true
		}
	}
	return false
}

// retrying is the detail of a turn that waits to ask its model again.
const retrying = "API retry"

// status is what a session says it does.
func (c *call) status(s object) {
	switch s.text("type") {
	case "busy":
		if t := c.now(); !t.Open {
			c.turn = c.nextTurn("")
			c.add(c.event(wire.TurnStarted, c.turn))
		} else if t.Retrying {
			c.turn = t.ID
			c.does("thinking", "")
		}
	case "retry":
		c.turn = c.now().ID
		c.fails(s.text("message"))
		if c.now().Open {
			c.does("thinking", strings.TrimSpace(retrying+" "+string(s.raw("attempt"))))
		}
	case "idle":
		c.rests()
	}
}

// rests is the end of all that a session had to do. The turn has ended well,
// unless something else was said of it before.
func (c *call) rests() {
	t := c.now()
	c.turn = t.ID
	if t.Open {
		status := "completed"
		if t.Retrying {
			status = "failed"
		}
		c.add(c.over(status, t.ID))
	}
	c.add(c.idle(t.ID))
}

// toolIs is what a tool call has come to.
func (c *call) toolIs(tool, id string, state object) {
	c.turn = c.openTurn()
	switch state.text("status") {
	case "running":
		c.toolBegins(tool, id)
	case "completed":
		c.toolEnds(tool, id, "")
	case "error":
		c.toolEnds(tool, id, or(state.text("error"), "failed"))
	}
}

// asked is what a permission dialog is about.
func asked(p object) (tool, prompt, detail string) {
	tool = p.text("permission", "type")
	prompt = about("", p.within("metadata"), nil)
	if prompt == "" {
		var patterns []string
		for _, raw := range p.each("patterns") {
			patterns = append(patterns, text(raw))
		}
		prompt = or(p.text("title"), or(strings.Join(patterns, " "), tool))
	}
	return tool, prompt, ""
}

// child is an event of a sub-agent: its dialogs block the agent, whose own
// session this is not.
func (c *call) child(event string, p object) {
	switch event {
	case "permission.asked", "permission.updated":
		tool, prompt, _ := asked(p)
		c.session = ""
		c.asks(tool, prompt, "subagent")
	case "permission.replied":
		c.session = ""
		if c.now().Blocked {
			c.does("tool_running", "subagent")
		}
	}
}
