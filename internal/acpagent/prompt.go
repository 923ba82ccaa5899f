package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// prompt is one that waits for its end.
type prompt struct {
	*agent
	ctx     context.Context // until it is cancelled, or the client has gone
	cancel  context.CancelFunc
	session acp.SessionId
	message *wire.Message

	title    string                        // of the tool call that stands for the message, as shown last
	shown    map[wire.ID]bool              // messages of the member
	hasText  bool                          // something that the member says was shown as it said it
	asked    map[string]context.CancelFunc // what the member asks, by its id: ends the request for an answer
	inEditor sync.WaitGroup                // of these, while the client is asked
}

// Prompt sends a message, and shows what comes of it until it is answered.
func (a *agent) Prompt(ctx context.Context, r acp.PromptRequest) (out acp.PromptResponse, err error) {
	a.running.Add(1)
	defer a.running.Done()
	thread, err := a.thread(r.SessionId)
	if err != nil {
		return out, err
	}
	p := &prompt{agent: a, session: r.SessionId, shown: map[wire.ID]bool{}, asked: map[string]context.CancelFunc{}}
	p.ctx, p.cancel = context.WithCancel(ctx)
	defer p.inEditor.Wait()
	defer p.cancel()
	a.prompts.Store(r.SessionId, p)
	defer a.prompts.CompareAndDelete(r.SessionId, p)
	o, err := p.outgoing(thread, r.Prompt)
	if err != nil {
		return out, a.refuse(err)
	}
	if err := p.showUnread(thread); err != nil {
		return out, a.refuse(err)
	}
	response, err := a.Root.Ask(p.ctx, o, teams.Observer{Sent: p.sent, Event: p.event, Message: p.answer})
	if p.ctx.Err() != nil {
		return p.cancelled()
	}
	return p.ended(response, err)
}

// outgoing is the prompt as a message, the thread's first where there is none yet.
func (p *prompt) outgoing(thread wire.ID, blocks []acp.ContentBlock) (o *teams.Outgoing, err error) {
	if p.message, err = p.agent.message(blocks); err != nil {
		return nil, err
	}
	o = &teams.Outgoing{From: p.Me, To: []wire.Address{p.member.Address()}, Message: p.message}
	_, _, err = p.Team.Find(p.Me, string(thread))
	switch {
	case err == nil:
		p.message.Thread = thread
	case errors.Is(err, mailbox.ErrNotFound):
		p.message.ID, o.Given = thread, true
	default:
		return nil, err
	}
	err = p.Root.Prepare(o)
	if err == nil && len(o.Failed) > 0 {
		err = o.Failed[0].Err
	}
	return o, err
}

// showUnread shows what the member has said in the thread since the last prompt.
func (p *prompt) showUnread(thread wire.ID) error {
	batch, err := p.Me.Peek(p.ctx, mailbox.ReadOptions{Match: func(m *wire.Message) bool {
		return m.From == p.member.Address() && m.ThreadID() == thread
	}})
	for _, it := range batch.Items {
		p.shown[it.ID] = true
		err = cmp.Or(err, p.show(p.ctx, p.session, it))
	}
	return err
}

// sent says how the message stands, as a tool call that goes on until the end.
func (p *prompt) sent(*teams.Response) {
	m, err := p.Team.Summary(p.name())
	p.title = fmt.Sprintf("sent to %s (%s)", p.name(), m.Forecast(time.Now(), false))
	if err != nil {
		p.title = fmt.Sprintf("sent to %s", p.name())
	}
	p.update(p.session, acp.StartToolCall(p.call(), p.title, acp.WithStartKind(acp.ToolKindOther), acp.WithStartStatus(acp.ToolCallStatusPending)))
	p.lookAtQuestions()
}

// call is the id of that tool call.
func (p *prompt) call() acp.ToolCallId { return acp.ToolCallId(p.message.ID) }

// progress shows how it stands now.
func (p *prompt) progress(title string, status acp.ToolCallStatus) {
	p.title = title
	p.update(p.session, acp.UpdateToolCall(p.call(), acp.WithUpdateTitle(title), acp.WithUpdateStatus(status)))
}

// answer shows a message of the member that belongs to the thread. What cannot be shown stays unread.
func (p *prompt) answer(it *mailbox.Item) {
	if it.ThreadID() == p.message.ThreadID() && !p.shown[it.ID] {
		p.shown[it.ID] = true
		p.show(p.ctx, p.session, it)
	}
}

