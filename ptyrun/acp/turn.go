//go:build linux || darwin

package acp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// source is where the front's events come from, and the transport of its turns.
const source = "acp"

type turn struct {
	id       string
	response []byte // the end of what was said so far
	said     int    // bytes of all that
	delta    string // what of it is no event yet
	line     string // the end of what was said, which is no whole line and not drawn yet
	mark     string // of that line
	isParted bool   // something else was done since
	isCut    bool   // it was cancelled
}

const (
	maxResponse = 1 << 20  // bytes of an answer that are kept, as of a message
	maxLine     = 8 << 10  // bytes of a line before it is drawn
	maxRaw      = 16 << 10 // bytes of what a tool is given, and of what it returns
)

// say appends events, behind those that could not be appended before.
func (f *front) say(events ...wire.Event) {
	for _, e := range events {
		e.Source, e.Session = source, string(f.session)
		if f.turn != nil {
			e.TurnID = f.turn.id
		}
		f.unsaid = append(f.unsaid, e.With("transport", source).With("thread_id", string(f.session)))
	}
	if err := f.Box.Log().Append(context.Background(), f.unsaid...); err != nil {
		f.screen.say(note, fmt.Sprintf("events: %v", err))
		f.tellAt = time.Now().Add(tellEvery)
		return
	}
	f.unsaid = nil
}

// change says that the agent does something else now. What it asks stands before all that.
func (f *front) change(now reducer.Activity, detail string) {
	if f.activity == now || len(f.requests) > 0 && now != reducer.Confirming {
		return
	}
	e := wire.Event{Kind: "state_change"}.With("previous", string(f.activity)).With("new", string(now))
	if detail != "" {
		e = e.With("detail", detail)
	}
	f.activity = now
	f.say(e)
}

func (f *front) submit() {
	text := strings.TrimSpace(f.draft)
	if text == "" || f.session == "" || f.turn != nil {
		return
	}
	f.draft, f.turn = "", &turn{id: string(wire.NewID()), mark: says}
	clear(f.tools)
	p := acp.PromptRequest{SessionId: f.session, Prompt: f.blocks(text)}
	f.say(wire.Event{Kind: wire.TurnStarted}.With("prompt", wire.Clip(text, maxResponse)))
	f.change(reducer.Thinking, "")
	f.screen.say(user, text)
	go func() {
		r, err := f.conn.Prompt(context.Background(), p)
		f.post(func() { f.promptAnswered(r.StopReason, err) })
	}()
}

// maxEmbedded is how large an attachment may be to go out within a prompt: a line of the protocol has 10 MiB at most.
const maxEmbedded = 2 << 20

// blocks are a prompt, and behind its text the attachments of the messages that the runner types in it.
func (f *front) blocks(text string) []acp.ContentBlock {
	blocks := []acp.ContentBlock{acp.TextBlock(text)}
	room := int64(maxEmbedded)
	for _, it := range f.Box.BeingTyped() {
		if !strings.Contains(text, it.ID.Short(6)) {
			continue
		}
		for _, a := range it.Attachments {
			b := f.block(f.Box.Store(), a, room)
			blocks = append(blocks, b)
			if b.ResourceLink == nil {
				room -= a.Size
			}
		}
	}
	return blocks
}

// block is an attachment as the agent can take it: whole, where it is text or an image and there is room, else a link.
func (f *front) block(s *mailbox.Store, a wire.Attachment, room int64) acp.ContentBlock {
	uri := "file://" + s.Dir().Join(mailbox.FilesDir+"/"+a.SHA256)
	link := acp.ResourceLinkBlock(a.Name, uri)
	file, err := s.Attachment(a)
	if err != nil || a.Size > room {
		return link
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, a.Size))
	if err != nil {
		return link
	}
	kind := http.DetectContentType(data)
	switch can := f.can; {
	case strings.HasPrefix(kind, "image/") && can.Image:
		return acp.ImageBlock(base64.StdEncoding.EncodeToString(data), kind)
	case strings.HasPrefix(a.MediaType, "text/") && can.EmbeddedContext:
		whole := strings.ToValidUTF8(string(data), "\uFFFD")
		text := &acp.TextResourceContents{Uri: uri + "#" + url.PathEscape(a.Name), MimeType: &a.MediaType, Text: whole}
		return acp.ResourceBlock(acp.EmbeddedResourceResource{TextResourceContents: text})
	}
	return link
}

func (f *front) promptAnswered(reason acp.StopReason, err error) {
	switch {
	case f.turn == nil || err != nil && isClosed(f.conn.Done()): // the agent has ended, which is about to be told
	case f.turn.isCut || err == nil && reason == acp.StopReasonCancelled:
		f.endTurn(reducer.Cancelled, reason, "")
	case err != nil:
		code, why := "0", err.Error()
		if e, ok := errors.AsType[*acp.RequestError](err); ok {
			code, why = fmt.Sprint(e.Code), e.Message
			if data, _ := json.Marshal(e.Data); e.Data != nil {
				why += " " + string(data)
			}
		}
		f.say(wire.Event{Kind: "error"}.With("code", code).With("message", why))
		f.endTurn("failed", reason, code+": "+why)
	default:
		f.endTurn("completed", reason, "")
	}
}

