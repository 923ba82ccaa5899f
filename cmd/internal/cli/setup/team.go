package setup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
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
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/edits"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

var teamCommand = &cli.Command{
	Name: "team", Category: "members agents agent users who ps list-sessions peers\ntop    atm team --watch\ngroups group roles role    a table in team.toml: `atm help team.toml`", Usage: "who is busy, idle, blocked, off, and what is waiting for them",
	UsageText: `atm team    who is busy, idle, blocked, off
atm team jobs
atm team --watch
atm team add carol`,
	ArgsUsage:   "[QUEUE]",
	Description: "With a shared inbox: who serves it, what waits, who has or did what.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Category: "follow", Usage: "repaint until you press q"},
		&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "a line for those not seen for a week, too"},
		&cli.BoolFlag{Name: "usage", Usage: "what each has used of tokens and money, as far as its program tells"},
	},
	Action: command.With(app.OpenTeam, team),
	Subcommands: []*cli.Command{
		{Name: "ls", Category: "list", Usage: "list the teams of the root",
			UsageText: "atm team ls",
			Action:    command.With(app.OpenRoot, teamLs)},
		{
			Name: "add", Category: "invite join create register\nqueue    atm team add jobs --shared", ArgsUsage: "NAME…", Usage: "add members; --shared: a queue of work, for atm take",
			UsageText: `atm team add carol
atm team add jobs --shared`,
			Flags: []cli.Flag{
				&cli.BoolFlag{Name: "shared", Category: "share", Usage: "let others take from the inbox with atm take"},
			},
			Action: command.With(app.OpenTeam, teamAdd),
		},
		{
			Name: "retire", Category: "! remove rm kick delete archive leave unregister\nrename    `atm team retire NAME`, once atm team add has made the new one", ArgsUsage: "NAME", Usage: "move a member and its mail to the archive",
			UsageText: "atm team retire bob",
			Action:    command.With(app.OpenTeam, teamRetire),
		},
		{Name: "restore", ArgsUsage: "NAME", Usage: "bring back a retired member",
			UsageText: "atm team restore bob",
			Action:    command.With(app.OpenTeam, teamRestore)},
	},
}

// members is what team prints.
type members struct {
	Team    wire.Name            `json:"team"`
	Members []presence.Member    `json:"members"`
	Stats   foreign.ManagerStats `json:"stats"`
	// Groups are the members of each group and role.
	Groups map[wire.Name][]wire.Name `json:"groups,omitempty"`
	// Overlaps are files that two members edit.
	Overlaps []edits.Overlap         `json:"overlaps,omitempty"`
	Pending  []ask.Question          `json:"pending"` // what waits for a person
	Overdue  []notices.OverdueAnswer `json:"overdue,omitempty"`

	me     wire.Name // "": no identity was given
	folded []wire.Name
}

// foldAfter is for how long a member was not seen that has no line of its own.
const foldAfter = 7 * 24 * time.Hour

// isGone reports whether a member was not seen for foldAfter; one that never was counts from when it was added. People, shared
// inboxes and whoever runs are not gone.
func isGone(t *teamdir.Team, m presence.Member) bool {
	isOff := m.State == reducer.WordOff || m.State == reducer.WordUnknown || m.State == reducer.WordError
	if m.Host != "" || m.Shared || m.Running || len(m.Programs) > 0 || !isOff {
		return false
	}
	seen := m.PresenceAt
	if m.ReadAt != nil && (seen == nil || m.ReadAt.After(*seen)) {
		seen = m.ReadAt
	}
	if seen == nil {
		added, err := t.Store.Added(m.Name)
		if err != nil {
			return false
		}
		seen = &added
	}
	return time.Since(*seen) > foldAfter
}

// fold takes those out that were not seen for long and have no open mail.
func (m *members) fold(t *teamdir.Team) {
	m.Members = slices.DeleteFunc(slices.Clone(m.Members), func(one presence.Member) bool {
		isFolded := one.Unread+one.Leased+one.Owed+one.Bad == 0 && isGone(t, one)
		if isFolded {
			m.folded = append(m.folded, one.Name)
		}
		return isFolded
	})
}

