package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var teamCommand = &cli.Command{
	Name: "team", Aliases: []string{"members", "agents", "agent", "users", "who", "ps"}, Usage: "who is busy, idle, blocked, off, and what is waiting for them",
	UsageText: "atm team\natm team --watch\natm team add carol",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "watch", Aliases: []string{"w", "follow", "f"}, Usage: "repaint; q leaves"},
		&cli.BoolFlag{Name: "all", Hidden: true},
	},
	Action: command.With(command.OpenTeam, team),
	Subcommands: []*cli.Command{
		{Name: "ls", Aliases: []string{"list", "all"}, Usage: "all teams of the root", UsageText: "atm team ls", Action: command.With(command.OpenRoot, teamLs)},
		{
			Name: "add", ArgsUsage: "NAME…", Usage: "add members",
			UsageText: "atm team add carol\natm team add jobs --shared",
			Flags:     []cli.Flag{&cli.BoolFlag{Name: "shared", Aliases: []string{"share"}, Usage: "others may take from the inbox: atm take"}},
			Action:    command.With(command.OpenTeam, teamAdd),
		},
		{
			Name: "retire", ArgsUsage: "NAME", Usage: "move a member and its mail to the archive",
			UsageText: "atm team retire bob",
			Action:    command.With(command.OpenTeam, teamRetire),
		},
		{Name: "restore", ArgsUsage: "NAME", Usage: "bring back a retired member", UsageText: "atm team restore bob", Action: command.With(command.OpenTeam, teamRestore)},
	},
}

type members struct {
	Team    wire.Name      `json:"team"`
	Members []teams.Member `json:"members"`
	Stats   teams.Stats    `json:"stats"`
}

func readMembers(ctx context.Context, t *teams.Team) (m members, lines []string, err error) {
	all, err := t.Members(ctx)
	m = members{t.Name, append([]teams.Member{}, all...), teams.StatsOf(all)}
	if len(all) == 0 {
		return m, []string{fmt.Sprintf("team %s has no members: atm team add NAME", t.Name)}, err
	}
	return m, command.Team(all, command.Width()), err
}

func team(c *cli.Context, s *command.Scope) error {
	if c.Bool("watch") && command.Repaints(c) {
		return watchTeam(s)
	}
	m, lines, err := readMembers(c.Context, s.Team)
	if err := command.WarnUnreadable(err); err != nil {
		return err
	}
	warnConfig(c, s)
	return command.PrintAs(c, m, strings.Join(lines, "\n"))
}

func warnConfig(c *cli.Context, s *command.Scope) {
	if _, err := s.Team.Config(); err != nil {
		command.Warn(c, "%v: who is a person is not known", err)
	}
}

func watchTeam(s *command.Scope) error {
	s.MemberOrMe("")   // whoever watches need not say who they are
	var known []string // what waited at the last look
	isFirst := true
	return s.Watch(func(ctx context.Context) ([]string, error) {
		m, lines, err := readMembers(ctx, s.Team)
		if _, isSaid := errors.AsType[*teams.UnreadableError](err); err != nil && !isSaid {
			return nil, err
		}
		waiting := waitingFor(ctx, s)
		if _, height, err := term.GetSize(int(os.Stdout.Fd())); err == nil && len(m.Members) > 0 {
			lines = command.TeamWithin(m.Members, command.Width(), max(height-len(waiting)-3, 3))
		}
		for _, line := range waiting {
			if !isFirst && !slices.Contains(known, line) {
				command.Notify("atm", line)
			}
		}
		known, isFirst = waiting, false
		return append(append(lines, ""), waiting...), nil
	})
}

func waitingFor(ctx context.Context, s *command.Scope) (lines []string) {
	questions, _ := s.Team.Waiting(ctx) // what cannot be read hides nothing else
	for _, q := range questions {
		if s.Me == nil || q.Agent != s.Me.Agent() {
			asks := letter.Clip(letter.Escape(q.Asks()), 60)
			lines = append(lines, fmt.Sprintf("%s %s   atm pending%s", q.Agent, asks, s.Flags()))
		}
	}
	if s.Me != nil {
		if ids, _ := s.Me.UnreadIDs(); len(ids) > 0 {
			lines = append(lines, fmt.Sprintf("%d unread   atm read%s", len(ids), s.Flags()))
		}
	}
	return lines
}

