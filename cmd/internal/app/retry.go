package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/setaside"
	"github.com/agentteammail/atm/wire"
)

// Retried is what Retry did.
type Retried struct {
	setaside.Item
	ID wire.ID `json:"id,omitempty"` // of the message that it is now
}

// RetryCommand is the command that has something tried again.
func RetryCommand(one *setaside.Item) string { return "atm doctor --fix " + policy.Quote(one.Short()) }

// Retry has what was set aside, and is called so, tried again. An agent may do that for others only as the team's lead.
func (s *Scope) Retry(ctx context.Context, word string) (*Retried, error) {
	all, unreadable := setaside.List(ctx, s.Team)
	all = slices.DeleteFunc(all, func(one setaside.Item) bool { return !one.IsCalled(word) })
	if len(all) == 0 {
		return nil, s.notSetAside(word, unreadable)
	} else if len(all) > 1 {
		var names []string
		for _, one := range all {
			names = append(names, one.Short())
		}
		return nil, failure.Ambiguous("%q is %d things that were set aside", word, len(all)).
			WithHint("one of these: `%s`", RetryCommand(&all[0])).WithCandidates(names...)
	}
	one := all[0]
	if err := s.MayAct(policy.Retry, one.Agent); err != nil {
		return nil, err
	}
	var by wire.Name
	if s.Me != nil {
		by = s.Me.Agent()
	}
	id, err := setaside.Retry(ctx, s.Team, one, by)
	if again, isBad := errors.AsType[*maildir.BadError](err); isBad {
		return nil, failure.Failed("%s was set aside again: %s", letter.Escape(one.Short()), letter.Escape(again.Reason)).WithHint("mend that, then: `%s`", RetryCommand(&one))
	} else if before, wasDelivered := errors.AsType[*drop.DeliveredError](err); wasDelivered {
		return nil, failure.Refused("%v", before).WithHint("`atm show %s`", before.ID.Short(6))
	} else if err != nil {
		return nil, fmt.Errorf("retry %s: %w", letter.Escape(one.Short()), err)
	}
	return &Retried{one, id}, nil
}

func (s *Scope) notSetAside(word string, unreadable error) error {
	if unreadable != nil {
		return unreadable
	}
	if it, _, err := s.Find(word); err == nil {
		return failure.Refused("message %s is not set aside", it.ID.Short(6)).WithHint("`atm trace %s` says where it is", it.ID.Short(6))
	}
	return failure.NotFound("nothing is set aside as %q", word).WithHint("`atm doctor` lists what is")
}

// Text says what was done.
func (r *Retried) Text() string {
	switch {
	case r.Kind == setaside.Untyped:
		return r.Short() + " is typed in again when " + string(r.Agent) + " is idle"
	case r.ID == "":
		return letter.Escape(r.Name) + " is an event of " + string(r.Agent)
	}
	return letter.Escape(r.Name) + " is message " + r.ID.Short(6) + " to " + string(r.Agent)
}
