//go:build linux || darwin

package acpfront

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// source is the source of all events here, and the transport of the turns.
const source = "acp"

type turn struct {
	id          string
	response    strings.Builder // the agent's words
	delta       string          // words that are not logged yet
	loggedAt    time.Time
	line        string // the last line, incomplete and not printed yet
	isNewText   bool   // something else came after the last words
	isCancelled bool
	answers     map[string]bool // to requests about commands and paths: true is yes
}

const (
	maxResponse   = 1 << 20                // bytes, as of a message; of a longer response the end is kept
	flushInterval = 500 * time.Millisecond // between events for the agent's words
)

// log queues events for the agent's log. They are appended beside the front, which does not wait for a lock or a disk.
func (f *front) log(events ...wire.Event) {
	for _, e := range events {
		e.Source, e.Session = source, string(f.session)
		if f.turn != nil {
			e.TurnID = f.turn.id
		}
		f.unlogged = append(f.unlogged, e.With("transport", source).With("thread_id", string(f.session)))
	}
	if f.logging == nil && len(f.unlogged) > 0 {
		f.logging = make(chan struct{})
		go f.appendEvents()
	}
}

// appendEvents appends the queued events. If that fails they are tried again, before those that follow.
func (f *front) appendEvents() {
	for isDone := false; !isDone; {
		f.mu.Lock()
		events := slices.Clone(f.unlogged)
		f.mu.Unlock()
		err := f.Box.Log().Append(context.Background(), events...)
		f.do(func() {
			if err == nil {
				f.unlogged = f.unlogged[len(events):]
				f.awaited = max(0, f.awaited-len(events))
			} else {
				f.awaited = 0
				f.screen.print(note, fmt.Sprintf("events: %v", err))
				time.AfterFunc(time.Second, func() { f.do(func() { f.log() }) })
			}
			if f.request != nil && f.awaited == 0 && f.request.shownAt.IsZero() {
				f.request.shownAt = time.Now()
			}
			if isDone = err != nil || len(f.unlogged) == 0; isDone {
				close(f.logging)
				f.logging = nil
			}
		})
	}
}

// finishLog waits until the queued events are logged, or that has failed.
func (f *front) finishLog() {
	f.mu.Lock()
	logging := f.logging
	f.mu.Unlock()
	if logging != nil {
		<-logging
	}
}

// awaitLogged keeps the next prompt or request off the screen until the events so far are logged, or that has failed.
func (f *front) awaitLogged() { f.awaited = len(f.unlogged) }

// setActivity logs a change of activity. An open request hides every other activity.
func (f *front) setActivity(now reducer.Activity, detail string) {
	if f.activity == now || f.request != nil && now != reducer.Confirming {
		return
	}
	e := wire.Event{Kind: "state_change"}.With("previous", string(f.activity)).With("new", string(now))
	if detail != "" {
		e = e.With("detail", detail)
	}
	f.activity = now
	f.log(e)
}

// submit sends the draft to the agent, which begins a turn.
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
		r, err := acp.SendRequest[acp.PromptResponse](f.conn, context.Background(), acp.AgentMethodSessionPrompt, p)
		f.do(func() { f.promptAnswered(r.StopReason, err) })
	}()
}

// blocks makes a prompt of its text and the attachments of the messages in it, which the runner is typing.
func (f *front) blocks(text string) []acp.ContentBlock {
	blocks := []acp.ContentBlock{acp.TextBlock(text)}
	for _, it := range f.Box.BeingTyped() {
		for _, a := range it.Attachments {
			if strings.Contains(text, it.ID.Short(6)) {
				blocks = append(blocks, f.block(f.Box.Store(), a))
			}
		}
	}
	return blocks
}

const maxEmbedded = 2 << 20 // bytes of an attachment

