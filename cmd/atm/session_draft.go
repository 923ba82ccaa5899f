package main

import (
	"context"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// answerDraft says yes or no to a draft, or to one artifact of it, as human
// input to the agent that made it. Who may answer was asked before.
func (e *env) answerDraft(ctx context.Context, q policy.Question, deny bool, reason string, artifact *string) (teams.SessionResult, error) {
	d, err := e.team.FindDraft(ctx, q.Agent, wire.UUID(q.ID))
	if err != nil {
		return teams.SessionResult{}, err
	}
	in := wire.HumanInput{Kind: "approve", DraftID: d.ID, ArtifactURI: artifact}
	if deny {
		in.Kind, in.Reason = "reject", reason
	}
	out, err := e.team.AnswerDraft(ctx, d, e.saying(in))
	return out, explainSession(err)
}

// answerDraftVerb is approve and reject of a draft.
func (e *env) answerDraftVerb(ctx context.Context, q policy.Question, deny bool) error {
	if len(e.Args) > 1 {
		return cmdline.Usage("a draft has no options").WithHint("atm approve %s, or atm reject %s --reason \"…\"", q.ID, q.ID)
	}
	var artifact *string
	if e.Given("artifact") {
		uri := e.String("artifact")
		artifact = &uri
	}
	reason := ""
	if deny {
		reason = e.String("reason")
	}
	out, err := e.answerDraft(ctx, q, deny, reason, artifact)
	if err != nil {
		return err
	}
	if out.Unlogged != nil {
		e.Warn("delivered; the session's log could not be written: %v", out.Unlogged)
	}
	did := "approved"
	if deny {
		did = "rejected"
	}
	if e.JSON() {
		doc := map[string]any{"id": q.ID, "agent": q.Agent, "kind": teams.KindDraft, "done": did, "message": out.Message.ID}
		if artifact != nil {
			doc["artifact_uri"] = *artifact
		}
		return e.PrintJSON(doc)
	}
	what := "draft " + q.ID
	if artifact != nil {
		what = letter.Clip(letter.Escape(*artifact), 200) + " in " + what
	}
	return e.print("%s: %s %s (sent %s)", q.Agent, did, what, out.Message.ID.Short(6))
}
