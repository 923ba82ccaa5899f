package teams

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// Questions are what a member asks now, the oldest first: in all sessions of
// its program, as its events tell. A member that is off asks nothing.
func (t *Team) Questions(name wire.Name) (out []policy.Question, err error) {
	running, err := t.Running(name)
	if err != nil {
		return nil, err
	}
	s, err := t.State(name)
	if err != nil {
		return nil, err
	}
	c, _ := t.Config() // a mistake in it hides no question
	person := c.Members[name].Person
	word := s.Evaluate(reducer.Evidence{Now: time.Now(), Held: running, Person: person}).Word
	if word == reducer.WordOff || word == reducer.WordPerson {
		return nil, nil
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
	return out, nil
}

func bySince(a, b policy.Question) int { return a.Since.Compare(b.Since) }

// Waiting is everything that waits for a person's answer, the oldest first: the
// questions of all members, and the drafts that have no answer yet. What cannot be read
// hides nothing else.
func (t *Team) Waiting(ctx context.Context) (out []policy.Question, err error) {
	err = t.each(func(b *mailbox.Box) error {
		list, err := t.Questions(b.Agent())
		out = append(out, list...)
		return err
	})
	drafts, unread := t.Drafts(ctx)
	for i := range drafts {
		d := &drafts[i]
		if d.Answer == nil {
			running, _ := t.Running(d.Agent)
			out = append(out, d.question(running))
		}
	}
	slices.SortStableFunc(out, bySince)
	return out, errors.Join(err, unread)
}
