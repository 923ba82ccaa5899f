package acpagent

import (
	"context"
	"fmt"
	"maps"
	"slices"

	acp "github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/teams/policy"
)

// lookAtQuestions shows what the member has come to ask, and ends requests for what it asks no more.
func (p *prompt) lookAtQuestions() {
	questions, err := p.Team.Questions(p.name())
	if err != nil {
		return // as they were
	}
	// What has no id yet the member's screen will soon show.
	questions = slices.DeleteFunc(questions, func(q policy.Question) bool { return q.ID == "" && q.Running })
	maps.DeleteFunc(p.asked, func(id string, end context.CancelFunc) bool {
		isGone := !slices.ContainsFunc(questions, func(q policy.Question) bool { return q.ID == id })
		if isGone {
			end()
		}
		return isGone
	})
	for _, q := range questions {
		if p.asked[q.ID] == nil {
			p.ask(q)
		}
	}
}

// ask has the client answer a question if I may, and else shows it as text.
func (p *prompt) ask(q policy.Question) {
	var ctx context.Context
	ctx, p.asked[q.ID] = context.WithCancel(p.ctx)
	why, hint := q.OnlyAtTerminal()
	if why != "" {
		why = fmt.Sprintf("%s %s: %s", q.Agent, why, hint)
	} else if err := p.MayAnswer(q.Agent); err != nil {
		why = p.sentence(err)
	}
	if why == "" {
		p.inEditor.Go(func() { p.askEditor(ctx, q) })
		return
	}
	p.update(p.session, acp.UpdateAgentMessageText(fmt.Sprintf("%s %s\n(%s)\n\n", q.Agent, q.Asks(), why)))
}

// askEditor asks until the answer has worked, the question is gone, or the client wants no more of it: then
// the question stays open.
func (p *prompt) askEditor(ctx context.Context, q policy.Question) {
	call, title, status := acp.ToolCallId("question-"+q.ID), fmt.Sprintf("%s %s", q.Agent, q.Asks()), acp.ToolCallStatusFailed
	p.update(p.session, acp.StartToolCall(call, title, acp.WithStartStatus(acp.ToolCallStatusPending)))
	r := acp.RequestPermissionRequest{SessionId: p.session, ToolCall: acp.ToolCallUpdate{
		ToolCallId: call, Title: &title, Status: acp.Ptr(acp.ToolCallStatusPending),
		Content:  []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(q.Prompt))},
		RawInput: map[string]string{"tool": q.Tool, "input": q.Input},
	}}
	options := q.Options
	if len(options) == 0 {
		options = []policy.Option{{ID: "", Label: "Allow", Kind: "allow_once"}, {ID: "", Label: "Reject", Kind: "reject_once"}}
	}
	for i, o := range options { // by their number: an id may be missing
		kind := acp.PermissionOptionKind(o.Kind)
		if kind == "" {
			kind = acp.PermissionOptionKindAllowOnce
		}
		r.Options = append(r.Options, acp.PermissionOption{OptionId: acp.PermissionOptionId(fmt.Sprint(i + 1)), Name: o.Label, Kind: kind})
	}
	for status == acp.ToolCallStatusFailed {
		answer, err := p.conn.RequestPermission(ctx, r)
		if err != nil || answer.Outcome.Selected == nil {
			break
		}
		n := slices.IndexFunc(r.Options, func(o acp.PermissionOption) bool { return o.OptionId == answer.Outcome.Selected.OptionId })
		if n < 0 {
			break
		}
		// The end of the question, which ends ctx, is seen before the runner says that the answer has worked.
		if err = p.answerQuestion(context.WithoutCancel(ctx), q, options[n]); err == nil {
			status = acp.ToolCallStatusCompleted
		} else if ctx.Err() == nil {
			p.update(p.session, acp.UpdateAgentMessageText(p.sentence(err)+"\n\n"))
		}
	}
	p.update(p.session, acp.UpdateToolCall(call, acp.WithUpdateStatus(status)))
}

// answerQuestion answers through the member's runner, as atm approve and atm reject do. An option without an
// id is the one that allows or rejects.
func (p *prompt) answerQuestion(ctx context.Context, q policy.Question, o policy.Option) error {
	if err := p.MayAnswer(q.Agent); err != nil {
		return err
	}
	who, _ := p.Actor()
	client, err := p.Team.DialRunner(ctx, q.Agent)
	if err == nil {
		defer client.Close()
		_, err = client.Answer(ctx, control.AnswerRequest{ID: q.ID, Option: o.ID, Deny: o.Denies(), By: string(who)})
	}
	return p.RunnerError(q.Agent, err)
}
