package command

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

// A Scope is where a verb works. It alone reads the environment and the working directory for that.
type Scope struct {
	Root *teams.Root
	Team *teams.Team
	Me   *mailbox.Box // nil: nobody said, and the verb did not ask

	TeamSource, MeSource string // who said so: "--as", "ATM_AGENT", …

	c *cli.Context
}

// OpenRoot opens the root in force.
func OpenRoot(c *cli.Context) (*Scope, error) {
	place := Place(c)
	found, passed, err := rootdir.Find(place)
	for _, p := range passed {
		Warn(c, "%s", p)
	}
	if errors.Is(err, rootdir.ErrNotRoot) {
		place.Flag, place.Env, place.Dir = "", "", found.Path
		if near, _, noneErr := rootdir.Find(place); noneErr == nil && near.Source != rootdir.FromHome {
			return nil, NotFound("%w", err).WithHint("the root there is --root %s", policy.Quote(near.Path))
		}
	}
	if err == nil && !found.Accepted && Via(c) == "mcp" { // a model reads its answers, as those of a hook
		err = Refused("nobody here made or accepted %s; its mail may have come with a clone", found.Path).
			WithHint("if it is yours: atm init")
	}
	if err != nil {
		return nil, err
	}
	return OpenFound(c, found)
}

// OpenFound opens a root that was found already, as `init` does.
func OpenFound(c *cli.Context, found rootdir.Found) (*Scope, error) {
	root, err := teams.Open(found, nil)
	if err != nil {
		return nil, err
	}
	root.LockTimeout = max(Duration(c, "lock-timeout"), time.Nanosecond) // 0: not to wait at all
	if dir, err := os.UserConfigDir(); err == nil {
		root.Keys = hostkey.Dir(filepath.Join(dir, "atm", "bridge"))
	}
	keep(c, "root")
	return &Scope{Root: root, c: c}, nil
}

// OpenTeam opens the root and the team in force. The scope is there even with an error, as far as it is known.
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
		err = s.noTeam(name, err)
	}
	if err == nil {
		keep(c, "team")
	}
	if err == nil && s.IsMember(c.String("as")) {
		keep(c, "as")
	}
	return s, err
}

func (s *Scope) noTeam(name wire.Name, err error) error {
	all, _ := s.Root.Teams()
	known := Strings(all)
	return NotFound("%w", err).WithHint("teams: %s", Join(all)).withNearest(string(name), known).WithCandidates(known...)
}

// OpenMe is OpenTeam for a verb that needs to know who I am.
func OpenMe(c *cli.Context) (*Scope, error) {
	s, err := OpenTeam(c)
	if err == nil {
		err = s.findMe()
	}
	return s, err
}

// OpenMeIfSaid is OpenMe for a verb that needs no identity, but uses one.
func OpenMeIfSaid(c *cli.Context) (*Scope, error) {
	if name, _ := said(c); name == "" {
		return OpenTeam(c)
	}
	return OpenMe(c)
}

// OpenSaid is OpenMe for a verb that works without a team or an identity: unsaid is then what nobody said. What was
// said and is wrong is an error, as elsewhere.
func OpenSaid(c *cli.Context) (s *Scope, unsaid *Error, err error) {
	s, err = OpenMe(c)
	if s == nil || c.IsSet("as") || !errors.As(err, &unsaid) || unsaid.Exit != ExitUsage {
		return s, unsaid, err
	}
	me, _ := said(c)
	isTeamWrong := s.Team == nil && s.TeamSource != ""
	isMeWrong := s.Team != nil && me != ""
	if isTeamWrong || isMeWrong {
		return s, unsaid, err
	}
	return s, unsaid, nil
}

