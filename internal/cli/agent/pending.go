package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

var pendingCommand = &cli.Command{
	Name: "pending", Aliases: []string{"requests", "questions"}, Usage: "what waits for a person: permissions, questions, drafts, late answers",
	UsageText:   "atm pending\natm pending --watch\natm approve 9f3a1c",
	Description: "The id is that of the message to the lead; atm screen NAME shows the dialog itself.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "watch", Aliases: []string{"follow", "w", "f"}, Usage: "stay, and ring once for each new one; q leaves"},
	},
	Action: func(c *cli.Context) error {
		s, err := command.OpenTeam(c)
		if err != nil {
			return err
		}
		w := &pendingWatch{c: c, s: s, known: map[string]policy.Question{}, overdue: map[string]bool{}}
		if !c.Bool("watch") {
			return command.Print(c, w.look(c.Context))
		}
		if command.Terminal() && !c.Bool("json") {
			return s.Follow(w.paint)
		}
		return s.Follow(w.list)
	},
}

// pendingList is what pending prints.
type pendingList struct {
	Pending []policy.Question     `json:"pending"`
	Overdue []teams.OverdueAnswer `json:"overdue,omitempty"`
	Held    []teams.HeldMail      `json:"held,omitempty"`
}

func (l pendingList) String() string {
	if len(l.Pending)+len(l.Overdue)+len(l.Held) == 0 {
		return "nothing is waiting for you"
	}
	var lines []string
	for _, q := range l.Pending {
		lines = append(lines, l.describe(q))
	}
	for _, o := range l.Overdue {
		lines = append(lines, describeOverdue(o))
	}
	for _, h := range l.Held {
		lines = append(lines, fmt.Sprintf("-  %s  mail  %d unread: %s\n    atm attach %s", h.Agent, h.Unread, h.Reason, h.Agent))
	}
	return strings.Join(lines, "\n")
}

