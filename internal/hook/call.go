package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

type call struct {
	tool Tool
	in   wire.Object // what the tool sent: null counts as absent, and a text that is no string as empty
	sent []byte      // the same, as it came
	o    Options

	mailbox.HookCall
	kind   string // the tool's name of its event
	turn   string // "": the tool did not say
	thread string
	who    string // the sub-agent that it comes from; "": the agent itself
	dated  bool   // the tool put into it what no later one has

	events []wire.Event // to be appended
	ending []wire.Event // after these, unless mail keeps the program going

	replyAs       replyWay
	primes        bool // a session begins: the primer goes with it
	text          strings.Builder
	answersAlways bool // with {} where there is nothing to say

	known *reducer.Turn // see lastTurn
	err   error         // what went wrong
}

// Bounds of what is kept of a tool's words.
const maxID, maxText, maxPrompt, maxAnswer = 256, 512, 200, 64 << 10

// names takes over the session, and what the call is known by: its event and, where the tool gives one,
// the turn and what else tells it from the turn's other calls of that event.
func (c *call) names(session, kind, turn string, more ...string) {
	c.Session, c.kind, c.turn = wire.Clip(session, maxID), wire.Clip(kind, maxID), wire.Clip(turn, maxID)
	words := append([]string{c.kind, c.turn}, more...)
	if c.Loose = c.turn == ""; c.Loose {
		words = append(words, c.hash(string(c.sent)))
	}
	c.Name = wire.Clip(strings.Join(words, " "), 3*maxID)
}