// OpenToWrite is OpenMe for a verb that changes something as me.
func OpenToWrite(c *cli.Context) (*Scope, error) {
	s, err := OpenMe(c)
	if err == nil {
		err = s.MayWrite()
	}
	return s, err
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

// findMe says who I am. Nobody is ever guessed: where nothing says so, the error lists the members.
func (s *Scope) findMe() error {
	name, source := said(s.c)
	if name == "" {
		hint := "put --as NAME on the command; do not take a name that is not yours"
		if via := Via(s.c); via != "" {
			hint = "whoever set this up says who you are: atm " + via + " --as NAME, or ATM_AGENT in its environment"
		}
		return Usage("who are you? %s", listed(s.Names())).WithHint("%s", hint).WithCandidates(Strings(s.Names())...)
	}
	a, err := wire.ParseAddress(strings.TrimPrefix(name, "@"), s.Team.Name)
	if err != nil {
		return s.noAddress(name, err)
	}
	if a.Team != s.Team.Name || a.Host != "" {
		return Usage("%s says %s, the command team %q", source, a, s.Team.Name).WithHint("leave one out")
	}
	s.Me, err = s.Team.Member(a.Agent)
	s.MeSource = source
	if err == nil {
		keep(s.c, "as")
	}
	return err
}

// Place is what the flags and the environment say about where the root is.
func Place(c *cli.Context) rootdir.Place {
	p := rootdir.Place{Flag: c.String("root"), Env: os.Getenv("ATM_ROOT"), UID: os.Getuid()}
	p.Dir, _ = os.Getwd()
	if home, _ := os.UserHomeDir(); filepath.IsAbs(home) {
		p.Home, p.State = home, filepath.Join(home, ".local", "state", "atm")
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) { // else it is to be ignored, as its specification says
		p.State = filepath.Join(state, "atm")
	}
	return p
}

// StateFile is a file of this user's own that is about something in this root.
func (s *Scope) StateFile(kind, about, end string) (string, error) {
	dir := Place(s.c).State
	if dir == "" {
		return "", errors.New("this user has no home directory")
	}
	sum := sha256.Sum256([]byte(s.Root.Path + "\x00" + about))
	return filepath.Join(dir, kind, fmt.Sprintf("%x%s", sum[:8], end)), nil
}

func said(c *cli.Context) (name, source string) {
	if c.IsSet("as") {
		return c.String("as"), "--as"
	}
	return os.Getenv("ATM_AGENT"), "ATM_AGENT"
}

func (s *Scope) teamName() (wire.Name, error) {
	me, _ := said(s.c)
	_, ofMe, _ := strings.Cut(me, "@") // bob@main names the team as well
	given, env := s.c.String("team"), os.Getenv("ATM_TEAM")
	for _, by := range [][2]string{{"--team", given}, {"ATM_TEAM", env}, {"the identity", ofMe}} {
		if by[1] == "" {
			continue
		}
		s.TeamSource = by[0]
		team, err := wire.ParseName(by[1])
		if err != nil {
			err = Usage("%s: %v", by[0], err).WithHint("atm team ls lists the teams")
		}
		return team, err
	}
	all, err := s.Root.Teams()
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", NotFound("no team in %s", s.Root.Path).WithHint("atm init alice bob")
	case len(all) > 1:
		return "", Usage("which team? there are %s", Join(all)).
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

// Host is what this machine is called, as far as that is known: as team.toml says, or by its only key.
func (s *Scope) Host() wire.Name {
	if team, err := s.Team.Config(); err == nil && team.Bridge.Host != "" {
		return team.Bridge.Host
	}
	if own, err := s.Root.Keys.Own(); err == nil && len(own) == 1 {
		return own[0]
	}
	return ""
}

// Address is what a word says: agent, agent@team, agent@host, agent@team.host or @agent. A trusted host goes
// before a team of that name, and that before this machine.
func (s *Scope) Address(word string) (wire.Address, error) {
	a, err := wire.ParseAddress(strings.TrimPrefix(word, "@"), s.Team.Name)
	if err != nil {
		return a, s.noAddress(word, err)
	}
	if a.Host != "" {
		if a.Host == s.Host() {
			a.Host = ""
		}
		return a, nil
	}
	if !strings.Contains(word[1:], "@") {
		return a, nil
	}
	place := a.Team // a host, or a team
	hosts, err := s.Root.Keys.Hosts()
	if slices.Contains(hosts, place) {
		a.Team, a.Host = s.Team.Name, place
		return a, err
	}
	if _, noTeam := s.Root.Team(place); !errors.Is(noTeam, teams.ErrNoTeam) {
		return a, err
	}
	if place == s.Host() {
		a.Team = s.Team.Name
	} else if len(hosts) > 0 {
		err = &teams.UnknownHostError{Host: place, Hosts: hosts}
	}
	return a, err
}

func (s *Scope) noAddress(word string, err error) error {
	return Usage("%v", err).WithHint("%s", listed(s.Names())).withNearest(word, Strings(s.Names()))
}

// Writer is the address of somebody whose mail may be here: a member, a retired one too, or drop.
func (s *Scope) Writer(word string) (a wire.Address, err error) {
	if a, err = s.Address(word); err == nil && a.Agent != "drop" {
		_, err = s.Root.Mailbox(a)
	}
	if e, ok := errors.AsType[*teams.UnknownError](err); ok && e.Retired {
		err = nil
	}
	return a, err
}

// Addresses reads names, also several with commas between; all is everybody but me.
func (s *Scope) Addresses(names []string) (to []wire.Address, err error) {
	for name := range strings.SplitSeq(strings.Join(names, ","), ",") {
		name = strings.TrimSpace(name)
		if s.meansAll(name) {
			others, err := s.others()
			if err != nil {
				return nil, err // nobody is left out in silence
			}
			to = append(to, others...)
			continue
		}
		a, err := s.Address(name)
		if err != nil {
			return nil, err
		}
		to = append(to, a)
	}
	if len(to) == 0 {
		return nil, Usage("there is nobody but you in team %q", s.Team.Name).WithHint("atm team add NAME")
	}
	return to, nil
}

func (s *Scope) meansAll(name string) bool {
	all := []string{"all", "team", "everyone", "everybody", "*", "@all", "@everyone", "@everybody", "@here", "@channel"}
	return slices.Contains(all, strings.TrimSpace(name)) && !s.IsMember(name)
}

// HasAll reports whether everybody is among the names that Addresses reads.
func (s *Scope) HasAll(names []string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(names, ","), ","), s.meansAll)
}

