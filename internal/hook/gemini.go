package hook

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
)

// gemini understands the hooks of Gemini CLI (0.61). There is no turn id: a turn is its session's with
// a counter. There is no hook for an interrupt or a failure either; a turn that is cut off before the
// first word ends with noAnswer, of any other the next prompt or the session's end shows it.
func (c *call) gemini() {
	in := c.in
	c.names(in.Text("session_id"), in.Text("hook_event_name"), "")
	c.dated, c.Loose = in.Text("timestamp") != "", in.Text("timestamp") == ""
	switch c.kind {
	case "BeforeAgent":
		if ours(in.Text("prompt")) && c.lastTurn().IsOpen() { // the turn that mail continued, called anew with it
			c.turn = c.lastTurn().ID
			return
		}
		c.Shows, c.replyAs = true, asContext
		c.turn = c.nextTurn(c.hash(in.Text("timestamp"), in.Text("prompt"))[:8])
		c.begin(in.Text("prompt"))
	case "AfterAgent":
		c.turn = c.lastTurn().ID
		status, response := "completed", in.Text("prompt_response")
		if response == noAnswer {
			status, response = "interrupted", "" // of no use to continue
		} else if c.Shows = true; c.isFirstStop() {
			c.replyAs = asBlock
		}
		c.ending = append(c.ending, c.over(status, c.turn, response), c.idle(c.turn))
	case "BeforeTool":
		c.Shows = true
		c.turn = c.openTurn()
		c.toolBegins(in.Text("tool_name"), "")
	case "AfterTool":
		c.Shows, c.replyAs = true, asContext
		c.turn = c.openTurn()
		c.toolEnds(in.Text("tool_name"), "", errorText(in.Object("tool_response").Get("error")))
	case "Notification":
		if in.Text("notification_type") == "ToolPermission" {
			c.turn = c.openTurn()
			c.asks("", cmp.Or(about(in.Get("details")), in.Text("message")))
		}
	case "SessionStart":
		c.sessionStart()
	case "SessionEnd":
		c.closes(in.Text("reason"))
	}
}

// errorText is an error as a string, or as an object with a message; "" is none.
func errorText(raw json.RawMessage) (text string) {
	var e struct{ Message string }
	if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &e) == nil {
		return cmp.Or(e.Message, "failed")
	}
	return text
}

// noAnswer is what stands for an answer that has not begun.
const noAnswer = "[no response text]"

// nextTurn is the id of a turn that begins: the session and a number, and what the call is known by, if
// anything, so that the same call twice is one turn.
func (c *call) nextTurn(known string) string {
	last := c.lastTurn().ID
	rest, _ := strings.CutPrefix(last, c.Session+"#")
	number, of, _ := strings.Cut(rest, ".")
	n, _ := strconv.Atoi(number)
	if known != "" && known == of {
		return last
	}
	return strings.TrimSuffix(c.Session+"#"+strconv.Itoa(n+1)+"."+known, ".")
}

func (c *call) openTurn() string {
	if t := c.lastTurn(); t.IsOpen() {
		return t.ID
	}
	return ""
}
