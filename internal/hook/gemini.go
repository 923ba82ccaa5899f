package hook

import (
	"strconv"
	"strings"
)

// gemini understands the hooks of Gemini CLI (0.61). There is no turn id: a
// turn is its session's with a counter. There is no hook for an interrupt or a
// failure either; a turn that is cut off before the first word ends with
// noAnswer, of any other the next prompt or the session's end shows it.
//
// PreCompress says nothing here: the program calls it before every request to
// its model, whether it compresses or not.
func (c *call) gemini() {
	in := c.in
	event := in.text("hook_event_name")
	stamp := in.text("timestamp")
	c.names(in.text("session_id"), event, "")
	c.dated, c.loose = stamp != "", stamp == ""
	tool := in.text("tool_name")
	switch event {
	case "BeforeAgent":
		prompt := in.text("prompt")
		if ours(prompt) && c.now().Open {
			// The turn that mail continued, called anew with that mail. The
			// model has not been asked yet.
			c.turn = c.now().ID
			return
		}
		c.shows, c.replyAs, c.starts = true, asContext, aTurn
		c.turn = c.nextTurn(c.hash(stamp, prompt)[:8])
		c.begin(prompt)

	case "AfterAgent":
		c.turn = c.now().ID
		status, response := "completed", in.text("prompt_response")
		if response == noAnswer {
			// Of no use to continue: the program is told to stop.
			status, response = "interrupted", ""
		} else {
			c.shows = true
			if raw := in.raw("stop_hook_active"); raw == nil || string(raw) == "false" {
				c.replyAs = asDeny
			}
		}
		c.ending = append(c.ending, c.answered(status, c.turn, response), c.idle(c.turn))

	case "BeforeTool":
		c.shows = true
		c.turn = c.openTurn()
		c.toolBegins(tool, "")

	case "AfterTool":
		c.shows, c.replyAs = true, asContext
		c.turn = c.openTurn()
		wrong := in.within("tool_response").text("error")
		if e := in.within("tool_response").within("error"); e != nil {
			wrong = or(e.text("message"), "failed")
		}
		c.toolEnds(tool, "", wrong)

	case "Notification":
		if in.text("notification_type") == "ToolPermission" {
			c.turn = c.openTurn()
			details := in.within("details")
			c.asks("", or(about("", details, nil), in.text("message")), "")
		}

	case "SessionStart":
		c.sessionStart()

	case "SessionEnd":
		c.closes(in.text("reason"))
	}
}

// noAnswer is what stands for an answer that has not begun.
const noAnswer = "[no response text]"

// nextTurn is the id of a turn that begins: the session and a number, and what
// the call is known by, if anything, so that the same call twice is one turn.
func (c *call) nextTurn(known string) string {
	last := c.now().ID
	rest, _ := strings.CutPrefix(last, c.session+"#")
	number, of, _ := strings.Cut(rest, ".")
	n, _ := strconv.Atoi(number)
	switch {
	case known == "":
		return c.session + "#" + strconv.Itoa(n+1)
	case known == of:
		return last
	}
	return c.session + "#" + strconv.Itoa(n+1) + "." + known
}

// openTurn is the id of the turn that is open, "" when none is known to be.
func (c *call) openTurn() string {
	if t := c.now(); t.Open {
		return t.ID
	}
	return ""
}
