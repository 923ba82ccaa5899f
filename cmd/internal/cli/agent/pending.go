package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

var pendingCommand = &cli.Command{
	Name: "pending", Category: "requests questions approvals permissions todo", Usage: "show what waits for a person: permissions, questions, drafts, late answers",
	UsageText: `atm pending
atm pending --watch
atm approve 9f3a1c`,
	Description: "atm approve and atm reject take its id, or the name; atm screen NAME shows the dialog.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Category: "follow", Usage: "keep watching and ring for each new one; q quits"},
		cmdline.DurationFlag("timeout", 0, "stop after `D`"),
	},
	Action: command.With(app.OpenTeam, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		if c.Bool("watch") {
			return watchPending(s, p, command.GivenTimeout(c))
		}
		return Pending(c.Context, s, p)
	}),
}

type pendingList struct {
	Pending []ask.Question          `json:"pending"`
	Overdue []notices.OverdueAnswer `json:"overdue,omitempty"`
	Held    []room.HeldMail         `json:"held,omitempty"`
	Stuck   []post.Stuck            `json:"stuck,omitempty"`

	p   *command.Printer
	now *room.Snapshot
	me  wire.Name // "": nobody has said who looks
}

func pendingOf(s *app.Scope, now *room.Snapshot, p *command.Printer) pendingList {
	stuck, err := post.StuckMail(s.Team)
	p.WarnUnreadable(err)
	var name wire.Name
	if me, err := s.MemberOrMe(""); err == nil {
		name = me.Agent()
	}
	return pendingList{now.Questions(), now.Overdue, now.Held, stuck, p, now, name}
}

// Pending lists everything that waits for a person. It warns of what it cannot read.
func Pending(ctx context.Context, s *app.Scope, p *command.Printer) error {
	now, err := room.Open(s).Look(ctx)
	if err := p.WarnUnreadable(err); err != nil && ctx.Err() == nil {
		p.Warn("%v", err)
	}
	return p.Print(pendingOf(s, now, p))
}

// watchPending rings when something new waits. A terminal gets the whole list again and again, a pipe each item once.
func watchPending(s *app.Scope, p *command.Printer, timeout time.Duration) error {
	known := map[string]bool{}
	isKnown := func(key string) bool {
		was := known[key]
		known[key] = true
		return was
	}
	return p.Watch(s, timeout, func(now *room.Snapshot) (lines []string, err error) {
		l := pendingOf(s, now, p)
		lines = strings.Split(l.String(), "\n")
		l.Pending = slices.DeleteFunc(l.Pending, func(q ask.Question) bool { return isKnown(room.QuestionKey(q)) })
		l.Overdue = slices.DeleteFunc(slices.Clone(l.Overdue), func(o notices.OverdueAnswer) bool { return isKnown(room.LateKey(o)) })
		l.Held = slices.DeleteFunc(slices.Clone(l.Held), func(h room.HeldMail) bool { return isKnown(h.Key()) })
		l.Stuck = slices.DeleteFunc(l.Stuck, func(m post.Stuck) bool { return isKnown(string(m.ID) + m.Why) })
		if len(l.Pending)+len(l.Overdue)+len(l.Held)+len(l.Stuck) == 0 {
			return lines, nil
		}
		if !p.Repaints() {
			err = p.Print(l)
		}
		p.Notify("atm", "something is waiting for you")
		return lines, err
	})
}

// String is a table of id, agent, kind, age and subject, with the commands that help below each row.
func (l pendingList) String() string {
	var rows [][]string
	var below [][]string // the lines below each row
	add := func(lines []string, cells ...string) { rows, below = append(rows, cells), append(below, lines) }
	age := func(since time.Time) string { return letter.Span(time.Since(since)) }
	for _, q := range l.Pending {
		since := age(q.Since)
		if q.SeenAt != nil {
			since += " (seen " + letter.Ago(time.Now(), *q.SeenAt) + ")"
		}
		var below []string
		for _, line := range answers(q) {
			if q.Host == "" { // else it is typed there
				line = line.Map(l.p.Command)
			}
			below = append(below, line.String())
		}
		add(below, cmp.Or(letter.Name(q.Short(), 40), "-"), string(q.Agent), letter.Name(q.Kind, 40), since, subject(q))
	}
	for _, o := range l.Overdue {
		about := "from " + o.From
		if !o.Read {
			about += ", not read yet"
		}
		about, look := about+": ", "atm trace "
		if o.Agent == l.me {
			about, look = fmt.Sprintf("you owe %s an answer: ", l.now.From(o)), "atm show "
		}
		about += letter.OneLine(o.Subject, 100)
		add([]string{l.p.Command(look + o.ID.Short(6))}, o.ID.Short(6), string(o.Agent), "overdue", age(o.DueAt), about)
	}
	for _, h := range l.Held {
		about := fmt.Sprintf("%d unread: %s", h.Unread, letter.Escape(h.Reason))
		add([]string{l.p.Command(h.Look)}, "-", string(h.Agent), "mail", "", about)
	}
	for _, m := range l.Stuck {
		about := "for " + m.Why + ": " + letter.OneLine(m.Message.Title(), 100)
		called := (&letter.Renderer{Team: m.Message.From.Team}).Recipients(m.Message.To)
		add([]string{l.p.Command("atm trace " + m.ID.Short(6))}, m.ID.Short(6), called, "waits", age(m.Message.SentAt), about)
	}
	var lines []string
	if l.p.IsTerminal() {
		for i, cells := range rows { // who answers has to see all of it
			if about := cells[4]; letter.Columns(about) > l.p.Width()/2 {
				cells[4], below[i] = "", slices.Insert(below[i], 0, about)
			}
		}
		lines = l.p.Columns(rows, "36", "1", "33", "2", "")
	}
	for i, cells := range rows {
		if !l.p.IsTerminal() {
			lines = append(lines, app.JoinFilled("  ", cells...))
		}
		for _, text := range below[i] { // a command that is cut is of no use
			lines[i] += "\n" + letter.Wrap("    "+text, max(l.p.Width()-1, 0))
		}
	}
	return cmp.Or(strings.Join(lines, "\n"), "nothing is waiting for you")
}

// answers says whether a question is shown whole, and lists its options and the commands that answer it.
func answers(q ask.Question) (lines []failure.Hint) {
	if left := q.Left(); left != "" {
		lines = append(lines, failure.Say("%s", left))
	}
	var options []string
	for _, o := range q.Options {
		options = append(options, letter.Name(o.ID, 40)+" "+o.Words())
	}
	if len(options) > 0 {
		lines = append(lines, failure.Say("%s", strings.Join(options, " | ")))
	}
	if q.Kind == ask.KindMail {
		lines = append(lines, failure.Say("`atm approve %s 1 --as %s`, or `atm reply %[1]s \"…\" --as %[2]s`", q.Short(), q.To))
	} else if q.Kind == ask.KindDraft {
		lines = append(lines, failure.Say("`atm approve %s`, or `atm reject %[1]s --reason \"…\"`", q.Short()))
	} else if why, hint := app.AnsweredElsewhere(&q); why != "" {
		lines = append(lines, failure.Say("%s %s: %s", q.Agent, why, hint))
	}
	return lines
}

// maxSubject is longer than what a state keeps of a question: who answers has to see all of it.
const maxSubject = 10_000

func subject(q ask.Question) string { return letter.OneLine(q.Summary(), maxSubject) }
