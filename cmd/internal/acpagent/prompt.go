package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// prompt is an open session/prompt. The client sees it as a tool call, whose title says what the member does.
type prompt struct {
	*agent
	ctx     context.Context // ends with the prompt, when it is cancelled or, after it is sent, when the client leaves
	end     context.CancelFunc
	cancel  context.CancelFunc
	session acp.SessionId
	message *wire.Message

	title       string // of the tool call; "" before the message is sent
	shown       map[wire.ID]bool
	hasStreamed bool                          // the member's words were shown while it spoke
	questions   map[string]context.CancelFunc // the member's open questions; each ends the request to the client
	asking      sync.WaitGroup
	stopReason  acp.StopReason // of the member's turn, if that has one
}

// Prompt sends a message and shows the member's reaction until the message is answered.
func (a *agent) Prompt(ctx context.Context, r acp.PromptRequest) (out acp.PromptResponse, err error) {
	p := &prompt{agent: a, session: r.SessionId, shown: map[wire.ID]bool{}, questions: map[string]context.CancelFunc{}}
	ctx, p.cancel = context.WithCancel(ctx)
	defer p.cancel()
	a.prompts.Store(p, true)
	defer a.prompts.Delete(p)
	a.client.begin("")
	if err := a.enter(""); err != nil {
		return out, a.rpcError(err)
	}
	defer p.asking.Wait()
	p.ctx, p.end = context.WithCancel(ctx)
	defer p.end()
	m, err := p.outgoing(r)
	if err != nil {
		return out, a.rpcError(err)
	}
	sent, err := a.Send(p.ctx, m)
	if err == nil {
		err = sent.Err("sent to")
	}
	if err != nil && ctx.Err() == nil {
		return out, a.rpcError(err)
	}
	var answer history.Answer
	if err == nil {
		p.showSent(sent)
		answer, err = a.Opened().Await(p.ctx, p.message, teams.Observer{EndsWithTurn: true, Event: p.showEvent, Message: p.showMessage})
	}
	if p.ctx.Err() == nil {
		return p.finish(answer, err)
	}
	p.asking.Wait()
	if ctx.Err() != nil && p.title != "" { // else the client has left, and the member goes on
		p.showProgress(p.withdraw(), acp.ToolCallStatusFailed)
	}
	return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
}

// outgoing makes the message of a prompt: the first of the thread, if there is none yet.
func (p *prompt) outgoing(r acp.PromptRequest) (m *teams.Message, err error) {
	if !wire.IsID(string(p.session)) {
		return nil, noSession(p.session)
	}
	if p.message, err = p.newMessage(r.Prompt); err != nil {
		return nil, err
	}
	if r.Meta != nil {
		p.message.Meta, _ = json.Marshal(map[string]any{"acp": r.Meta})
	}
	m = &teams.Message{To: []string{p.member.Address().String()}, Content: p.message}
	_, _, err = post.Find(p.Team, p.Me, string(p.session))
	switch {
	case errors.Is(err, mailbox.ErrNotFound):
		p.message.ID = wire.ID(p.session)
	case err != nil:
		return nil, err
	default:
		p.message.Thread = wire.ID(p.session)
	}
	return m, nil
}

func (p *prompt) showSent(sent *app.Outcome) {
	p.title = fmt.Sprintf("sent to %s (%s)", p.name(), sent.Delivered[0].Note)
	p.update(p.session, acp.StartToolCall(acp.ToolCallId(p.message.ID), p.title, acp.WithStartStatus(acp.ToolCallStatusPending)))
	p.showQuestions()
	context.AfterFunc(p.client.connected, p.end)
}

func (p *prompt) showProgress(title string, status acp.ToolCallStatus) {
	if title != p.title {
		p.title = title
		p.update(p.session, acp.UpdateToolCall(acp.ToolCallId(p.message.ID), acp.WithUpdateTitle(title), acp.WithUpdateStatus(status)))
	}
}

// showMessage shows a message of the member if it is in the thread.
func (p *prompt) showMessage(it *wire.Item) {
	if it.ThreadID() == wire.ID(p.session) && !p.shown[it.ID] {
		p.shown[it.ID] = true
		p.show(p.ctx, p.session, it)
	}
}

