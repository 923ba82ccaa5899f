package hook

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// The plugin's own calls. askMail asks for mail to push into a session. The answer is a pushAnswer. isMailShown tells of
// a text with mail that the model is about to get, mailRefused that a session did not take what was pushed, and isResumed
// that a new program has opened a session.
const (
	askMail     = "atm.mail"
	isMailShown = "atm.shown"
	mailRefused = "atm.refused"
	isResumed   = "atm.resumed"
)

// pushAnswer is what the plugin gets for askMail.
type pushAnswer struct {
	Watch     []string `json:"watch,omitempty"`     // the directories that change when there is some; none: it gets none
	Waiting   bool     `json:"waiting,omitzero"`    // there is mail, to be had with a session
	Arguments []string `json:"arguments,omitempty"` // the program's, if it does not know its session
	Text      string   `json:"text,omitzero"`       // the mail
}

func (c *call) pushAnswer(mail string) (a pushAnswer) {
	if c.o.IsSecond {
		return a
	}
	inbox := filepath.Join(c.o.Box.Path(), "inbox")
	a.Watch, a.Text, a.Waiting = []string{inbox, filepath.Join(inbox, "new")}, mail, c.isPeek && mail != ""
	if c.isPeek {
		if a.Text = ""; c.o.Arguments != nil {
			a.Arguments = c.o.Arguments()
		}
	}
	return a
}

// opencode parses a bus event of OpenCode (1.18) as atm's plugin passes it on: {"type","properties"}. The plugin adds
// "pushes" where it can push mail, and "prompt" and "answer" to a session's state. The other events report states only. A turn's id is its session's with a counter; a turn
// begins when an idle session becomes busy.
//
// A session with a parent is a sub-agent. Only its creation says so, so the plugin adds "subagent" to its other events.
func (c *call) opencode() {
	in := c.in
	p := &busProperties{}
	json.Unmarshal(in.Get("properties"), p)
	c.identify(cmp.Or(p.SessionID, p.Info.ID, p.Part.SessionID), in.Text("type"), "")
	c.isUnique = in.Text("id") != ""
	c.hasPlugin = string(in.Get("pushes")) == "true"
	if p.Info.ParentID != "" || in.Get("subagent") != nil { // its dialogs block the agent, whose session is another one
		c.Session, c.subagent = "", "subagent"
		if c.kind == "permission.asked" {
			c.askBusPermission(p)
		} else if c.kind == "permission.replied" && c.lastSession().Activity == reducer.Confirming {
			c.changeState("tool_running", c.subagent, "id", c.dialogID(p))
		}
		return
	}
	switch c.kind {
	case askMail:
		c.replyAs, c.IsPush, c.IsNewProgram = asPush, true, string(in.Get("isNew")) == "true"
		c.answersAlways, c.isPeek = true, c.Session == ""
	case isMailShown:
		c.Shown, c.answersAlways = shown(in.Text("text")), true
	case mailRefused:
		c.Forgets = askMail
	case isResumed:
		c.interruptOpen("") // by the end of the program before
	case "session.created":
		c.startSession("created")
	case "session.deleted":
		c.endSession("deleted")
	case "session.status":
		c.handleStatus(p)
	case "session.idle":
		c.settle()
	case "session.error":
		status := "interrupted"
		if p.Error.Name != "MessageAbortedError" {
			status = "failed"
			c.addEvent(wire.StreamError, "", "error_summary", strings.TrimPrefix(p.Error.Name+": "+p.Error.Data.Message, ": "))
		}
		if t := c.lastSession().Turn; t.IsOpen() {
			c.turn = t.ID
			c.events = append(c.events, c.turnCompleted(status, t.ID, ""))
		}
	case "permission.asked":
		c.turn = c.lastSession().Turn.ID
		c.askBusPermission(p)
	case "permission.replied":
		c.turn = c.openTurnID()
		if p.Reply == "reject" {
			c.resumeThinking("id", c.dialogID(p))
		} else if c.lastSession().Turn.IsOpen() {
			c.changeState("tool_running", "", "id", c.dialogID(p))
		}
	case "question.asked":
		c.turn = c.lastSession().Turn.ID
		prompt := ""
		for _, q := range p.Questions {
			prompt += "\n" + q.Question
		}
		c.addRepeatable("waiting_for_input", "prompt", strings.TrimSpace(prompt))
	case "question.replied", "question.rejected":
		c.turn = c.lastSession().Turn.ID
		c.resumeThinking("id", c.dialogID(p))
	case "message.part.updated":
		c.turn = c.openTurnID()
		part := p.Part
		switch {
		case part.Type != "tool":
		case part.State.Status == "running":
			c.startTool(part.Tool, part.CallID)
		case part.State.Status == "completed":
			c.endTool(part.Tool, part.CallID, "")
		case part.State.Status == "error":
			c.endTool(part.Tool, part.CallID, cmp.Or(part.State.Error, "failed"))
		}
	}
}

