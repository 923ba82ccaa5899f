package teams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// Questions are what a member asks now, the oldest first: in all sessions of
// its program, as its events tell. A member that is off asks nothing.
func (t *Team) Questions(name wire.Name) ([]policy.Question, error) {
	running, err := t.Running(name)
	if err != nil {
		return nil, err
	}
	s, err := t.State(name)
	if err != nil {
		return nil, err
	}
	c, _ := t.Config() // a mistake in it hides no question
	return openQuestions(name, s, running, c.Members[name].Person, time.Now()), nil
}

func openQuestions(name wire.Name, s *reducer.State, running, person bool, now time.Time) (out []policy.Question) {
	word := s.Evaluate(reducer.Evidence{Now: now, Held: running, Person: person}).Word
	if word == reducer.WordOff || word == reducer.WordPerson {
		return nil
	}
	for _, turn := range s.Turns {
		if turn.IsPresumedEnded || turn.IsReplaced || turn.Activity == reducer.Exited {
			continue
		}
		for _, w := range turn.Requests {
			if w.Dialog == policy.DialogTrust {
				w.Kind = reducer.Question // it asks for no tool, and nobody may answer it from here
			}
			out = append(out, policy.Question{
				ID: w.ID, Agent: name, Kind: w.Kind, Prompt: w.Prompt, Tool: w.Tool, Input: w.Input, Dialog: w.Dialog,
				Options: policy.ParseOptions(w.Options), Since: w.Since.UTC(), Cut: w.Cut, Running: running,
			})
		}
	}
	slices.SortStableFunc(out, bySince)
	return out
}

func bySince(a, b policy.Question) int { return a.Since.Compare(b.Since) }

// Pending are the questions of all members, the oldest first. A member whose
// events cannot be read hides nobody else's; the error is about such members.
func (t *Team) Pending() ([]policy.Question, error) {
	names, err := t.Agents()
	if err != nil {
		return nil, err
	}
	var out []policy.Question
	var errs []error
	for _, n := range names {
		list, err := t.Questions(n)
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			errs = append(errs, fmt.Errorf("the questions of %s: %w", n, err))
		}
		out = append(out, list...)
	}
	slices.SortStableFunc(out, bySince)
	return out, errors.Join(errs...)
}

// Waiting is everything that waits for a person's answer: Pending, and the drafts that
// have none yet. What cannot be read hides nothing else.
func (t *Team) Waiting(ctx context.Context) ([]policy.Question, error) {
	out, err := t.Pending()
	drafts, bad := t.Drafts(ctx)
	for i := range drafts {
		d := &drafts[i]
		if d.Answer == nil {
			running, _ := t.Running(d.Agent)
			out = append(out, d.question(running))
		}
	}
	slices.SortStableFunc(out, bySince)
	return out, errors.Join(err, bad)
}

// FindWaiting is policy.Find for a list that has drafts in it, which people quote by four
// or more digits of their id as well, and in upper case.
func FindWaiting(list []policy.Question, word string) (policy.Question, error) {
	q, err := policy.Find(list, word)
	if !errors.Is(err, policy.ErrNoQuestion) {
		return q, err
	}
	whole, notWhole := wire.ParseUUID(word)
	part, notPart := wire.ParseFragment(word)
	var found []policy.Question
	for _, q := range list {
		isWhole := notWhole == nil && q.ID == string(whole)
		isPart := notWhole != nil && notPart == nil && part.Matches(wire.ID(q.ID))
		if q.Kind == KindDraft && (isWhole || isPart) {
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

// HeldMail is mail that is not typed into an agent that is idle, until a person does
// something about it.
type HeldMail struct {
	Agent  wire.Name `json:"agent"`
	Unread int       `json:"unread"`
	Reason string    `json:"reason"`
}

// HeldMail lists the members whose mail is held at their prompt. What cannot be read
// hides nothing else.
func (t *Team) HeldMail(ctx context.Context) (out []HeldMail, err error) {
	names, err := t.Agents()
	errs := []error{err}
	for _, n := range names {
		if running, err := t.Running(n); err != nil || !running {
			continue
		}
		m, err := t.Status(ctx, n)
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			errs = append(errs, err)
		}
		if m.State == reducer.WordIdle && m.hold() != "" && m.Unread > 0 && m.Inject != "off" {
			out = append(out, HeldMail{Agent: n, Unread: m.Unread, Reason: m.hold()})
		}
	}
	return out, errors.Join(errs...)
}