// optionalMe returns the identity of a verb that works without one; then "".
func optionalMe(s *app.Scope) wire.Name {
	me, err := s.MemberOrMe("")
	if err != nil {
		return ""
	}
	return me.Agent()
}

func (m members) lines(p *command.Printer) []string {
	if len(m.Members) == 0 {
		return []string{p.Say("team %s has no members: `atm team add NAME`", m.Team)}
	}
	lines := p.Team(m.Members)
	if n := len(m.folded); n > 0 {
		lines = append(lines, fmt.Sprintf("%d not seen for a week: %s; %s", n, app.Join(m.folded), p.Command("atm team --all")))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Groups)) {
		lines = append(lines, "@"+string(name)+": "+app.Join(m.Groups[name]))
	}
	for _, o := range m.Overlaps {
		lines = append(lines, fmt.Sprintf("%s and %s edit %s, last %s", o.Members[0], o.Members[1], o.Shown, letter.Ago(time.Now(), o.At)))
	}
	if m.me != "" {
		lines = append(lines, "you are "+string(m.me))
	}
	return lines
}

func team(c *cli.Context, s *app.Scope, p *command.Printer) error {
	if name := c.Args().First(); name != "" {
		if _, err := s.Member(name); errors.Is(err, mailbox.ErrNoMailbox) {
			return cmdline.UnknownWord(c.Command, name, c.Args().Tail()...)
		}
		for _, flag := range []string{"usage", "watch", "all"} {
			if c.IsSet(flag) {
				return failure.Usage("--%s is of the team: no QUEUE beside it", flag).WithHint("`atm team --%s`, `atm team %s`", flag, name)
			}
		}
		q, err := room.Open(s).Queue(wire.Name(name))
		if err := p.WarnUnreadable(err); err != nil {
			return err
		}
		return p.PrintAs(q, q.Text(time.Now()))
	}
	if c.Bool("usage") {
		return printUsage(c, s, p)
	}
	if c.Bool("watch") && p.Repaints() {
		return watchTeam(s, p, command.GivenTimeout(c))
	}
	return Team(c.Context, s, p, p.IsJSON || c.Bool("all"))
}

// Team prints who is here, and what they do; without isAll those who were not seen for long have no lines of their own.
func Team(ctx context.Context, s *app.Scope, p *command.Printer, isAll bool) error {
	now, err := room.Open(s).Look(ctx)
	if err := p.WarnUnreadable(err); err != nil {
		return err
	}
	warnConfig(s)
	m := members{
		Team: s.Team.Name, Members: now.Members, Stats: presence.StatsOf(now.Members), Overlaps: edits.Overlaps(ctx, s.Team),
		Pending: now.Questions(), Overdue: now.Overdue, me: optionalMe(s),
	}
	m.Groups, _ = presence.Groups(s.Team) // without those of a team.toml with mistakes
	if !isAll {
		m.fold(s.Team)
	}
	lines := m.lines(p)
	now.Held = nil // which the members' lines say
	for _, w := range now.Waits() {
		lines = append(lines, waitLine(p, w))
	}
	return p.PrintAs(m, strings.Join(lines, "\n"))
}

func waitLine(p *command.Printer, w room.Wait) string {
	return w.Line + "   " + p.Command("atm pending")
}

// warnConfig says why a person may be shown as an agent.
func warnConfig(s *app.Scope) {
	if _, err := s.Team.Config(); err != nil {
		s.Given.Warn("%v: atm cannot tell who is a person", err)
	}
}

// watchTeam repaints the team below what is waiting for a person, and rings for each new line of that.
func watchTeam(s *app.Scope, p *command.Printer, timeout time.Duration) error {
	const unread = "unread"
	me := optionalMe(s)
	var announced map[string]bool
	return p.Watch(s, timeout, func(now *room.Snapshot) ([]string, error) {
		lines := members{Team: s.Team.Name, Members: now.Members, Overlaps: edits.Overlaps(context.Background(), s.Team), me: me}.lines(p)
		waiting, are := []string{}, map[string]bool{}
		for _, w := range now.Waits() {
			if are[w.Key] = true; announced != nil && !announced[w.Key] {
				p.Notify("atm", w.Line)
			}
			waiting = append(waiting, waitLine(p, w))
		}
		if n := len(now.Unread); n > 0 {
			if are[unread] = true; announced != nil && !announced[unread] { // once, until it is read
				p.Notify("atm", letter.Many(n, "message"))
			}
			waiting = append(waiting, fmt.Sprintf("%d unread: %s", n, p.Command("atm read")))
		}
		if announced = are; len(waiting) > 0 {
			lines = slices.Concat(waiting, []string{""}, lines)
		}
		return lines, nil
	})
}

