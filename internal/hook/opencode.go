package hook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"strings"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// opencode understands the bus events of OpenCode (1.18) as a plugin passes them on: {"type","properties"}. They say
// states only. A turn is its session's with a counter; it begins when a session that was idle is busy.
//
// A session with a parent is a sub-agent. Only its creation says so, and it is remembered in the agent's run directory.
func (c *call) opencode() {
	in := c.in
	p := &busProperties{}
	json.Unmarshal(in.Get("properties"), p)
	c.names(cmp.Or(p.SessionID, p.Info.ID, p.Part.SessionID), in.Text("type"), "")
	c.dated = in.Text("id") != ""
	if p.Info.ParentID != "" && !strings.ContainsAny(c.Session, " \t\r\n") {
		c.err = addSubagent(c.o.Box, c.Session)
		return
	}
	if isSubagent(c.o.Box, c.Session) {
		c.child(in.Text("type"), p)
		return
	}
	switch in.Text("type") {
	case "session.created":
		c.opens("created")
	case "session.deleted":
		c.closes("deleted")
	case "session.status":
		c.status(p)
	case "session.idle":
		c.rests()
	case "session.error":
		status := "interrupted"
		if p.Error.Name != "MessageAbortedError" {
			status = "failed"
			c.tell(wire.StreamFailed, "", "error_summary", strings.TrimPrefix(p.Error.Name+": "+p.Error.Data.Message, ": "))
		}
		if t := c.lastTurn(); t.IsOpen() {
			c.turn = t.ID
			c.add(c.over(status, t.ID, ""))
		}
	case "permission.asked":
		c.turn = c.lastTurn().ID
		c.asksPermission(p)
	case "permission.replied":
		c.turn = c.openTurn()
		if p.Reply == "reject" {
			c.goesOn("id", c.dialog(p))
		} else if c.lastTurn().IsOpen() {
			c.does("tool_running", "", "id", c.dialog(p))
		}
	case "question.asked":
		c.turn = c.lastTurn().ID
		prompt := ""
		for _, q := range p.Questions {
			prompt += "\n" + q.Question
		}
		c.tellAnew("waiting_for_input", "prompt", strings.TrimSpace(prompt))
	case "question.replied", "question.rejected":
		c.turn = c.lastTurn().ID
		c.goesOn("id", c.dialog(p))
	case "message.part.updated":
		c.turn = c.openTurn()
		switch part := p.Part; {
		case part.Type != "tool":
		case part.State.Status == "running":
			c.toolBegins(part.Tool, part.CallID)
		case part.State.Status == "completed":
			c.toolEnds(part.Tool, part.CallID, "")
		case part.State.Status == "error":
			c.toolEnds(part.Tool, part.CallID, cmp.Or(part.State.Error, "failed"))
		}
	}
}

// busProperties are those of an event. encoding/json does not mind the case of names.
type busProperties struct {
	ID, SessionID, Permission string
	RequestID, Reply          string

	Tool struct{ CallID string } // that a permission is asked for
	Info struct{ ID, ParentID string }
	Part struct {
		SessionID, Type, Tool, CallID string
		State                         struct{ Status, Error string }
	}
	Status struct {
		Type, Message string
		Attempt       json.RawMessage
	}
	Error struct {
		Name string
		Data struct{ Message string }
	}
	Patterns  []string
	Metadata  json.RawMessage
	Questions []struct{ Question string }
}

// dialog is the id of what is asked, or has its answer: the answer to one is not that to another. It is "" under a
// runner, which sees one dialog at a time and gives it an id of its own.
func (c *call) dialog(p *busProperties) string {
	if c.hasRunner() {
		return ""
	}
	return cmp.Or(p.RequestID, p.ID)
}

func (c *call) asksPermission(p *busProperties) {
	prompt := cmp.Or(about(p.Metadata), strings.Join(p.Patterns, " "), p.Permission)
	c.asks(p.Permission, prompt, "id", c.dialog(p), "tool_call_id", p.Tool.CallID)
}

const retrying = "API retry"

func isRetrying(t *reducer.Turn) bool { return strings.HasPrefix(t.Detail, retrying) }

func (c *call) status(p *busProperties) {
	switch p.Status.Type {
	case "busy":
		if t := c.lastTurn(); !t.IsOpen() {
			c.turn = c.nextTurn("")
			c.add(c.event(wire.TurnStarted, c.turn))
		} else if isRetrying(t) {
			c.turn = t.ID
			c.does("thinking", "")
		}
	case "retry":
		c.turn = c.lastTurn().ID
		c.tell(wire.StreamFailed, "", "error_summary", p.Status.Message)
		if c.lastTurn().IsOpen() {
			c.does("thinking", strings.TrimSpace(retrying+" "+string(p.Status.Attempt)))
		}
	case "idle":
		c.rests()
	}
}

// rests is the end of all that a session had to do. The turn has ended well, unless something else was
// said of it before.
func (c *call) rests() {
	t := c.lastTurn()
	c.turn = t.ID
	if t.IsOpen() && isRetrying(t) {
		c.add(c.over("failed", t.ID, ""))
	} else if t.IsOpen() {
		c.add(c.over("completed", t.ID, ""))
	}
	c.add(c.idle(t.ID))
}

// child is an event of a sub-agent: its dialogs block the agent, whose own session this is not.
func (c *call) child(event string, p *busProperties) {
	c.Session, c.who = "", "subagent"
	switch {
	case event == "permission.asked":
		c.asksPermission(p)
	case event == "permission.replied" && c.isBlocked():
		c.does("tool_running", c.who, "id", c.dialog(p))
	}
}

// subagentsFile has the sessions of the agent's program that are its sub-agents', a line each: the
// program says so only once.
const subagentsFile = "/run/children"

func addSubagent(box *mailbox.Box, session string) error {
	root, agent := box.Store().Dir(), string(box.Agent())
	err := root.Mkdir(agent + "/run")
	if err != nil || isSubagent(box, session) {
		return err
	}
	f, err := root.OpenFile(agent+subagentsFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	defer f.Close()
	return root.Write(f, []byte(session+"\n"))
}

func isSubagent(box *mailbox.Box, session string) bool {
	data, err := box.Store().Dir().ReadFile(string(box.Agent())+subagentsFile, 16<<20)
	return err == nil && bytes.Contains(append([]byte("\n"), data...), []byte("\n"+session+"\n"))
}
