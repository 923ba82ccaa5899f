package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

var pendingVerb = &cmdline.Verb{
	Name: "pending", Summary: "what waits for a person: permissions, questions, drafts, late answers",
	Examples: []string{"atm pending", "atm pending --watch", "atm approve 9f3a1c"},
	Notes:    []string{"The id is that of the message to the lead; atm screen NAME shows the dialog itself."},
	Flags: []cmdline.Flag{
		{Name: "watch", Usage: "follow: ring once for each new one, and say what became of it"},
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
	overdue, err := e.team.OverdueAnswers(ctx)
	if err != nil {
		e.Warn("%v", err)
	}
	held, err := e.team.HeldMail(ctx)
	if err != nil {
		e.Warn("%v", err)
	}
	if e.JSON() {
		if list == nil {
			list = []policy.Question{}
		}
		return e.PrintJSON(struct {
			Pending []policy.Question     `json:"pending"`
			Overdue []teams.OverdueAnswer `json:"overdue,omitempty"`
			Held    []teams.HeldMail      `json:"held,omitempty"`
		}{list, overdue, held})
	}
	if len(list)+len(overdue)+len(held) == 0 {
		return e.print("nothing waits for an answer")
	}
	for _, q := range list {
		if err := e.print("%s", asks(q, list, time.Now())); err != nil {
			return err
		}
	}
	for _, o := range overdue {
		if err := e.print("%s", owes(o, time.Now())); err != nil {
			return err
		}
	}
	for _, h := range held {
		if err := e.print("-  %s  mail  %d unread: %s\n    atm attach %s", h.Agent, h.Unread, h.Reason, h.Agent); err != nil {
			return err
		}
	}
	return nil
}

// owes is an answer that is overdue, in a line.
func owes(o teams.OverdueAnswer, now time.Time) string {
	line := fmt.Sprintf("%s  %s  overdue  %s  from %s: %s", o.ID.Short(6), o.Agent, letter.Span(max(0, now.Sub(o.DueAt))), o.From, letter.Clip(letter.Escape(o.Subject), 100))
	if !o.Read {
		line += "; not even read"
	}
	return line + fmt.Sprintf("\n    atm trace %s", o.ID.Short(6))
}

// quoted is a question's id as it can be typed: of a draft, whose id is its
// agent's own, as many digits as tell it from everything else that waits.
func quoted(q policy.Question, all []policy.Question) string {
	if q.Kind != teams.KindDraft {
		return cmp.Or(q.Short(), "-")
	}
	for _, n := range []int{6, 8, 12} {
		short := wire.ID(q.ID).Short(n)
		part, err := wire.ParseFragment(short)
		if err == nil && !slices.ContainsFunc(all, func(o policy.Question) bool {
			return o.ID != q.ID && part.Matches(wire.ID(o.ID)) || string(o.Agent) == short
		}) {
			return short
		}
	}
	return q.ID
}

// about is what a question is about: the tool and what it is to do, or what was
// asked.
func about(q policy.Question, longest int) string {
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
func asks(q policy.Question, all []policy.Question, now time.Time) string {
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
	case q.Dialog == policy.DialogTrust:
		line += fmt.Sprintf("\n    only a person at its terminal answers that: atm attach %s", q.Agent)
	case q.ID == "":
		line += fmt.Sprintf("\n    atm attach %s", q.Agent)
	}
	return line
}

// settled is a question of which it was told before, and that is asked no more.
type settled struct {
	ID     string    `json:"id"`
	Agent  wire.Name `json:"agent"`
	Answer string    `json:"answer,omitempty"` // as its runner pressed it
	By     string    `json:"by,omitempty"`
}

// becameOf finds out what became of a question.
func (e *env) becameOf(q policy.Question) settled {
	out := settled{ID: q.ID, Agent: q.Agent}
	const recent = 200
	events, _ := e.team.Box(q.Agent).Log().Newest(recent) // what is not known is not said
	for _, ev := range events {
		if q.ID != "" && ev.Field("id") == q.ID && ev.Field("answer") != "" {
			out.Answer, out.By = ev.Field("answer"), ev.Field("by")
		}
	}
	return out
}

func (s settled) line(q policy.Question, all []policy.Question) string {
	line := fmt.Sprintf("%s  %s  %s  ", letter.Escape(quoted(q, all)), s.Agent, q.Kind)
	if s.Answer == "" {
		return line + "no longer asked"
	}
	line += "answered: " + letter.Clip(letter.Escape(s.Answer), 100)
	if s.By != "" {
		line += " (by " + letter.Escape(s.By) + ")"
	}
	return line
}

// watchPending shows each question when it is asked and when it is settled, and
// each answer when it is overdue, once. What cannot be read just now hides nothing
// else, and is looked at again.
func (e *env) watchPending(ctx context.Context) error {
	seen, asked, warned := map[string]bool{}, map[string]policy.Question{}, ""
	show := func(line string, doc any) error {
		if e.JSON() {
			return e.PrintJSON(doc)
		}
		if e.terminal() {
			line = "\a" + line
		}
		return e.print("%s", line)
	}
	return e.eachLook(ctx, 0, func() error {
		list, err := e.team.Waiting(ctx)
		overdue, err2 := e.team.OverdueAnswers(ctx)
		if err = errors.Join(err, err2); err != nil && ctx.Err() == nil && err.Error() != warned {
			warned = err.Error()
			e.Warn("%v", err)
		}
		there := map[string]bool{}
		fresh := func(key string) bool {
			there[key] = true
			return !seen[key]
		}
		for _, q := range list {
			// More may become known of the same dialog, its id for one.
			key := string(q.Agent) + " " + q.Since.Format(time.RFC3339Nano)
			if q.Kind == teams.KindDraft {
				key = string(q.Agent) + " " + q.ID
			}
			if fresh(key) {
				if err := show(asks(q, list, time.Now()), q); err != nil {
					return err
				}
			}
			asked[key] = q
		}
		for _, o := range overdue {
			if fresh(string(o.Agent) + " " + string(o.ID)) {
				if err := show(owes(o, time.Now()), map[string]any{"overdue": o}); err != nil {
					return err
				}
			}
		}
		if err != nil { // what could not be read is not gone
			for key := range seen {
				there[key] = true
			}
		}
		seen = there
		for key, q := range asked {
			if there[key] {
				continue
			}
			delete(asked, key)
			s := e.becameOf(q)
			if e.JSON() {
				err = e.PrintJSON(map[string]any{"settled": s})
			} else {
				err = e.print("%s", s.line(q, list))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// manyQuestions explains a word that means several questions.
func manyQuestions(m *policy.ManyQuestionsError) error {
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
func (e *env) settleRequest(ctx context.Context, q policy.Question) {
	id, ok := q.MessageID()
	lead, err := e.team.Notified(q.Agent)
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
