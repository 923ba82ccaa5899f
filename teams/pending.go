package teams

import (
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
	word := s.Look(reducer.Evidence{Now: now, Held: running, Person: person}).Word
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