func (s *Scope) others() (to []wire.Address, err error) {
	members, err := s.Team.Agents()
	if err != nil {
		return nil, err
	}
	for _, n := range members {
		isShared, _ := s.Team.Box(n).Shared() // a copy there would be a job
		if n != s.Me.Agent() && !isShared {
			to = append(to, wire.Address{Agent: n, Team: s.Team.Name})
		}
	}
	remote, err := s.Team.Rows()
	for _, r := range remote {
		for _, m := range r.Members {
			to = append(to, wire.Address{Agent: m.Name, Team: s.Team.Name, Host: r.Host})
		}
	}
	return to, err
}

// ToWhom is the error where nobody is named to write to.
func (s *Scope) ToWhom() *Error {
	return Usage("to whom? %s", listed(s.Names())).
		WithHint("atm send NAME \"text\"").WithCandidates(Strings(s.Names())...)
}

// Member is the mailbox that a word means, of a member on this machine.
func (s *Scope) Member(word string) (*mailbox.Box, error) {
	a, err := s.Address(word)
	if err == nil && a.Host != "" {
		err = Refused("%s is on another machine", s.Renderer().Who(a)).
			WithHint("there: %s %s; mail goes there: atm send %s \"…\"", s.c.Command.HelpName, a.Agent, s.Renderer().Who(a))
	}
	if err != nil {
		return nil, err
	}
	return s.Root.Mailbox(a)
}

