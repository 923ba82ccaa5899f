// Package app is what every front of atm calls, the command line, the views and the protocols: who I am, the team's
// handle, who may do what, and what is asked of agents and of their runners. It knows no command line.
//
//	given.go       what the program was told
//	scope.go       the root, the team and the identity in force
//	names.go       a word becomes an address, a mailbox or a message
//	permission.go  who may do what
//	right.go       what a process may do to an agent, for the agent's runner
//	project.go     which files a command may open that nobody was asked about
//	send.go        a message is sent, acknowledged or withdrawn; outcome.go has what became of it
//	answer.go      answers to questions
//	runner.go      requests to an agent's runner
//	primer.go      what an agent is told when it starts
//	wait.go        one wait for any or every of some conditions; condition.go has these
//	ask.go         a question and its answer, and the end of a wait for one
//	await.go       what ends a wait early
//	explain.go     an error gets its exit code and its hint
//	link.go        links to other roots of this user
//	companion.go   atm's other programs are found, and the one that follows Codex is started
//
// Text from outside is escaped where it becomes part of a line (letter.Escape).
package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/wire"
)

// A Scope is the root, the team and the identity that a command works with. They are found here and in Given only, from
// the environment and the working directory too.
type Scope struct {
	Root *teamdir.Root
	Team *teamdir.Team
	Me   *maildir.Box // nil: the verb did not ask for an identity, or none was given

	TeamSource, MeSource string // what named them: "--as", "ATM_AGENT", …

	Given     *Given
	hasWarned bool // see WarnUnaccepted
}

// OpenRoot opens the root in force.
func OpenRoot(g *Given) (*Scope, error) {
	place := g.Place()
	found, skipped, err := rootdir.Find(place)
	for _, reason := range skipped {
		g.Warn("%s", reason)
	}
	if err == nil {
		err = g.checkNamedRoot(place, found)
	}
	if err != nil {
		return nil, err
	}
	s, err := OpenFound(g, found)
	if err == nil && g.Via == "mcp" { // a model reads the answers, as it does a hook's
		err = s.CheckAccepted()
	}
	return s, err
}

// OpenFound opens a root that was found already.
func OpenFound(g *Given, found rootdir.Found) (*Scope, error) {
	root, err := openFound(found)
	if err != nil {
		return nil, err
	}
	root.LockTimeout = max(g.LockTimeout, time.Nanosecond) // 0: try once
	root.KeysDir, root.TypeInPane = KeysDir(), TypeInPane
	return &Scope{Root: root, Given: g}, nil
}

// openFound opens a root that needs no note of this user if a runner of it has started this process.
func openFound(found rootdir.Found) (*teamdir.Root, error) {
	root, err := teamdir.OpenFound(found, notices.Tell)
	if err != nil || root.WasNoted() == nil || root.RunnerOf(process.Ancestors(process.Parent())).Team == "" {
		return root, err
	}
	root.Close() // its teams ask it as it was
	return teamdir.OpenFound(found.OfRunner(), notices.Tell)
}

// Of returns the scope of a program that has opened a team and was given no identity.
func Of(t *teamdir.Team) *Scope { return &Scope{Root: t.Root(), Team: t, Given: &Given{}} }

// OpenTeam opens the root and the team in force. With an error it returns what it could open.
func OpenTeam(g *Given) (*Scope, error) {
	s, err := OpenRoot(g)
	if err != nil {
		return nil, err
	}
	name, err := s.teamName()
	if err == nil {
		s.Team, err = s.Root.Team(name)
	}
	if errors.Is(err, teamdir.ErrNoTeam) {
		all, _ := s.Root.Teams()
		err = failure.NotFound("%w", err).WithHint("teams: %s", Join(all)).
			WithCandidates(Strings(all)...).WithNearest(string(name), Strings(all))
	}
	return s, err
}

// OpenMe is OpenTeam for a verb that needs an identity.
func OpenMe(g *Given) (*Scope, error) {
	s, err := OpenTeam(g)
	if err == nil {
		err = s.findMe()
	}
	return s, err
}

// OpenMeIfGiven is OpenMe for a verb that uses an identity if one is given.
func OpenMeIfGiven(g *Given) (*Scope, error) {
	if name, _ := g.Identity(); name == "" {
		return OpenTeam(g)
	}
	return OpenMe(g)
}

