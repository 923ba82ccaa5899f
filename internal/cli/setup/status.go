package setup

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var statusCommand = &cli.Command{
	Name: "status", ArgsUsage: "[AGENT]", Usage: "one agent in full, and the evidence",
	UsageText:   "atm status bob\natm status bob --json\natm status --all --as-wire missiond",
	Description: "unknown: there is no evidence, which is neither idle nor off.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "as-wire", Usage: "as the PTY manager `missiond` writes it"},
		&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "every member, one a line"},
	},
	Action: status,
}

// A card is a member in full.
type card struct{ teams.Member }

func status(c *cli.Context) error {
	if v := c.String("as-wire"); c.IsSet("as-wire") && v != "missiond" {
		return command.Usage("--as-wire %s: there is only missiond", letter.Escape(v)).
			WithHint("atm status --as-wire missiond; events have their own: atm events --as-wire daemon")
	}
	if c.Bool("all") && c.Args().Present() {
		return command.Usage("--all and %s contradict each other", letter.Escape(c.Args().First())).WithHint("leave one out")
	}
	if c.Bool("all") && !c.IsSet("as-wire") {
		return team(c)
	}
	s, names, err := shownMembers(c)
	if err != nil {
		return err
	}
	for _, n := range names {
		m, err := s.Team.Status(c.Context, n)
		if err != nil {
			return err
		}
		if c.IsSet("as-wire") {
			err = printSlot(c, s.Team, m)
		} else {
			err = command.Print(c, card{m})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shownMembers are the member that is named, or I, or all.
func shownMembers(c *cli.Context) (*command.Scope, []wire.Name, error) {
	if c.Bool("all") {
		s, err := command.OpenTeam(c)
		if err != nil {
			return nil, nil, err
		}
		names, err := s.Team.Agents()
		return s, names, err
	}
	if !c.Args().Present() {
		s, err := command.OpenMe(c)
		if err != nil {
			return nil, nil, err
		}
		return s, []wire.Name{s.Me.Agent()}, nil
	}
	s, err := openToLook(c)
	if err != nil {
		return nil, nil, err
	}
	box, err := s.Member(c.Args().First())
	if err != nil {
		return nil, nil, err
	}
	s.Team, err = s.Root.Team(box.Address().Team)
	return s, []wire.Name{box.Agent()}, err
}

// printSlot prints a member as missiond does, and says what missiond has no words
// for.
func printSlot(c *cli.Context, t *teams.Team, m teams.Member) error {
	slot := t.Slot(m)
	switch m.State {
	case reducer.WordPerson:
		command.Warn(c, "%s is a person: %s is the nearest that missiond can say", m.Name, slot.State)
	case reducer.WordUnknown:
		command.Warn(c, "the state of %s is unknown: %s is the nearest that missiond can say", m.Name, slot.State)
	}
	if _, err := os.Stat(slot.LogFile); err != nil {
		command.Warn(c, "there is no recording of %s yet: it will be at logFile", m.Name)
	}
	line, err := wire.Marshal(slot)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(line, '\n'))
	return err
}

func (m card) String() string {
	now := time.Now()
	var b strings.Builder
	b.WriteString((&teams.Table{Now: now}).Lines([]teams.Member{m.Member})[0] + "\n")
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	if w := m.WaitingOn; w != nil {
		asked := letter.Escape(w.Tool)
		if w.Prompt != "" {
			asked = strings.TrimLeft(asked+": "+letter.Clip(letter.Escape(strings.Join(strings.Fields(w.Prompt), " ")), 200), ": ")
		}
		line("asks", "%s %s ago: %s", w.Kind, letter.Span(max(0, now.Sub(w.Since))), asked)
	}
	if m.Kind == "person" {
		return b.String()
	}
	if m.Held != "" {
		line("mail waits", "%d unread: %s", m.Unread, m.Held)
	}
	if m.TurnID != "" {
		line("turn", "%s", m.turn())
	}
	if l := m.LastTurn; l != nil {
		took := ""
		if l.DurationMS > 0 {
			took = ", after " + letter.Span(l.Duration())
		}
		line("last turn", "%s %s%s", l.Status, letter.Age(now, l.At), took)
	}
	line("presence", "%s", m.presence(now))
	if m.ReadAt != nil {
		line("last read", "%s", letter.Age(now, *m.ReadAt))
	}
	if m.Errors > 0 {
		line("errors", "%d, the last: %s", m.Errors, letter.Clip(letter.Escape(m.LastError), 200))
	} else if m.LastError != "" {
		line("events", "%s", letter.Escape(m.LastError))
	}
	if m.Dropped != (reducer.Dropped{}) {
		line("dropped", "%d events, %d unknown, as its stream reports", m.Dropped.Dropped, m.Dropped.Unknown)
	}
	if m.Unknown > 0 {
		line("unknown", "events of kinds that atm does not know: %d", m.Unknown)
	}
	return b.String()
}

func (m card) turn() string {
	text := string(m.TurnStatus) + ", " + letter.Escape(m.TurnID)
	if m.ThreadID != "" {
		text += ", thread " + letter.Escape(m.ThreadID)
	}
	if m.Session != "" {
		text += ", session " + letter.Escape(m.Session)
	}
	if m.Transport != "" {
		text += ", by " + letter.Escape(m.Transport)
	}
	return text
}

// presence is whether the member is there, and the evidence for it.
func (m card) presence(now time.Time) string {
	switch {
	case m.Running && m.PID > 0:
		return fmt.Sprintf("online: its runner's lock is held, process %d", m.PID)
	case m.Running:
		return "online: its runner's lock is held"
	case m.PresenceAt == nil:
		return "unknown: no event, no runner"
	case m.RunnerGone:
		return "offline: its runner was killed; last event " + letter.Age(now, *m.PresenceAt)
	case m.Presence == reducer.Offline:
		return "offline since " + command.Stamp(*m.PresenceAt)
	}
	return fmt.Sprintf("%s: last event %s", m.Presence, letter.Age(now, *m.PresenceAt))
}