func teamLs(c *cli.Context, s *command.Scope) error {
	names, err := s.Root.Teams()
	if err != nil {
		return err
	}
	list, text := []map[string]any{}, ""
	for _, n := range names {
		t, err := s.Root.Team(n)
		if err != nil {
			return err
		}
		members, err := t.Agents()
		if err != nil {
			return err
		}
		list = append(list, map[string]any{"team": n, "members": members})
		text += fmt.Sprintf("%s: %s\n", n, command.Join(members))
	}
	return command.PrintAs(c, map[string]any{"teams": list}, text)
}

func teamAdd(c *cli.Context, s *command.Scope) error {
	names, err := parseNames(c.Args().Slice())
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := s.MayStop("add", n); err != nil {
			return err
		}
	}
	added, err := addMembers(c.Context, s.Team, names)
	if err != nil {
		return err
	}
	for _, n := range added {
		sayKept(c, s.Team.Box(n))
	}
	text := fmt.Sprintf("added %s to team %s", command.Join(added), s.Team.Name)
	if len(added) == 0 {
		text = command.Join(names) + ": there already"
	}
	isShared := c.Bool("shared")
	if isShared {
		for _, n := range names {
			if err := s.Team.Box(n).Share(); err != nil {
				return err
			}
		}
		text += fmt.Sprintf("\nmembers of %s may take from the inbox of %s: atm take %s", s.Team.Name, command.Join(names), names[0])
	}
	return command.PrintAs(c, map[string]any{"team": s.Team.Name, "added": added, "shared": isShared}, text)
}

func teamRetire(c *cli.Context, s *command.Scope) error {
	box, err := s.Enter(c.Args().First())
	if err != nil {
		return err
	}
	name := box.Agent()
	if err := s.MayStop("retire", name); err != nil {
		return err
	}
	n, err := box.Count(c.Context)
	if err != nil {
		return err
	}
	where, err := s.Team.Retire(c.Context, name)
	unread := n.Unread + n.Leased
	return command.Done(c, err, map[string]any{"agent": name, "unread": unread, "path": s.Team.Dir().Path() + "/" + where},
		fmt.Sprintf("retired %s with %d unread; atm team restore %[1]s --team %[3]s brings both back", name, unread, s.Team.Name))
}

// sayKept says of a new member where a retired one of its name is kept.
func sayKept(c *cli.Context, b *mailbox.Box) {
	kept, _ := b.Store().Retired(string(b.Agent()))
	if len(kept) == 0 {
		return
	}
	box := kept[0]
	unread, _ := box.UnreadIDs()
	team := b.Address().Team
	hint := fmt.Sprintf("atm team retire %s --team %s; atm team restore %s --team %[2]s", b.Agent(), team, filepath.Base(box.Path()))
	command.Warn(c, "a retired %s is kept with %d unread in %s: %s brings it back instead",
		b.Agent(), len(unread), box.Path(), command.Typed(c, hint))
}

func teamRestore(c *cli.Context, s *command.Scope) error {
	as := c.Args().First() // bob, or of several the directory of one: bob.20261122T101500.000000000Z
	before, _, _ := strings.Cut(as, ".")
	name, err := wire.ParseName(before)
	if err != nil {
		return command.Usage("%v", err)
	}
	if err := s.MayStop("restore", name); err != nil {
		return err
	}
	err = s.Team.Restore(c.Context, as)
	if errors.Is(err, mailbox.ErrExists) {
		return command.Refused("%w", err).WithHint("atm team lists the members; atm team retire %s makes room", name)
	}
	return command.Done(c, err, map[string]any{"agent": name}, string(name)+" is back")
}

var statusCommand = &cli.Command{
	Name: "status", Aliases: []string{"describe", "whois"}, ArgsUsage: "[AGENT]", Usage: "one agent in full, and the evidence",
	UsageText: "atm status bob\natm status bob --json\natm status --all --as-wire missiond",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "as-wire", Usage: "as the PTY manager `missiond` writes it"},
		&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "every member, one a line"},
	},
	Action: command.With(command.OpenTeam, status),
}

