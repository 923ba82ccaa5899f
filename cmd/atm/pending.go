package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
)

var pendingVerb = &cmdline.Verb{
	Name: "pending", Summary: "what waits for a person: permission requests, questions, drafts",
	Examples: []string{"atm pending", "atm pending --watch", "atm approve 9f3a1c"},
	Notes:    []string{"The id is that of the message to the lead; atm screen NAME shows the dialog itself."},
	Flags: []cmdline.Flag{
		{Name: "watch", Usage: "follow, and ring once for each new one"},
	},
	Guesses: []string{"permissions", "requests", "questions"},
	Run:     run(pending),
}

func pending(ctx context.Context, e *env) error {
	if err := e.open(); err != nil {
		return err
	}
	if e.Bool("watch") {
		return e.interruptible(ctx, func(ctx context.Context) error { return e.following(ctx, e.watchPending) })
	}
	list, err := e.team.Waiting(ctx)
	if err != nil {
		e.Warn("%v", err)
	}
	if e.JSON() {
		if list == nil {
			list = []teams.Question{}
		}
		return e.PrintJSON(map[string]any{"pending": list})
	}
	if len(list) == 0 {
		return e.print("nothing waits for an answer")
	}
	for _, q := range list {
		if err := e.print("%s", asks(q, time.Now())); err != nil {
			return err
		}
	}
	return nil
}

// asks is a question in a line, with the command that answers it below.
func asks(q teams.Question, now time.Time) string {
	id := q.Short()
	if id == "" {
		id = "-"
	}
	line := fmt.Sprintf("%s  %s  %s  %s", mailbox.Escape(id), q.Agent, q.Kind, mailbox.Span(max(0, now.Sub(q.Since))))
	about := strings.TrimLeft(q.Tool+": "+q.Prompt, ": ")
	if about = strings.TrimSuffix(about, ": "); about != "" {
		line += "  " + mailbox.Clip(mailbox.Escape(strings.Join(strings.Fields(about), " ")), 160)
	}
	var options []string
	for _, o := range q.Options {
		options = append(options, mailbox.Clip(mailbox.Escape(strings.TrimSpace(o.ID+" "+o.Label)), 40))
	}
	if len(options) > 0 {
		line += "\n    " + strings.Join(options, " | ")
	}
	switch {
	case q.Kind == teams.KindDraft:
		line += fmt.Sprintf("\n    atm approve %s, or atm reject %s --reason \"…\"", q.ID, q.ID)
	case !q.Running:
		line += fmt.Sprintf("\n    %s runs under no runner: answer it in its own terminal", q.Agent)
	case q.ID == "":
		line += fmt.Sprintf("\n    atm attach %s", q.Agent)
	}
	return line
}

// watchPending shows each question when it is asked, once.
func (e *env) watchPending(ctx context.Context) error {
	seen := map[string]bool{}
	return e.eachChange(ctx, 0, func(rows []teams.Member, _ teams.Stats) error {
		list, _ := e.team.Waiting(ctx)
		there := map[string]bool{}
		var fresh []teams.Question
		for _, q := range list {
			// More may become known of the same dialog, its id for one.
			key := string(q.Agent) + " " + q.Since.Format(time.RFC3339Nano)
			if q.Kind == teams.KindDraft {
				key = string(q.Agent) + " " + q.ID
			}
			there[key] = true
			if !seen[key] {
				fresh = append(fresh, q)
			}
		}
		seen = there
		for _, q := range fresh {
			if e.JSON() {
				if err := e.PrintJSON(q); err != nil {
					return err
				}
				continue
			}
			bell := ""
			if e.terminal() {
				bell = "\a"
			}
			if err := e.print("%s%s", bell, asks(q, time.Now())); err != nil {
				return err
			}
		}
		return nil
	})
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

// settleRequest marks the lead's copy of a question that has its answer: read,
// where the lead gave it. The runner takes it back as well, if it is quicker.
func (e *env) settleRequest(ctx context.Context, q teams.Question) {
	id, ok := q.MessageID()
	lead, err := e.lead()
	if !ok || err != nil || lead == "" {
		return
	}
	box := e.team.Box(lead)
	if it, err := box.Get(id); err != nil || it.State != mailbox.Unread && it.State != mailbox.Owed {
		return
	}
	// It has its answer, whether this can be noted or not.
	if e.me.Agent() == lead {
		_, _ = box.Take(ctx, id)
	}
	_ = box.Settle(ctx, id, false)
}
