package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/git"
	"github.com/agentteammail/atm/wire"
)

var initVerb = &cmdline.Verb{
	Name: "init", Args: "[NAME…]", Summary: "make a root, a team and its members",
	Examples: []string{"atm init alice bob me", "atm init --toml alice bob me", "atm init --here carol"},
	Notes: []string{
		"In a git repository: at the top of the main worktree, and into the",
		"repository's own exclude file. Where a root is found above it adds to that.",
		"Again: adds what is missing, and accepts a root that came with a clone.",
	},
	Flags: []cmdline.Flag{
		{Name: "here", Usage: "a new root in this directory"},
		{Name: "toml", Usage: "write a team.toml to start from, unless there is one: atm up starts it"},
	},
	MaxArgs: -1,
	Run:     run(initRoot),
}

func initRoot(ctx context.Context, e *env) error {
	names, err := namesOf(e.Args)
	if err != nil {
		return err
	}
	place := e.place()
	if e.Bool("here") && e.Given("root") {
		return e.NotBoth("here", "root")
	}
	dir, _, why, err := teams.InitDir(place, e.Bool("here"))
	if err != nil {
		return err
	}
	made, err := teams.Make(dir)
	if err != nil {
		return err
	}
	if err := e.use(teams.Found{Path: dir, Source: why, Accepted: true}); err != nil {
		return err
	}
	team, err := e.initTeam()
	if err != nil {
		return err
	}
	newTeam, err := e.root.CreateTeam(team)
	if err != nil {
		return err
	}
	if e.team, err = e.root.Team(team); err != nil {
		return err
	}
	added, err := addAll(ctx, e.team, names)
	if err != nil {
		return err
	}
	if err := teams.Accept(place, dir); err != nil {
		e.Warn("the root could not be noted as yours: %v", err)
	}
	excluded, file, err := git.Exclude(dir)
	if err != nil {
		e.Warn("the root could not be excluded from the repository: %v", err)
	}
	members, err := e.team.Agents()
	if err != nil {
		return err
	}
	toml, wrote := "", false
	if e.Bool("toml") {
		if toml, wrote, err = e.team.WriteConfig(e.sample(members).Text()); err != nil {
			return err
		}
	}
	if e.JSON() {
		out := map[string]any{"root": dir, "made": made, "team": team, "added": added, "members": members}
		if excluded {
			out["excluded_in"] = file
		}
		if toml != "" {
			out["toml"], out["toml_made"] = toml, wrote
		}
		return e.PrintJSON(out)
	}
	var b strings.Builder
	switch {
	case made:
		fmt.Fprintf(&b, "made %s (%s), team %s", cmdline.Escape(dir), cmdline.Escape(why), team)
	case newTeam:
		fmt.Fprintf(&b, "made team %s in %s (%s)", team, cmdline.Escape(dir), cmdline.Escape(why))
	default:
		fmt.Fprintf(&b, "team %s in %s (%s)", team, cmdline.Escape(dir), cmdline.Escape(why))
	}
	if len(added) > 0 {
		fmt.Fprintf(&b, ": added %s", join(added))
	} else if len(members) > 0 {
		fmt.Fprintf(&b, ": %s", join(members))
	}
	if err := e.print("%s", b.String()); err != nil {
		return err
	}
	switch {
	case wrote:
		err = e.print("wrote %s", cmdline.Escape(toml))
	case toml != "":
		err = e.print("%s was there, and stays as it is", cmdline.Escape(toml))
	}
	if err != nil {
		return err
	}
	if toml != "" {
		return e.print("next: look into it, then atm doctor, atm up")
	}
	return e.print("next: %s", nextAfterInit(members))
}

// sample is what a team.toml to start from says of these members, some of whom
// are by their names no agents. The program is the first of those that are known
// and installed.
func (e *env) sample(members []wire.Name) config.Sample {
	s := config.Sample{Command: "claude", Worktrees: e.team.HasWorktrees()}
	for _, n := range []string{"claude", "codex", "gemini", "opencode"} {
		if _, err := exec.LookPath(n); err == nil {
			s.Command = n
			break
		}
	}
	for _, n := range members {
		switch {
		case n == "me" || string(n) == e.Getenv("USER"):
			s.People = append(s.People, n)
		case n == "script" || n == "cron" || n == "ci":
			s.Others = append(s.Others, n)
		default:
			s.Agents = append(s.Agents, n)
		}
	}
	return s
}

// initTeam is the team to make or add to: named, the only one, or main.
func (e *env) initTeam() (wire.Name, error) {
	all, err := e.root.Teams()
	if err != nil {
		return "", err
	}
	if len(all) == 0 && e.String("team") == "" && e.Getenv("ATM_TEAM") == "" && !e.Given("team") {
		return "main", nil
	}
	return e.teamName()
}

func nextAfterInit(members []wire.Name) string {
	switch len(members) {
	case 0:
		return "atm team add alice bob"
	case 1:
		return fmt.Sprintf("atm team add NAME, then atm send NAME \"hello\" --as %s", members[0])
	}
	return fmt.Sprintf("atm send %s \"hello\" --as %s; agents run: atm primer", members[1], members[0])
}
