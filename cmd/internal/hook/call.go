package hook

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/handover"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// call is one call of a hook: the input, and what follows from it.
type call struct {
	tool Tool
	in   wire.Object // null counts as absent, and a value that should be a string and is not as ""
	raw  []byte      // the input's bytes
	o    Options

	handover.Call
	kind     string // the tool's name of its event
	turn     string // "": the tool did not say
	thread   string
	subagent string // the sub-agent that it comes from; "": the agent itself
	isWake   bool   // the inbox has changed, and the program may be woken
	isUnique bool   // the input differs from that of every later call

	events    []wire.Event // to append
	endEvents []wire.Event // to append then, unless mail keeps the turn going

	permission *Permission // to wait for, when everything else is done; nil: none

	beginsSession bool
	hasPlugin     bool // see Session
	replyAs       replyWay
	isPeek        bool // whether there is mail is all that the answer says
	wantsPrimer   bool
	watch         []string        // what the program shall watch for this session
	refusal       string          // why the tool must not run; "": it may
	warning       string          // of the answer, for the person too
	text          strings.Builder // of the answer
	answersAlways bool            // with {} if there is no text

	last *reducer.Session // see lastSession
}

// Limits of what is kept of a tool's texts, in bytes.
const maxID, maxText, maxPrompt, maxAnswer = 256, 512, 200, 64 << 10

// identify sets the session, the event's kind and turn, and the call's name: kind and turn, and more words that tell it
// from the turn's other calls of that kind, where the tool gives any.
func (c *call) identify(session, kind, turn string, more ...string) {
	c.Session, c.kind, c.turn = wire.Clip(session, maxID), wire.Clip(kind, maxID), wire.Clip(turn, maxID)
	words := append([]string{c.kind, c.turn}, more...)
	if c.IsAmbiguous = c.turn == ""; c.IsAmbiguous {
		words = append(words, c.hash(string(c.raw)))
	}
	c.Name = wire.Clip(strings.Join(words, " "), 3*maxID)
}