// showEvent shows the words and tool calls of the turn that took the message, and after any other event the member's
// state.
func (p *prompt) showEvent(e *wire.Event, turn *history.Turn) {
	isOurTurn := turn != nil && !turn.HasEnded() && (e.TurnID == "" || e.TurnID == turn.ID) && (e.Session == "" || e.Session == turn.Session)
	if turn != nil && e.TurnID == turn.ID && e.Kind == wire.TurnCompleted {
		p.stopReason = acp.StopReason(e.Text("stop_reason"))
	}
	if u, ok := updateOf(e); ok {
		if isOurTurn {
			p.hasStreamed = p.hasStreamed || u.AgentMessageChunk != nil
			p.update(p.session, u)
		}
		return
	}
	if m, err := presence.One(context.Background(), p.Team, p.name()); err == nil {
		title := fmt.Sprintf("%s is %s: %s", p.name(), m.State, m.StateDetail())
		p.showProgress(strings.TrimSuffix(title, ": "), acp.ToolCallStatusInProgress)
	}
	p.showQuestions()
}

// updateOf converts an event to an update, if there is one for it.
func updateOf(e *wire.Event) (u acp.SessionUpdate, ok bool) {
	title := cmp.Or(letter.OneLine(e.Text("title", "tool"), 200), "tool")
	id, status := acp.ToolCallId(cmp.Or(e.Text("tool_call_id"), title)), acp.ToolCallStatusCompleted
	switch e.Kind {
	case wire.ToolCallStart:
		return acp.StartToolCall(id, title, acp.WithStartStatus(acp.ToolCallStatusInProgress)), true
	case wire.ToolCallEnd:
		if e.Text(wire.FieldError) != "" {
			status = acp.ToolCallStatusFailed
		}
		return acp.UpdateToolCall(id, acp.WithUpdateStatus(cmp.Or(acp.ToolCallStatus(e.Text(wire.FieldStatus)), status))), true
	case wire.MessageDelta:
		return words(e.Text(wire.FieldDelta)), true
	}
	return u, false
}

// finish shows the reply, or what the turn said, and returns how the prompt ended.
func (p *prompt) finish(a history.Answer, err error) (out acp.PromptResponse, _ error) {
	if a.Message != nil {
		p.showMessage(&wire.Item{Message: a.Message})
	} else if a.Text != "" && !p.hasStreamed {
		p.update(p.session, words(a.Text))
	}
	out.StopReason = cmp.Or(p.stopReason, acp.StopReasonEndTurn)
	if a.Status == reducer.Interrupted || a.Status == reducer.Cancelled {
		out.StopReason, err = acp.StopReasonCancelled, nil
	} else if a.Status == reducer.Failed && err == nil {
		err = fmt.Errorf("the turn of %s failed", p.name())
	}
	if err != nil {
		p.showProgress(err.Error(), acp.ToolCallStatusFailed)
		return out, p.rpcError(err)
	}
	p.showProgress(fmt.Sprintf("%s: %s after %s", p.name(), a.Status, a.Took.Round(100*time.Millisecond)), acp.ToolCallStatusCompleted)
	return out, nil
}

// withdraw withdraws the message while it is unread, else interrupts the member, and returns what it did. First it
// rejects what the client was asked: an interrupt whose keys would answer a dialog is refused.
func (p *prompt) withdraw() string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	state, err := wire.Unread, maildir.ErrBeingTyped
	for errors.Is(err, maildir.ErrBeingTyped) && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
		state, err = p.member.WithdrawRead(ctx, p.message.ID, p.Me.Address(), nil)
	}
	if state == wire.Unread && err == nil {
		return "withdrawn before it was read"
	}
	questions, _ := presence.Questions(p.Team, p.name())
	for _, q := range questions {
		if p.questions[key(q)] != nil && q.Kind != reducer.ClientTool && p.MayAnswer(q) == nil {
			p.Answer(ctx, q, ask.Answer{Deny: true})
		}
	}
	if err == nil {
		_, err = p.Interrupt(ctx, p.name())
	}
	if err != nil {
		return p.rpcError(err).Message
	}
	return "interrupted"
}
