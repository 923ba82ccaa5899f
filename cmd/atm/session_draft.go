package main

import (
	"context"

	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// answerDraft says yes or no to a draft, or to one artifact of it, as human
// input to the agent that made it. Who may answer was asked before.
func (e *env) answerDraft(ctx context.Context, q teams.Question, deny bool, reason string, artifact *string) (teams.Said, error) {
	d, err := e.team.FindDraft(ctx, q.Agent, wire.UUID(q.ID))
	if err != nil {
		return teams.Said{}, err
	}
	in := wire.HumanInput{Kind: "approve", DraftID: d.ID, ArtifactURI: artifact}
	if deny {
		in.Kind, in.Reason = "reject", reason
	}
	out, err := e.team.AnswerDraft(ctx, d, e.saying(in))
	return out, explainSession(err)
}