// MemberOrMe is the mailbox that a word means, mine where there is none.
func (s *Scope) MemberOrMe(word string) (*mailbox.Box, error) {
	if word != "" {
		return s.Member(word)
	}
	var err error
	if s.Me == nil {
		err = s.findMe()
	}
	return s.Me, err
}

// Enter is MemberOrMe, and the scope's team is that member's from then on.
func (s *Scope) Enter(word string) (box *mailbox.Box, err error) {
	was := s.Team.Name
	if box, err = s.MemberOrMe(word); err == nil {
		s.Team, err = s.Root.Team(box.Address().Team)
	}
	if err == nil && s.Team.Name != was {
		s.c.App.Metadata["--team"] = string(s.Team.Name)
	}
	return box, err
}

// Interrupted is the error for a wait for what comes of a message; flag is what atm wait calls it.
func (s *Scope) Interrupted(flag string, id wire.ID) *Error {
	e := Failed("sent %s, but the wait was interrupted", id.Short(6)).WithHint("atm wait %s %s%s", flag, id.Short(6), s.Flags())
	e.Exit, e.Extra = ExitInterrupted, map[string]any{"id": id}
	return e
}

// listed are the members of a team, for an error.
func listed(members []wire.Name) string {
	if len(members) == 0 {
		return "there are no members yet: atm team add NAME"
	}
	return "members: " + Join(members)
}

// Names are the team's members.
func (s *Scope) Names() []wire.Name {
	names, _ := s.Team.Agents()
	return names
}

// IsMember reports whether a word is a member's name.
func (s *Scope) IsMember(word string) bool {
	return slices.Contains(s.Names(), wire.Name(strings.TrimPrefix(word, "@")))
}

// Find is the message that a fragment of an id means, and where it lies: in my mailbox, else in the team's.
func (s *Scope) Find(fragment string) (it *mailbox.Item, box *mailbox.Box, err error) {
	fragment = strings.TrimPrefix(fragment, "#")
	if _, bad := wire.ParseFragment(fragment); bad != nil && s.IsMember(fragment) {
		e := Usage("%q is a member, not the id of a message", fragment)
		if isShared, _ := s.Team.Box(wire.Name(fragment)).Shared(); isShared {
			return nil, nil, e.WithHint("atm take %s takes the next of its messages, atm ls %[1]s lists them", fragment)
		}
		const hint = "atm read --from %s, atm ls %[1]s, atm status %[1]s, atm screen %[1]s, atm send %[1]s \"…\""
		return nil, nil, e.WithHint(hint, fragment)
	} else if bad != nil {
		meant := HintFor(s.c.Command.Name + " " + fragment)
		return nil, nil, Usage("%v", bad).WithHint("%s", cmp.Or(meant, "atm read --last and atm ls --all show the ids"))
	}
	return s.Team.Find(s.Me, fragment)
}

// Digits is how many of an id's tell it from all others, for a command that is to be typed.
func (s *Scope) Digits(id wire.ID) int {
	_, _, err := s.Team.Find(s.Me, id.Short(6))
	if many, ok := errors.AsType[*teams.AmbiguousError](err); ok {
		return letter.ShortLength(many.Candidates)
	}
	return 6
}

// Search are the messages of the team that words mean, newest first.
func (s *Scope) Search(ctx context.Context, words []string) ([]*mailbox.Item, error) {
	query, err := parseQuery(words)
	if err != nil {
		return nil, Usage("%v", err).WithHint("atm search WORDS since:7d")
	}
	found, err := s.Team.Search(ctx, query)
	for _, name := range []string{query.From, query.To} {
		if _, unknown := s.Writer(name); name != "" && len(found) == 0 && err == nil {
			err = unknown
		}
	}
	return found, err
}

