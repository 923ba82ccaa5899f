package acpagent

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	acp "github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams/policy"
)

// showQuestions asks the client each new question of the member that I may answer, and shows the others as text. It
// cancels the requests for questions that are gone.
func (p *prompt) showQuestions() {
	questions, err := p.Team.Questions(p.name())
	key := func(q policy.Question) string { return cmp.Or(q.ID, q.Since.String()) }
	for known, cancel := range p.questions {
		if err == nil && !slices.ContainsFunc(questions, func(q policy.Question) bool { return key(q) == known }) {
			cancel()
		}
	}
	for _, q := range questions {
		if p.questions[key(q)] != nil || q.ID == "" && q.Running { // without an ID: the screen will show more soon
			continue
		}
		var ctx context.Context
		ctx, p.questions[key(q)] = context.WithCancel(p.ctx)
		if err := p.checkAnswerable(&q); err != nil {
			p.showQuestion(q, err)
			continue
		}
		p.asking.Go(func() { p.request(ctx, q) })
	}
}

// checkAnswerable returns an error if the client may not answer a question. It removes permission options whose effect
// is unknown: an editor may choose an option by itself because it is called a permission.
func (p *prompt) checkAnswerable(q *policy.Question) error {
	if err := p.MayAnswer(*q); err != nil {
		return err
	}
	if q.Kind == reducer.ClientTool {
		return failure.Refused("an editor cannot supply this result").WithHint("atm approve %s RESULT", q.Short())
	}
	if q.Kind != reducer.Permission || len(q.Options) == 0 {
		return nil
	}
	q.Options = slices.DeleteFunc(q.Options, func(o policy.Option) bool { return o.Kind == "" })
	if len(q.Options) == 0 {
		return failure.Refused("atm does not know what its options do").WithHint("atm approve %s OPTION", q.Short())
	}
	return nil
}

// maxRequests limits how often the client is asked: a program may give the same wrong answer at once, forever.
const maxRequests = 3

// request asks the client until an answer works or the question is gone. If the client gives no answer the question
// stays open, and request says so.
func (p *prompt) request(ctx context.Context, q policy.Question) {
	r := acp.RequestPermissionRequest{SessionId: p.session, ToolCall: acp.ToolCallUpdate{
		ToolCallId: acp.ToolCallId(p.message.ID), Title: acp.Ptr(fmt.Sprintf("%s %s", q.Agent, q.Summary())),
		Content: []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(q.Prompt))},
	}}
	if len(q.Options) == 0 {
		q.Options = []policy.Option{{Label: "Allow", Kind: "allow_once"}, {Label: "Reject", Kind: "reject_once"}}
	}
	for i, o := range q.Options {
		kind := acp.PermissionOptionKind(cmp.Or(o.Kind, "allow_once"))
		r.Options = append(r.Options, acp.PermissionOption{OptionId: acp.PermissionOptionId(fmt.Sprint(i + 1)), Name: o.Label, Kind: kind})
	}
	for range maxRequests {
		chosen, err := p.conn.RequestPermission(ctx, r)
		if err != nil || chosen.Outcome.Selected == nil {
			break
		}
		id := chosen.Outcome.Selected.OptionId
		i := slices.IndexFunc(r.Options, func(o acp.PermissionOption) bool { return o.OptionId == id })
		if i < 0 {
			err = failure.Usage("%q is not an option id", id)
		} else {
			_, err = p.Answer(context.Background(), q, command.Answer{Option: q.Options[i].ID, IsDeny: q.Options[i].Denies()})
		}
		if err == nil || ctx.Err() != nil { // the question is answered or gone
			return
		}
		p.update(p.session, acp.UpdateAgentMessageText(p.rpcError(err).Message+"\n\n"))
	}
	if ctx.Err() == nil {
		why := failure.Refused("it is still waiting for an answer")
		p.showQuestion(q, why.WithHint("atm approve %s, or atm reject %[1]s", q.Short()))
	}
}

// showQuestion shows a question as text, with the reason why the client is not asked.
func (p *prompt) showQuestion(q policy.Question, why error) {
	text := fmt.Sprintf("%s %s\n(%s)\n\n", q.Agent, q.Summary(), p.rpcError(why).Message)
	p.update(p.session, acp.UpdateAgentMessageText(text))
}