// hash is the same for both ways of Codex.
func (c *call) hash(parts ...string) string {
	tool := strings.TrimSuffix(string(c.tool), "-notify")
	sum := sha256.Sum256([]byte(tool + "\x00" + strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// lastSession returns the session as the log has it, or the agent's current one if the tool names none.
func (c *call) lastSession() *reducer.Session {
	if c.last != nil {
		return c.last
	}
	c.last = &reducer.Session{Activity: reducer.Unknown}
	if c.o.State == nil {
		return c.last
	}
	if s, err := c.o.State(); err == nil {
		c.last = cmp.Or(s.SessionOf(c.Session), c.last)
	}
	return c.last
}

// hasRunner reports whether atm runs the program, and so sees its screen.
func (c *call) hasRunner() bool {
	runs, _ := c.o.Box.Store().Running(c.o.Box.Agent())
	return runs
}

// newEvent makes an event of this call. The pairs are fields and their texts; empty ones are left out. key identifies
// the event together with session and kind. It is "" if the tool gives nothing: then an equal text within two seconds
// is the same event.
func (c *call) newEvent(kind, key string, pairs ...string) wire.Event {
	id := "hook/" + c.hash(c.Session, kind, cmp.Or(key, string(c.raw)))
	if key == "" && !c.isUnique {
		id = c.numbered(id, c.isRecent)
	}
	e := wire.Event{Source: "hook", Kind: kind, Session: c.Session, TurnID: c.turn, EventID: id}
	// A sender of mail learns from the transport whether mail goes out with an answer.
	transport := "hook"
	if c.tool == OpenCode && !c.hasPlugin || c.tool == CodexNotify {
		transport = "notify"
	}
	e = e.With("transport", transport)
	for pair := range slices.Chunk(append([]string{"thread_id", c.thread}, pairs...), 2) {
		if pair[1] != "" {
			e = e.With(pair[0], wire.Clip(pair[1], maxText))
		}
	}
	return e
}

func (c *call) addEvent(kind, key string, pairs ...string) {
	c.events = append(c.events, c.newEvent(kind, key, pairs...))
}

// numbered returns id with the number of the newest event that has it, if that is the same event as this one, else with
// the next. It depends on nothing that two hooks for one call, which run at the same moment, may see differently.
func (c *call) numbered(id string, isSame func(newest *wire.Event) bool) string {
	newest, _ := c.o.Box.Log().NewestWithID("hook", id)
	if newest.EventID == "" {
		return id
	}
	if isSame(&newest) {
		return newest.EventID
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(newest.EventID, id+"."))
	return id + "." + strconv.Itoa(n+1)
}

// addRepeatable adds an event that may come again at once in the same words. It counts as another event if the session
// has reported anything else in between.
func (c *call) addRepeatable(kind string, pairs ...string) {
	e := c.newEvent(kind, "", pairs...)
	if id, _, _ := strings.Cut(e.EventID, "."); !c.isUnique {
		e.EventID = c.numbered(id, func(newest *wire.Event) bool {
			isLater := func(e wire.Event) bool { return e.Seq > newest.Seq }
			return c.isRecent(newest) && !slices.ContainsFunc(c.recentEvents(), isLater)
		})
	}
	c.events = append(c.events, e)
}

func (c *call) startTurn(prompt string) {
	prompt = wire.Clip(prompt, maxPrompt)
	if c.turn == "" && c.lastSession().Turn.IsOpen() {
		for _, e := range c.recentEvents() { // a hook that is installed twice may have added it since the state was read
			if e.Kind == wire.TurnStarted && e.Text("prompt") == prompt {
				return
			}
		}
	}
	if c.joins() {
		c.events = append(c.events, c.turnCompleted("completed", c.lastSession().Turn.ID, ""))
	} else {
		c.interruptOpen(c.turn)
	}
	c.addEvent(wire.TurnStarted, c.turn, "prompt", prompt)
}

// joins reports whether the prompt is mail that the program has taken together with what has just begun the open turn: its
// model gets both at once.
func (c *call) joins() bool {
	open := c.lastSession().Turn
	return len(c.Shown) > 0 && open.IsOpen() && open.ID != c.turn && slices.ContainsFunc(c.recentEvents(), func(e wire.Event) bool {
		return e.Kind == wire.TurnStarted && e.TurnID == open.ID
	})
}

// recentEvents returns what hooks reported of the session within the last two seconds, the oldest first.
func (c *call) recentEvents() []wire.Event {
	events, _ := c.o.Box.Log().Tail(func(e *wire.Event) bool { return !c.isRecent(e) })
	return slices.DeleteFunc(events, func(e wire.Event) bool {
		return !c.isRecent(&e) || e.Source != "hook" || e.Session != c.Session
	})
}

func (c *call) isRecent(e *wire.Event) bool { return c.Now.Sub(e.At).Abs() <= 2*time.Second }

// interruptOpen reports the open turn as interrupted, which no tool does itself at that time. It does not if the open
// turn is current, or if current is over. A turn that was not named yet is taken for current.
func (c *call) interruptOpen(current string) {
	last := c.lastSession()
	t := &last.Turn
	isCurrent := current != "" && (t.ID == current || t.IsGenerated)
	if t.IsOpen() && !isCurrent && !slices.Contains(last.EndedTurns, current) {
		c.events = append(c.events, c.turnCompleted("interrupted", t.ID, ""))
	}
}

func (c *call) turnCompleted(status, turn, answer string) wire.Event {
	key := ""
	if turn != "" {
		key = c.endKey(turn) + " " + status
	}
	e := c.newEvent(wire.TurnCompleted, key, "status", status)
	e.TurnID = turn
	if answer != "" {
		e = e.With("response", wire.Clip(answer, maxAnswer))
	}
	return e
}

func (c *call) turnIdle(turn string) wire.Event {
	e := c.newEvent(wire.TurnIdle, c.endKey(turn))
	e.TurnID = turn
	return e
}

// endTurn reports that a turn is over and the agent idle.
func (c *call) endTurn(status, turn, answer string) {
	c.events = append(c.events, c.turnCompleted(status, turn, answer), c.turnIdle(turn))
}

// endKey identifies the end of a turn: the turn, and how often it has been reopened.
func (c *call) endKey(turn string) string {
	if t := c.lastSession().Turn; turn != "" && t.ID == turn && t.Reopened > 0 {
		return turn + " " + strconv.Itoa(t.Reopened)
	}
	return turn
}

func (c *call) startTool(tool, id string) {
	c.addEvent("tool_call_start", id, "tool", tool, "tool_call_id", wire.Clip(id, maxID))
}

func (c *call) endTool(tool, id, problem string) {
	c.addEvent("tool_call_end", id, "tool", tool, "tool_call_id", wire.Clip(id, maxID), "error", problem)
}

func (c *call) askPermission(tool, prompt string, more ...string) {
	c.addRepeatable("confirm_required", append([]string{"tool", tool, "prompt", prompt, "detail", c.subagent}, more...)...)
}

func (c *call) changeState(activity, detail string, more ...string) {
	c.addRepeatable("state_change", append([]string{"previous", string(c.lastSession().Activity), "new", activity, "detail", detail}, more...)...)
}

// startSession adds a session_start; its source is the session's, as "resume", and not the event's.
func (c *call) startSession(source string) {
	c.beginsSession = true
	e := c.newEvent("session_start", "")
	e = e.With("source", wire.Clip(source, maxID))
	c.events = append(c.events, e)
}

func (c *call) endSession(reason string) {
	c.EndsSession = true
	c.interruptOpen("")
	// Gemini CLI reports it three times within a tenth of a second.
	e := c.newEvent("session_end", cmp.Or(reason, "ended"), "reason", reason)
	e.EventID = c.numbered(e.EventID, c.isRecent)
	c.events = append(c.events, e)
}

func (c *call) isFirstStop() bool {
	return string(c.in.Get("stop_hook_active")) == "false"
}

// describe says in short what a tool call does, by its arguments: the command, the file or the like, else "".
func describe(arguments json.RawMessage) string {
	var in map[string]any
	json.Unmarshal(arguments, &in)
	for _, key := range []string{"command", "file_path", "path", "notebook_path", "url", "query", "pattern", "prompt", "description"} {
		if words, ok := in[key].([]any); ok { // Codex may give a command as words
			return strings.TrimSpace(fmt.Sprintln(words...))
		}
		if text, ok := in[key].(string); ok && text != "" {
			return text
		}
	}
	return ""
}
