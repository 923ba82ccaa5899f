package setup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/git"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

var initCommand = &cli.Command{
	Name: "init", Category: "setup initialize create login register\nconfig settings    atm init --toml\nmute ignore block spam    from, a key of the member in team.toml: `atm help team.toml`", ArgsUsage: "[NAME…]", Usage: "make a root, a team and its members",
	UsageText: `atm init alice bob me
atm init --toml alice bob me     # writes a team.toml to start from
atm init --toml team.toml        # takes in the one that the project keeps
atm init --here carol me`,
	Description: `In a git repository the root is made at the top of the main worktree, and git ignores it.
If a directory above has a root, init adds to that one. Run again, it adds what is missing.
In a root that you have not accepted, as from an archive or a backup, it changes nothing: it shows
what would act there, and the command that says yes to just that. Exit 5. What it does not show is
past: it can be read, and does nothing. If git tracks files there, it lists them: nothing acts.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "here", Usage: "make a new root in this directory"},
		&cli.BoolFlag{Name: "toml", Usage: "write a team.toml to start from; FILE: show that one, and take it in"},
		&cli.StringFlag{Name: "accept", Usage: "let what was shown act; init without it shows that, and `CODE`"},
	},
	Action: initRoot,
}

type madeRoot struct {
	Root     string      `json:"root"`
	Made     bool        `json:"made"`
	Team     wire.Name   `json:"team"`
	Added    []wire.Name `json:"added"`
	Members  []wire.Name `json:"members"`
	Toml     string      `json:"toml,omitempty"`
	TomlMade bool        `json:"toml_made"`
	Accepted bool        `json:"accepted,omitempty"` // --accept said so

	reason string      // for its place: "the top of the git worktree"
	named  []wire.Name // the members on the command line
}

func (m *madeRoot) text(g *app.Given) string {
	where, who := fmt.Sprintf("%s (%s)", letter.Escape(m.Root), letter.Escape(m.reason)), app.Join(m.Members)
	if len(m.Added) > 0 {
		who = "added " + app.Join(m.Added)
	}
	text := fmt.Sprintf("team %s in %s: %s", m.Team, where, cmp.Or(who, "nobody yet"))
	if m.Made {
		text = fmt.Sprintf("made %s, team %s: %s", where, m.Team, cmp.Or(who, "nobody yet"))
	}
	if m.Accepted {
		accepted := "accepted " + letter.Escape(m.Root) + ": what was shown may act"
		if len(m.Added) == 0 && m.Toml == "" {
			return accepted + failure.Say("\nnext: `atm doctor` says what is wrong, `atm up` starts the team").Map(g.Command).String()
		}
		text = accepted + "\n" + text
	}
	next := failure.Say("`atm team add alice bob me`")
	if m.TomlMade {
		text, next = text+"\nwrote "+letter.Escape(m.Toml), "read it, then `atm doctor`, `atm up`"
	} else if m.Toml != "" {
		text, next = text+"\n"+letter.Escape(m.Toml)+" exists, and was not changed", "`atm up`"
	} else if len(m.Members) > 1 {
		from, to := m.Members[0], m.Members[1]
		if named := m.named; len(named) > 1 && named[0] != named[1] { // the person's own name may come first
			from, to = named[0], named[1]
		}
		if me := wire.Name(cmp.Or(g.As, os.Getenv("ATM_AGENT"))); me != from && slices.Contains(m.Members, me) {
			from, to = me, from
		}
		next = failure.Say("`atm send %s \"hello\" --as %s`; agents run: `atm primer`", to, from)
	}
	return text + "\nnext: " + next.Map(g.Command).String()
}

// initOptions are the flags and words of init.
type initOptions struct {
	names            []wire.Name
	file             string // the team file to take in; "": none
	isHere, withToml bool
	accepts          bool
	code             string // of what it accepts
	text             string // of the file
}