func status(c *cli.Context, s *command.Scope) error {
	if v := c.String("as-wire"); c.IsSet("as-wire") && v != "missiond" {
		return command.Usage("--as-wire %s: there is only missiond", letter.Escape(v)).
			WithHint("atm status --as-wire missiond; events have their own: atm events --as-wire daemon")
	}
	a, _ := s.Address(c.Args().First())
	if c.Bool("all") && a.Host == "" {
		return statusOfAll(c, s)
	}
	if a.Host != "" && c.IsSet("as-wire") {
		return command.Usage("status %s --as-wire: a member of another host has no slot here", a)
	}
	if a.Host != "" {
		m, err := s.Root.Summary(a)
		return command.Done(c, err, m, statusText(m))
	}
	box, err := s.Enter(c.Args().First())
	if err != nil {
		return err
	}
	warnConfig(c, s)
	m, unreadable := s.Team.Status(c.Context, box.Agent())
	if err := command.WarnUnreadable(unreadable); err != nil {
		return err
	}
	if err := printStatus(c, s, m); err != nil || unreadable == nil {
		return err
	}
	return command.Exit(command.ExitFailed)
}

func statusOfAll(c *cli.Context, s *command.Scope) error {
	if c.Bool("json") && !c.IsSet("as-wire") {
		return team(c, s)
	}
	warnConfig(c, s)
	all, unreadable := s.Team.Members(c.Context)
	for _, m := range all {
		if c.IsSet("as-wire") && m.Host != "" { // it has no slot here
			continue
		}
		if err := printStatus(c, s, m); err != nil {
			return err
		}
	}
	return command.WarnUnreadable(unreadable)
}

func printStatus(c *cli.Context, s *command.Scope, m teams.Member) error {
	if !c.IsSet("as-wire") {
		return command.PrintAs(c, m, statusText(m))
	}
	line, err := wire.Marshal(slot(s.Team, m))
	return command.Done(c, err, json.RawMessage(line), string(line))
}

// slot is a member as missiond's PTY manager writes it. That one knows no question but a
// confirmation, and a slot that was never spawned has exited.
func slot(t *teams.Team, m teams.Member) wire.PTYAgentInfo {
	info := wire.PTYAgentInfo{
		SlotID: string(m.Name), Role: m.Role, State: string(reducer.Exited),
		LogFile: filepath.Join(t.Box(m.Name).Path(), "run", "screen.cast"),
	}
	if m.PID > 0 {
		info.PID = new(uint32(m.PID))
		if !m.Started.IsZero() {
			info.StartedAt = new(m.Started.UnixMilli())
		}
	}
	if m.TurnStatus == reducer.TurnBusy {
		info.CurrentTaskID = &m.TurnID
	}
	switch {
	case m.State == reducer.WordOff:
	case m.Activity == reducer.AwaitingInput:
		info.State = string(reducer.Confirming)
	case m.Activity != reducer.Unknown:
		info.State = string(m.Activity)
	case m.TurnStatus == reducer.TurnBusy:
		info.State = string(reducer.Thinking)
	case m.Running:
		info.State = string(reducer.Starting)
	}
	return info
}

func statusText(m teams.Member) string {
	now, text := time.Now(), command.Team([]teams.Member{m}, 0)[0]+"\n"
	line := func(name, format string, args ...any) {
		text += fmt.Sprintf("  %-10s %s\n", name, letter.Escape(fmt.Sprintf(format, args...)))
	}
	if w := m.WaitingOn; w != nil {
		asked := strings.Trim(w.Tool+": "+strings.Join(strings.Fields(cmp.Or(w.Input, w.Prompt)), " "), ": ")
		line("asks", "%s %s ago: %s", w.Kind, letter.Span(max(0, now.Sub(w.Since))), letter.Clip(asked, 200))
	}
	if m.Kind == "person" {
		return text
	}
	if m.TurnID != "" {
		turn := string(m.TurnStatus) + ", " + m.TurnID
		for _, field := range [][2]string{{"thread ", m.ThreadID}, {"session ", m.Session}, {"by ", m.Transport}} {
			if field[1] != "" {
				turn += ", " + field[0] + field[1]
			}
		}
		line("turn", "%s", turn)
	}
	if l := m.LastTurn; l != nil {
		line("last turn", "%s %s, after %s", l.Status, letter.Age(now, l.At), letter.Span(l.Duration()))
	}
	line("presence", "%s: %s", m.Presence, evidence(m, now))
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
	return text
}

func evidence(m teams.Member, now time.Time) string {
	switch {
	case m.Host != "":
		return m.Seen(now)
	case m.Running && m.PID > 0:
		return fmt.Sprintf("its runner's lock is held, process %d", m.PID)
	case m.Running:
		return "its runner's lock is held"
	case m.PresenceAt == nil:
		return "no event, no runner"
	case m.RunnerGone:
		return "its runner was killed; last event " + letter.Age(now, *m.PresenceAt)
	}
	return "last event " + letter.Age(now, *m.PresenceAt)
}