// describe is a question, with its options and the command that answers it.
func (l pendingList) describe(q policy.Question) string {
	id := l.shortID(q)
	line := fmt.Sprintf("%s  %s  %s  %s", letter.Escape(id), q.Agent, q.Kind, letter.Span(max(0, time.Since(q.Since))))
	if text := subject(q, 160); text != "" {
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

// shortID is a question's id as it can be typed: of a draft, whose id is its
// agent's own, as many digits as tell it from everything else that waits.
func (l pendingList) shortID(q policy.Question) string {
	if q.Kind != teams.KindDraft {
		return cmp.Or(q.Short(), "-")
	}
	for _, n := range []int{6, 8, 12} {
		short := wire.ID(q.ID).Short(n)
		fragment, err := wire.ParseFragment(short)
		isOther := func(o policy.Question) bool {
			return o.ID != q.ID && fragment.Matches(wire.ID(o.ID)) || string(o.Agent) == short
		}
		if err == nil && !slices.ContainsFunc(l.Pending, isOther) {
			return short
		}
	}
	return q.ID
}

// subject is what a question is about, in at most n characters: the tool and what
// it is to do, or what is asked.
func subject(q policy.Question, n int) string {
	said := []string{q.Tool, q.Input, q.Prompt}
	if q.Kind == reducer.Permission && q.Tool != "" && q.Input != "" {
		said = said[:2] // the screen says the same in words of its own
	}
	said = slices.Compact(slices.DeleteFunc(said, func(s string) bool { return s == "" }))
	return letter.Clip(letter.Escape(strings.Join(strings.Fields(strings.Join(said, ": ")), " ")), n)
}

func describeOverdue(o teams.OverdueAnswer) string {
	line := fmt.Sprintf("%s  %s  overdue  %s  from %s: %s", o.ID.Short(6), o.Agent, letter.Span(max(0, time.Since(o.DueAt))), o.From, letter.Clip(letter.Escape(o.Subject), 100))
	if !o.Read {
		line += "; not read yet"
	}
	return line + fmt.Sprintf("\n    atm trace %s", o.ID.Short(6))
}

// A pendingWatch follows what waits.
type pendingWatch struct {
	c       *cli.Context
	s       *command.Scope
	known   map[string]policy.Question
	overdue map[string]bool
	warned  string
	partial bool // something could not be read at the last look
}

// look is what waits now. What cannot be read is said, once, and hides nothing else.
func (w *pendingWatch) look(ctx context.Context) pendingList {
	l := pendingList{Pending: []policy.Question{}}
	waiting, err := w.s.Team.Waiting(ctx)
	l.Pending = append(l.Pending, waiting...)
	overdue, err2 := w.s.Team.OverdueAnswers(ctx)
	l.Overdue = overdue
	var err3 error
	l.Held, err3 = w.s.Team.HeldMail(ctx)
	err = errors.Join(err, err2, err3)
	w.partial = err != nil
	if err != nil && ctx.Err() == nil && err.Error() != w.warned {
		w.warned = err.Error()
		command.Warn(w.c, "%v", err)
	}
	return l
}

const pendingEvery = 500 * time.Millisecond

// paint shows what waits, again and again, on a screen of its own.
func (w *pendingWatch) paint(ctx context.Context) error {
	r, ctx := command.StartRepaint(ctx)
	defer r.Close()
	for {
		l := w.look(ctx)
		asked, _ := w.news(l)
		for _, q := range asked {
			command.Notify(fmt.Sprintf("%s asks", q.Agent), subject(q, 160))
		}
		if err := r.Paint(strings.Split(l.String(), "\n")); err != nil {
			return err
		}
		if !sleep(ctx, pendingEvery) {
			break
		}
	}
	if errors.Is(context.Cause(ctx), command.ErrQuit) {
		return nil
	}
	return ctx.Err()
}

// list prints each question once when it is asked, and once more when it no longer
// is.
func (w *pendingWatch) list(ctx context.Context) error {
	for {
		l := w.look(ctx)
		asked, gone := w.news(l)
		for _, q := range asked {
			if err := command.Print(w.c, shownQuestion{q, l.describe(q)}); err != nil {
				return err
			}
		}
		for _, o := range l.Overdue {
			key := string(o.Agent) + " " + string(o.ID)
			if w.overdue[key] {
				continue
			}
			w.overdue[key] = true
			if err := command.Print(w.c, shownOverdue{o}); err != nil {
				return err
			}
		}
		for _, q := range gone {
			if err := command.Print(w.c, shownSettled{w.settled(q, l)}); err != nil {
				return err
			}
		}
		if !sleep(ctx, pendingEvery) {
			return ctx.Err()
		}
	}
}

// news are the questions that are new since the last look, and those that are no
// longer asked.
func (w *pendingWatch) news(l pendingList) (asked, gone []policy.Question) {
	there := map[string]bool{}
	for _, q := range l.Pending {
		// More may become known of the same dialog, also its id.
		key := string(q.Agent) + " " + q.Since.Format(time.RFC3339Nano)
		if q.Kind == teams.KindDraft {
			key = string(q.Agent) + " " + q.ID
		}
		there[key] = true
		if _, known := w.known[key]; !known {
			asked = append(asked, q)
		}
		w.known[key] = q
	}
	for key, q := range w.known {
		if !there[key] && !w.partial { // what could not be read is not gone
			gone = append(gone, q)
			delete(w.known, key)
		}
	}
	return asked, gone
}

type shownQuestion struct {
	policy.Question
	line string
}

func (q shownQuestion) String() string { return q.line }

type shownOverdue struct {
	Overdue teams.OverdueAnswer `json:"overdue"`
}

func (o shownOverdue) String() string { return describeOverdue(o.Overdue) }

type shownSettled struct {
	Settled settled `json:"settled"`
}

func (s shownSettled) String() string { return s.Settled.line }

// settled is a question that is no longer asked.
type settled struct {
	ID     string    `json:"id"`
	Agent  wire.Name `json:"agent"`
	Answer string    `json:"answer,omitempty"` // as its runner pressed it
	By     string    `json:"by,omitempty"`

	line string
}

// settled finds out what became of a question, as far as the newest events tell.
func (w *pendingWatch) settled(q policy.Question, l pendingList) settled {
	s := settled{ID: q.ID, Agent: q.Agent}
	events, _ := w.s.Team.Box(q.Agent).Log().Newest(200)
	for _, e := range events {
		if q.ID != "" && e.Field("id") == q.ID && e.Field("answer") != "" {
			s.Answer, s.By = e.Field("answer"), e.Field("by")
		}
	}
	s.line = fmt.Sprintf("%s  %s  %s  no longer asked", letter.Escape(l.shortID(q)), q.Agent, q.Kind)
	if s.Answer != "" {
		s.line = strings.TrimSuffix(s.line, "no longer asked") + "answered: " + letter.Clip(letter.Escape(s.Answer), 100)
	}
	if s.By != "" {
		s.line += " (by " + letter.Escape(s.By) + ")"
	}
	return s
}
