// Package command is what the verbs of atm share.
//
// A verb is a *cli.Command (github.com/urfave/cli/v2) in the package of its group. Its action gets a Scope (With),
// calls one thing and prints one value. Its Aliases are listed nowhere; its ArgsUsage is counted: [X] is optional, X…
// repeats, CMD begins another program's command line. Its examples and other names of its flags are in package cmdline,
// in pages.txt and synonyms.txt.
//
//	scope.go       the root, the team and the identity in force
//	names.go       a word becomes an address, a mailbox or a message
//	permission.go  who may do what
//	right.go       what a process may do to an agent, for the agent's runner
//	project.go     which files a command may open that nobody was asked about
//	answer.go      answers to questions
//	runner.go      requests to an agent's runner
//	input.go       texts come in
//	print.go       values go to stdout, warnings to stderr
//	progress.go    how far long work has come
//	message.go     messages are found; messages and turns as text
//	table.go       columns, and the table of the team
//	wait.go        what ends a wait, and what repaints a terminal
//	explain.go     an error gets its exit code and its hint, and is printed
//	companion.go   atm's other programs
//
// Text from outside is escaped where it becomes part of a line (letter.Escape).
package command

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

// A Scope is the root, the team and the identity that a command works with. Only Scope reads the environment and the
// working directory to find them.
type Scope struct {
	Root *teams.Root
	Team *teams.Team
	Me   *mailbox.Box // nil: the verb did not ask for an identity, or none was given

	TeamSource, MeSource string // what named them: "--as", "ATM_AGENT", …

	c         *cli.Context // nil in a program without a command line
	hasWarned bool         // see WarnUnaccepted
}

// With is the action of a verb that works in a scope.
func With(open func(*cli.Context) (*Scope, error), act func(*cli.Context, *Scope) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		s, err := open(c)
		if err != nil {
			return err
		}
		return act(c, s)
	}
}

// OpenRoot opens the root in force.
func OpenRoot(c *cli.Context) (*Scope, error) {
	place := Place(c)
	found, skipped, err := rootdir.Find(place)
	for _, reason := range skipped {
		Warn(c, "%s", reason)
	}
	if err == nil {
		err = checkNamedRoot(place, found)
	}
	if err != nil {
		return nil, err
	}
	s, err := OpenFound(c, found)
	if err == nil && CallingProgram(c) == "mcp" { // a model reads the answers, as it does a hook's
		err = s.CheckAccepted()
	}
	return s, err
}

// OpenFound opens a root that was found already.
func OpenFound(c *cli.Context, found rootdir.Found) (*Scope, error) {
	root, err := teams.Open(found, nil)
	if err != nil {
		return nil, err
	}
	root.LockTimeout = max(cmdline.Duration(c, "lock-timeout"), time.Nanosecond) // 0: try once
	if dir := userDir("XDG_CONFIG_HOME", ".config"); dir != "" {
		root.Keys = hostkey.Dir(filepath.Join(dir, "bridge"))
	}
	root.StartFollower = startFollower
	return &Scope{Root: root, c: c}, nil
}

// OpenTeam opens the root and the team in force. With an error it returns what it could open.
func OpenTeam(c *cli.Context) (*Scope, error) {
	s, err := OpenRoot(c)
	if err != nil {
		return nil, err
	}
	name, err := s.teamName()
	if err == nil {
		s.Team, err = s.Root.Team(name)
	}
	if errors.Is(err, teams.ErrNoTeam) {
		all, _ := s.Root.Teams()
		err = failure.NotFound("%w", err).WithHint("teams: %s", Join(all)).
			WithCandidates(Strings(all)...).WithNearest(string(name), Strings(all))
	}
	return s, err
}

// OpenMe is OpenTeam for a verb that needs an identity.
func OpenMe(c *cli.Context) (*Scope, error) {
	s, err := OpenTeam(c)
	if err == nil {
		err = s.findMe()
	}
	return s, err
}

// OpenMeIfGiven is OpenMe for a verb that uses an identity if one is given.
func OpenMeIfGiven(c *cli.Context) (*Scope, error) {
	if name, _ := GivenIdentity(c); name == "" {
		return OpenTeam(c)
	}
	return OpenMe(c)
}

// OpenOptional is OpenMe for a verb that works without a team or an identity: missing is then the error about that. One
// that is given and wrong is an error all the same.
func OpenOptional(c *cli.Context) (s *Scope, missing *failure.Error, err error) {
	s, err = OpenMe(c)
	me, _ := GivenIdentity(c)
	isUngiven := s != nil && (s.TeamSource == "" || s.Team != nil && me == "")
	if isUngiven && errors.As(err, &missing) {
		return s, missing, nil
	}
	return s, nil, err
}

