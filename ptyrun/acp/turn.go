//go:build linux || darwin

package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/wire"
)

// source is where the front's events come from, and transport how its turns do.
const source, transport = "acp", "acp"

// turn is the turn that is open.
type turn struct {
	id       string
	response string // what was said so far
	delta    string // the end of that, which is no event yet
	line     string // the end of that, which is no whole line and not drawn yet
	mark     string // of that line
	isParted bool   // something else was done since
	isCut    bool   // it was cancelled
}

const (
	maxResponse = 64 << 10 // bytes of an answer that are kept
	maxRaw      = 16 << 10 // bytes of what a tool is given and returns
)

// say appends an event, behind those that could not be appended before. An event without a kind is none.
func (f *front) say(e wire.Event) {
	if e.Kind != "" {
		e.Source, e.Session = source, string(f.session)
		if f.turn != nil {
			e.TurnID = f.turn.id
		}
		f.unsaid = append(f.unsaid, e.With("transport", transport).With("thread_id", string(f.session)))
	}
	if err := f.Box.Log().Append(context.Background(), f.unsaid...); err != nil {
		f.screen.say(note, fmt.Sprintf("events: %v", err))
		return
	}
	f.unsaid = nil
}

// submit sends the draft as a prompt.
func (f *front) submit() {
	text := strings.TrimSpace(f.draft)
	if text == "" || f.session == "" || f.turn != nil {
		return
	}
	f.draft = ""
	t := &turn{id: string(wire.NewID()), mark: says}
	f.turn, f.tools = t, map[acp.ToolCallId]*toolCall{}
	request := acp.PromptRequest{SessionId: f.session, Prompt: f.blocks(text)}
	f.say(wire.Event{Kind: wire.TurnStarted}.With("prompt", clip(text, maxResponse)))
	f.screen.say(user, text)
	go func() {
		r, err := f.conn.Prompt(context.Background(), request)
		f.post(func() { f.promptAnswered(r, err) })
	}()
}

// promptAnswered takes in the end of the turn. Where the connection has ended that of the agent is told.
func (f *front) promptAnswered(r acp.PromptResponse, err error) {
	wrong, isTheirs := errors.AsType[*acp.RequestError](err)
	switch t := f.turn; {
	case t == nil || err != nil && !isTheirs:
	case t.isCut || err == nil && r.StopReason == acp.StopReasonCancelled:
		f.endTurn("cancelled", string(r.StopReason), "")
	case err != nil:
		why := wrong.Message
		if more := about(wrong.Data); more != "" {
			why += ": " + more
		}
		f.say(wire.Event{Kind: "error"}.With("code", fmt.Sprint(wrong.Code)).With("message", why))
		f.endTurn("failed", "", why)
	case r.StopReason == acp.StopReasonRefusal:
		f.endTurn("failed", string(r.StopReason), "the model refused")
	default:
		f.endTurn("completed", string(r.StopReason), "")
	}
}

// about is what an error says beside its message.
func about(data any) string {
	if fields, ok := data.(map[string]any); ok {
		for _, name := range []string{"details", "error", "message"} {
			if s, ok := fields[name].(string); ok {
				return s
			}
		}
	}
	s, _ := data.(string)
	return s
}

// endTurn says that the turn is over: first as events, then on the screen.
func (f *front) endTurn(status, reason, why string) {
	f.part()
	f.withdrawAll()
	e := wire.Event{Kind: wire.TurnCompleted}.With("status", status).With("response", clip(f.turn.response, maxResponse))
	if why != "" {
		e = e.With("error", why)
		f.screen.say(note, why)
	}
	if reason != "" && reason != string(acp.StopReasonEndTurn) {
		e = e.With("stop_reason", reason)
		f.screen.say(note, "ended: "+reason)
	}
	f.say(e)
	f.say(wire.Event{Kind: wire.TurnIdle})
	f.turn = nil
}

// cancel ends the turn, and what is asked in it. Without one it clears the draft.
func (f *front) cancel() {
	if f.turn == nil {
		f.draft = ""
	} else {
		f.turn.isCut = true
		session := f.session
		go f.conn.Cancel(context.Background(), acp.CancelNotification{SessionId: session})
	}
	f.withdrawAll()
}

// SessionUpdate takes in what the agent says and does.
func (f *front) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	f.post(func() {
		if n.SessionId == f.session { // else it is replayed
			f.update(n.Update)
		}
	})
	return nil
}