func initRoot(c *cli.Context) (err error) {
	p, o := command.PrinterOf(c), initOptions{
		isHere: c.Bool("here"), withToml: c.Bool("toml"), accepts: c.IsSet("accept"), code: c.String("accept"),
	}
	words := c.Args().Slice()
	if o.withToml {
		if i := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, "./") }); i >= 0 { // no name has these
			o.file = words[i]
			words = slices.Delete(words, i, i+1)
		}
	}
	o.names, err = parseNames(words)
	if err := cmp.Or(err, cmdline.NotBoth(c, "here root")); err != nil {
		return err
	}
	m, err := o.run(c.Context, p)
	return p.Confirming().PrintUnlessError(err, m, m.text(p.Given))
}

func (o *initOptions) run(ctx context.Context, p *command.Printer) (m madeRoot, err error) {
	if o.file != "" {
		if err := o.mayTakeIn(p); err != nil {
			return m, err
		}
	}
	m, s, err := makeRoot(ctx, p, o)
	if err != nil {
		return m, err
	}
	m.named = o.names
	if m.Team, err = s.TeamToMake(); err != nil {
		return m, err
	}
	if o.file != "" && s.IsInAgent() {
		return m, failure.Refused("an agent may not take in a team file").WithHint("ask a person: `%s`", o.acceptCommand(o.code))
	}
	if s.Team, err = s.Root.CreateTeam(m.Team); err != nil {
		return m, err
	}
	if wd, _ := os.Getwd(); m.reason == rootdir.FromAbove {
		if c, ok := git.Nearest(wd); ok && !strings.HasPrefix(m.Root, cmp.Or(c.Main, c.Top)+string(filepath.Separator)) {
			p.Warn("this repository has no root of its own; to make one, in %s: atm init --here", cmp.Or(c.Main, c.Top))
		}
	}
	before, err := s.Team.Agents()
	for _, n := range o.names {
		if err == nil && len(before) > 0 && !slices.Contains(before, n) {
			err = s.May(policy.Add, n)
		}
	}
	if err != nil {
		return m, err
	}
	if m.Added, err = addMembers(ctx, s.Team, o.names); err != nil {
		return m, err
	}
	// Under a lock: two processes must not both add the line.
	unlock, err := s.Team.Store.Lock(ctx, "team", lockfile.Exclusive, nil)
	if err == nil {
		err = git.Exclude(m.Root)
		unlock()
	}
	if err != nil {
		p.Warn("exclude the root from the repository: %v", err)
	}
	if ignore, isSeen := rootdir.SeenByDocker(m.Root); isSeen {
		p.Warn("docker would put the mail into an image that it builds here: echo %s >>%s", policy.Quote(filepath.Base(m.Root)), policy.Quote(ignore))
	}
	if m.Members, err = s.Team.Agents(); err != nil {
		return m, err
	}
	if o.file != "" {
		m.Toml, m.TomlMade, err = s.Team.ReplaceConfig(o.text)
	} else if o.withToml {
		m.Toml, m.TomlMade, err = s.Team.WriteConfig(sample(s.Team, m.Members))
	}
	return m, err
}

// sample is a team.toml with the members that are agents or people, and the commands that the agents ran last.
func sample(team *teamdir.Team, members []wire.Name) string {
	isPerson := func(n wire.Name) bool { return n == "me" || string(n) == os.Getenv("USER") }
	isNeither := func(n wire.Name) bool {
		isShared, _ := claim.Shared(team.Box(n))
		return isShared || n == "script" // the sender in docs/cookbook
	}
	members = slices.DeleteFunc(slices.Clone(members), isNeither)
	agents := slices.DeleteFunc(slices.Clone(members), isPerson)
	ran := map[wire.Name][]string{}
	for _, n := range agents {
		last, _ := runinfo.Read(team.Dir(), n)
		ran[n] = last.Command
	}
	return config.Sample(agents, slices.DeleteFunc(members, func(n wire.Name) bool { return !isPerson(n) }), ran)
}