// hash is alike for what Codex's two ways say.
func (c *call) hash(parts ...string) string {
	tool := strings.TrimSuffix(string(c.tool), "-notify")
	sum := sha256.Sum256([]byte(tool + "\x00" + strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// atOnce is alike for what happens within two seconds.
func (c *call) atOnce() string { return strconv.FormatInt(c.Now.Unix()/2, 10) }

// lastTurn is the session's turn as the events so far tell it; where no session is named, the one that is shown.
func (c *call) lastTurn() *reducer.Turn {
	if c.known != nil {
		return c.known
	}
	c.known = &reducer.Turn{Activity: reducer.Unknown}
	if c.o.State == nil {
		return c.known
	}
	s, err := c.o.State()
	if err == nil && c.Session == "" {
		c.known = s.Turn()
	}
	for i := 0; err == nil && i < len(s.Turns); i++ {
		if s.Turns[i].Session == c.Session && c.Session != "" {
			c.known = &s.Turns[i]
			break
		}
	}
	return c.known
}

// hasRunner reports whether the program runs under a runner of ours, which sees its screen.
func (c *call) hasRunner() bool {
	runs, _ := c.o.Box.Store().Running(c.o.Box.Agent())
	return runs
}

func (c *call) isBlocked() bool { return c.lastTurn().Activity == reducer.Confirming }

// event is an event of this call, with pairs of a field and its text, but for empty ones. key is what it is known by
// beside session and kind; "" where the tool gives nothing: then the same text at the same moment is the same.
func (c *call) event(kind, key string, pairs ...string) wire.Event {
	id := c.hash(c.Session, kind, key)
	if key == "" && c.dated {
		id = c.hash(c.Session, kind, string(c.sent), "dated")
	} else if key == "" {
		id = c.hash(c.Session, kind, string(c.sent), c.atOnce())
	}
	e := wire.Event{Source: "hook", Kind: kind, Session: c.Session, TurnID: c.turn, EventID: "hook/" + id}
	// Whoever sends mail to the agent learns from it whether that goes out with an answer.
	transport := "hook"
	if c.tool == OpenCode || c.tool == CodexNotify {
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

func (c *call) add(e wire.Event) { c.events = append(c.events, e) }

func (c *call) tell(kind, key string, pairs ...string) { c.add(c.event(kind, key, pairs...)) }

// tellAnew tells what may come again at once in the same words. It is another event if the session has said anything
// else in between.
func (c *call) tellAnew(kind string, pairs ...string) {
	e, isSaid := c.event(kind, "", pairs...), false
	for _, said := range c.justSaid() {
		if said.EventID == e.EventID {
			isSaid = true
		} else if isSaid && !c.dated {
			e.EventID, isSaid = "hook/"+c.hash(e.EventID, said.EventID), false
		}
	}
	c.add(e)
}

func (c *call) begin(prompt string) {
	prompt = wire.Clip(prompt, maxPrompt)
	if c.turn == "" && c.lastTurn().IsOpen() && c.hasBegun(prompt) {
		return
	}
	c.cutShort(c.turn)
	c.tell(wire.TurnStarted, c.turn, "prompt", prompt)
}

// hasBegun reports whether the log has the session's prompt, which bears no id, from a moment ago: hooks are installed
// twice. The state was looked at before: what is appended in between is found here.
func (c *call) hasBegun(prompt string) bool {
	return slices.ContainsFunc(c.justSaid(), func(e wire.Event) bool {
		return e.Kind == wire.TurnStarted && e.Text("prompt") == prompt
	})
}

// justSaid are the events that hooks said of the session within the last two seconds, the oldest first.
func (c *call) justSaid() []wire.Event {
	isOld := func(e *wire.Event) bool { return c.Now.Sub(e.At).Abs() > 2*time.Second }
	events, _ := c.o.Box.Log().Tail(isOld)
	return slices.DeleteFunc(events, func(e wire.Event) bool {
		return isOld(&e) || e.Source != "hook" || e.Session != c.Session
	})
}

// cutShort says that the turn that is open was interrupted, unless it is the one that goes on, or that one is over:
// nobody said so when it happened. A turn that has no name yet takes that of the one that goes on.
func (c *call) cutShort(goesOn string) {
	t := c.lastTurn()
	isSame := goesOn != "" && (t.ID == goesOn || t.IsGenerated)
	if t.IsOpen() && !isSame && !slices.Contains(t.Ended, goesOn) {
		c.add(c.over("interrupted", t.ID, ""))
	}
}

func (c *call) over(status, turn, answer string) wire.Event {
	key := ""
	if turn != "" {
		key = c.endOf(turn) + " " + status
	}
	e := c.event(wire.TurnCompleted, key, "status", status)
	if e.TurnID = turn; answer != "" {
		e = e.With("response", wire.Clip(answer, maxAnswer))
	}
	return e
}

func (c *call) idle(turn string) wire.Event {
	e := c.event(wire.TurnIdle, c.endOf(turn))
	e.TurnID = turn
	return e
}

// endOf is what the end of a turn is known by: the turn, and where it went on after one, the how many-th end it is.
func (c *call) endOf(turn string) string {
	if t := c.lastTurn(); turn != "" && t.ID == turn && t.Reopened > 0 {
		return turn + " " + strconv.Itoa(t.Reopened)
	}
	return turn
}

// toolBegins and toolEnds are about a call of a tool; id is "" where none is given.
func (c *call) toolBegins(tool, id string) {
	c.tell("tool_call_start", id, "tool", tool, "tool_call_id", wire.Clip(id, maxID))
}

func (c *call) toolEnds(tool, id, wrong string) {
	c.tell("tool_call_end", id, "tool", tool, "tool_call_id", wire.Clip(id, maxID), "error", wrong)
}

func (c *call) asks(tool, prompt string, more ...string) {
	c.tellAnew("confirm_required", append([]string{"tool", tool, "prompt", prompt, "detail", c.who}, more...)...)
}

func (c *call) does(activity, detail string, more ...string) {
	c.tellAnew("state_change", append([]string{"previous", string(c.lastTurn().Activity), "new", activity, "detail", detail}, more...)...)
}

// opens and closes are the ends of a session, the source of which is not that of the event.
func (c *call) opens(source string) {
	composed, _ := wire.Compose("session_start", [][2]string{{"source", wire.Clip(source, maxID)}}) // both are known to be right
	e := c.event("session_start", "")
	e.Wire = composed.Wire
	c.add(e)
}

func (c *call) closes(reason string) {
	c.Ends = true
	c.cutShort("")
	// Gemini CLI says it three times within a tenth of a second.
	c.tell("session_end", reason+" "+c.atOnce(), "reason", reason)
}