// busProperties are the properties of all events. encoding/json ignores the case of names.
type busProperties struct {
	ID, SessionID, Permission string
	RequestID, Reply          string

	Tool struct{ CallID string } // of a permission request
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

// dialogID tells apart the dialogs that are open at one time. It is "" under a runner, which sees one dialog at a time
// and gives it an id of its own.
func (c *call) dialogID(p *busProperties) string {
	if c.hasRunner() {
		return ""
	}
	return cmp.Or(p.RequestID, p.ID)
}

func (c *call) askBusPermission(p *busProperties) {
	prompt := cmp.Or(describe(p.Metadata), strings.Join(p.Patterns, " "), p.Permission)
	c.askPermission(p.Permission, prompt, "id", c.dialogID(p), "tool_call_id", p.Tool.CallID)
	if !c.hasPlugin || c.o.Ask == nil || c.o.IsSecond || p.ID == "" || c.hasRunner() {
		return
	}
	last := len(c.events) - 1
	c.permission = &Permission{Event: c.events[last], ID: p.ID, Tool: p.Permission, Prompt: prompt, IsCommand: p.Permission == "bash"}
	c.events = c.events[:last]
	var what struct {
		Command, FilePath string
		Files             json.RawMessage // of a patch
	}
	json.Unmarshal(p.Metadata, &what)
	switch {
	case p.Permission == "bash":
		c.permission.Input = what.Command
	case p.Permission == "edit" && what.Files == nil:
		c.permission.Input = what.FilePath
	}
	if c.permission.IsRisky = c.permission.Input == ""; c.permission.IsRisky { // only this much is known of it
		c.permission.Input = strings.Join(p.Patterns, " ")
	}
}

// busAnswer is what the plugin gets for a permission request.
type busAnswer struct {
	Reply   string `json:"reply"` // once, always, reject
	Message string `json:"message,omitzero"`
}

const retrying = "API retry"

func isRetrying(s *reducer.Session) bool { return strings.HasPrefix(s.Detail, retrying) }

func (c *call) handleStatus(p *busProperties) {
	switch p.Status.Type {
	case "busy":
		if last := c.lastSession(); !last.Turn.IsOpen() {
			c.turn = c.nextTurnID("")
			c.addEvent(wire.TurnStarted, c.turn, "prompt", wire.Clip(c.in.Text("prompt"), maxPrompt))
		} else if isRetrying(last) {
			c.turn = last.Turn.ID
			c.changeState("thinking", "")
		}
	case "retry":
		c.turn = c.lastSession().Turn.ID
		c.addEvent(wire.StreamError, "", "error_summary", p.Status.Message)
		if c.lastSession().Turn.IsOpen() {
			c.changeState("thinking", strings.TrimSpace(retrying+" "+string(p.Status.Attempt)))
		}
	case "idle":
		c.settle()
	}
}

// settle handles a session that has become idle. Its turn is completed, unless an error or a retry came last, or it has
// begun neither a word nor a tool call.
func (c *call) settle() {
	last := c.lastSession()
	c.turn = last.Turn.ID
	switch {
	case !last.Turn.IsOpen():
		c.events = append(c.events, c.turnIdle(c.turn))
	case isRetrying(last):
		c.endTurn("failed", c.turn, "")
	case c.in.Has("answer") && c.in.Text("answer") == "" && len(last.Calls) == 0: // no error tells of it
		c.endTurn("interrupted", c.turn, "")
	default:
		c.endTurn("completed", c.turn, c.in.Text("answer"))
	}
}
