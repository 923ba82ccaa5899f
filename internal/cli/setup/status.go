package setup

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var statusCommand = &cli.Command{
	Name: "status", ArgsUsage: "[AGENT]", Usage: "one agent in full, and the evidence",
	UsageText: "atm status bob\natm status bob --json\natm status --all --as-wire missiond",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "as-wire", Usage: "as the PTY manager `missiond` writes it"},
		&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "every member, one a line"},
	},
	Action: status,
}

func status(c *cli.Context) error {
	if v := c.String("as-wire"); c.IsSet("as-wire") && v != "missiond" {
		return command.Usage("--as-wire %s: there is only missiond", letter.Escape(v)).
			WithHint("atm status --as-wire missiond; events have their own: atm events --as-wire daemon")
	}
	open := command.OpenTeam
	if !c.Args().Present() && !c.Bool("all") {
		open = command.OpenMe
	}
	s, err := open(c)
	if err != nil {
		return err
	}
	var names []wire.Name
	box := s.Me
	if c.Bool("all") {
		names, err = s.Team.Agents()
	} else if c.Args().Present() {
		box, err = s.Member(c.Args().First())
	}
	if err != nil {
		return err
	}
	if box != nil {
		names = []wire.Name{box.Agent()}
	}
	for _, n := range names {
		m, err := s.Team.Status(c.Context, n)
		if err != nil {
			return err
		}
		r := result{m, statusText(m)}
		if c.IsSet("as-wire") {
			line, err := wire.Marshal(s.Team.Slot(m))
			if err != nil {
				return err
			}
			r = result{json.RawMessage(line), string(line)}
		}
		if err := command.Print(c, r); err != nil {
			return err
		}
	}
	return nil
}

func statusText(m teams.Member) string {
	now := time.Now()
	var b strings.Builder
	b.WriteString((&teams.Table{Now: now}).Lines([]teams.Member{m})[0] + "\n")
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", name, letter.Escape(fmt.Sprintf(format, args...)))
	}
	if w := m.WaitingOn; w != nil {
		asked := strings.Trim(w.Tool+": "+strings.Join(strings.Fields(w.Prompt), " "), ": ")
		line("asks", "%s %s ago: %s", w.Kind, letter.Span(max(0, now.Sub(w.Since))), letter.Clip(asked, 200))
	}
	if m.Kind == "person" {
		return b.String()
	}
	if m.Held != "" {
		line("mail waits", "%d unread: %s", m.Unread, m.Held)
	}
	if m.TurnID != "" {
		turn := []string{string(m.TurnStatus), m.TurnID}
		for _, field := range [][2]string{{"thread ", m.ThreadID}, {"session ", m.Session}, {"by ", m.Transport}} {
			if field[1] != "" {
				turn = append(turn, field[0]+field[1])
			}
		}
		line("turn", "%s", strings.Join(turn, ", "))
	}
	if l := m.LastTurn; l != nil {
		line("last turn", "%s %s, after %s", l.Status, letter.Age(now, l.At), letter.Span(l.Duration()))
	}
	evidence := "no event, no runner"
	switch {
	case m.Running:
		evidence = fmt.Sprintf("its runner's lock is held, process %d", m.PID)
	case m.PresenceAt != nil && m.RunnerGone:
		evidence = "its runner was killed; last event " + letter.Age(now, *m.PresenceAt)
	case m.PresenceAt != nil:
		evidence = "last event " + letter.Age(now, *m.PresenceAt)
	}
	line("presence", "%s: %s", m.Presence, evidence)
	if m.ReadAt != nil {
		line("last read", "%s", letter.Age(now, *m.ReadAt))
	}
	if m.Errors > 0 {
		line("errors", "%d, the last: %s", m.Errors, letter.Clip(m.LastError, 200))
	} else if m.LastError != "" {
		line("events", "%s", m.LastError)
	}
	if m.Dropped.Dropped+m.Dropped.Unknown+m.Unknown > 0 {
		line("lost", "%d events dropped by its stream, %d it did not know, %d that atm does not know",
			m.Dropped.Dropped, m.Dropped.Unknown, m.Unknown)
	}
	return b.String()
}
