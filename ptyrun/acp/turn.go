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
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// source is the source of all events here, and the transport of the turns.
const source = "acp"

type turn struct {
	id          string
	response    []byte // the agent's words; of a long response the end
	delta       string // words that are not logged yet
	line        string // the last line, incomplete and not printed yet
	isNewText   bool   // something else came after the last words
	isCancelled bool
}

const maxResponse = 1 << 20 // bytes, as of a message

// log appends events to the agent's log, after those that could not be appended before. One that no log can take, such
// as an update of more than 8 MiB, is counted there as dropped.
func (f *front) log(events ...wire.Event) {
	for _, e := range events {
		e.Source, e.Session = source, string(f.session)
		if f.turn != nil {
			e.TurnID = f.turn.id
		}
		f.unlogged = append(f.unlogged, e.With("transport", source).With("thread_id", string(f.session)))
	}
	for ; len(f.unlogged) > 0; f.unlogged = f.unlogged[1:] {
		err := f.Box.Log().Append(context.Background(), f.unlogged[0])
		if errors.Is(err, eventlog.ErrNoEvent) {
			lost := wire.Event{Kind: wire.DroppedCounters, Source: source}
			err = f.Box.Log().Append(context.Background(), lost.With("dropped", 1).With("unknown", 0).With("reason", err.Error()))
		}
		if err != nil {
			f.screen.print(note, fmt.Sprintf("events: %v", err))
			f.flush = time.After(flushInterval)
			return
		}
	}
}

// setActivity logs a change of activity. An open request hides every other activity.
func (f *front) setActivity(now reducer.Activity, detail string) {
	if f.activity == now || len(f.requests) > 0 && now != reducer.Confirming {
		return
	}
	e := wire.Event{Kind: "state_change"}.With("previous", string(f.activity)).With("new", string(now))
	if detail != "" {
		e = e.With("detail", detail)
	}
	f.activity = now
	f.log(e)
}

func (f *front) submit() {
	text := strings.TrimSpace(f.draft)
	if text == "" || f.session == "" || f.turn != nil {
		return
	}
	f.draft, f.turn = "", &turn{id: string(wire.NewID())}
	clear(f.tools)
	p := acp.PromptRequest{SessionId: f.session, Prompt: f.blocks(text)}
	f.log(wire.Event{Kind: wire.TurnStarted}.With("prompt", wire.Clip(text, maxResponse)))
	f.setActivity(reducer.Thinking, "")
	f.screen.print(user, text)
	go func() {
		r, err := f.conn.Prompt(context.Background(), p)
		f.post(func() { f.promptAnswered(r.StopReason, err) })
	}()
}

// maxEmbedded limits the bytes of attachments in a prompt: a protocol message has at most 10 MiB.
const maxEmbedded = 2 << 20

// blocks makes a prompt of its text and the attachments of the messages in it, which the runner is typing.
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

// block embeds an attachment if it fits, is a text or an image and the agent supports that; else it makes a link.
func (f *front) block(s *mailbox.Store, a wire.Attachment, room int64) acp.ContentBlock {
	uri := "file://" + s.Dir().Join(mailbox.FilesDir+"/"+a.SHA256)
	link := acp.ResourceLinkBlock(a.Name, uri)
	if a.Size > room {
		return link
	}
	var data []byte
	file, err := s.Attachment(a)
	if err == nil {
		defer file.Close()
		data, err = io.ReadAll(file)
	}
	kind, can := http.DetectContentType(data), f.capabilities
	switch {
	case err != nil:
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
	case f.turn == nil || err != nil && isClosed(f.conn.Done()): // agentEnded will say so
	case f.turn.isCancelled || err == nil && reason == acp.StopReasonCancelled:
		f.endTurn(reducer.Cancelled, reason, "")
	case err != nil:
		code, why := "0", err.Error()
		if e, ok := errors.AsType[*acp.RequestError](err); ok {
			code, why = fmt.Sprint(e.Code), e.Message
			if data, _ := json.Marshal(e.Data); e.Data != nil {
				why += " " + string(data)
			}
		}
		f.log(wire.Event{Kind: "error"}.With("code", code).With("message", why))
		f.endTurn("failed", reason, code+": "+why)
	default:
		f.endTurn("completed", reason, "")
	}
}

// endTurn ends the turn. The next prompt is drawn after the events are logged.
func (f *front) endTurn(status string, reason acp.StopReason, why string) {
	f.endText()
	f.cancelRequests()
	e := wire.Event{Kind: wire.TurnCompleted}.With("status", status).With("stop_reason", reason)
	e = e.With("response", wire.Clip(string(f.turn.response), maxResponse))
	if why != "" {
		e = e.With("error", why)
	}
	if status != "completed" || reason != acp.StopReasonEndTurn {
		f.screen.print(note, strings.TrimRight(fmt.Sprintf("%s: %s %s", status, reason, why), ": "))
	}
	f.log(e)
	f.setActivity(reducer.Idle, "")
	f.log(wire.Event{Kind: wire.TurnIdle})
	f.turn = nil
}

// cancel cancels the turn and all requests. Without a turn it clears the draft.
func (f *front) cancel() {
	if f.turn == nil {
		f.draft = ""
	} else {
		f.turn.isCancelled = true
		n := acp.CancelNotification{SessionId: f.session}
		go f.conn.Cancel(context.Background(), n)
	}
	f.cancelRequests()
}

// addText adds to the agent's words. Outside of a turn it prints them and logs nothing, since the event would start a
// turn that never ends.
func (f *front) addText(text string) {
	t := f.turn
	if t == nil {
		f.screen.print(says, text)
		return
	}
	if t.isNewText && len(t.response) > 0 {
		text = "\n\n" + strings.TrimLeft(text, "\n ")
	}
	t.isNewText = false
	f.setActivity(reducer.Responding, "")
	if t.delta == "" {
		f.flush = time.After(flushInterval)
	}
	t.delta += text
	if t.response = append(t.response, text...); len(t.response) > 2*maxResponse { // seldom, as it copies
		t.response = []byte(wire.Clip(string(t.response), maxResponse))
	}
	t.line += text
	if i := strings.LastIndexByte(t.line, '\n'); i >= 0 {
		f.screen.print(says, t.line[:i])
		t.line = t.line[i+1:]
	}
}

// logDelta logs the words that are not logged yet.
func (f *front) logDelta() {
	if t := f.turn; t != nil && t.delta != "" {
		e := wire.Event{Kind: "message_delta"}.With("delta", wire.Clip(t.delta, maxResponse))
		t.delta = ""
		f.log(e)
	}
}

// endText prints and logs the rest of the agent's words before something else comes.
func (f *front) endText() {
	f.logDelta()
	if t := f.turn; t != nil {
		f.screen.print(says, t.line)
		t.line, t.isNewText = "", true
	}
}
