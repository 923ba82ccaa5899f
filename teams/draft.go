package teams

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// KindDraft is the kind of a question that asks what a person says to a draft; its ID is
// the draft's.
const KindDraft = "draft"

// Draft is something that a member has made and on which a person is to say yes or no.
type Draft struct {
	session.Draft
	Agent   wire.Name
	Session wire.UUID      // "": it was announced outside of any
	Answer  *session.Input // the first answer to the whole of it; nil: it waits
}

// question is the draft as it stands among what waits for a person.
func (d *Draft) question(running bool) policy.Question {
	prompt := fmt.Sprintf("%d artifacts", d.Artifacts)
	if d.Artifacts == 1 {
		prompt = "1 artifact"
	}
	if d.Summary != "" {
		prompt = d.Summary + " (" + prompt + ")"
	}
	return policy.Question{
		ID: string(d.ID), Agent: d.Agent, Kind: KindDraft, Prompt: prompt, Options: []policy.Option{}, Since: d.At.UTC(), Running: running,
	}
}

// draftEvents is among how many of an agent's newest events drafts are looked for that
// belong to no session.
const draftEvents = 1000

// Drafts are the drafts of the sessions that go on, and those that a member has announced
// lately outside of any, the oldest first. What cannot be read hides nothing else.
func (t *Team) Drafts(ctx context.Context) (out []Draft, err error) {
	sessions, bad, err := t.Sessions().List()
	errs := []error{err}
	for _, b := range bad {
		errs = append(errs, b)
	}
	type key struct {
		agent wire.Name
		id    wire.UUID
	}
	known := map[key]bool{} // also those of sessions that are over
	add := func(d Draft, isOpen bool) {
		if k := (key{d.Agent, d.ID}); !known[k] {
			known[k] = true
			if isOpen {
				out = append(out, d)
			}
		}
	}
	for _, s := range sessions {
		agent := wire.Name(s.AgentID)
		if err := s.CatchUp(ctx, t.Box(agent)); err != nil {
			errs = append(errs, fmt.Errorf("the drafts of %s: %w", agent, err))
		}
		for _, d := range s.Drafts() {
			d.At = cmp.Or(d.At, s.CreatedAt)
			add(Draft{Draft: d, Agent: agent, Session: s.SessionID}, s.State.Alive())
		}
	}
	errs = append(errs, t.each(func(b *mailbox.Box) error {
		events, err := b.Log().Newest(draftEvents)
		for i := range events {
			if e, ok := session.EventOf(&events[i]); ok && events[i].Kind == "draft_ready" {
				d := session.Draft{ID: e.DraftID, Summary: e.Summary, Artifacts: e.ArtifactCount, At: events[i].At}
				add(Draft{Draft: d, Agent: b.Agent()}, true)
			}
		}
		return err
	}))
	for i := range out {
		errs = append(errs, t.addAnswer(ctx, &out[i]))
	}
	slices.SortStableFunc(out, func(a, b Draft) int { return a.At.Compare(b.At) })
	return out, errors.Join(errs...)
}

// addAnswer finds what was said to a draft, in the mail of its agent: an answer by a
// command, by a program and by a dropped file is a message there.
func (t *Team) addAnswer(ctx context.Context, d *Draft) error {
	rg := mailbox.Range{
		Unread: true, Owed: true, Done: true, Archive: true, Since: d.At.Add(-time.Hour), // clocks may differ a little
		Keep: func(raw []byte) bool { return bytes.Contains(raw, []byte(`"`+wire.TypeHumanInput+`"`)) },
	}
	_, _, err := t.Box(d.Agent).Walk(ctx, rg, func(it *mailbox.Item) bool {
		in, ok := session.InputOf(it.Message)
		isAnswer := ok && (in.Kind == "approve" || in.Kind == "reject") && in.ArtifactURI == nil && in.DraftID == d.ID
		if isAnswer && (d.Answer == nil || in.At.Before(d.Answer.At)) {
			d.Answer = &in
		}
		return true
	})
	if err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
		return fmt.Errorf("the answers to drafts of %s: %w", d.Agent, err)
	}
	return nil
}

// FindDraft is the draft of an agent with an id.
func (t *Team) FindDraft(ctx context.Context, agent wire.Name, id wire.UUID) (*Draft, error) {
	list, err := t.Drafts(ctx)
	for i := range list {
		if d := &list[i]; d.ID == id && d.Agent == agent {
			return d, nil
		}
	}
	return nil, cmp.Or(err, fmt.Errorf("draft %s: %w", id, policy.ErrNoQuestion))
}

// ErrAnswered is wrapped where a draft has its answer.
var ErrAnswered = errors.New("already")

// AnswerDraft says yes or no to a draft, or to one artifact of it. The first answer to
// the whole counts, also of two at once: a second is refused, ErrAnswered.
func (t *Team) AnswerDraft(ctx context.Context, d *Draft, in SessionInput) (out SessionResult, err error) {
	in.Input.DraftID = d.ID
	check := func() error { // under the team's lock
		now := Draft{Draft: d.Draft, Agent: d.Agent}
		err := t.addAnswer(ctx, &now)
		if a := now.Answer; err == nil && a != nil {
			did := map[string]string{"approve": "approved", "reject": "rejected"}[a.Kind]
			return fmt.Errorf("draft %s is %s %w, by %s", d.ID, did, ErrAnswered, cmp.Or(string(a.From.Agent), "somebody"))
		}
		return err
	}
	if d.Session != "" {
		return t.say(ctx, d.Session, in, check)
	}
	if err := t.CheckHumanInputAllowed(); err != nil {
		return out, err
	}
	err = t.Sessions().Exclusive(ctx, func() error {
		if err := check(); err != nil {
			return err
		}
		out.Message, err = t.deliverInput(ctx, "", d.Agent, in)
		return err
	})
	return out, err
}
