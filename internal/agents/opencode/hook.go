package opencode

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// The plugin's own calls. askMail asks for mail to push into a session. The answer is a pushAnswer. isMailShown tells of
// a text with mail that the model is about to get, mailRefused that a session did not take what was pushed, or has lost it, and
// isResumed that a new program has opened a session.
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

func answer(c *agents.Call, mail string) (a pushAnswer) {
	if c.IsSecond || c.ReplyAs != agents.AsPush {
		return a
	}
	inbox := filepath.Join(c.Box.Path(), "inbox")
	a.Watch, a.Text, a.Waiting = []string{inbox, filepath.Join(inbox, "new")}, mail, c.IsPeek && mail != ""
	if c.IsPeek {
		a.Text, a.Arguments = "", c.Arguments()
	}
	return a
}

// parse parses a bus event of OpenCode (1.18) as atm's plugin passes it on: {"type","properties"}. The plugin adds "pushes" where
// it can push mail, and "prompt" and "answer" to a session's state. The other events report states only. A turn's id is its
// session's with a counter; a turn begins when an idle session becomes busy.
//
// A session with a parent is a sub-agent. Only its creation says so, so the plugin adds "subagent" to its other events.
func parse(c *agents.Call) {
	in := c.In
	p := &busProperties{}
	json.Unmarshal(in.Get("properties"), p)
	c.Identify(cmp.Or(p.SessionID, p.Info.ID, p.Part.SessionID), in.Text("type"), "")
	c.HasPlugin = string(in.Get("pushes")) == "true"
	if !c.HasPlugin {
		c.Transport = "notify"
	}
	if p.Info.ParentID != "" || in.Get("subagent") != nil { // its dialogs block the agent, whose session is another one
		c.Session, c.Subagent = "", "subagent"
		switch c.Kind {
		case "permission.asked":
			askBusPermission(c, p)
		case "question.asked":
			askBusQuestion(c, p)
		case "permission.replied", "question.replied", "question.rejected":
			if c.LastSession().Activity == reducer.Confirming {
				c.ChangeState("tool_running", c.Subagent, "id", dialogID(c, p))
			}
		}
		return
	}
	switch c.Kind {
	case askMail:
		c.ReplyAs, c.IsPush, c.IsNewProgram = agents.AsPush, true, string(in.Get("isNew")) == "true"
		c.AnswersAlways, c.IsPeek = true, c.Session == ""
	case isMailShown:
		c.Shown, c.AnswersAlways = agents.Shown(in.Text("text")), true
	case mailRefused:
		c.Forgets = askMail
	case isResumed:
		c.InterruptOpen("") // by the end of the program before
	case "session.created":
		c.StartSession("created")
	case "session.deleted":
		c.EndSession("deleted")
	case "session.status":
		handleStatus(c, p)
	case "session.idle":
		settle(c)
	case "session.error":
		status := "interrupted"
		if p.Error.Name != "MessageAbortedError" {
			status = "failed"
			c.AddEvent(wire.StreamError, "", "error_summary", strings.TrimPrefix(p.Error.Name+": "+p.Error.Data.Message, ": "))
		}
		if t := c.LastSession().Turn; t.IsOpen() {
			c.Turn = t.ID
			c.Events = append(c.Events, c.TurnCompleted(status, t.ID, ""))
		}
	case "permission.asked":
		c.Turn = c.LastSession().Turn.ID
		askBusPermission(c, p)
	case "permission.replied":
		c.Turn = c.OpenTurnID()
		if p.Reply == "reject" {
			c.ResumeThinking("id", dialogID(c, p))
		} else if c.LastSession().Turn.IsOpen() {
			c.ChangeState("tool_running", "", "id", dialogID(c, p))
		}
	case "question.asked":
		c.Turn = c.LastSession().Turn.ID
		askBusQuestion(c, p)
	case "question.replied", "question.rejected":
		c.Turn = c.LastSession().Turn.ID
		c.ResumeThinking("id", dialogID(c, p))
	case "message.part.updated":
		c.Turn = c.OpenTurnID()
		part := p.Part
		if part.Type == "tool" && part.State.Status == "completed" {
			c.HasEdited = c.Edits(part.Tool, part.State.Input)
		}
		switch {
		case part.Type != "tool":
		case part.State.Status == "running":
			c.StartTool(part.Tool, part.CallID)
		case part.State.Status == "completed":
			c.EndTool(part.Tool, part.CallID, "")
		case part.State.Status == "error":
			c.EndTool(part.Tool, part.CallID, cmp.Or(part.State.Error, "failed"))
		}
	}
}

