package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/reducer"

	"github.com/agentteammail/atm/wire"
)

// call is one call of a hook: what the tool sent, and what it means.
type call struct {
	tool Tool
	in   input
	sent []byte // in, as it came
	o    Options

	kind    string // the tool's name of its event
	session string
	turn    string // "": the tool did not say
	thread  string

	name  string // tells the call from others of its session
	loose bool   // but a later one may be named so too
	dated bool   // the tool put into it what no later one has

	shows, begins, ends bool // as in mailbox.HookCall

	events []wire.Event // to be appended
	ending []wire.Event // after these, unless mail keeps the program going

	replyAs       replyWay
	primes        bool // a session begins: the primer goes with it
	text          strings.Builder
	answersAlways bool // with {} where there is nothing to say

	known *Turn // see now
}

// Bounds of what is kept of a tool's words.
const (
	maxID     = 256
	maxText   = 512
	maxPrompt = 200
	maxAnswer = 64 << 10
)

// names takes over the session, and what the call is known by: its event and,
// where the tool gives one, the turn and what else tells it from the turn's
// other calls of that event.
func (c *call) names(session, kind, turn string, more ...string) {
	c.session, c.kind, c.turn = clip(session, maxID), clip(kind, maxID), clip(turn, maxID)
	words := append([]string{c.kind, c.turn}, more...)
	if c.loose = c.turn == ""; c.loose {
		words = append(words, c.hash(string(c.sent)))
	}
	c.name = clip(strings.Join(words, " "), 3*maxID)
}

func (c *call) hash(parts ...string) string {
	sum := sha256.Sum256([]byte(string(c.tool) + "\x00" + strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

func (c *call) eventID(kind, key string) string {
	if key != "" {
		return "hook/" + c.hash(c.session, kind, key)
	}
	at := "dated"
	if !c.dated {
		at = c.atOnce()
	}
	return "hook/" + c.hash(c.session, kind, string(c.sent), at)
}

// atOnce is alike for what happens within two seconds.
func (c *call) atOnce() string { return strconv.FormatInt(c.o.Now.Unix()/2, 10) }

func (c *call) add(e wire.Event) { c.events = append(c.events, e) }

// now is what the events so far say about the session.
func (c *call) now() Turn {
	if c.known == nil {
		t := Turn{}
		if c.o.Turn != nil {
			t = c.o.Turn(c.session)
		}
		c.known = &t
	}
	return *c.known
}

// with adds fields, pairs of a name and a text, but for empty ones.
func with(e wire.Event, pairs ...string) wire.Event {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			e = e.With(pairs[i], clip(pairs[i+1], maxText))
		}
	}
	return e
}

// tell adds an event.
func (c *call) tell(kind, key string, pairs ...string) { c.add(with(c.event(kind, key), pairs...)) }

// cutShort says that the turn that is open was interrupted, unless it is the
// one that goes on: nobody said so when it happened.
func (c *call) cutShort(goesOn string) {
	if t := c.now(); t.Open && (goesOn == "" || t.ID != goesOn) {
		c.add(c.over("interrupted", t.ID, ""))
	}
}

// over is the end of a turn, with what the program answered in it.
func (c *call) over(status, turn, answer string) wire.Event {
	key := ""
	if turn != "" {
		key = c.again(turn) + " " + status
	}
	e := c.event(wire.TurnCompleted, key)
	e.TurnID = turn
	e = e.With("status", status)
	if answer != "" {
		e = e.With("response", clip(answer, maxAnswer))
	}
	return e
}

// again is what the end of a turn is known by: the turn, and where it went on
// after one, the how many-th end it is.
func (c *call) again(turn string) string {
	if t := c.now(); turn != "" && t.ID == turn && t.Anew > 0 {
		return turn + " " + strconv.Itoa(t.Anew)
	}
	return turn
}

// begin is a prompt of the user's.
func (c *call) begin(prompt string) {
	c.cutShort(c.turn)
	c.tell(wire.TurnStarted, c.turn, "prompt", clip(prompt, maxPrompt))
}

// idle says that the program waits for a prompt.
func (c *call) idle(turn string) wire.Event {
	e := c.event(wire.TurnIdle, c.again(turn))
	e.TurnID = turn
	return e
}

// id is the tool call's, "" where the tool gives none.
func (c *call) toolBegins(tool, id string) {
	c.tell("tool_call_start", id, "tool", tool, "tool_call_id", clip(id, maxID))
}

func (c *call) toolEnds(tool, id, wrong string) {
	c.tell("tool_call_end", id, "tool", tool, "tool_call_id", clip(id, maxID), "error", wrong)
}

// asks is a permission dialog.
func (c *call) asks(tool, prompt, detail string) {
	c.tell("confirm_required", "", "tool", tool, "prompt", prompt, "detail", detail)
}

// does is a change of what the program does.
func (c *call) does(activity, detail string) {
	c.tell("state_change", "", "new", activity, "detail", detail)
}

// opens and closes are the ends of a session. (The source of one is no source
// of an event, so the object stands under Wire, as its owner would write it.)
func (c *call) opens(source string) {
	e := c.event("session_start", "")
	e.Wire = json.RawMessage(`{"kind":"session_start","source":` + string(wire.Quote(clip(source, maxID))) + `}`)
	c.add(e)
}

func (c *call) closes(reason string) {
	c.ends = true
	c.cutShort("")
	// Gemini CLI says it three times within a tenth of a second.
	c.tell("session_end", reason+" "+c.atOnce(), "reason", reason)
}

// Turn is what the fold of an agent's events says about one session.
type Turn struct {
	ID       string // of the current or last turn
	Open     bool
	Anew     int    // how often it went on after a hook called it over
	Blocked  bool   // a permission dialog is open
	Tool     string // that it is about, where known
	Retrying bool   // after an error of the model's API
}

// TurnOf is what a fold says about one session; "" is the one that is shown.
func TurnOf(s *reducer.State, session string) Turn {
	t := s.Turn()
	for i := range s.Turns {
		if session != "" && s.Turns[i].Session == session {
			t = &s.Turns[i]
		}
	}
	if session != "" && t.Session != session {
		return Turn{}
	}
	out := Turn{ID: t.ID, Open: t.Status == reducer.TurnBusy, Anew: t.Reopened, Blocked: t.Activity == reducer.Confirming,
		Retrying: strings.HasPrefix(t.Detail, retrying)}
	if w := t.Waiting(); w != nil {
		out.Tool = w.Tool
	}
	return out
}