func teamLs(c *cli.Context, s *app.Scope, p *command.Printer) error {
	names, err := s.Root.Teams()
	if err != nil {
		return err
	}
	list, text := []map[string]any{}, ""
	for _, n := range names {
		t, _ := s.Root.Team(n) // Teams has opened it
		members, err := t.Agents()
		if err != nil {
			return err
		}
		list = append(list, map[string]any{"team": n, "members": members})
		text += fmt.Sprintf("%s: %s\n", n, app.Join(members))
	}
	return p.PrintAs(map[string]any{"teams": list}, text)
}

func teamAdd(c *cli.Context, s *app.Scope, p *command.Printer) error {
	isShared := c.Bool("shared")
	names, err := parseNames(c.Args().Slice())
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := s.May(policy.Add, n); err != nil {
			return err
		}
	}
	added, err := addMembers(c.Context, s.Team, names)
	if err != nil {
		return err
	}
	for _, n := range added {
		if kept, _ := keep.Retired(s.Team.Box(n).Store(), string(n)); len(kept) > 0 {
			old := filepath.Base(kept[0].Path())
			p.Warn("a retired %s is kept with its mail: `atm team retire %[1]s`; `atm team restore %s` brings it back instead", n, old)
		}
	}
	text := fmt.Sprintf("added %s to team %s", app.Join(added), s.Team.Name)
	if len(added) == 0 {
		text = app.Join(names) + ": already in team " + string(s.Team.Name)
	}
	if isShared {
		for _, n := range names {
			if err := claim.Share(s.Team.Box(n)); err != nil {
				return err
			}
		}
		text += p.Say("\nmembers of %s may take from the inbox of %s: `atm take %s`", s.Team.Name, app.Join(names), names[0])
	}
	return p.Confirming().PrintAs(map[string]any{"team": s.Team.Name, "added": added, "shared": isShared}, text)
}

func teamRetire(c *cli.Context, s *app.Scope, p *command.Printer) error {
	box, err := s.EnterTeamOf(c.Args().First())
	if err != nil {
		return err
	}
	name := box.Agent()
	if err := s.May(policy.Retire, name); err != nil {
		return err
	}
	n, err := inbox.Count(c.Context, box)
	if err != nil {
		return err
	}
	where, err := s.Team.Retire(c.Context, name)
	if err == nil { // who is retired keeps no claims on files
		err = edits.ReleaseAll(c.Context, s.Team, name)
	}
	unread := n.Unread + n.Leased + n.Aside
	has := fmt.Sprintf("%d unread", unread)
	if n.Later > 0 {
		has += fmt.Sprintf(" and %d for later", n.Later)
	}
	return p.Confirming().PrintUnlessError(err, map[string]any{"agent": name, "unread": unread, "later": n.Later, "path": s.Team.Dir().Path() + "/" + where},
		p.Say("retired %s with %s; `atm team restore %[1]s --team %[3]s` brings it back", name, has, s.Team.Name))
}

func teamRestore(c *cli.Context, s *app.Scope, p *command.Printer) error {
	dir := c.Args().First() // bob or, if several bobs are retired, bob.20261122T101500.000000000Z
	before, _, _ := strings.Cut(dir, ".")
	name, err := wire.ParseName(before)
	if err != nil {
		return failure.Usage("%v", err)
	}
	if err := s.May(policy.Restore, name); err != nil {
		return err
	}
	err = keep.Restore(c.Context, s.Team.Store, dir)
	return p.Confirming().PrintUnlessError(err, map[string]any{"agent": name}, string(name)+" is back")
}
