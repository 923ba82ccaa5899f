package setup

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/aswire"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
)

var statusCommand = &cli.Command{
	Name: "status", Category: "describe inspect info", ArgsUsage: "[AGENT]", Usage: "show one agent in full, with the evidence",
	UsageText: `atm status bob
atm status             the team, as atm team
atm status bob --json
atm status --all --as-wire missiond`,
	Flags: []cli.Flag{
		cmdline.ChoiceFlag("as-wire", "in the format of the PTY manager `missiond`", "missiond"),
		&cli.BoolFlag{Name: "all", Usage: "every member, one per line"},
	},
	Action: command.With(app.OpenTeam, status),
}

func status(c *cli.Context, s *app.Scope, p *command.Printer) error {
	name, isTheirs := c.Args().First(), c.IsSet("as-wire")
	if a, _ := s.Team.ParseAddress(name); a.Host != "" && !isTheirs { // its bridge has reported it, or it is of a linked root
		if _, err := s.Root.Mailbox(a); err != nil && s.Root.IsLink(a.Host) {
			return err
		}
		m := presence.At(c.Context, s.Root, a)[a]
		return p.PrintUnlessError(m.Err, m, statusText(m, command.IsColoured(p.Out)))
	}
	if isAll := c.Bool("all") || name == "" && !isTheirs; !isAll {
		box, err := s.EnterTeamOf(name)
		if err != nil {
			return err
		}
		warnConfig(s)
		m, unreadable := presence.Status(c.Context, s.Team, box.Agent())
		if err := p.WarnUnreadable(unreadable); err != nil {
			return err
		}
		if err := printStatus(s, p, m, isTheirs); err != nil || unreadable == nil {
			return err
		}
		return failure.Exit(failure.ExitFailed)
	}
	if name != "" {
		return failure.Usage("--all is every member: no AGENT beside it")
	}
	if !isTheirs {
		return Team(c.Context, s, p, p.IsJSON || c.Bool("all"))
	}
	all, unreadable := presence.Members(c.Context, s.Team)
	for _, m := range all {
		if m.Host != "" { // it has no slot here
			continue
		}
		if err := printStatus(s, p, m, isTheirs); err != nil {
			return err
		}
	}
	return p.WarnUnreadable(unreadable)
}

func printStatus(s *app.Scope, p *command.Printer, m presence.Member, isTheirs bool) error {
	if !isTheirs {
		return p.PrintAs(m, statusText(m, command.IsColoured(p.Out)))
	}
	line, err := aswire.Slot(s.Team, m).MarshalJSON()
	return p.PrintUnlessError(err, json.RawMessage(line), string(command.EscapeJSON(line)))
}

func statusText(m presence.Member, isColoured bool) string {
	now, text := time.Now(), command.Team([]presence.Member{m}, 0, isColoured)[0]+"\n"
	line := func(name, format string, args ...any) {
		text += fmt.Sprintf("  %-10s %s\n", name, letter.Escape(fmt.Sprintf(format, args...)))
	}
	if w := m.WaitingOn; w != nil {
		q := ask.Of(*w)
		line("asks", "%s", app.JoinFilled(": ", fmt.Sprintf("%s %s ago", w.Kind, letter.Span(now.Sub(w.Since))), letter.OneLine(q.Summary(), 200)))
	}
	if m.Kind == "person" {
		return text
	}
	if m.TurnID != "" {
		line("turn", "%s", turnText(m))
	}
	if m.HeardAt != nil {
		line(string(m.Source), "%s %s", spaced(string(m.Activity)), letter.Ago(now, *m.HeardAt))
	}
	if ways := m.Ways.String(); ways != "" {
		line("ways", "%s", ways)
	}
	open, shut := waysIn(m)
	if len(m.WaysIn) > 0 {
		line("ways", "%s", cmp.Or(strings.Join(open, " · "), "none: its person has to say atm read"))
	}
	for _, why := range shut {
		line("shut", "%s", letter.OneLine(why, 200))
	}
	if l := m.LastTurn; l != nil {
		line("last turn", "%s %s, after %s", letter.Name(spaced(l.Status), 40), letter.Age(now, l.At), letter.Span(l.Duration()))
	}
	if u := m.Usage; u != nil {
		line("used", "%s", usageText(u, now))
	}
	line("presence", "%s: %s", m.Presence, presenceEvidence(m, now))
	if m.ReadAt != nil {
		line("last read", "%s", letter.Ago(now, *m.ReadAt))
	}
	if m.Errors > 0 {
		line("errors", "%d, the last: %s", m.Errors, letter.Clip(m.LastError, 200))
	} else if m.LastError != "" {
		line("events", "%s", m.LastError)
	}
	if m.Dropped.Dropped+m.Dropped.Unknown+m.Unknown > 0 {
		line("lost", "%d events dropped by its stream, %d unknown to it, %d unknown to atm",
			m.Dropped.Dropped, m.Dropped.Unknown, m.Unknown)
	}
	return text
}

// usageText says what a member has used.
func usageText(u *reducer.Usage, now time.Time) string {
	turn, context := presence.Used(u.Turn), command.ContextText(u)
	if turn != "" {
		turn = "in its turn " + turn
	}
	if context != "" {
		context = "context " + context
	}
	return app.JoinFilled("; ", presence.Used(u.Figures), turn, context, "told "+letter.Ago(now, u.At))
}

// turnText says which turn a member is in, and who reports that.
func turnText(m presence.Member) string {
	text := strings.Replace(string(m.TurnStatus), string(reducer.TurnTerminal), "ended", 1) + ": " + letter.Name(string(m.TurnID), 80)
	if m.ThreadID != m.Session && m.ThreadID != "" { // most programs have one id for both
		text += " in thread " + letter.Name(string(m.ThreadID), 80)
	}
	if m.Session != "" {
		text += " in session " + letter.Name(string(m.Session), 80)
	}
	if m.Transport != "" {
		text += ", reported by " + letter.Name(string(m.Transport), 80)
	}
	return text
}

// waysIn lists the ways that are open into the program that a person has started, and why others are shut.
func waysIn(m presence.Member) (open, shut []string) {
	for _, d := range m.WaysIn {
		if d.By != "" {
			open = append(open, d.At+" "+d.By)
		}
		if why := cmp.Or(d.Why, d.By); why != d.By && !slices.Contains(shut, why) {
			shut = append(shut, why)
		}
	}
	return open, shut
}

// presenceEvidence says what it rests on whether a member's program runs.
func presenceEvidence(m presence.Member, now time.Time) string {
	text := "no event, no runner"
	switch {
	case m.Host != "":
		text = m.EvidenceAge(now)
	case m.Running && m.PID != nil:
		text = fmt.Sprintf("its runner is running, process %d", *m.PID)
	case m.Running:
		text = "its runner is running"
	case m.PresenceAt != nil && m.RunnerGone:
		text = "its runner was killed; last event " + letter.Ago(now, *m.PresenceAt)
	case m.PresenceAt != nil:
		text = "last event " + letter.Ago(now, *m.PresenceAt)
	}
	if m.State == reducer.WordUnknown && m.Presence == reducer.Online && !m.Running {
		text += "; nothing says whether it works"
	}
	return text
}

// spaced is a word of the events, such as awaiting_input, as people write it.
func spaced(word string) string { return strings.ReplaceAll(word, "_", " ") }
