package teams

import (
	"context"
	"errors"
	"slices"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Waiting is everything that waits for a person's answer: Pending, and the drafts that
// have none yet. What cannot be read hides nothing else.
func (t *Team) Waiting(ctx context.Context) ([]Question, error) {
	out, err := t.Pending()
	drafts, bad := t.Drafts(ctx)
	for i := range drafts {
		d := &drafts[i]
		if d.Answer == nil {
			running, _ := t.Running(d.Agent)
			out = append(out, d.question(running))
		}
	}
	slices.SortStableFunc(out, func(a, b Question) int { return a.Since.Compare(b.Since) })
	return out, errors.Join(err, bad)
}

// FindWaiting is FindQuestion for a list that has drafts in it, which people quote by four
// or more digits of their id as well, and in upper case.
func FindWaiting(list []Question, word string) (Question, error) {
	q, err := FindQuestion(list, word)
	if !errors.Is(err, ErrNoQuestion) {
		return q, err
	}
	whole, notWhole := wire.ParseUUID(word)
	part, notPart := wire.ParseFragment(word)
	var found []Question
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
	return q, &ManyQuestionsError{word, found}
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
