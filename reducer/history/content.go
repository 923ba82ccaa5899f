package history

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Content is what was said and done in a turn.
type Content struct {
	Prompt   string     `json:"prompt"`
	Response string     `json:"response"`
	Tools    []ToolCall `json:"tool_calls,omitempty"`
}

// ToolCall is a tool call within a turn.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Title     string          `json:"title,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	At        time.Time       `json:"timestamp"`
}

// A FullTurn is a turn with its content.
type FullTurn struct {
	Turn
	Content
}

// Full folds events, in order, and returns the newest limit turns of them, oldest first, or with 0 all.
func Full(events []wire.Event, limit int) []FullTurn {
	out := []FullTurn{} // in JSON none is [], not null
	for _, t := range Of(events).Turns(limit) {
		out = append(out, FullTurn{t, t.Content(events)})
	}
	return out
}

// The most that is read of one turn: its tool calls, and bytes of message deltas.
const maxTools, maxSaid = 1000, 256 << 10

// Content reads what was said and done in the turn from events, in order, among which are those of its part of the log.
func (t *Turn) Content(events []wire.Event) (c Content) {
	first, _ := slices.BinarySearchFunc(events, t.From, func(e wire.Event, seq uint64) int { return cmp.Compare(e.Seq, seq) })
	var said strings.Builder
	for i := first; i < len(events) && events[i].Seq <= t.To; i++ {
		if e := &events[i]; t.has(e) {
			c.add(e, &said)
		} else if e.Kind == wire.SessionStart && e.Session == t.Session {
			c.load(t.ID, e, &said)
		}
	}
	c.Response = said.String()
	return c
}

// has reports whether an event in the turn's part of the log tells of its content.
func (t *Turn) has(e *wire.Event) bool {
	isNamed := e.TurnID == "" || t.Is(e.TurnID)
	return isNamed && (e.Session == "" || e.Session == t.Session) && slices.Contains(contentKinds, e.Kind)
}

// contentKinds are the events that say what a turn has.
var contentKinds = []string{wire.TurnStarted, wire.TurnCompleted, wire.MessageDelta, wire.ToolCallStart, wire.ToolCallEnd}

func (c *Content) add(e *wire.Event, said *strings.Builder) {
	b := e.Body()
	switch e.Kind {
	case wire.TurnStarted:
		c.Prompt = cmp.Or(c.Prompt, b.Text(wire.FieldPrompt))
	case wire.MessageDelta:
		if said.Len() < maxSaid {
			said.WriteString(b.Text(wire.FieldDelta))
		}
	case wire.ToolCallStart:
		at := timeOr(b.Text("timestamp"), e.At)
		c.addCall(ToolCall{b.Text("tool_call_id"), b.Text(wire.FieldTool), b.Text("title"), b.Raw("arguments"), nil, at})
	case wire.ToolCallEnd:
		c.setResult(b.Text("tool_call_id"), b.Raw("result"))
	case wire.TurnCompleted:
		if answer := session.AnswerOf(e); answer != "" {
			said.Reset()
			said.WriteString(answer)
		}
		c.addCalls(b.Raw("tool_calls"), e.At) // which the older ACP reports only now
	}
}

// A loadedTurn is one of a session that was loaded, as the older ACP records it.
type loadedTurn struct {
	ID        string          `json:"turn_id"`
	Prompt    json.RawMessage `json:"prompt"`
	Response  string          `json:"response"`
	Calls     json.RawMessage `json:"tool_calls"`
	Timestamp string          `json:"timestamp"`
}

func loadedTurns(e *wire.Event) (turns []loadedTurn) {
	wire.Unmarshal(e.Body().Raw("history"), &turns)
	return turns
}

func (c *Content) load(id string, e *wire.Event, said *strings.Builder) {
	for _, t := range loadedTurns(e) {
		if t.ID == id {
			c.Prompt = foreign.PromptText(t.Prompt)
			said.WriteString(t.Response)
			c.addCalls(t.Calls, timeOr(t.Timestamp, e.At))
			return
		}
	}
}

// addCalls adds calls as the older ACP records them.
func (c *Content) addCalls(records json.RawMessage, at time.Time) {
	var calls []struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Result    json.RawMessage `json:"result"`
		Timestamp string          `json:"timestamp"`
	}
	wire.Unmarshal(records, &calls)
	for _, call := range calls {
		c.addCall(ToolCall{call.ID, call.Name, "", call.Arguments, call.Result, timeOr(call.Timestamp, at)})
	}
}

// timeOr returns the time that a record has, which some programs leave empty.
func timeOr(record string, at time.Time) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, record); err == nil {
		return t.UTC()
	}
	return at
}

func (c *Content) addCall(call ToolCall) {
	if !c.setResult(call.ID, call.Result) && len(c.Tools) < maxTools {
		c.Tools = append(c.Tools, call)
	}
}

// setResult sets the result, unless nil, of the call with an id, and reports whether there is such a call.
func (c *Content) setResult(id string, result json.RawMessage) (isKnown bool) {
	i := slices.IndexFunc(c.Tools, func(call ToolCall) bool { return call.ID == id && id != "" })
	if i >= 0 && result != nil {
		c.Tools[i].Result = result
	}
	return i >= 0
}
