package web

import (
	"cmp"
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

// Does is what the agent does: "wants to run", "asks".
func (q question) Does() string {
	does, _, _ := strings.Cut(q.Summary(), ": ")
	return does
}

// About is what it is about, exactly: the command, or what the agent asks.
func (q question) About() string { return cmp.Or(q.Input, q.Prompt) }

// Rest is what the prompt says beyond About. A prompt that does not have the words of About is whole.
func (q question) Rest() string {
	about, words := strings.Fields(q.Input), strings.Fields(q.Prompt)
	if len(about) == 0 {
		return ""
	}
	hasAll := false
	for i := 0; i+len(about) <= len(words); {
		if slices.Equal(words[i:i+len(about)], about) {
			words, hasAll = slices.Delete(words, i, i+len(about)), true
		} else {
			i++
		}
	}
	if !hasAll {
		return q.Prompt
	}
	return strings.Join(words, " ")
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
