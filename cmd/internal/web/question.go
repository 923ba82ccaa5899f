package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/reducer/ask"
)

// A question is shown once: who asks, what it is about, and its own options as the one row of answers.
type question struct{ room.Question }

// questions returns the open questions of a member, or with "" all.
func (p *page) questions(of string) (all []question) {
	for _, q := range p.Room.Waiting {
		if of == "" || string(q.Agent) == of {
			all = append(all, question{q})
		}
	}
	return all
}

// Refusal is the option that a rejection chooses; its ID is "" if it is none of the options; nil: it cannot be rejected.
func (q question) Refusal() *ask.Option {
	o, err := q.Pick(ask.Answer{Deny: true})
	switch {
	case q.IsMail():
		return &ask.Option{Label: "Another answer"}
	case len(q.Options) == 0, err == nil && !slices.Contains(q.Options, o):
		return &ask.Option{Label: "Reject"}
	case err != nil:
		return nil
	}
	return &o
}

// Choices are the options but for Refusal: those for once, or for ever.
func (q question) Choices(forEver bool) []ask.Option {
	refusal := q.Refusal()
	return slices.DeleteFunc(slices.Clone(q.Options), func(o ask.Option) bool {
		return refusal != nil && o.ID == refusal.ID || strings.HasSuffix(o.Kind, "_always") != forEver
	})
}

// Hint says why it cannot be answered from here, and what to do; "": it can.
func (q question) Hint() string {
	if reason, hint := app.AnsweredElsewhere(&q.Question.Question); reason != "" {
		return fmt.Sprintf("%s %s: %s", q.Agent, reason, hint)
	}
	return ""
}
