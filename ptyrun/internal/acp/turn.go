package acp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

type turn struct {
	id          string
	response    []byte // the agent's words
	delta       []byte // words that are not logged yet
	isNewText   bool   // something else came after the last words
	isCancelled bool
	isHeard     bool // the agent has its prompt
}

// heard tells once that the agent has the prompt of its turn.
func (a *Agent) heard() {
	if t := a.turn; t != nil && !t.isHeard {
		t.isHeard = true
		a.tell(Event{Heard: t.id})
	}
}

const (
	maxResponse   = 1 << 20                // bytes, as of a message; of a longer response the end is kept
	maxDelta      = 64 << 10               // bytes of words in an event
	flushInterval = 500 * time.Millisecond // for words to get into the log
)

func (a *Agent) mayPrompt() error {
	switch {
	case a.session == "" || a.hasExited || a.exit != nil || a.fault != "":
		return ErrNotReady
	case a.turn != nil || len(a.open) > 0:
		return ErrBusy
	}
	return nil
}

// Prompt begins a turn with a text and attachments. Else it returns ErrNotReady or ErrBusy.
func (a *Agent) Prompt(text string, attached ...wire.Attachment) (err error) {
	a.mu.Lock()
	can := a.capabilities
	err = a.mayPrompt()
	a.mu.Unlock()
	var blocks []acp.ContentBlock
	for i := 0; err == nil && i < len(attached); i++ {
		blocks = append(blocks, a.block(attached[i], can))
	}
	a.do(func() {
		if err = a.mayPrompt(); err == nil {
			a.begin(text, blocks)
		}
	})
	return err
}

// begin begins a turn.
func (a *Agent) begin(text string, attached []acp.ContentBlock) {
	t := &turn{id: string(wire.NewID())}
	a.turn = t
	clear(a.tools)
	a.log(wire.Event{Kind: wire.TurnStarted}.With("prompt", wire.Clip(text, maxResponse)))
	a.setActivity(reducer.Thinking, "")
	p := acp.PromptRequest{SessionId: a.session, Prompt: append([]acp.ContentBlock{acp.TextBlock(text)}, attached...)}
	a.call(acp.AgentMethodSessionPrompt, p, func(result json.RawMessage, err error) {
		var r acp.PromptResponse
		if err == nil {
			err = json.Unmarshal(result, &r)
		}
		if a.turn == t {
			a.promptAnswered(r.StopReason, err)
		}
	})
}

const maxEmbedded = 2 << 20 // bytes of an attachment

// block embeds a small attachment if it is a text or an image and the agent supports that; else it makes a link.
func (a *Agent) block(attached wire.Attachment, can acp.PromptCapabilities) acp.ContentBlock {
	uri := "file://" + filepath.Join(a.Team, filestore.Dir, attached.SHA256)
	if attached.Size > maxEmbedded {
		return acp.ResourceLinkBlock(attached.Name, uri)
	}
	data, err := a.read(attached)
	kind := http.DetectContentType(data)
	switch {
	case err != nil:
	case strings.HasPrefix(kind, "image/") && can.Image:
		return acp.ImageBlock(base64.StdEncoding.EncodeToString(data), kind)
	case strings.HasPrefix(attached.MediaType, "text/") && can.EmbeddedContext:
		whole := strings.ToValidUTF8(string(data), "\uFFFD")
		text := &acp.TextResourceContents{Uri: uri + "#" + url.PathEscape(attached.Name), MimeType: &attached.MediaType, Text: whole}
		return acp.ResourceBlock(acp.EmbeddedResourceResource{TextResourceContents: text})
	}
	return acp.ResourceLinkBlock(attached.Name, uri)
}

// read returns the content of a small attachment.
func (a *Agent) read(attached wire.Attachment) ([]byte, error) {
	dir, err := durable.Open(a.Team)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	file, err := filestore.Open(dir, attached)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxEmbedded))
}

// promptAnswered ends the turn as the agent's answer to the prompt says.
func (a *Agent) promptAnswered(reason acp.StopReason, err error) {
	if !errors.Is(err, errGone) {
		a.heard()
	}
	switch {
	case errors.Is(err, errGone): // the end of the agent ends the turn
	case a.turn.isCancelled || err == nil && reason == acp.StopReasonCancelled:
		a.endTurn(reducer.Cancelled, reason, "")
	case err != nil:
		code, why := explain(err)
		a.logError(code, why)
		a.endTurn("failed", reason, fmt.Sprintf("%d: %s", code, why))
		if end := agents.LimitEnd(why, time.Now(), time.Now()); !end.IsZero() {
			e := wire.Event{Kind: wire.StateChange}.With("previous", string(reducer.Idle)).With("new", string(reducer.Limited))
			a.log(e.With("detail", why).With("until", end.UTC().Format(time.RFC3339)))
		}
	default:
		a.endTurn("completed", reason, "")
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

// endTurn ends the turn and withdraws the questions in it.
func (a *Agent) endTurn(status string, reason acp.StopReason, why string) {
	a.endText()
	a.withdraw()
	e := wire.Event{Kind: wire.TurnCompleted}.With("status", status).With("stop_reason", wire.Clip(string(reason), maxRaw))
	e = e.With(wire.FieldResponse, wire.ClipStart(string(a.turn.response), maxResponse))
	if why != "" {
		e = e.With(wire.FieldError, why)
	}
	a.log(e)
	a.setActivity(reducer.Idle, "")
	a.log(wire.Event{Kind: wire.TurnIdle})
	a.turn = nil
}

// Interrupt cancels the turn and withdraws the questions. The turn ends when the agent says so.
func (a *Agent) Interrupt() { a.do(a.cancel) }

func (a *Agent) cancel() {
	if a.turn != nil {
		a.turn.isCancelled = true
		a.notify(acp.AgentMethodSessionCancel, acp.CancelNotification{SessionId: a.session})
	}
	a.withdraw()
}

// addText adds to the agent's words. Outside of a turn nothing is logged, since the event would start a turn that never
// ends.
func (a *Agent) addText(text string) {
	t := a.turn
	switch {
	case text == "":
		return
	case t == nil:
		a.tell(Event{Said: text})
		return
	}
	if t.isNewText && len(t.response) > 0 {
		text = "\n\n" + strings.TrimLeft(text, "\n ")
	}
	t.isNewText = false
	a.setActivity(reducer.Responding, "")
	if t.response = append(t.response, text...); len(t.response) > 2*maxResponse {
		excess := len(t.response) - maxResponse - 1 // one byte stays too many: so it will say that it is cut
		t.response = append(t.response[:0], t.response[excess:]...)
	}
	if len(t.delta) == 0 {
		time.AfterFunc(flushInterval, func() { a.do(a.logDelta) })
	}
	if t.delta = append(t.delta, text...); len(t.delta) > maxDelta {
		a.logDelta()
	}
}

// logDelta logs the words that are not logged yet.
func (a *Agent) logDelta() {
	for t := a.turn; t != nil && len(t.delta) > 0; {
		part := wire.Clip(string(t.delta[:min(len(t.delta), 2*maxDelta)]), maxDelta)
		a.log(wire.Event{Kind: wire.MessageDelta}.With("delta", part))
		t.delta = t.delta[len(part):]
	}
}

// endText ends the agent's words before something else comes.
func (a *Agent) endText() {
	a.logDelta()
	if a.turn != nil {
		a.turn.isNewText = true
	}
}