// block embeds a small attachment if it is a text or an image and the agent supports that; else it makes a link.
func (f *front) block(s *mailbox.Store, a wire.Attachment) acp.ContentBlock {
	uri := "file://" + s.Dir().Join(mailbox.FilesDir+"/"+a.SHA256)
	var data []byte
	file, err := s.Attachment(a)
	if err == nil {
		defer file.Close()
		data, err = io.ReadAll(io.LimitReader(file, maxEmbedded))
	}
	kind := http.DetectContentType(data)
	switch {
	case err != nil || a.Size > maxEmbedded:
	case strings.HasPrefix(kind, "image/") && f.capabilities.Image:
		return acp.ImageBlock(base64.StdEncoding.EncodeToString(data), kind)
	case strings.HasPrefix(a.MediaType, "text/") && f.capabilities.EmbeddedContext:
		whole := strings.ToValidUTF8(string(data), "\uFFFD")
		text := &acp.TextResourceContents{Uri: uri + "#" + url.PathEscape(a.Name), MimeType: &a.MediaType, Text: whole}
		return acp.ResourceBlock(acp.EmbeddedResourceResource{TextResourceContents: text})
	}
	return acp.ResourceLinkBlock(a.Name, uri)
}

// promptAnswered ends the turn as the agent's answer to the prompt says.
func (f *front) promptAnswered(reason acp.StopReason, err error) {
	switch {
	case f.turn == nil || err != nil && isClosed(f.conn.Done()): // the end of the agent ends the turn
	case f.turn.isCancelled || err == nil && reason == acp.StopReasonCancelled:
		f.endTurn(reducer.Cancelled, reason, "")
	case err != nil:
		code, why := explain(err)
		f.log(wire.Event{Kind: "error"}.With("code", fmt.Sprint(code)).With("message", why))
		f.endTurn("failed", reason, fmt.Sprintf("%d: %s", code, why))
	default:
		f.endTurn("completed", reason, "")
	}
}

// explain returns the code of an agent's error, else 0, and what it says.
func explain(err error) (code int, why string) {
	why = err.Error()
	if e, ok := errors.AsType[*acp.RequestError](err); ok {
		code, why = e.Code, e.Message
		if data, _ := json.Marshal(e.Data); e.Data != nil {
			why += " " + string(data)
		}
	}
	return code, wire.Clip(why, maxRaw)
}

// endTurn ends the turn. The next prompt is drawn after the events are logged.
func (f *front) endTurn(status string, reason acp.StopReason, why string) {
	f.endText()
	f.cancelRequest()
	e := wire.Event{Kind: wire.TurnCompleted}.With("status", status).With("stop_reason", reason)
	e = e.With("response", wire.ClipStart(f.turn.response.String(), maxResponse))
	if why != "" {
		e = e.With("error", why)
	}
	if status != "completed" || reason != acp.StopReasonEndTurn {
		f.screen.print(note, strings.TrimRight(fmt.Sprintf("%s: %s %s", status, reason, why), ": "))
	}
	f.log(e)
	f.setActivity(reducer.Idle, "")
	f.log(wire.Event{Kind: wire.TurnIdle})
	f.awaitLogged()
	f.turn = nil
}

// cancel cancels the turn and the open request. Without a turn it clears the draft.
func (f *front) cancel() {
	if f.turn == nil {
		f.draft = ""
	} else {
		f.turn.isCancelled = true
		n := acp.CancelNotification{SessionId: f.session}
		go f.conn.SendNotification(context.Background(), acp.AgentMethodSessionCancel, n)
	}
	f.cancelRequest()
}

// addText adds to the agent's words. Outside of a turn it prints them and logs nothing, since the event would start a
// turn that never ends.
func (f *front) addText(text string) {
	t := f.turn
	if t == nil {
		f.screen.print(says, text)
		return
	}
	if t.isNewText && t.response.Len() > 0 {
		text = "\n\n" + strings.TrimLeft(text, "\n ")
	}
	t.isNewText = false
	f.setActivity(reducer.Responding, "")
	t.response.WriteString(text)
	if t.delta += text; time.Since(t.loggedAt) > flushInterval {
		f.logDelta()
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
		f.log(wire.Event{Kind: "message_delta"}.With("delta", wire.Clip(t.delta, maxResponse)))
		t.delta, t.loggedAt = "", time.Now()
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
