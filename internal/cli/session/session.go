// Package session is the verbs of interactive sessions (package session at the
// top): they begin, list, show and end them, and join them.
package session

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// Commands are the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{{
		Name: "session", Aliases: []string{"sessions"}, Usage: "talk with an agent about one goal: log, drafts, human input",
		UsageText: "atm session new --agent bob\natm session message bob \"Focus on auth\"\natm session attach bob",
		Description: "ID: the session's, four digits of it, or the name of an agent that has only one.\n" +
			"Drafts: atm pending lists them, atm approve DRAFT and atm reject DRAFT answer them.",
		Subcommands: []*cli.Command{
			newCommand, lsCommand, showCommand, attachCommand, messageCommand,
			verb("pause", "let it rest; what is said waits", changeState),
			verb("resume", "go on; where its agent is off, start resume_cmd of team.toml", resume, "continue"),
			verb("complete", "it has reached its goal", changeState, "finish", "end"),
			verb("abort", "end it, and stop its agent", abort, "cancel"),
		},
		Action: list,
	}}
}

// verb is a command that takes a session and no flags.
func verb(name, usage string, action cli.ActionFunc, aliases ...string) *cli.Command {
	return &cli.Command{Name: name, Aliases: aliases, ArgsUsage: "ID", Usage: usage, UsageText: "atm session " + name + " bob", Action: action}
}

// changeState is the verbs pause and complete.
func changeState(c *cli.Context) error {
	to := wire.SessionPaused
	if c.Command.Name == "complete" {
		to = wire.SessionCompleted
	}
	s, one, err := openToAct(c, false)
	if err != nil {
		return err
	}
	return move(c, s, one.SessionID, to)
}

// move changes the state of a session, and prints the session.
func move(c *cli.Context, s *command.Scope, id wire.UUID, to wire.InteractiveSessionState) error {
	why := ""
	if who, _ := s.Actor(); who != "" {
		why = "by " + string(who)
	}
	one, err := s.Team.Sessions().Change(c.Context, id, func(one *sessions.Session) error {
		if one.State == to && to == wire.SessionActive {
			return nil // its runner has resumed it
		}
		return one.Move(to, why, time.Now())
	})
	if err != nil {
		return explain(err)
	}
	return command.Print(c, resultOf(one, line(one)))
}

// resume lets a session go on. An agent that does not run is started first; when
// it cannot be started, the session stays as it is.
func resume(c *cli.Context) error {
	s, one, err := openToAct(c, false)
	if err != nil {
		return err
	}
	agent := wire.Name(one.AgentID)
	plan, err := s.Team.Config()
	if err != nil {
		return err
	}
	running, err := s.Team.Running(agent)
	if err != nil {
		return err
	}
	words := plan.Session.ResumeWords(one.SessionID)
	switch {
	case running || !one.State.Alive(): // there is nothing to start
	case len(words) > 0:
		if err := runDetached(c, s, agent, words); err != nil {
			return command.Failed("%s could not be started: %w; the session stays %s", agent, err, one.State).WithHint("%s", s.Team.RunAgain(agent))
		}
		command.Warn(c, "%s runs: atm attach %s", agent, agent)
	case one.OwnedByRunner(): // it would be paused again at the next look
		return command.Refused("%s does not run, and team.toml has no resume_cmd: the session stays %s", agent, one.State).
			WithHint("%s; the session goes on with it", s.Team.RunAgain(agent))
	default:
		command.Warn(c, "%s does not run, and team.toml has no resume_cmd: %s", agent, s.Team.RunAgain(agent))
	}
	return move(c, s, one.SessionID, wire.SessionActive)
}

// runDetached runs `atm run AGENT --detach -- WORDS…`, which prints its own errors.
func runDetached(c *cli.Context, s *command.Scope, agent wire.Name, words []string) error {
	self, _ := os.Executable()
	args := []string{"run", string(agent), "--detach", "--root", s.Root.Path, "--team", string(s.Team.Name), "--"}
	cmd := exec.CommandContext(c.Context, self, append(args, words...)...)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// open opens the team and the session that the first argument means. To speak in
// it, I must be a member.
func open(c *cli.Context, toSpeak bool) (*command.Scope, *sessions.Session, error) {
	openScope := command.OpenTeam
	if toSpeak {
		openScope = command.OpenMe
	}
	s, err := openScope(c)
	if err == nil && toSpeak {
		err = s.MayWrite()
	}
	if err != nil {
		return nil, nil, err
	}
	one, err := find(c.Context, s, c.Args().First())
	return s, one, explain(err)
}

// openToAct is open for what may end or start the session's agent.
func openToAct(c *cli.Context, toSpeak bool) (*command.Scope, *sessions.Session, error) {
	s, one, err := open(c, toSpeak)
	if err == nil {
		err = s.MayAct(c.Command.Name, wire.Name(one.AgentID))
	}
	return s, one, err
}

// find is the session that a word means: by its id or a part of it, or by the name
// of an agent that has only one session.
func find(ctx context.Context, s *command.Scope, word string) (*sessions.Session, error) {
	if !s.IsMember(word) {
		id, err := s.Team.Sessions().Find(word)
		if err != nil {
			return nil, err
		}
		return refresh(ctx, s, id)
	}
	alive, err := aliveOf(ctx, s, word)
	if err != nil {
		return nil, err
	}
	if len(alive) == 0 {
		return nil, command.NotFound("%s has no session that goes on", word).
			WithHint("atm session new --agent %s; atm session ls --all lists those that are over", word)
	}
	if len(alive) > 1 {
		many := &sessions.ManyError{Fragment: word}
		for _, one := range alive {
			many.IDs = append(many.IDs, one.SessionID)
		}
		return nil, many
	}
	return alive[0], nil
}

// aliveOf are the sessions of an agent that go on.
func aliveOf(ctx context.Context, s *command.Scope, agent string) (alive []*sessions.Session, err error) {
	list, _, err := s.Team.Sessions().List()
	for _, one := range list {
		if one.AgentID != agent || !one.State.Alive() {
			continue
		}
		if one, err := refresh(ctx, s, one.SessionID); err == nil && one.State.Alive() {
			alive = append(alive, one)
		}
	}
	return alive, err
}

// refresh is a session as it is now, with what its agent has said since. Where that
// cannot be written, it is as it would be.
func refresh(ctx context.Context, s *command.Scope, id wire.UUID) (*sessions.Session, error) {
	plan, _ := s.Team.Config() // doctor names its mistakes
	one, err := s.Team.RefreshSession(ctx, id, &plan.Session)
	if err != nil {
		if seen, lookErr := s.Team.Sessions().Look(ctx, id); lookErr == nil {
			return seen, nil
		}
	}
	return one, err
}

// explain gives an error of a session its exit code and hint.
func explain(err error) error {
	var many *sessions.ManyError
	var refused *wire.SessionError
	switch {
	case errors.As(err, &many):
		var ids []string
		for _, id := range many.IDs {
			ids = append(ids, string(id))
		}
		return command.Ambiguous("%s", err).WithHint("one of these: %s", strings.Join(ids, ", ")).WithCandidates(ids...)
	case errors.Is(err, sessions.ErrNotFound):
		return command.NotFound("%w", err).WithHint("atm session ls --all lists them")
	case errors.As(err, &refused):
		return command.Refused("%s", refused.Reason).WithHint("atm session ls --all shows the state of each")
	case errors.Is(err, teams.ErrNoSessions), errors.Is(err, teams.ErrNoHumanInput):
		return command.Refused("%w", err).WithHint("team.toml is for a person to change")
	}
	return err
}
