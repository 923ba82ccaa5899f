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

// KindDraft is the kind of a question that asks what a person says to a draft;
// its ID is the draft's.
const KindDraft = "draft"

// Draft is something that a member has made and on which a person is to say
// yes or no.
type Draft struct {
	session.Draft
	Agent   wire.Name
	Session wire.UUID      // "": it was said outside of any
	Answer  *session.Input // the first answer to the whole of it; nil: it waits
}

// Question is the draft as it stands among what waits for a person.
func (d *Draft) Question(running bool) policy.Question {
	prompt := fmt.Sprintf("%d artifacts", d.Artifacts)
	if d.Artifacts == 1 {
		prompt = "1 artifact"
	}
	if d.Summary != "" {
		prompt = d.Summary + " (" + prompt + ")"
	}
	return policy.Question{ID: string(d.ID), Agent: d.Agent, Kind: KindDraft, Prompt: prompt, Options: []policy.Option{}, Since: d.At.UTC(), Running: running}
}

// looseEvents is among how many of an agent's newest events drafts are looked
// for that belong to no session.
const looseEvents = 1000

// Drafts are the drafts of the members' sessions that go on, and those that a
// member has spoken of lately outside of any, the oldest first. What cannot be
// read hides nothing else; the error is about that.
func (t *Team) Drafts(ctx context.Context) ([]Draft, error) {
	var out []Draft
	var errs []error
	list, bad, err := t.Sessions().List()
	if err != nil {
		return nil, err
	}
	for _, b := range bad {
		errs = append(errs, b)
	}
	known := map[wire.Name]map[wire.UUID]bool{}
	knows := func(agent wire.Name, id wire.UUID) bool {
		if known[agent] == nil {
			known[agent] = map[wire.UUID]bool{}
		}
		was := known[agent][id]
		known[agent][id] = true
		return was
	}
	for _, s := range list {
		agent := wire.Name(s.AgentID)
		if s.State.Alive() {
			if err := s.CatchUp(ctx, t.Box(agent)); err != nil {
				errs = append(errs, fmt.Errorf("the drafts of %s: %w", agent, err))
			}
		}
		for _, d := range s.Drafts() {
			if knows(agent, d.ID) || !s.State.Alive() {
				continue
			}
			if d.At.IsZero() {
				d.At = s.CreatedAt
			}
			out = append(out, Draft{Draft: d, Agent: agent, Session: s.SessionID})
		}
	}
	names, err := t.Agents()
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		events, err := t.Box(n).Log().Newest(looseEvents)
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			errs = append(errs, fmt.Errorf("the drafts of %s: %w", n, err))
		}
		for i := range events {
			if events[i].Kind != "draft_ready" {
				continue
			}
			said, ok := session.EventOf(&events[i])
			if !ok || knows(n, said.DraftID) {
				continue
			}
			out = append(out, Draft{
				Draft: session.Draft{ID: said.DraftID, Summary: said.Summary, Artifacts: said.ArtifactCount, At: events[i].At},
				Agent: n,
			})
		}
	}
	if err := t.answers(ctx, out); err != nil {
		errs = append(errs, err)
	}
	slices.SortStableFunc(out, func(a, b Draft) int { return a.At.Compare(b.At) })
	return out, errors.Join(errs...)
}

// answers finds what was said to drafts, in the mail of their agents: an answer
// by command, by a program and by a dropped file is a message there.
func (t *Team) answers(ctx context.Context, drafts []Draft) error {
	of := map[wire.Name][]*Draft{}
	for i := range drafts {
		d := &drafts[i]
		of[d.Agent] = append(of[d.Agent], d)
	}
	var errs []error
	for agent, mine := range of {
		since := slices.MinFunc(mine, func(a, b *Draft) int { return a.At.Compare(b.At) }).At
		rg := mailbox.Range{
			Unread: true, Owed: true, Done: true, Archive: true,
			// A day is left out by its directory's time: clocks may differ a little.
			Since: since.Add(-time.Hour),
			Keep:  func(raw []byte) bool { return bytes.Contains(raw, []byte(`"`+wire.TypeHumanInput+`"`)) },
		}
		_, _, err := t.Box(agent).Walk(ctx, rg, func(it *mailbox.Item) bool {
			in, ok := session.InputOf(it.Message)
			if !ok || in.Kind != "approve" && in.Kind != "reject" || in.ArtifactURI != nil {
				return true
			}
			for _, d := range mine {
				if d.ID == in.DraftID && (d.Answer == nil || in.At.Before(d.Answer.At)) {
					d.Answer = &in
				}
			}
			return true
		})
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			errs = append(errs, fmt.Errorf("the answers to drafts of %s: %w", agent, err))
		}
	}
	return errors.Join(errs...)
}

// Waiting is everything that waits for a person: Pending, and the drafts that
// have no answer yet. What cannot be read hides nothing else; the error is
// about that.
func (t *Team) Waiting(ctx context.Context) ([]policy.Question, error) {
	out, err := t.Pending()
	drafts, e := t.Drafts(ctx)
	running := map[wire.Name]bool{}
	for i := range drafts {
		d := &drafts[i]
		if d.Answer != nil {
			continue
		}
		if _, asked := running[d.Agent]; !asked {
			running[d.Agent], _ = t.Running(d.Agent)
		}
		out = append(out, d.Question(running[d.Agent]))
	}
	slices.SortStableFunc(out, func(a, b policy.Question) int { return a.Since.Compare(b.Since) })
	return out, errors.Join(err, e)
}

// FindWaiting is policy.Find for a list that has drafts in it, which people
// quote by four or more digits of their id as well, and as it is written
// elsewhere.
func FindWaiting(list []policy.Question, word string) (policy.Question, error) {
	q, err := policy.Find(list, word)
	if !errors.Is(err, policy.ErrNoQuestion) {
		return q, err
	}
	whole, notWhole := wire.ParseUUID(word)
	part, notPart := wire.ParseFragment(word)
	var found []policy.Question
	for _, q := range list {
		if q.Kind == KindDraft && (notWhole == nil && q.ID == string(whole) || notWhole != nil && notPart == nil && part.Matches(wire.ID(q.ID))) {
			found = append(found, q)
		}
	}
	switch len(found) {
	case 0:
		return q, err
	case 1:
		return found[0], nil
	}
	return q, &policy.ManyQuestionsError{Word: word, Questions: found}
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

// AnswerDraft says yes or no to a draft, or to one artifact of it. The first
// answer to the whole counts: a second is a *DraftAnsweredError.
func (t *Team) AnswerDraft(ctx context.Context, d *Draft, say Saying) (Said, error) {
	say.Input.DraftID = d.ID
	// Under the team's lock, so that of two answers at once one is the first.
	check := func() error {
		now := []Draft{*d}
		now[0].Answer = nil
		if err := t.answers(ctx, now); err != nil {
			return err
		}
		if a := now[0].Answer; a != nil {
			return &DraftAnsweredError{d.ID, *a}
		}
		return nil
	}
	if d.Session != "" {
		return t.say(ctx, d.Session, say, check)
	}
	var out Said
	if err := t.MayInput(); err != nil {
		return out, err
	}
	err := t.Sessions().Exclusive(ctx, func() error {
		err := check()
		if err == nil {
			out.Message, err = t.tellAgent(ctx, "", d.Agent, say)
		}
		return err
	})
	return out, err
}