// parseQuery reads words, from:, to:, in:new|cur|done and since:, also several in quotes.
func parseQuery(words []string) (q teams.Query, err error) {
	for _, w := range strings.Fields(strings.Join(words, " ")) {
		key, value, _ := strings.Cut(w, ":")
		switch key {
		case "from":
			q.From = value
		case "to":
			q.To = value
		case "in":
			q.In = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '|' })
		case "since":
			if q.Since, err = Since(value); err != nil {
				return q, err
			}
		default:
			q.Words = append(q.Words, strings.ToLower(w))
		}
	}
	for _, in := range q.In {
		if in != "new" && in != "cur" && in != "done" {
			return q, fmt.Errorf("in:%s: new, cur or done", in)
		}
	}
	return q, nil
}

// Renderer shows messages as this terminal or pipe wants them.
func (s *Scope) Renderer() *letter.Renderer {
	return &letter.Renderer{Now: time.Now(), Team: s.Team.Name, Digits: 6, Terminal: Terminal(), Bold: Colour(), Runs: s.Team.Runs}
}

// keep keeps a flag that was given, and names what there is, for the commands in a hint.
func keep(c *cli.Context, flag string) {
	if c.IsSet(flag) {
		c.App.Metadata["--"+flag] = c.String(flag)
	}
}

// Flags are those of --root, --team and --as that were given, with a space in front, for a command to mean the same.
func (s *Scope) Flags() string { return flagsFor(s.c, "", "--root", "--team", "--as") }

// flagsFor are those of some flags that were given and do not stand in a text.
func flagsFor(c *cli.Context, text string, names ...string) (flags string) {
	if c == nil { // another program than a command's
		return ""
	}
	for _, name := range names {
		if value, ok := c.App.Metadata[name].(string); ok && !strings.Contains(text, name+" ") {
			flags += " " + name + " " + policy.Quote(value)
		}
	}
	return flags
}

var typedCommand = regexp.MustCompile("(^|[:;,|?] |or |and |then |`)atm [a-z-]+")

// Typed is a hint whose commands are about the same root and team as this one, and those that act as somebody about
// the same member. What is only spoken of ("bob has not called atm read") stays as it is.
func Typed(c *cli.Context, hint string) string {
	return typedCommand.ReplaceAllStringFunc(hint, func(found string) string {
		at := strings.LastIndex(found, " ")
		if slices.Contains(asMe, found[at+1:]) {
			found += flagsFor(c, hint, "--as")
		}
		return found[:at] + flagsFor(c, hint, "--root", "--team") + found[at:]
	})
}

var asMe = strings.Fields("send reply read ack ls unread withdraw wait take ask approve reject")

// Origin is the evidence that goes with what this process sends.
func (s *Scope) Origin() *wire.Origin {
	o := &wire.Origin{Via: cmp.Or(Via(s.c), "cli"), Run: os.Getenv("ATM_RUN")}
	if uid := os.Getuid(); uid >= 0 {
		o.UID = &uid
	}
	return o
}

// WarnUnaccepted says that this root was neither named, made nor accepted by this user: it may have come with a clone.
func (s *Scope) WarnUnaccepted() {
	if !s.Root.Accepted {
		Warn(s.c, "nobody here made or accepted %s; its mail may have come with a clone. If it is yours: atm init", s.Root.Path)
	}
}

// Person reports whether a person types this at a terminal of their own.
func Person() bool { return !InAgent() && term.IsTerminal(int(os.Stdin.Fd())) }

// AgentMarks are the variables that an agent's program sets for what it starts.
func AgentMarks() []string {
	return []string{"ATM_RUN", "CLAUDECODE", "CODEX_SANDBOX", "CODEX_THREAD_ID", "GEMINI_CLI", "OPENCODE"}
}

// InAgent reports whether an agent's program started this process.
func InAgent() bool {
	return slices.ContainsFunc(AgentMarks(), func(mark string) bool { return os.Getenv(mark) != "" })
}

// Strings are names, or ids, as strings.
func Strings[T ~string](names []T) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out
}

// Join is names, or ids, with commas between.
func Join[T ~string](names []T) string { return strings.Join(Strings(names), ", ") }
