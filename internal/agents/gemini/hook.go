package gemini

import (
	"cmp"

	"github.com/agentteammail/atm/internal/agents"
)

// noAnswer is the response that Gemini CLI reports if the turn was cut off before the first word.
const noAnswer = "[no response text]"

// answer says "deny" where Claude Code's form has other words.
func answer(c *agents.Call, text string) any {
	d := c.Document(text)
	if c.Refusal != "" {
		*d = agents.Document{Message: d.Message, Decision: "deny", Reason: c.Refusal}
	} else if d.Decision != "" {
		d.Decision = "deny"
	}
	return d
}

// parse parses a hook call of Gemini CLI (0.61). It has no turn ids: a turn's id is its session's with a counter. Nor
// has it a hook for an interrupt or a failure: a turn that is cut off ends with noAnswer, or shows when the next prompt
// or the session's end finds it still open.
func parse(c *agents.Call) {
	in := c.In
	c.Identify(in.Text("session_id"), in.Text("hook_event_name"), "")
	c.IsAmbiguous = in.Text("timestamp") == ""
	switch c.Kind {
	case "BeforeAgent":
		c.BeginsTurn, c.Shown = true, agents.Shown(in.Text("prompt"))
		if agents.IsMail(in.Text("prompt")) && c.LastSession().Turn.IsOpen() { // AfterAgent's answer has continued the turn
			c.Turn = c.LastSession().Turn.ID
			return
		}
		c.ProvesReceipt, c.ReplyAs = true, agents.AsContext
		c.Forgets = c.Kind + " " // as in Claude Code
		c.Turn = c.NextTurnID()
		c.StartTurn(in.Text("prompt"))
	case "AfterAgent":
		c.Turn = c.LastSession().Turn.ID
		status, response := "completed", in.Text("prompt_response")
		if response == noAnswer {
			status, response = "interrupted", "" // continuing it would be of no use
		} else {
			c.ProvesReceipt = true
			if c.IsFirstStop() {
				c.ReplyAs = agents.AsBlock
			}
		}
		c.EndEvents = append(c.EndEvents, c.TurnCompleted(status, c.Turn, response), c.TurnIdle(c.Turn))
	case "BeforeTool":
		c.ProvesReceipt = true
		c.Turn = c.OpenTurnID()
		c.WillEdit = c.Edits(in.Text("tool_name"), in.Get("tool_input"))
		c.StartTool(in.Text("tool_name"), "")
	case "AfterTool":
		c.ProvesReceipt, c.ReplyAs = true, agents.AsContext
		c.Turn = c.OpenTurnID()
		response := in.Object("tool_response")
		if response.Get("error") == nil {
			c.HasEdited = c.Edits(in.Text("tool_name"), in.Get("tool_input"))
		}
		c.EndTool(in.Text("tool_name"), "", cmp.Or(response.Text("error"), response.Object("error").Text("message")))
	case "Notification":
		if in.Text("notification_type") == "ToolPermission" {
			c.Turn = c.OpenTurnID()
			c.AskPermission("", cmp.Or(agents.Describe(in.Get("details")), in.Text("message")))
		}
	case "SessionStart":
		c.HandleSessionStart()
		c.ReplyAs = agents.NoReply // it forgets what is added here when it resumes or clears a conversation; BeforeAgent has the mail
	case "SessionEnd":
		c.EndSession(in.Text("reason"))
	}
}
