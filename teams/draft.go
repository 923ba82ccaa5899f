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
	return policy.Question{ID: string(d.ID), Agent: d.Agent, Kind: KindDraft, Prompt: prompt, Options: []policy.Option{}, Since: d.At.UTC(), Running: running}
}

// draftEvents is among how many of an agent's newest events drafts are looked for that
// belong to no session.
const draftEvents = 1000

// Drafts are the drafts of the sessions that go on, and those that a member has announced
// lately outside of any, the oldest first. What cannot be read hides nothing else.
func (t *Team) Drafts(ctx context.Context) (out []Draft, err error) {
	list, bad, err := t.Sessions().List()
	errs := []error{err}
	for _, b := range bad {
		errs = append(errs, b)
	}
	known := map[string]bool{} // drafts of sessions, also of those that are over, by agent and id
	isNew := func(agent wire.Name, id wire.UUID) bool {
		key := string(agent) + " " + string(id)
		was := known[key]
		known[key] = true
		return !was
	}
	for _, s := range list {
		agent := wire.Name(s.AgentID)
		if err := s.CatchUp(ctx, t.Box(agent)); err != nil {
			errs = append(errs, fmt.Errorf("the drafts of %s: %w", agent, err))
		}
		for _, d := range s.Drafts() {
			if d.At.IsZero() {
				d.At = s.CreatedAt
			}
			if isNew(agent, d.ID) && s.State.Alive() {
				out = append(out, Draft{Draft: d, Agent: agent, Session: s.SessionID})
			}
		}
	}
	names, err := t.Agents()
	errs = append(errs, err)
	for _, agent := range names {
		events, err := t.Box(agent).Log().Newest(draftEvents)
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			errs = append(errs, fmt.Errorf("the drafts of %s: %w", agent, err))
		}
		for i := range events {
			e, ok := session.EventOf(&events[i])
			if ok && events[i].Kind == "draft_ready" && isNew(agent, e.DraftID) {
				d := session.Draft{ID: e.DraftID, Summary: e.Summary, Artifacts: e.ArtifactCount, At: events[i].At}
				out = append(out, Draft{Draft: d, Agent: agent})
			}
		}
	}
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

// DraftAnsweredError says that a draft has its answer already.
type DraftAnsweredError struct {
	Draft  wire.UUID
	Answer session.Input
}

func (e *DraftAnsweredError) Error() string {
	did := "approved"
	if e.Answer.Kind == "reject" {
		did = "rejected"
	}
	return fmt.Sprintf("draft %s is %s already, by %s", e.Draft, did, cmp.Or(string(e.Answer.From.Agent), "somebody"))
}

// FindDraft is the draft with an id, of an agent or ("") of any.
func (t *Team) FindDraft(ctx context.Context, agent wire.Name, id wire.UUID) (*Draft, error) {
	list, err := t.Drafts(ctx)
	for i := range list {
		if d := &list[i]; d.ID == id && (agent == "" || d.Agent == agent) {
			return d, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("draft %s: %w", id, policy.ErrNoQuestion)
}

// AnswerDraft says yes or no to a draft, or to one artifact of it. The first answer to
// the whole counts: a second is a *DraftAnsweredError.
func (t *Team) AnswerDraft(ctx context.Context, d *Draft, in SessionInput) (out SessionResult, err error) {
	in.Input.DraftID = d.ID
	// Under the team's lock, so that of two answers at once one is the first.
	check := func() error {
		now := *d
		now.Answer = nil
		if err := t.addAnswer(ctx, &now); err != nil {
			return err
		}
		if now.Answer != nil {
			return &DraftAnsweredError{d.ID, *now.Answer}
		}
		return nil
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
