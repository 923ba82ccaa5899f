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
	Flags:       []cli.Flag{&cli.BoolFlag{Name: "watch", Aliases: []string{"follow", "w", "f"}, Usage: "stay, print each once when it comes, and ring"}},
	Action:      pending,
}

// pendingList is what pending prints, with --watch only what is new.
type pendingList struct {
	Pending []policy.Question     `json:"pending"`
	Overdue []teams.OverdueAnswer `json:"overdue,omitempty"`
	Held    []heldMail            `json:"held,omitempty"`
}

// heldMail is mail that is not typed into an idle agent until a person does something at its
// terminal.
type heldMail struct {
	Agent  wire.Name `json:"agent"`
	Unread int       `json:"unread"`
	Reason string    `json:"reason"`
}

func pending(c *cli.Context) error {
	s, err := command.OpenTeam(c)
	if err != nil {
		return err
	}
	if c.Bool("watch") {
		return s.Follow(func(ctx context.Context) error { return watchPending(ctx, c, s) })
	}
	return command.Print(c, lookPending(c.Context, c, s))
}

// lookPending finds what waits. What cannot be read is said, and hides nothing else.
func lookPending(ctx context.Context, c *cli.Context, s *command.Scope) pendingList {
	waiting, err1 := s.Team.Waiting(ctx)
	overdue, err2 := s.Team.OverdueAnswers(ctx)
	members, _, err3 := s.Team.Members(ctx)
	if err := errors.Join(err1, err2, err3); err != nil && ctx.Err() == nil {
		command.Warn(c, "%v", err)
	}
	l := pendingList{Pending: append([]policy.Question{}, waiting...), Overdue: overdue}
	for _, m := range members {
		if m.Held != "" && m.Inject != "off" {
			l.Held = append(l.Held, heldMail{m.Name, m.Unread, m.Held})
		}
	}
	return l
}

// watchPending prints once what comes to be waiting, and rings.
func watchPending(ctx context.Context, c *cli.Context, s *command.Scope) error {
	known := map[string]bool{}
	isKnown := func(key ...any) bool {
		n := len(known)
		known[fmt.Sprint(key...)] = true
		return len(known) == n
	}
	for ; ctx.Err() == nil; sleep(ctx, 500*time.Millisecond) {
		l := lookPending(ctx, c, s)
		// More may become known of the same dialog, also its id.
		l.Pending = slices.DeleteFunc(l.Pending, func(q policy.Question) bool { return isKnown(q.Agent, q.Kind, q.Since.UnixNano()) })
		l.Overdue = slices.DeleteFunc(l.Overdue, func(o teams.OverdueAnswer) bool { return isKnown(o.Agent, o.ID) })
		l.Held = slices.DeleteFunc(l.Held, func(h heldMail) bool { return isKnown(h.Agent, h.Reason) })
		if len(l.Pending)+len(l.Overdue)+len(l.Held) == 0 {
			continue
		}
		if err := command.Print(c, l); err != nil {
			return err
		}
		command.Notify("atm", "something waits for you")
	}
	return ctx.Err()
}

func (l pendingList) String() string {
	age := func(since time.Time) string { return letter.Span(max(0, time.Since(since))) }
	var lines []string
	for _, q := range l.Pending {
		lines = append(lines, fmt.Sprintf("%s  %s  %s  %s  %s", letter.Escape(shortID(q)), q.Agent, q.Kind, age(q.Since), subject(q)))
		var options []string
		for _, o := range q.Options {
			options = append(options, oneLine(o.ID+" "+o.Label, 40))
		}
		if len(options) > 0 {
			lines = append(lines, "    "+strings.Join(options, " | "))
		}
		if q.Kind == teams.KindDraft {
			lines = append(lines, fmt.Sprintf("    atm approve %s, or atm reject %[1]s --reason \"…\"", shortID(q)))
		} else if why, hint := onlyAtTerminal(q); why != "" {
			lines = append(lines, fmt.Sprintf("    %s %s: %s", q.Agent, why, hint))
		}
	}
	for _, o := range l.Overdue {
		line := fmt.Sprintf("%s  %s  overdue  %s  from %s: %s", o.ID.Short(6), o.Agent, age(o.DueAt), o.From, oneLine(o.Subject, 100))
		if !o.Read {
			line += "; not read yet"
		}
		lines = append(lines, line, "    atm trace "+o.ID.Short(6))
	}
	for _, h := range l.Held {
		lines = append(lines, fmt.Sprintf("-  %s  mail  %d unread: %s\n    atm attach %s", h.Agent, h.Unread, h.Reason, h.Agent))
	}
	return cmp.Or(strings.Join(lines, "\n"), "nothing is waiting for you")
}

// onlyAtTerminal says why nobody can answer a question from here, and what to do about it; "": it
// can be answered.
func onlyAtTerminal(q policy.Question) (why, hint string) {
	if !q.Running {
		return "runs under no runner, only its own terminal can answer", "next time atm run " + string(q.Agent)
	}
	if q.ID == "" || q.Dialog == policy.DialogTrust {
		return "asks what only a person at its terminal can answer", "atm attach " + string(q.Agent)
	}
	return "", ""
}

// shortID is a question's id as it can be typed; a draft's id is its agent's own.
func shortID(q policy.Question) string {
	if q.Kind == teams.KindDraft {
		return wire.ID(q.ID).Short(6)
	}
	return cmp.Or(q.Short(), "-")
}

// subject is what a question is about: the tool and what it is to do, or what is asked.
func subject(q policy.Question) string {
	said := strings.TrimPrefix(q.Input+": "+q.Prompt, ": ")
	if q.Kind == reducer.Permission && q.Tool != "" && q.Input != "" {
		said = q.Input // the screen says the same in words of its own
	}
	return oneLine(strings.TrimPrefix(q.Tool+": "+said, ": "), 160)
}