// OpenOptional is OpenMe for a verb that works without a team or an identity: missing is then the error about that. One
// that is given and wrong is an error all the same.
func OpenOptional(g *Given) (s *Scope, missing *failure.Error, err error) {
	s, err = OpenMe(g)
	me, _ := g.Identity()
	isUngiven := s != nil && (s.TeamSource == "" || s.Team != nil && me == "")
	if isUngiven && errors.As(err, &missing) {
		return s, missing, nil
	}
	return s, nil, err
}

// OpenToWrite is OpenMe for a verb that changes something as this identity. It warns of a stranger's root.
func OpenToWrite(g *Given) (*Scope, error) {
	s, err := OpenMe(g)
	if err == nil {
		s.WarnUnnoted()
		err = s.MayWrite()
	}
	return s, err
}

// findMe sets the identity. It never guesses: without one the error lists the members.
func (s *Scope) findMe() error {
	name, source := s.Given.Identity()
	if name == "" {
		how := failure.Hint("put --as NAME on the command, or once: export ATM_AGENT=NAME")
		if s.Given.Via == "mcp" {
			how = "start it with a name: `atm mcp --as NAME`"
		}
		return failure.Usage("who are you? %s", listed(s.Names())).WithCandidates(Strings(s.Names())...).
			WithHint("%s; do not take a name that is not yours", how)
	}
	a, err := wire.ParseAddress(strings.TrimPrefix(name, "@"), s.Team.Name)
	if err != nil {
		return &teamdir.WordError{Word: name, Members: s.Names(), Err: err}
	}
	if a.Team != s.Team.Name || a.Host != "" {
		return failure.Usage("%s says %s, but the command is for team %q", source, a, s.Team.Name).WithHint("leave one out")
	}
	s.Me, err = s.Team.Member(a.Agent)
	s.MeSource = source
	return err
}

// IsPersons reports whether the identity is a person's: the name of their shell, in which they may have started a program.
func (s *Scope) IsPersons() bool {
	c, _ := s.Team.Config() // doctor reports its mistakes
	return c.IsPerson(s.Me.Agent())
}

func (s *Scope) teamName() (wire.Name, error) {
	me, _ := s.Given.Identity()
	_, teamOfMe, _ := strings.Cut(strings.TrimPrefix(me, "@"), "@") // bob@main, @bob
	given, env := s.Given.Team, os.Getenv("ATM_TEAM")
	for _, by := range [][2]string{{"--team", given}, {"ATM_TEAM", env}, {"the identity", teamOfMe}} {
		if by[1] == "" {
			continue
		}
		s.TeamSource = by[0]
		team, err := wire.ParseName(by[1])
		if err != nil {
			err = failure.Usage("%s: %v", by[0], err).WithHint("`atm team ls` lists the teams")
		}
		return team, err
	}
	all, err := s.Root.Teams()
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", failure.NotFound("no team in %s", s.Root.Path).WithHint("`atm init alice bob me`")
	case len(all) > 1:
		return "", failure.Usage("which team? teams: %s", Join(all)).
			WithHint("put --team NAME on the command, or set ATM_TEAM").WithCandidates(Strings(all)...)
	}
	s.TeamSource = "the only team"
	return all[0], nil
}

// TeamToMake is the team that init makes or adds to: the one in force, else main.
func (s *Scope) TeamToMake() (wire.Name, error) {
	if all, err := s.Root.Teams(); len(all) == 0 && s.Given.Team == "" && os.Getenv("ATM_TEAM") == "" {
		return "main", err
	}
	return s.teamName()
}

// Origin is the evidence that this process attaches to what it sends.
func (s *Scope) Origin() *wire.Origin {
	return programs.Origin(s.Team, cmp.Or(s.Given.Via, "cli"))
}

// Search returns the team's messages that match a query, newest first. A from: or to: that nobody has is an error if
// nothing matches.
func (s *Scope) Search(ctx context.Context, query search.Query) ([]*wire.Item, error) {
	found, err := search.Search(ctx, s.Team, query)
	for _, name := range []string{query.From, query.To} {
		if name != "" && len(found) == 0 && err == nil {
			_, err = s.Correspondent(name)
		}
	}
	return found, err
}

// KeptFrom returns what says which unread messages are kept from the owner of a mailbox, by what the files say at its
// first call.
func (s *Scope) KeptFrom(box *maildir.Box) func(*wire.Message) bool {
	holds := sync.OnceValue(func() func(*wire.Message) teamdir.Hold {
		t, err := s.Root.Team(box.Address().Team)
		if err != nil {
			return func(*wire.Message) teamdir.Hold { return teamdir.Hold{} }
		}
		return t.Holds(box.Agent())
	})
	return func(m *wire.Message) bool { return holds()(m) != teamdir.Hold{} }
}