// OpenToWrite is OpenMe for a verb that changes something as this identity. It warns of a stranger's root.
func OpenToWrite(c *cli.Context) (*Scope, error) {
	s, err := OpenMe(c)
	if err == nil {
		s.WarnUnnoted()
		err = s.MayWrite()
	}
	return s, err
}

// findMe sets the identity. It never guesses: without one the error lists the members.
func (s *Scope) findMe() error {
	name, source := GivenIdentity(s.c)
	if name == "" {
		return failure.Usage("who are you? %s", listed(s.Names())).WithCandidates(Strings(s.Names())...).
			WithHint("put --as NAME on the command, or once: export ATM_AGENT=NAME; do not take a name that is not yours")
	}
	a, err := wire.ParseAddress(strings.TrimPrefix(name, "@"), s.Team.Name)
	if err != nil {
		return s.badAddress(name, err)
	}
	if a.Team != s.Team.Name || a.Host != "" {
		return failure.Usage("%s says %s, but the command is for team %q", source, a, s.Team.Name).WithHint("leave one out")
	}
	s.Me, err = s.Team.Member(a.Agent)
	s.MeSource = source
	return err
}

// GivenIdentity returns the name that --as gives, the thread of Codex in which this runs, or ATM_AGENT, and which of these;
// "": none.
func GivenIdentity(c *cli.Context) (name, source string) {
	if c.IsSet("as") {
		return c.String("as"), "--as"
	}
	if thread := os.Getenv(teams.ThreadVariable); thread != "" && os.Getenv("ATM_RUN") == "" {
		if found, _, err := rootdir.Find(Place(c)); err == nil {
			if root, err := teams.Open(found, nil); err == nil {
				if of, _, ok := root.MemberOfThread(thread); ok {
					return of.String(), teams.ThreadVariable
				}
			}
		}
	}
	return os.Getenv("ATM_AGENT"), "ATM_AGENT"
}

func (s *Scope) teamName() (wire.Name, error) {
	me, _ := GivenIdentity(s.c)
	_, teamOfMe, _ := strings.Cut(strings.TrimPrefix(me, "@"), "@") // bob@main, @bob
	given, env := s.c.String("team"), os.Getenv("ATM_TEAM")
	for _, by := range [][2]string{{"--team", given}, {"ATM_TEAM", env}, {"the identity", teamOfMe}} {
		if by[1] == "" {
			continue
		}
		s.TeamSource = by[0]
		team, err := wire.ParseName(by[1])
		if err != nil {
			err = failure.Usage("%s: %v", by[0], err).WithHint("atm team ls lists the teams")
		}
		return team, err
	}
	all, err := s.Root.Teams()
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", failure.NotFound("no team in %s", s.Root.Path).WithHint("atm init alice bob")
	case len(all) > 1:
		return "", failure.Usage("which team? teams: %s", Join(all)).
			WithHint("put --team NAME on the command, or set ATM_TEAM").WithCandidates(Strings(all)...)
	}
	s.TeamSource = "the only team"
	return all[0], nil
}

// TeamToMake is the team that init makes or adds to: the one in force, else main.
func (s *Scope) TeamToMake() (wire.Name, error) {
	if all, err := s.Root.Teams(); len(all) == 0 && s.c.String("team") == "" && os.Getenv("ATM_TEAM") == "" {
		return "main", err
	}
	return s.teamName()
}

// Place is where the flags, the environment and the working directory say that the root may be.
func Place(c *cli.Context) rootdir.Place {
	p := rootdir.Place{Flag: c.String("root"), Env: os.Getenv("ATM_ROOT"), UID: os.Getuid(), Environ: os.Environ()}
	p.Dir, _ = os.Getwd()
	if home, _ := os.UserHomeDir(); filepath.IsAbs(home) {
		p.Home = home
	}
	p.State = userDir("XDG_STATE_HOME", ".local/state")
	return p
}

// userDir returns atm's part of one of this user's directories, the same on every system; "" without a home directory.
func userDir(variable, belowHome string) string {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) { // its specification has us ignore a relative one
		return filepath.Join(dir, "atm")
	}
	home, _ := os.UserHomeDir()
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, belowHome, "atm")
}

// StateFile is the path of a file in this user's state directory that belongs to a subject in this root.
func (s *Scope) StateFile(kind, subject, suffix string) (string, error) {
	dir := Place(s.c).State
	if dir == "" {
		return "", errors.New("this user has no home directory")
	}
	sum := sha256.Sum256([]byte(s.Root.Path + "\x00" + subject))
	return filepath.Join(dir, kind, fmt.Sprintf("%x%s", sum[:8], suffix)), nil
}
