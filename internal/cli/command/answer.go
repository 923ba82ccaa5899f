package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// An Answer is what somebody answers to a question. Without an option it is the one that says so, once.
type Answer struct {
	Option string // its id
	IsDeny bool
	Reason string
	By     wire.Name // "": whoever this process acts for
}

// Answer answers a question of a member of this team: through the asker's runner, or on the wire where it
// was asked.
func (s *Scope) Answer(ctx context.Context, q policy.Question, a Answer) (o control.Outcome, err error) {
	who := a.By
	if who == "" {
		who, _ = s.Actor()
	}
	if q.ByWire {
		return s.answerOnWire(ctx, q, a, who)
	}
	err = s.AskRunner(ctx, q.Agent, func(c *control.Client) (err error) {
		o, err = c.Answer(ctx, control.AnswerRequest{ID: q.ID, Option: a.Option, Deny: a.IsDeny, By: string(who)})
		return err
	})
	return o, err
}

// answerOnWire answers what an agent without a runner asks on the older ACP wire: by an event in the words
// of that wire, for whoever feeds its stream and follows `atm events NAME --follow --as-wire acp`.
func (s *Scope) answerOnWire(ctx context.Context, q policy.Question, a Answer, who wire.Name) (o control.Outcome, err error) {
	o = control.Outcome{Done: "answered", Detail: a.Option}
	typeName, answer := "acp.RequestPermissionResult", map[string]any{"outcome": "selected"}
	switch {
	case q.Kind == reducer.ClientTool:
		typeName = "acp.ToolExecutionResult"
		answer = map[string]any{"request_id": q.ID, "tool_call_id": q.Call, "success": !a.IsDeny, "output": nil}
		if a.IsDeny {
			o.Detail = cmp.Or(a.Reason, "rejected")
			answer["error"] = o.Detail
		} else if answer["output"] = a.Option; json.Valid([]byte(a.Option)) {
			answer["output"] = json.RawMessage(a.Option)
		}
	case a.Option != "":
	case a.IsDeny:
		if o.Detail = optionOf(q, "reject_once"); o.Detail == "" {
			o.Detail, answer["outcome"] = "cancelled", "cancelled"
		}
	default:
		if o.Detail = optionOf(q, "allow_once"); o.Detail == "" {
			return o, Usage("which one? none of its options says yes").WithHint("atm pending lists the options")
		}
	}
	if answer["outcome"] == "selected" {
		answer["option_id"] = o.Detail
	}
	line, _ := json.Marshal(answer)
	if line, err = wire.Canonical(typeName, line); err != nil {
		return o, err
	}
	e, err := wire.Adopt(line)
	if err != nil {
		return o, err
	}
	e.Source = "cli"
	return o, s.Team.Sessions().Exclusive(ctx, func() error { // the first answer counts, also of two at once
		open, err := s.Team.Questions(q.Agent)
		if err == nil && !slices.ContainsFunc(open, func(now policy.Question) bool { return now.ID == q.ID && now.Since.Equal(q.Since) }) {
			err = fmt.Errorf("%s: %w any more", q.ID, policy.ErrNoQuestion)
		}
		if err != nil {
			return err
		}
		return s.Team.Box(q.Agent).Log().Append(ctx, e.With("id", q.ID).With("by", string(who)))
	})
}

// optionOf is the first option of a kind; "": there is none.
func optionOf(q policy.Question, kind string) string {
	for _, o := range q.Options {
		if o.Kind == kind {
			return o.ID
		}
	}
	return ""
}