// endTurn says that the turn is over: first as events, then on the screen.
func (f *front) endTurn(status string, reason acp.StopReason, why string) {
	f.part()
	f.withdrawAll()
	e := wire.Event{Kind: wire.TurnCompleted}.With("status", status).With("stop_reason", reason)
	e = e.With("response", driver.ClipResponse(string(f.turn.response), maxResponse))
	if why != "" {
		e = e.With("error", why)
	}
	if status != "completed" || reason != acp.StopReasonEndTurn {
		f.screen.say(note, strings.TrimRight(fmt.Sprintf("%s: %s %s", status, reason, why), ": "))
	}
	f.say(e)
	f.change(reducer.Idle, "")
	f.say(wire.Event{Kind: wire.TurnIdle})
	f.turn = nil
}

// cancel ends the turn, and what is asked. Without a turn it clears the draft.
func (f *front) cancel() {
	if f.turn == nil {
		f.draft = ""
	} else {
		f.turn.isCut = true
		n := acp.CancelNotification{SessionId: f.session}
		go f.conn.Cancel(context.Background(), n)
	}
	f.withdrawAll()
}

// SessionUpdate takes in what the agent says and does. Before a session is open that is replayed.
func (f *front) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	f.post(func() {
		if u := n.Update; n.SessionId != f.session {
			return
		} else if u.AgentMessageChunk != nil {
			f.hear(textOf(u.AgentMessageChunk.Content))
		} else if c := u.ToolCall; c != nil {
			f.noteCall(c.ToolCallId, c.Kind, c.Title, c.RawInput, c.Status, c.RawOutput, c.Content)
		} else if c := u.ToolCallUpdate; c != nil {
			f.noteCall(c.ToolCallId, value(c.Kind), value(c.Title), c.RawInput, value(c.Status), c.RawOutput, c.Content)
		} else if u.Plan != nil {
			f.part()
			for _, e := range u.Plan.Entries {
				f.screen.say(note, fmt.Sprintf("plan: %s (%s)", e.Content, e.Status))
			}
		}
	})
	return nil
}

func textOf(b acp.ContentBlock) string {
	switch {
	case b.Text != nil:
		return b.Text.Text
	case b.ResourceLink != nil:
		return b.ResourceLink.Uri
	case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
		return b.Resource.Resource.TextResourceContents.Text
	}
	return "[no text]"
}

// hear takes in a piece of what the agent says. Outside of a turn it is drawn and no event, which would begin
// a turn that nobody ends.
func (f *front) hear(text string) {
	t := f.turn
	if t == nil {
		f.screen.say(says, text)
		return
	}
	if t.isParted && len(t.response) > 0 {
		text = "\n\n" + strings.TrimLeft(text, "\n ")
	}
	t.isParted = false
	f.change(reducer.Responding, "")
	if t.delta == "" {
		f.tellAt = time.Now().Add(tellEvery)
	}
	if t.response = append(t.response, text...); len(t.response) > 2*maxResponse { // not at each piece
		t.response = []byte(driver.ClipResponse(string(t.response), maxResponse))
	}
	left := maxResponse - t.said
	t.said += len(text)
	if left >= 0 {
		t.delta += wire.Clip(text, left)
		if len(text) > left {
			t.delta += "\n…"
		}
	}
	t.line += text
	if i := strings.LastIndexByte(t.line, '\n'); i >= 0 {
		f.drawSaid(t.line[:i])
		t.line = t.line[i+1:]
	} else if len(t.line) > maxLine {
		f.drawSaid(t.line)
		t.line = ""
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
		e := wire.Event{Kind: "message_delta"}.With("delta", t.delta)
		t.delta = ""
		f.say(e)
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
	kind               acp.ToolKind
	tool, alias, title string
	input              any
	isStarted, isEnded bool
}

// noteCall takes in what is said of a call, in which all but its id may be missing, and tells of its start and its end.
func (f *front) noteCall(id acp.ToolCallId, kind acp.ToolKind, title string, input any, status acp.ToolCallStatus, output any, content []acp.ToolCallContent) {
	c := f.learn(id, kind, title, input)
	if f.turn == nil {
		return
	}
	f.part()
	if !c.isStarted {
		c.isStarted = true
		f.screen.say(tool, c.tool+": "+c.title)
		record := map[string]any{"id": id, "name": c.tool, "arguments": small(c.input), "timestamp": time.Now().UTC()}
		f.say(wire.Event{Kind: "tool_call_start"}.With("tool_call", record).With("title", c.title))
		f.change(reducer.ToolRunning, c.tool)
	}
	if c.isEnded || status != acp.ToolCallStatusCompleted && status != acp.ToolCallStatusFailed {
		return
	}
	c.isEnded = true
	for _, one := range content {
		if output == nil && one.Content != nil {
			output = wire.Clip(textOf(one.Content.Content), maxRaw/2)
		}
	}
	e := wire.Event{Kind: "tool_call_end"}.With("tool_call_id", id).With("tool", c.tool).With("result", small(output))
	if status == acp.ToolCallStatusFailed {
		e = e.With("error", status)
		f.screen.say(tool, "failed: "+c.title)
	}
	f.say(e)
	f.change(reducer.Thinking, "")
}

// learn adds to what is known of a call. Its tool is its kind, and the first word of its title another name of that.
func (f *front) learn(id acp.ToolCallId, kind acp.ToolKind, title string, input any) *toolCall {
	c := f.tools[id]
	if c == nil {
		c = &toolCall{}
		f.tools[id] = c
	}
	if kind != "" && kind != acp.ToolKindOther {
		c.kind = kind
	}
	if title != "" {
		c.title = title
	}
	if input != nil {
		c.input = input
	}
	first, _, _ := strings.Cut(strings.TrimSpace(c.title), " ")
	c.tool, c.alias = string(c.kind), strings.TrimRight(first, ":")
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