func (f *front) update(u acp.SessionUpdate) {
	switch {
	case u.AgentMessageChunk != nil:
		f.hear(textOf(u.AgentMessageChunk.Content))
	case u.ToolCall != nil:
		c := u.ToolCall
		f.noteCall(c.ToolCallId, string(c.Kind), c.Title, c.RawInput, string(c.Status), c.RawOutput, c.Content)
	case u.ToolCallUpdate != nil:
		c := u.ToolCallUpdate
		f.noteCall(c.ToolCallId, string(value(c.Kind)), value(c.Title), c.RawInput, string(value(c.Status)), c.RawOutput, c.Content)
	case u.Plan != nil:
		f.part()
		for _, e := range u.Plan.Entries {
			f.screen.say(note, fmt.Sprintf("plan: %s (%s)", e.Content, e.Status))
		}
	}
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// textOf is a content block as text.
func textOf(b acp.ContentBlock) string {
	switch {
	case b.Text != nil:
		return b.Text.Text
	case b.ResourceLink != nil:
		return b.ResourceLink.Uri
	case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
		return b.Resource.Resource.TextResourceContents.Text
	case b.Image != nil:
		return "[image]"
	case b.Audio != nil:
		return "[audio]"
	}
	return ""
}

// hear takes in a piece of what the agent says. Outside of a turn it is drawn and no event: it would begin
// one that nobody ends.
func (f *front) hear(text string) {
	t := f.turn
	switch {
	case text == "":
		return
	case t == nil:
		f.screen.say(says, text)
		return
	}
	if t.isParted && t.response != "" {
		text = "\n\n" + strings.TrimLeft(text, "\n")
	}
	t.isParted = false
	if len(t.response) < maxResponse {
		t.response += text
		t.delta += text
	}
	t.line += text
	if i := strings.LastIndexByte(t.line, '\n'); i >= 0 {
		f.drawSaid(t.line[:i])
		t.line = t.line[i+1:]
	}
}

func (f *front) drawSaid(text string) {
	if text = strings.TrimLeft(text, "\n"); text != "" {
		f.screen.say(f.turn.mark, text)
		f.turn.mark = indent
	}
}

// tellDelta makes an event of what was said since the last one.
func (f *front) tellDelta() {
	if t := f.turn; t != nil && t.delta != "" {
		delta := t.delta
		t.delta = ""
		f.say(wire.Event{Kind: "message_delta"}.With("delta", delta))
	}
}

// part ends what the agent says: something else comes.
func (f *front) part() {
	f.tellDelta()
	if t := f.turn; t != nil {
		f.drawSaid(t.line)
		t.line, t.mark, t.isParted = "", says, true
	}
}

// toolCall is what was said of a call so far.
type toolCall struct {
	tool, alias, title string
	input              any
	kind               string
	isStarted, isEnded bool
}

// noteCall takes in what is said of a call, in which all but its id may be missing, and tells of its start
// and its end.
func (f *front) noteCall(id acp.ToolCallId, kind, title string, input any, status string, output any, content []acp.ToolCallContent) {
	c := f.learn(id, kind, title, input)
	if f.turn == nil {
		return
	}
	f.part()
	if !c.isStarted {
		c.isStarted = true
		f.screen.say(tool, strings.TrimPrefix(c.tool+": "+c.title, ": "))
		record := map[string]any{"id": id, "name": c.tool, "arguments": small(c.input), "timestamp": time.Now().UTC().Format(time.RFC3339Nano)}
		f.say(wire.Event{Kind: "tool_call_start"}.With("tool_call", record).With("title", c.title))
	}
	isFailed := status == string(acp.ToolCallStatusFailed)
	if c.isEnded || !isFailed && status != string(acp.ToolCallStatusCompleted) {
		return
	}
	c.isEnded = true
	if output == nil {
		var said []string
		for _, one := range content {
			if one.Content != nil {
				said = append(said, textOf(one.Content.Content))
			}
		}
		output = clip(strings.Join(said, "\n"), maxRaw)
	}
	e := wire.Event{Kind: "tool_call_end"}.With("tool_call_id", string(id)).With("tool", c.tool).With("result", small(output))
	if isFailed {
		e = e.With("error", "failed")
		f.screen.say(tool, "failed: "+c.title)
	}
	f.say(e)
}

// learn adds to what is known of a call. Its tool is its kind, and the first word of its title another name
// of that.
func (f *front) learn(id acp.ToolCallId, kind, title string, input any) *toolCall {
	c := f.tools[id]
	if c == nil {
		c = &toolCall{}
		f.tools[id] = c
	}
	if kind != "" && kind != string(acp.ToolKindOther) {
		c.kind = kind
	}
	if title != "" {
		c.title = title
	}
	if input != nil {
		c.input = input
	}
	first, _, _ := strings.Cut(strings.TrimSpace(c.title), " ")
	c.tool, c.alias = c.kind, strings.TrimRight(first, ":")
	if c.tool == "" {
		c.tool, c.alias = c.alias, ""
	}
	return c
}

// small is a value that is not too large for an event.
func small(v any) any {
	if data, err := json.Marshal(v); err != nil || len(data) > maxRaw {
		return nil
	}
	return v
}

func clip(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}
