package acpagent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	acp "github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
)

// showQuestions asks the client each new question of the member that I may answer, and shows the others as text. It
// cancels the requests for questions that are gone.
func (p *prompt) showQuestions() {
	questions, err := presence.Questions(p.Team, p.name())
	for known, cancel := range p.questions {
		if err == nil && !slices.ContainsFunc(questions, func(q ask.Question) bool { return key(q) == known }) {
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

// key names an open question of the member: some have no id.
func key(q ask.Question) string { return cmp.Or(q.ID, q.Since.String()) }

// checkAnswerable returns an error if the client may not answer a question. It removes permission options whose effect
// is unknown: an editor may choose an option by itself because it is called a permission.
func (p *prompt) checkAnswerable(q *ask.Question) error {
	if err := p.MayAnswer(*q); err != nil {
		return err
	}
	if q.Kind == reducer.ClientTool {
		return failure.Refused("an editor cannot supply this result").WithHint("`atm approve %s RESULT`", q.Short())
	}
	if q.Kind != reducer.Permission || q.Dialog == "question" || len(q.Options) == 0 {
		return nil
	}
	q.Options = slices.DeleteFunc(q.Options, func(o ask.Option) bool { return o.Kind == "" })
	if len(q.Options) == 0 {
		return failure.Refused("atm does not know what its options do").WithHint("`atm approve %s OPTION`", q.Short())
	}
	return nil
}

// request asks the client. If its answer does not work, or it gives none, the question stays open, and request says so.
func (p *prompt) request(ctx context.Context, q ask.Question) {
	r := acp.RequestPermissionRequest{SessionId: p.session, ToolCall: acp.ToolCallUpdate{
		ToolCallId: acp.ToolCallId(p.message.ID), Title: acp.Ptr(summary(q)),
		Content: []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(letter.EscapeBody(q.Text())))},
	}}
	if len(q.Options) == 0 {
		q.Options = []ask.Option{{Label: "Allow", Kind: "allow_once"}, {Label: "Reject", Kind: "reject_once"}}
	}
	for i, o := range q.Options {
		kind := acp.PermissionOptionKind(cmp.Or(o.Kind, "allow_once"))
		r.Options = append(r.Options, acp.PermissionOption{OptionId: acp.PermissionOptionId(fmt.Sprint(i + 1)), Name: letter.Escape(o.Label), Kind: kind})
	}
	why := error(failure.Refused("it is still waiting for an answer").WithHint("`atm approve %s`, or `atm reject %[1]s`", q.Short()))
	if chosen, err := p.conn.RequestPermission(ctx, r); err == nil && chosen.Outcome.Selected != nil {
		if i, _ := strconv.Atoi(string(chosen.Outcome.Selected.OptionId)); i >= 1 && i <= len(q.Options) {
			o := q.Options[i-1]
			if _, why = p.Answer(context.Background(), q, ask.Answer{Option: o.ID, Deny: o.Denies()}); why == nil {
				return
			}
		}
	}
	if ctx.Err() == nil { // the question is neither answered nor gone
		p.showQuestion(q, why)
	}
}

func summary(q ask.Question) string {
	return fmt.Sprintf("%s %s", q.Agent, letter.Escape(q.Summary()))
}

// showQuestion shows a question as text, with the reason why the client is not asked.
func (p *prompt) showQuestion(q ask.Question, why error) {
	text := fmt.Sprintf("[atm] %s\n(%s)\n\n", summary(q), p.rpcError(why).Message)
	p.update(p.session, acp.UpdateAgentMessageText(text))
}
