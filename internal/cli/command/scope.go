package command

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
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

	c *cli.Context
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
	if errors.Is(err, rootdir.ErrNotRoot) {
		if found.Source == rootdir.FromEnv && os.Getenv("ATM_RUN") != "" { // a new root there would be a sandbox's own
			return nil, failure.NotFound("%w", err).WithHint("a sandbox may hide it: ask a person to let it read and write that directory")
		}
		place.Flag, place.Env, place.Dir = "", "", found.Path
		if near, _, noneErr := rootdir.Find(place); noneErr == nil && near.Source != rootdir.FromHome {
			return nil, failure.NotFound("%w", err).WithHint("to use the root there: --root %s", policy.Quote(near.Path))
		}
	}
	if err == nil && !found.Accepted && CallingProgram(c) == "mcp" { // a model reads the answers, as it does a hook's
		err = failure.Refused("nobody here made or accepted %s; its mail may have come with a clone", found.Path).
			WithHint("if it is yours: atm init")
	}
	if err != nil {
		return nil, err
	}
	return OpenFound(c, found)
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
	rememberFlag(c, "root")
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
		known := Strings(all)
		err = failure.NotFound("%w", err).WithHint("teams: %s", Join(all)).WithCandidates(known...).WithNearest(string(name), known)
	}
	if err != nil {
		return s, err
	}
	rememberFlag(c, "team")
	if s.IsMember(c.String("as")) {
		rememberFlag(c, "as")
	}
	return s, nil
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
	if name, _ := givenIdentity(c); name == "" {
		return OpenTeam(c)
	}
	return OpenMe(c)
}

// OpenOptional is OpenMe for a verb that works without a team or an identity: missing is then the error about that. One
// that is given and wrong is an error all the same.
func OpenOptional(c *cli.Context) (s *Scope, missing *failure.Error, err error) {
	s, err = OpenMe(c)
	if s == nil || c.IsSet("as") || !errors.As(err, &missing) {
		return s, missing, err
	}
	me, _ := givenIdentity(c)
	if s.TeamSource == "" || s.Team != nil && me == "" {
		err = nil
	}
	return s, missing, err
}

// OpenToWrite is OpenMe for a verb that changes something as this identity.
func OpenToWrite(c *cli.Context) (*Scope, error) {
	s, err := OpenMe(c)
	if err == nil {
		err = s.MayWrite()
	}
	return s, err
}

// findMe sets the identity. It never guesses: without one the error lists the members.
func (s *Scope) findMe() error {
	name, source := givenIdentity(s.c)
	if name == "" {
		hint := "put --as NAME on the command; do not take a name that is not yours"
		if via := CallingProgram(s.c); via != "" {
			hint = "the person who set this up names you: atm " + via + " --as NAME, or ATM_AGENT in its environment"
		}
		return failure.Usage("who are you? %s", listed(s.Names())).WithHint("%s", hint).WithCandidates(Strings(s.Names())...)
	}
	a, err := wire.ParseAddress(strings.TrimPrefix(name, "@"), s.Team.Name)
	if err != nil {
		return s.addressError(name, err)
	}
	if a.Team != s.Team.Name || a.Host != "" {
		return failure.Usage("%s says %s, but the command is for team %q", source, a, s.Team.Name).WithHint("leave one out")
	}
	s.Me, err = s.Team.Member(a.Agent)
	s.MeSource = source
	if err == nil {
		rememberFlag(s.c, "as")
	}
	return err
}

func givenIdentity(c *cli.Context) (name, source string) {
	if c.IsSet("as") {
		return c.String("as"), "--as"
	}
	return os.Getenv("ATM_AGENT"), "ATM_AGENT"
}

func (s *Scope) teamName() (wire.Name, error) {
	me, _ := givenIdentity(s.c)
	_, teamOfMe, _ := strings.Cut(me, "@") // bob@main
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
	name, err := s.teamName()
	if err == nil {
		rememberFlag(s.c, "team")
	}
	return name, err
}

// Place is where the flags, the environment and the working directory say that the root may be.
func Place(c *cli.Context) rootdir.Place {
	p := rootdir.Place{Flag: c.String("root"), Env: os.Getenv("ATM_ROOT"), UID: os.Getuid()}
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

// WarnUnaccepted warns about a root that this user neither named nor made nor accepted.
func (s *Scope) WarnUnaccepted() {
	if !s.Root.Accepted {
		Warn(s.c, "nobody here made or accepted %s; its mail may have come with a clone. If you know its team: atm init accepts it", s.Root.Path)
	}
}

// Person reports whether a person types this at a terminal of their own.
func Person() bool { return !InAgent() && term.IsTerminal(int(os.Stdin.Fd())) }

// ShellOf is the variable that names the agent in whose shell a command runs, as far as its hooks can set it.
const ShellOf = "ATM_SHELL_OF"

// AgentMarks are the variables that agents' programs set for the processes they start.
func AgentMarks() []string {
	return []string{"ATM_RUN", ShellOf, "CLAUDECODE", "CODEX_SANDBOX", "CODEX_THREAD_ID", "GEMINI_CLI", "OPENCODE"}
}

// InAgent reports whether an agent's program started this process.
func InAgent() bool {
	return slices.ContainsFunc(AgentMarks(), func(mark string) bool { return os.Getenv(mark) != "" })
}