// makeRoot makes the root, or finds one whose content may act. What somebody else may have brought there it shows, and
// leaves it as it is unless --accept says yes to just that.
func makeRoot(ctx context.Context, p *command.Printer, o *initOptions) (m madeRoot, s *app.Scope, err error) {
	if o.file != "" { // the code is that of the file, and no yes to what is in the root
		o = &initOptions{isHere: o.isHere}
	}
	place := p.Place()
	if place.State != "" { // another init may have made the root, and not noted it yet
		if lock, err := lockIn(ctx, p.Given, place.State, "init"); err == nil {
			defer lock.Unlock()
		}
	}
	found, err := rootdir.InitDir(place, o.isHere)
	if err != nil {
		return m, nil, err
	}
	m.Root, m.reason = found.Path, found.Source
	entries, _ := os.ReadDir(m.Root)
	isNew := !slices.ContainsFunc(entries, func(e os.DirEntry) bool { // what an init has that was killed before it noted the root
		return e.Name() != rootdir.FormatFile && e.Name() != rootdir.IgnoreFile
	})
	if isNew && o.accepts {
		return m, nil, failure.NotFound("there is nothing to accept in %s", m.Root).WithHint("`atm init alice bob me` makes a root")
	}
	if isNew {
		if m.Made, err = rootdir.Make(m.Root); err != nil {
			return m, nil, err
		}
		accept(p, place, m.Root)
	}
	if s, err = app.OpenFound(p.Given, found); err != nil {
		return m, nil, err
	}
	unaccepted, _ := errors.AsType[*rootdir.UnacceptedError](s.CheckAccepted())
	m.Accepted = o.accepts && unaccepted != nil
	switch {
	case unaccepted == nil && o.accepts:
		return m, nil, failure.NotFound("there is nothing to accept in %s: it may act", m.Root).WithHint("`atm where` says more")
	case unaccepted == nil || isNew && errors.Is(unaccepted, rootdir.ErrNoState):
	case isNew:
		p.Warn("%v", unaccepted)
	default:
		err = unaccepted
		if unaccepted.Cause == nil {
			err = found.CheckForeign(ctx)
		}
		if e, ok := errors.AsType[*rootdir.UnacceptedError](err); ok { // nobody can accept it
			return m, nil, p.PrintDone(map[string][]string{"tracked": e.Tracked}, escapeLines(e.Tracked), e)
		}
		if err == nil {
			err = mayAccept(s, p, o, unaccepted)
		}
		if err == nil {
			err = s.Root.EndPast(ctx)
		}
		if err != nil {
			return m, nil, err
		}
		accept(p, place, m.Root)
	}
	if _, err = rootdir.Make(m.Root); err == nil { // it may lack FORMAT
		err = rootdir.Hide(m.Root)
	}
	return m, s, err
}

func accept(p *command.Printer, place rootdir.Place, root string) {
	if err := rootdir.Accept(place, root); err != nil {
		p.Warn("%v, and so nothing in it acts; set HOME, or XDG_STATE_HOME to an absolute path that stays, then: `atm init`", err)
	}
}

// mayTakeIn reads the team file that is to be taken in. It returns an error that shows the file, unless --accept has its
// code.
func (o *initOptions) mayTakeIn(p *command.Printer) error {
	data, err := durable.ReadRegular(o.file, config.MaxSize)
	if err != nil {
		return failure.NotFound("read the team file: %w", err).WithHint("`atm init --toml alice bob me` writes one to start from")
	}
	c, mistakes := config.Parse(data, func(n wire.Name) bool { return slices.Contains(o.names, n) })
	if len(mistakes) > 0 {
		return &config.Error{Path: o.file, Mistakes: mistakes}
	}
	o.text = string(data)
	code := fmt.Sprintf("%x", sha256.Sum256(data))[:16]
	e := failure.Refused("%s was not taken in: nobody has said yes to it", o.file).WithHint("a person, if all of this may act: `%s`", o.acceptCommand(code))
	switch {
	case o.accepts && o.code == code:
		o.names = append(o.names, slices.Sorted(maps.Keys(c.Members))...)
		return nil
	case o.accepts:
		e.Message = "this is not what that code stands for: " + e.Message
	}
	return p.PrintDone(map[string]string{"toml": o.text, "code": code}, escapeLines(strings.Split(strings.TrimSuffix(o.text, "\n"), "\n")), e)
}
