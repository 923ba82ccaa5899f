package hook

import (
	"cmp"
	"strconv"
	"strings"
)

// noAnswer is the response that Gemini CLI reports if the turn was cut off before the first word.
const noAnswer = "[no response text]"

// gemini parses a hook call of Gemini CLI (0.61). It has no turn ids: a turn's id is its session's with a counter. Nor
// has it a hook for an interrupt or a failure: a turn that is cut off ends with noAnswer, or shows when the next prompt
// or the session's end finds it still open.
func (c *call) gemini() {
	in := c.in
	c.identify(in.Text("session_id"), in.Text("hook_event_name"), "")
	c.isUnique, c.IsAmbiguous = in.Text("timestamp") != "", in.Text("timestamp") == ""
	switch c.kind {
	case "BeforeAgent":
		if isMail(in.Text("prompt")) && c.lastSession().Turn.IsOpen() { // AfterAgent's answer has continued the turn
			c.turn = c.lastSession().Turn.ID
			return
		}
		c.ProvesReceipt, c.replyAs = true, asContext
		c.Forgets = c.kind + " " // as in Claude Code
		c.turn = c.nextTurnID(c.hash(in.Text("timestamp"), in.Text("prompt"))[:8])
		c.startTurn(in.Text("prompt"))
	case "AfterAgent":
		c.turn = c.lastSession().Turn.ID
		status, response := "completed", in.Text("prompt_response")
		if response == noAnswer {
			status, response = "interrupted", "" // continuing it would be of no use
		} else {
			c.ProvesReceipt = true
			if c.isFirstStop() {
				c.replyAs = asBlock
			}
		}
		c.endEvents = append(c.endEvents, c.turnCompleted(status, c.turn, response), c.turnIdle(c.turn))
	case "BeforeTool":
		c.ProvesReceipt = true
		c.turn = c.openTurnID()
		c.startTool(in.Text("tool_name"), "")
	case "AfterTool":
		c.ProvesReceipt, c.replyAs = true, asContext
		c.turn = c.openTurnID()
		response := in.Object("tool_response")
		c.endTool(in.Text("tool_name"), "", cmp.Or(response.Text("error"), response.Object("error").Text("message")))
	case "Notification":
		if in.Text("notification_type") == "ToolPermission" {
			c.turn = c.openTurnID()
			c.askPermission("", cmp.Or(describe(in.Get("details")), in.Text("message")))
		}
	case "SessionStart":
		c.handleSessionStart()
		c.replyAs = none // it forgets what is added here when it resumes or clears a conversation; BeforeAgent has the mail
	case "SessionEnd":
		c.endSession(in.Text("reason"))
	}
}

// nextTurnID returns the id for a turn that begins: the session, a number, and a hash of the call, if there is one, by which
// the same call twice gets the same id. The number follows that of the session's last turn. If that was begun without a
// hook, it is that of the session's newest event, which is higher.
func (c *call) nextTurnID(hash string) string {
	ses := c.lastSession()
	n := 0
	if rest, isOurs := strings.CutPrefix(ses.Turn.ID, c.Session+"#"); isOurs {
		number, lastHash, _ := strings.Cut(rest, ".")
		if hash != "" && hash == lastHash {
			return ses.Turn.ID
		}
		n, _ = strconv.Atoi(number)
	} else if len(ses.EndedTurns) > 0 {
		n = int(ses.LastSeq)
	}
	return strings.TrimSuffix(c.Session+"#"+strconv.Itoa(n+1)+"."+hash, ".")
}

func (c *call) openTurnID() string {
	if t := c.lastSession().Turn; t.IsOpen() {
		return t.ID
	}
	return ""
}
