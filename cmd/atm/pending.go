package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// quoted is a question's id as it can be typed: of a draft, whose id is its
// agent's own, as many digits as tell it from everything else that waits.
func quoted(q teams.Question, all []teams.Question) string {
	if q.Kind != teams.KindDraft {
		return cmp.Or(q.Short(), "-")
	}
	for _, n := range []int{6, 8, 12} {
		short := wire.ID(q.ID).Short(n)
		part, err := wire.ParseFragment(short)
		if err == nil && !slices.ContainsFunc(all, func(o teams.Question) bool {
			return o.ID != q.ID && part.Matches(wire.ID(o.ID)) || string(o.Agent) == short
		}) {
			return short
		}
	}
	return q.ID
}

// about is what a question is about: the tool and what it is to do, or what was
// asked.
func about(q teams.Question, longest int) string {
	said := []string{q.Tool, q.Input, q.Prompt}
	if q.Kind == reducer.Permission && q.Tool != "" && q.Input != "" {
		said = said[:2] // the screen says the same once more, in words of its own
	}
	var parts []string
	for _, s := range said {
		if s != "" && (len(parts) == 0 || parts[len(parts)-1] != s) {
			parts = append(parts, s)
		}
	}
	return letter.Clip(letter.Escape(strings.Join(strings.Fields(strings.Join(parts, ": ")), " ")), longest)
}

// asks is a question in a line, with the command that answers it below; all is
// everything that waits.
func asks(q teams.Question, all []teams.Question, now time.Time) string {
	id := quoted(q, all)
	line := fmt.Sprintf("%s  %s  %s  %s", letter.Escape(id), q.Agent, q.Kind, letter.Span(max(0, now.Sub(q.Since))))
	if text := about(q, 160); text != "" {
		line += "  " + text
	}
	var options []string
	for _, o := range q.Options {
		options = append(options, letter.Clip(letter.Escape(strings.TrimSpace(o.ID+" "+o.Label)), 40))
	}
	if len(options) > 0 {
		line += "\n    " + strings.Join(options, " | ")
	}
	switch {
	case q.Kind == teams.KindDraft:
		line += fmt.Sprintf("\n    atm approve %s, or atm reject %s --reason \"…\"", id, id)
	case !q.Running:
		line += fmt.Sprintf("\n    %s runs under no runner: answer it in its own terminal", q.Agent)
	case q.Dialog == teams.DialogTrust:
		line += fmt.Sprintf("\n    only a person at its terminal answers that: atm attach %s", q.Agent)
	case q.ID == "":
		line += fmt.Sprintf("\n    atm attach %s", q.Agent)
	}
	return line
}

// manyQuestions explains a word that means several questions.
func manyQuestions(m *teams.ManyQuestionsError) error {
	var ids []string
	for _, q := range m.Questions {
		if s := q.Short(); s != "" {
			ids = append(ids, s)
		}
	}
	return cmdline.Ambiguous("%s", m).WithHint("name one by its id: %s", strings.Join(ids, " ")).WithCandidates(ids...)
}

// settleRequest marks the copy of a question that has its answer, of whoever was
// told of it: read, where that one gave it. The runner takes it back as well, if it is quicker.
func (e *env) settleRequest(ctx context.Context, q teams.Question) {
	id, ok := q.MessageID()
	lead, err := e.team.Hears(q.Agent)
	if !ok || err != nil || lead == "" {
		return
	}
	box := e.team.Box(lead)
	if it, err := box.Get(id); err != nil || it.State != mailbox.Unread && it.State != mailbox.Owed {
		return
	}
	// It has its answer, whether this can be noted or not.
	if e.me.Agent() == lead {
		_, _ = box.MarkRead(ctx, id)
	}
	_ = box.MarkAcked(ctx, id, box.Address(), false)
}