// busProperties are the properties of all events. encoding/json ignores the case of names.
type busProperties struct {
	ID, SessionID, Permission string
	RequestID, Reply          string

	Tool struct{ CallID string } // of what is asked
	Info struct{ ID, ParentID string }
	Part struct {
		SessionID, Type, Tool, CallID string
		State                         struct {
			Status, Error string
			Input         json.RawMessage
		}
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
	Questions []struct {
		Question string
		Multiple bool
		Options  []agents.Choice
	}
}

// dialogID tells apart the dialogs that are open at one time. It is "" under a runner, which sees one dialog at a time
// and gives it an id of its own.
func dialogID(c *agents.Call, p *busProperties) string {
	if c.HasRunner() {
		return ""
	}
	return cmp.Or(p.RequestID, p.ID)
}

var permissionOptions = []ask.Option{
	{ID: "once", Label: "Allow once", Kind: "allow_once"},
	{ID: "always", Label: "Allow always", Kind: "allow_always"},
	{ID: "reject", Label: "Reject", Kind: "reject_once"},
}

func askBusPermission(c *agents.Call, p *busProperties) {
	prompt := cmp.Or(agents.Describe(p.Metadata), strings.Join(p.Patterns, " "), p.Permission)
	c.AskPermission(p.Permission, prompt, "id", dialogID(c, p), "tool_call_id", p.Tool.CallID)
	if !c.HasPlugin || !c.MayAsk || p.ID == "" {
		return
	}
	last := len(c.Events) - 1
	c.Permission = &agents.Permission{
		Event: c.Events[last], ID: p.ID, Tool: p.Permission, Prompt: prompt, IsCommand: p.Permission == "bash", Options: permissionOptions,
	}
	c.Events = c.Events[:last]
	var what struct {
		Command, FilePath string
		Files             json.RawMessage // of a patch
	}
	json.Unmarshal(p.Metadata, &what)
	switch {
	case p.Permission == "bash":
		c.Permission.Input = what.Command
	case p.Permission == "edit" && what.Files == nil:
		c.Permission.Input = what.FilePath
	}
	if c.Permission.IsRisky = c.Permission.Input == ""; c.Permission.IsRisky { // only this much is known of it
		c.Permission.Input = strings.Join(p.Patterns, " ")
	}
}

// askBusQuestion asks a question of the person. One from which one answer is chosen may be answered from elsewhere.
func askBusQuestion(c *agents.Call, p *busProperties) {
	var all []string
	for _, q := range p.Questions {
		all = append(all, q.Question)
	}
	prompt := strings.Join(all, "\n")
	if c.HasRunner() {
		c.AddEvent(wire.WaitingForInput, "", "prompt", prompt)
		return
	}
	c.AskPermission("question", prompt, "id", dialogID(c, p), "tool_call_id", p.Tool.CallID)
	if !c.HasPlugin || !c.MayAsk || p.ID == "" || len(p.Questions) != 1 || p.Questions[0].Multiple {
		return
	}
	options := agents.Choices(p.Questions[0].Options)
	if options == nil {
		return
	}
	last := len(c.Events) - 1
	c.Permission = &agents.Permission{Event: c.Events[last], ID: p.ID, Tool: "question", Prompt: prompt, Options: options, IsChoice: true}
	c.Events = c.Events[:last]
}

// decide answers what the program has asked. To reject a question is another answer, which says so: else the turn would end.
func decide(c *agents.Call, v agents.Verdict) any {
	if !c.Permission.IsChoice {
		return busAnswer{v.Option, v.Why()}
	}
	return questionAnswer{[][]string{{cmp.Or(c.Permission.Chosen(v), v.Why())}}}
}

// questionAnswer is what the plugin gets for a question: the labels that are chosen, for each that is asked at once.
type questionAnswer struct {
	Answers [][]string `json:"answers"`
}

// busAnswer is what the plugin gets for a permission request.
type busAnswer struct {
	Reply   string `json:"reply"` // once, always, reject
	Message string `json:"message,omitzero"`
}

const retrying = "API retry"

func isRetrying(s *reducer.Session) bool { return strings.HasPrefix(s.Detail, retrying) }

func handleStatus(c *agents.Call, p *busProperties) {
	switch p.Status.Type {
	case "busy":
		if last := c.LastSession(); !last.Turn.IsOpen() {
			c.Turn = c.NextTurnID()
			c.AddEvent(wire.TurnStarted, c.Turn, "prompt", wire.Clip(c.In.Text("prompt"), agents.MaxPrompt))
		} else if isRetrying(last) {
			c.Turn = last.Turn.ID
			c.ChangeState("thinking", "")
		}
	case "retry":
		c.Turn = c.LastSession().Turn.ID
		c.AddEvent(wire.StreamError, "", "error_summary", p.Status.Message)
		if c.LastSession().Turn.IsOpen() {
			c.ChangeState("thinking", strings.TrimSpace(retrying+" "+string(p.Status.Attempt)))
		}
	case "idle":
		settle(c)
	}
}

// settle handles a session that has become idle. Its turn is completed, unless an error or a retry came last, or it has
// begun neither a word nor a tool call.
func settle(c *agents.Call) {
	last := c.LastSession()
	c.Turn = last.Turn.ID
	switch {
	case !last.Turn.IsOpen():
		c.Events = append(c.Events, c.TurnIdle(c.Turn))
	case isRetrying(last):
		c.EndTurn("failed", c.Turn, "")
	case c.In.Has("answer") && c.In.Text("answer") == "" && len(last.Calls) == 0: // no error tells of it
		c.EndTurn("interrupted", c.Turn, "")
	default:
		c.EndTurn("completed", c.Turn, c.In.Text("answer"))
	}
}
