package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var teamVerb = &cmdline.Verb{
	Name: "team", Summary: "who is busy, idle, blocked, off, and what waits for them",
	Examples: []string{"atm team", "atm team --watch", "atm team add carol"},
	Notes:    []string{"unknown: there is no evidence, which is neither idle nor off."},
	Flags: []cmdline.Flag{
		{Name: "watch", Usage: "repaint when something changes, until interrupted"},
	},
	Run:     run(team),
	Guesses: []string{"ps", "who", "agents", "members", "list-agents", "top", "states"},
	Stray:   "atm status",
	Subs: []*cmdline.Verb{
		{Name: "ls", Aliases: []string{"list"}, Summary: "all teams of the root", Examples: []string{"atm team ls"}, Run: run(teamLs)},
		{Name: "add", Guesses: []string{"new", "create", "join"}, Args: "NAME…", Summary: "add members", Examples: []string{"atm team add carol", "atm team add jobs --shared"},
			Flags: []cmdline.Flag{{Name: "shared", Usage: "others may take from the inbox: atm take"}}, MinArgs: 1, MaxArgs: -1, Run: run(teamAdd)},
		{Name: "retire", Guesses: []string{"remove", "rm", "delete", "del", "drop", "kick"}, Args: "NAME", Summary: "move a member and their mail to the archive", Examples: []string{"atm team retire bob"},
			Notes: []string{"Unread mail goes with them; atm team restore brings both back."}, MinArgs: 1, MaxArgs: 1, Run: run(teamRetire)},
		{Name: "restore", Args: "NAME", Summary: "bring back who was retired last", Examples: []string{"atm team restore bob"}, MinArgs: 1, MaxArgs: 1, Run: run(teamRestore)},
	},
}

func team(ctx context.Context, e *env) error {
	if err := e.open(); err != nil {
		return err
	}
	if c, err := e.team.Config(); err != nil && len(c.Members) == 0 {
		e.Warn("%v; who is a person is not known", err)
	}
	if e.Bool("watch") {
		return e.interruptible(ctx, func(ctx context.Context) error { return e.following(ctx, e.watchTeam) })
	}
	rows, stats, err := e.team.Members(ctx)
	if err != nil {
		return err
	}
	if e.JSON() {
		return e.PrintJSON(teamDocument(e.team.Name, rows, stats))
	}
	return e.printTeam(rows)
}

func (e *env) printTeam(rows []teams.Member) error {
	if len(rows) == 0 {
		return e.print("team %s has no members: atm team add NAME", e.team.Name)
	}
	return e.print("%s", strings.Join(e.table().Lines(rows), "\n"))
}

// table is how rows are shown here.
func (e *env) table() *teams.Table {
	t := &teams.Table{Now: time.Now()}
	if e.terminal() {
		t.Colour = e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
		if w, _, err := term.GetSize(int(e.Stdout.Fd())); err == nil {
			t.Width = w
		}
	}
	return t
}

func teamDocument(name wire.Name, rows []teams.Member, stats teams.Stats) any {
	if rows == nil {
		rows = []teams.Member{}
	}
	return struct {
		Team    wire.Name      `json:"team"`
		Members []teams.Member `json:"members"`
		Stats   teams.Stats    `json:"stats"`
	}{name, rows, stats}
}

type teamLine struct {
	Team    wire.Name   `json:"team"`
	Members []wire.Name `json:"members"`
}

func teamLs(ctx context.Context, e *env) error {
	if err := e.openRoot(); err != nil {
		return err
	}
	names, err := e.root.Teams()
	if err != nil {
		return err
	}
	list := []teamLine{}
	for _, n := range names {
		t, err := e.root.Team(n)
		if err != nil {
			return err
		}
		members, err := t.Agents()
		if err != nil {
			return err
		}
		if members == nil {
			members = []wire.Name{}
		}
		list = append(list, teamLine{n, members})
	}
	if e.JSON() {
		return e.PrintJSON(map[string]any{"teams": list})
	}
	for _, l := range list {
		if err := e.print("%s: %s", l.Team, join(l.Members)); err != nil {
			return err
		}
	}
	return nil
}

func teamAdd(ctx context.Context, e *env) error {
	names, err := namesOf(e.Args)
	if err != nil {
		return err
	}
	if err := e.open(); err != nil {
		return err
	}
	added, err := addAll(ctx, e.team, names)
	if err != nil {
		return err
	}
	shared := e.Bool("shared")
	for _, n := range names {
		if !shared {
			break
		}
		if !slices.Contains(added, n) {
			if err := e.mayAct("share", n); err != nil {
				return err
			}
		}
		if err := e.team.Box(n).Share(); err != nil {
			return err
		}
	}
	if e.JSON() {
		return e.PrintJSON(map[string]any{"team": e.team.Name, "added": added, "shared": shared})
	}
	if shared {
		defer e.print("members of %s may take from the inbox of %s: atm take %s", e.team.Name, join(names), names[0])
	}
	if len(added) == 0 {
		if shared {
			return nil
		}
		return e.print("%s: there already", join(names))
	}
	for _, n := range added {
		if last, err := e.team.LastRetired(n); err == nil {
			e.Warn("%s was retired before; that mail stays in the archive. To have it back: atm team retire %s; atm team restore %s", n, n, last)
		}
	}
	return e.print("added %s to team %s", join(added), e.team.Name)
}

// namesOf checks names before anything is made of them.
func namesOf(words []string) ([]wire.Name, error) {
	var out []wire.Name
	for _, w := range words {
		for _, part := range strings.Split(w, ",") {
			n, err := wire.ParseName(part)
			if err != nil {
				return nil, cmdline.Usage("%v", err)
			}
			out = append(out, n)
		}
	}
	return out, nil
}

// addAll makes the mailboxes that are not there yet.
func addAll(ctx context.Context, t *teams.Team, names []wire.Name) ([]wire.Name, error) {
	added := []wire.Name{}
	for _, n := range names {
		err := t.Create(ctx, n)
		if errors.Is(err, mailbox.ErrExists) {
			continue
		}
		if err != nil {
			return added, err
		}
		added = append(added, n)
	}
	return added, nil
}

func teamRetire(ctx context.Context, e *env) error {
	if err := e.open(); err != nil {
		return err
	}
	b, err := e.member(e.Args[0])
	if err != nil {
		return err
	}
	c, err := b.Count(ctx)
	if err != nil {
		return err
	}
	where, err := b.Store().Retire(ctx, b.Agent())
	if err != nil {
		return err
	}
	if e.JSON() {
		return e.PrintJSON(map[string]any{"agent": b.Agent(), "unread": c.Unread + c.Leased, "path": b.Store().Dir().Path() + "/" + where})
	}
	return e.print("retired %s with %d unread; atm team restore %s brings both back", b.Agent(), c.Unread+c.Leased, b.Agent())
}

func teamRestore(ctx context.Context, e *env) error {
	// bob, or one of several bobs as the archive calls them: bob.20261121T010203…
	name, _, one := strings.Cut(e.Args[0], ".")
	names, err := namesOf([]string{name})
	if err != nil {
		return err
	}
	which := ""
	if one {
		which = e.Args[0]
	}
	if err := e.open(); err != nil {
		return err
	}
	if err := e.team.Restore(ctx, names[0], which); err != nil {
		return err
	}
	if e.JSON() {
		return e.PrintJSON(map[string]any{"agent": names[0]})
	}
	return e.print("%s is back", names[0])
}
