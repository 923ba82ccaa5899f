// Package session is the verbs of interactive sessions (package session at the
// top): they begin, list, show and end them, and join them.
package session

import (
	"context"
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
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
			pauseCommand, resumeCommand, completeCommand, abortCommand,
		},
		Action: func(c *cli.Context) error {
			return command.Usage("atm session needs a command").WithHint("atm session ls; atm session --help lists them")
		},
	}}
}

// openToSpeak opens the team for something that I say in a session.
func openToSpeak(c *cli.Context) (*command.Scope, error) {
	s, err := command.OpenMe(c)
	if err != nil {
		return nil, err
	}
	return s, s.MayWrite()
}

// find is the session that a word means: by its id or a part of it, or by the name
// of an agent that has only that one that goes on.
func find(s *command.Scope, word string) (wire.UUID, error) {
	if !s.IsMember(word) {
		id, err := s.Team.Sessions().Find(word)
		_, notID := wire.ParseFragment(word)
		if errors.Is(err, sessions.ErrNotFound) && notID != nil {
			if _, unknown := s.Member(word); unknown != nil {
				return "", unknown
			}
		}
		return id, explain(err)
	}
	box, err := s.Member(word)
	if err != nil {
		return "", err
	}
	alive, err := aliveOf(s, box.Agent())
	if err != nil {
		return "", err
	}
	if len(alive) == 0 {
		return "", command.NotFound("%s has no session that goes on", box.Agent()).
			WithHint("atm session new --agent %s; atm session ls --all lists those that are over", box.Agent())
	}
	if len(alive) == 1 {
		return alive[0].SessionID, nil
	}
	many := &sessions.ManyError{Fragment: word}
	for _, one := range alive {
		many.IDs = append(many.IDs, one.SessionID)
	}
	return "", explain(many)
}

// aliveOf are the sessions of an agent that go on.
func aliveOf(s *command.Scope, agent wire.Name) ([]*sessions.Session, error) {
	list, _, err := s.Team.Sessions().List()
	return slices.DeleteFunc(list, func(one *sessions.Session) bool {
		return one.AgentID != string(agent) || !one.State.Alive()
	}), err
}

// openSession opens the team and the session that the first argument means.
func openSession(c *cli.Context) (*command.Scope, *sessions.Session, error) {
	s, err := command.OpenTeam(c)
	if err != nil {
		return nil, nil, err
	}
	id, err := find(s, c.Args().First())
	if err != nil {
		return nil, nil, err
	}
	one, err := s.Team.Sessions().Get(id)
	return s, one, explain(err)
}

// planOf is what team.toml says about sessions; of a file with mistakes what could
// be understood.
func planOf(s *command.Scope) (*config.Session, error) {
	plan, err := s.Team.Config()
	if plan == nil {
		return nil, err
	}
	return &plan.Session, err
}

// refresh is a session as it is now, with what its agent has said since. Where that
// cannot be written, it is as it would be.
func refresh(ctx context.Context, s *command.Scope, id wire.UUID) (*sessions.Session, error) {
	plan, err := planOf(s)
	if err != nil {
		plan = &config.Session{} // nothing ends by itself
	}
	one, err := s.Team.RefreshSession(ctx, id, plan)
	if err == nil || errors.Is(err, sessions.ErrNotFound) || ctx.Err() != nil {
		return one, explain(err)
	}
	seen, notSeen := s.Team.Sessions().Look(ctx, id)
	if notSeen != nil {
		return nil, explain(err)
	}
	return seen, nil
}

// by is who does something to a session, for its log.
func by(s *command.Scope) string {
	if who, _ := s.Actor(); who != "" {
		return "by " + string(who)
	}
	return ""
}

// explain gives an error of a session its exit code and hint.
func explain(err error) error {
	var many *sessions.ManyError
	var file *sessions.FileError
	var refused *wire.SessionError
	switch {
	case errors.As(err, &many):
		ids, candidates := make([]wire.ID, len(many.IDs)), make([]string, len(many.IDs))
		for i, id := range many.IDs {
			ids[i], candidates[i] = wire.ID(id), string(id)
		}
		return command.Ambiguous("%s", err).WithHint("one of these: %s", command.Shorts(ids)).WithCandidates(candidates...)
	case errors.As(err, &file):
		return command.Failed("%w", err).WithHint("look at it, and move it away or mend it: atm did not write it")
	case errors.Is(err, sessions.ErrNotFound):
		return command.NotFound("%w", err).WithHint("atm session ls --all lists them")
	case errors.As(err, &refused):
		return command.Refused("%s", refused.Reason).WithHint("atm session ls --all shows the state of each")
	case errors.Is(err, teams.ErrNoSessions), errors.Is(err, teams.ErrNoHumanInput):
		return command.Refused("%w", err).WithHint("team.toml is for a person to change")
	}
	return err
}