// event shows what an event of the member tells: of the turn that took the message all of it, else how the
// member is.
func (p *prompt) event(e *wire.Event, turn *teams.Turn) {
	isOurs := !turn.HasEnded() && turn != nil && (e.TurnID == "" || e.TurnID == turn.ID) && (e.Session == "" || e.Session == turn.Session)
	if isOurs && p.work(e) {
		return
	}
	if m, err := p.Team.Summary(p.name()); err == nil {
		title, status := fmt.Sprintf("%s is %s", p.name(), m.State), acp.ToolCallStatusPending
		if about := m.About(); about != "" {
			title += ": " + about
		}
		if turn != nil {
			status = acp.ToolCallStatusInProgress
		}
		if title != p.title {
			p.progress(title, status)
		}
	}
	p.lookAtQuestions()
}

// work shows what the member does or says in the turn, and reports whether the event told of that.
func (p *prompt) work(e *wire.Event) bool {
	var u acp.SessionUpdate
	tool, id := e.Text("tool"), acp.ToolCallId(cmp.Or(e.Text("tool_call_id"), e.Text("tool")))
	switch e.Kind {
	case "tool_call_start":
		u = acp.StartToolCall(id, cmp.Or(tool, "tool"), acp.WithStartStatus(acp.ToolCallStatusInProgress))
	case "tool_call_end":
		status := acp.ToolCallStatusCompleted
		if e.Text("error") != "" {
			status = acp.ToolCallStatusFailed
		}
		u = acp.UpdateToolCall(id, acp.WithUpdateStatus(status))
	case "message_delta":
		u = acp.UpdateAgentMessageText(e.Text("delta"))
	case "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan":
		var n struct {
			Update json.RawMessage
			Params struct{ Update json.RawMessage }
		}
		json.Unmarshal(e.Wire, &n)
		raw := cmp.Or(string(n.Params.Update), string(n.Update), string(e.Wire))
		if json.Unmarshal([]byte(raw), &u) != nil {
			return false
		}
	default:
		return false
	}
	p.hasText = p.hasText || u.AgentMessageChunk != nil
	p.update(p.session, u)
	return u.AgentMessageChunk != nil || u.AgentThoughtChunk != nil
}

// ended tells how it ended.
func (p *prompt) ended(r *teams.Response, err error) (out acp.PromptResponse, _ error) {
	if r.Reply != nil {
		p.answer(r.Reply)
	} else if r.Text != "" && !p.hasText {
		p.update(p.session, acp.UpdateAgentMessageText(r.Text))
	}
	if err == nil && r.Status == reducer.Failed {
		err = fmt.Errorf("the turn of %s failed", p.name())
	}
	switch {
	case r.Status == reducer.Interrupted:
		p.progress(fmt.Sprintf("%s was interrupted", p.name()), acp.ToolCallStatusFailed)
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	case err != nil:
		p.progress(err.Error(), acp.ToolCallStatusFailed)
		return out, p.refuse(err)
	}
	p.progress(fmt.Sprintf("%s: %s after %s", p.name(), r.Status, r.Took.Round(100*time.Millisecond)), acp.ToolCallStatusCompleted)
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

// cancelled takes the message back, or interrupts the member where it was taken. If the client has gone, the
// member goes on.
func (p *prompt) cancelled() (out acp.PromptResponse, err error) {
	select {
	case <-p.conn.Done():
		return out, p.ctx.Err()
	default:
	}
	p.inEditor.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	done, err := p.takeBack(ctx)
	if err != nil {
		done = p.sentence(p.RunnerError(p.name(), err))
	}
	p.progress(done, acp.ToolCallStatusFailed)
	return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
}

// takeBack says what it did.
func (p *prompt) takeBack(ctx context.Context) (done string, err error) {
	state, err := mailbox.Unread, mailbox.ErrBeingTyped
	for ; errors.Is(err, mailbox.ErrBeingTyped); time.Sleep(50 * time.Millisecond) {
		var it *mailbox.Item
		if it, err = p.member.Get(p.message.ID); errors.Is(err, mailbox.ErrNotFound) {
			return "not sent", nil
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return "", err
		}
		if state = it.State; state == mailbox.Unread {
			state, err = p.Root.Withdraw(ctx, p.Me, p.message, p.member.Address(), p.Origin())
		}
	}
	if err != nil || state == mailbox.Unread || state == mailbox.Withdrawn {
		return "taken back before it was read", err
	}
	if err := p.MayAct("interrupt", p.name()); err != nil {
		return "", err
	}
	client, err := p.Team.DialRunner(ctx, p.name())
	if err != nil {
		return "", err
	}
	defer client.Close()
	questions, err := p.Team.Questions(p.name())
	for _, q := range slices.DeleteFunc(questions, func(q policy.Question) bool { return p.asked[q.ID] == nil }) {
		err = cmp.Or(err, p.answerQuestion(ctx, q, policy.Option{Kind: "reject_once"}))
	}
	o, e := client.Interrupt(ctx)
	return fmt.Sprintf("%s: %s", p.name(), cmp.Or(o.Detail, o.Done)), cmp.Or(err, e)
}
