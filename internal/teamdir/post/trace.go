package post

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/progress"
	"github.com/agentteammail/atm/wire"
)

// Trace returns the progress of one of the messages at one recipient. It asks no runner.
func (answers *Answers) Trace(m *wire.Message, a wire.Address) progress.Trace {
	t := progress.New(a)
	answers.addTo(&t, m, a)
	t.Look(answers.root, m, a, answers.past)
	if reply := t.Stage("replied"); reply.At != nil && m.RequiresAck {
		t.Add("acked", *reply.At, "", "the reply")
	}
	for i := range t.Stages { // the evidence is here
		if isAnswer := slices.Contains([]string{"acked", "replied", "outcome"}, t.Stages[i].Name); isAnswer && answers.root.IsRemote(a) && t.Stages[i].Evidence != nil {
			t.Stages[i].Host = a.Host
		}
	}
	return t
}

// HasReached reports whether there is evidence for a stage of one of the messages at one recipient.
func (answers *Answers) HasReached(m *wire.Message, a wire.Address, stage string) bool {
	t := progress.Of(answers.root, m, a, answers.past)
	if !t.Reached(stage) && stage != "read" { // which no answer is evidence for
		t = answers.Trace(m, a)
	}
	return t.Reached(stage)
}

// IsTurnOver reports whether the turn is over into which a recipient was handed a message, also because its runner was
// killed. Events tell nothing about people.
func (answers *Answers) IsTurnOver(m *wire.Message, a wire.Address) bool {
	r := answers.root
	t := progress.Of(r, m, a, answers.past)
	if IsPerson(r, a) || t.Reached("turn_done") || !t.Reached("turn_started") {
		return !IsPerson(r, a) && t.Reached("turn_done")
	}
	if team, err := r.TeamOf(a); err == nil && !r.IsRemote(a) {
		if running, err := team.Running(a.Agent); err != nil || running { // it may hang: do not ask it
			return false
		}
	}
	return presence.At(context.Background(), r, a)[a].RunnerGone
}

// addTo adds how a recipient has answered.
func (answers *Answers) addTo(t *progress.Trace, m *wire.Message, a wire.Address) {
	replies := answers.Replies(m, a).Counted
	if !m.DueAt.IsZero() && !answers.IsAnswered(m, a) {
		t.Due = "answer " + (&letter.Renderer{Now: time.Now()}).Due(m, false)
	}
	where := "in the mailbox of " + string(m.From.Agent)
	if m.From.Host != "" {
		where = "sent to " + m.From.String()
	}
	if acks, err := answers.Acks(m, a); err == nil {
		first, last := acks[0], acks[len(acks)-1]
		evidence := func(ack *maildir.Item) string { return fmt.Sprintf("ack %s %s", ack.ID.Short(6), where) }
		text := first.Body
		if first.Outcome() != "" {
			text = "" // which is about the outcome
		}
		t.Add("acked", first.SentAt, text, "%s", evidence(first))
		if outcome := last.Outcome(); outcome != "" {
			t.Stages = append(t.Stages, progress.Stage{Name: "outcome", At: presence.TimeOrNil(last.SentAt), Evidence: new(evidence(last)), Outcome: outcome, Text: last.Body})
		}
	}
	if len(replies) > 0 {
		first := replies[0]
		t.Add("replied", first.SentAt, first.Title(), "message %s %s", first.ID.Short(6), where)
	}
}
