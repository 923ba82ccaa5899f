// Package setup has the verbs that make and show the root and its teams, connect the hooks of coding agents, and
// maintain the files.
package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/agentconfig"
	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/doctor"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/git"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

// Commands are the verbs of this group.
func Commands() []*cli.Command {
	return append(otherWords, []*cli.Command{
		initCommand, whereCommand, teamCommand, statusCommand, primerCommand,
		installCommand, uninstallCommand, hookCommand,
		doctorCommand, gcCommand, backupCommand, restoreCommand,
	}...)
}

// otherWords are what other programs call what the verbs here do.
var otherWords = []*cli.Command{
	cmdline.NoCommand("create", "a team: atm init NAME…; a member: atm team add NAME; a session: atm session new --agent NAME"),
	cmdline.NoCommand("setup", "a team: atm init NAME…; hooks of a coding agent: atm install TOOL"),
	cmdline.NoCommand("add join invite register add-agent add-member", "a member: atm team add NAME; another team: atm init --team TEAM NAME…"),
	cmdline.NoCommand("retire unregister kick leave", "atm team retire NAME"),
	cmdline.NoCommand("lead set-lead", "team.toml sets it: atm init --toml writes one to edit"),
	cmdline.NoCommand("rename", "names never change; atm team add NEW, atm team retire OLD"),
	cmdline.NoCommand("teams", "atm team ls lists the teams; atm team shows the members"),
	cmdline.NoCommand("ps top stats summary overview availability", "atm team shows who runs; atm team --watch repaints"),
	cmdline.NoCommand("info", "atm team, atm where, atm status NAME"),
	cmdline.NoCommand("state presence whois", "atm status NAME, atm team"),
	cmdline.NoCommand("set set-status report progress heartbeat", `atm event turn_started shows you as busy, turn_idle as idle; atm event status_update message="…" says what you are doing; no heartbeat is needed`),
	cmdline.NoCommand("config configure settings", "who you are: --as NAME, or export ATM_AGENT=NAME; the team: atm init --toml writes a team.toml to edit, atm doctor checks it; atm where shows what is in force"),
	cmdline.NoCommand("id identity who-am-i iam root", "atm where says who you are, and the root; --as NAME, or export ATM_AGENT=NAME"),
	cmdline.NoCommand("use login logout auth as su switch switch-client context contexts namespace", "put --as NAME on each command, or export ATM_AGENT=NAME; --team TEAM for another team"),
	cmdline.NoCommand("hooks plugin plugins", "atm install claude writes its hooks; also codex, gemini, opencode"),
	cmdline.NoCommand("archive", "atm gc moves what was read long ago to the archive; atm backup FILE copies everything"),
	cmdline.NoCommand("export dump snapshot", "atm backup FILE copies everything; atm ls --all --json prints messages"),
	cmdline.NoCommand("import load", "atm restore FILE"),
	cmdline.NoCommand("clean cleanup prune purge clear", "atm read reads new mail; atm gc --dry-run shows what is old"),
	cmdline.NoCommand("validate lint verify fix repair", "atm doctor"),
	cmdline.NoCommand("serve server daemon service", "atm needs no server; a browser: atm web; other programs: atm mcp, atm acp, atm bridge"),
	cmdline.NoCommand("gui browser", "atm web"),
	cmdline.NoCommand("ui dashboard", "atm tui, or atm team --watch"),
	cmdline.NoCommand("remote remotes sync host hosts peers connect", "the team on other machines: atm help bridge; an agent's terminal: atm attach NAME"),
	cmdline.NoCommand("tool tools", "each tool is a command here: atm help; an MCP client finds them in atm mcp --as NAME"),
	cmdline.NoCommand("upgrade", "go install github.com/agentteammail/atm/cmd/...@latest; what changed: CHANGELOG.md"),
	cmdline.NoCommand("keygen", "atm bridge keygen"),
	cmdline.NoCommand("commit diff merge rebase branch checkout clone stash blame pr issue repo workflow", `that is for git or gh; atm carries mail: atm send NAME "…", atm read`),
	cmdline.NoCommand("docs quickstart guide tutorial instructions explain example examples topics", "atm help, atm help VERB; agents run atm primer"),
}

var initCommand = &cli.Command{
	Name: "init", ArgsUsage: "[NAME…]", Usage: "make a root, a team and its members",
	UsageText: `atm init alice bob me
atm init --toml alice bob me
atm init --here carol`,
	Description: `In a git repository the root is made at the top of the main worktree, and git ignores it.
If a directory above has a root, init adds to that one. Run again, it adds what is missing.
In a root that you have not accepted, as from a clone, somebody's branch or a backup, it changes
nothing: it shows what would act there, and the command that says yes to just that. Exit 5.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "here", Usage: "make a new root in this directory"},
		&cli.BoolFlag{Name: "toml", Usage: "write a team.toml to start from, unless there is one"},
		&cli.StringFlag{Name: "accept", Usage: "let what is in a root act; init without it shows that, and `CODE`"},
		cmdline.NoFlag("name t", "another team: atm init --team TEAM NAME…"),
		cmdline.NoFlag("person role model command cmd lead", "team.toml sets it: atm init --toml writes one to edit"),
		cmdline.NoFlag("agent agents member members", "atm init NAME NAME"),
	},
	Action: initRoot,
}

var whereCommand = &cli.Command{
	Name: "where", Aliases: []string{"whoami", "pwd", "env"}, Usage: "show the root, team and agent in force, and the source of each",
	UsageText: "atm where",
	Action:    where,
}

var primerCommand = &cli.Command{
	Name: "primer", ArgsUsage: "[AGENT]", Usage: "what an agent needs to know",
	UsageText: "atm primer --as bob",
	Action:    primer,
}

type madeRoot struct {
	Root     string      `json:"root"`
	Made     bool        `json:"made"`
	Team     wire.Name   `json:"team"`
	Added    []wire.Name `json:"added"`
	Members  []wire.Name `json:"members"`
	Toml     string      `json:"toml,omitempty"`
	TomlMade bool        `json:"toml_made"`

	reason string      // for its place: "the top of the git worktree"
	named  []wire.Name // the members on the command line
}

func (m *madeRoot) text(c *cli.Context) string {
	where, who := fmt.Sprintf("%s (%s)", letter.Escape(m.Root), letter.Escape(m.reason)), app.Join(m.Members)
	if len(m.Added) > 0 {
		who = "added " + app.Join(m.Added)
	}
	text := fmt.Sprintf("team %s in %s: %s", m.Team, where, cmp.Or(who, "nobody yet"))
	if m.Made {
		text = fmt.Sprintf("made %s, team %s: %s", where, m.Team, cmp.Or(who, "nobody yet"))
	}
	next := "atm team add NAME --team " + string(m.Team)
	if m.TomlMade {
		text, next = text+"\nwrote "+letter.Escape(m.Toml), "read it, then atm doctor, atm up"
	} else if m.Toml != "" {
		text, next = text+"\n"+letter.Escape(m.Toml)+" exists, and was not changed", "atm up"
	} else if len(m.Members) > 1 {
		from, to := m.Members[0], m.Members[1]
		if named := m.named; len(named) > 1 && named[0] != named[1] { // the person's own name may come first
			from, to = named[0], named[1]
		}
		if me := wire.Name(cmp.Or(c.String("as"), os.Getenv("ATM_AGENT"))); me != from && slices.Contains(m.Members, me) {
			from, to = me, from
		}
		next = fmt.Sprintf("atm send %s \"hello\" --as %s; agents run: atm primer", to, from)
	}
	return text + "\nnext: " + command.Given(c).CompleteHint(next)
}

func initRoot(c *cli.Context) error {
	names, err := parseNames(c.Args().Slice())
	if err := cmp.Or(err, cmdline.NotBoth(c, "here root")); err != nil {
		return err
	}
	m, s, err := makeRoot(c)
	if err != nil {
		return err
	}
	m.named = names
	if m.Team, err = s.TeamToMake(); err != nil {
		return err
	}
	if s.Team, err = s.Root.CreateTeam(m.Team); err != nil {
		return err
	}
	before, err := s.Team.Agents()
	for _, n := range names {
		if err == nil && len(before) > 0 && !slices.Contains(before, n) {
			err = s.MayStop("add", n)
		}
	}
	if err != nil {
		return err
	}
	if m.Added, err = addMembers(c.Context, s.Team, names); err != nil {
		return err
	}
	// Exclusive: two processes must not both add the line.
	err = s.Team.Sessions().Exclusive(c.Context, func() error { return git.Exclude(m.Root) })
	if err != nil {
		command.PrinterOf(c).Warn("exclude the root from the repository: %v", err)
	}
	if ignore, isSeen := rootdir.SeenByDocker(m.Root); isSeen {
		command.PrinterOf(c).Warn("docker would put the mail into an image that it builds here: echo %s >>%s", policy.Quote(filepath.Base(m.Root)), policy.Quote(ignore))
	}
	if m.Members, err = s.Team.Agents(); err != nil {
		return err
	}
	if c.Bool("toml") {
		if m.Toml, m.TomlMade, err = s.Team.WriteConfig(sample(s.Team, m.Members)); err != nil {
			return err
		}
	}
	return command.PrinterOf(c).PrintAs(m, m.text(c))
}

// sample is a team.toml with the members that are agents or people.
func sample(team *teams.Team, members []wire.Name) string {
	isPerson := func(n wire.Name) bool { return n == "me" || string(n) == os.Getenv("USER") }
	isNeither := func(n wire.Name) bool {
		isShared, _ := team.Box(n).Shared()
		return isShared || n == "script" // the sender in docs/cookbook
	}
	members = slices.DeleteFunc(slices.Clone(members), isNeither)
	agents := slices.DeleteFunc(slices.Clone(members), isPerson)
	return config.Sample(agents, slices.DeleteFunc(members, func(n wire.Name) bool { return !isPerson(n) }))
}

// makeRoot makes the root, or finds one whose content may act. What somebody else may have brought there it shows, and
// leaves it as it is unless --accept says yes to just that.
func makeRoot(c *cli.Context) (m madeRoot, s *app.Scope, err error) {
	place := command.Given(c).Place()
	if place.State != "" { // another init may have made the root, and not noted it yet
		if lock, err := lockIn(c, place.State, "init"); err == nil {
			defer lock.Unlock()
		}
	}
	found, err := rootdir.InitDir(place, c.Bool("here"))
	if err != nil {
		return m, nil, err
	}
	m.Root, m.reason = found.Path, found.Source
	entries, _ := os.ReadDir(m.Root)
	isNew := len(entries) == 0
	if isNew && c.IsSet("accept") {
		return m, nil, failure.NotFound("there is nothing to accept in %s", m.Root).WithHint("atm init alice bob makes a root")
	}
	if isNew {
		if m.Made, err = rootdir.Make(m.Root); err != nil {
			return m, nil, err
		}
		accept(c, place, m.Root, "")
	}
	if s, err = app.OpenFound(command.Given(c), found); err != nil {
		return m, nil, err
	}
	content, tracked, unknown := found.Content(c.Context)
	unaccepted, _ := errors.AsType[*rootdir.UnacceptedError](s.CheckAccepted())
	switch {
	case unaccepted == nil || isNew && tracked.Count == 0 && unknown == nil:
	case isNew && unknown != nil:
		command.PrinterOf(c).Warn("%v", unknown)
	default:
		if err := mayAccept(c, s, unaccepted, tracked.Count, content); err != nil {
			return m, nil, err
		}
		accept(c, place, m.Root, content)
	}
	if !isNew {
		if _, err = rootdir.Make(m.Root); err == nil { // it may lack FORMAT
			err = rootdir.Hide(m.Root)
		}
	}
	return m, s, err
}

func accept(c *cli.Context, place rootdir.Place, root, content string) {
	if err := rootdir.Accept(place, root, content); err != nil {
		command.PrinterOf(c).Warn("%v; to have it accepted, name it: ATM_ROOT=%s", err, policy.Quote(root))
	}
}

// parseNames parses names, also several in a word with commas between.
func parseNames(words []string) (names []wire.Name, err error) {
	for _, word := range words {
		for part := range strings.SplitSeq(word, ",") {
			n, err := wire.ParseName(part)
			if err != nil {
				return nil, failure.Usage("%v", err).
					WithHint("a name has lower-case letters, digits and dashes, such as alice or reviewer-2")
			}
			names = append(names, n)
		}
	}
	return names, nil
}

// reserved are names that nobody gets any more, though a member that has one keeps it.
var reserved = []wire.Name{"team", "everyone", "everybody", "here", "channel"}

func addMembers(ctx context.Context, t *teams.Team, names []wire.Name) (added []wire.Name, err error) {
	added = []wire.Name{}
	for _, n := range names {
		if slices.Contains(reserved, n) && !t.IsAgent(n) {
			return added, failure.Usage("%q is no name: it would read as a word of atm", n).
				WithHint("another name; another team: atm init --team TEAM NAME…")
		}
	}
	for _, n := range names {
		if err := t.Create(ctx, n); err == nil {
			added = append(added, n)
		} else if !errors.Is(err, maildir.ErrExists) {
			return added, err
		}
	}
	return added, nil
}

func where(c *cli.Context) error {
	s, missing, err := app.OpenOptional(command.Given(c))
	if s == nil {
		return err
	}
	document := map[string]map[string]string{"root": {"path": s.Root.Path, "source": s.Root.Source}, "team": nil, "agent": nil}
	team, agent := "none", "none: put --as NAME on the command, or set ATM_AGENT"
	if s.Team != nil {
		document["team"] = map[string]string{"name": string(s.Team.Name), "source": s.TeamSource}
		team = fmt.Sprintf("%s (%s)", s.Team.Name, s.TeamSource)
	} else if missing != nil {
		team += ": " + letter.Escape(missing.Message)
	}
	if name, source := command.Given(c).Identity(); name != "" {
		about := source
		if s.Me != nil {
			name = string(s.Me.Agent())
		} else if s.Team != nil {
			about += "; not a member"
		}
		document["agent"] = map[string]string{"name": name, "source": source}
		agent = fmt.Sprintf("%s (%s)", letter.Escape(name), about)
	}
	text := fmt.Sprintf("root   %s (%s)\nteam   %s\nagent  %s", letter.Escape(s.Root.Path), letter.Escape(s.Root.Source), team, agent)
	return command.PrinterOf(c).PrintDone(document, text, err)
}

func primer(c *cli.Context) error {
	if c.Args().Present() {
		c.Set("as", c.Args().First())
	}
	s, missing, err := app.OpenOptional(command.Given(c))
	if err == nil && s.Team == nil {
		err = missing
	}
	if err != nil {
		return err
	}
	s.WarnUnaccepted()
	text, err := primerText(s, false)
	if s.Me != nil && s.IsInAgent() { // OpenCode's hooks have no other way to say it
		own := teams.ThisProgram("")
		if _, shows, ok := s.Root.MemberOfThread(os.Getenv(teams.ThreadVariable)); ok {
			own.PID = shows.PID
		}
		if warning := app.SharingWarning(s.Team, s.Me.Agent(), own, s.MayWrite() == nil); warning != "" {
			text = "Careful: " + warning + "\n\n" + text
		}
	}
	return command.PrinterOf(c).PrintUnlessError(err, map[string]string{"primer": text}, text)
}

func primerText(s *app.Scope, inHook bool) (string, error) {
	if s.Me == nil {
		return s.Primer("", "", false)
	}
	by := ""
	if m, err := s.Team.Summary(s.Me.Agent()); err == nil && m.Running && m.Inject != "off" {
		by = "runner"
	} else if s.Team.ReachesIdle(s.Me.Agent()) {
		by = "push"
	} else if inHook || m.HasHooks() {
		by = "hooks"
	}
	return s.Primer(s.Me.Agent(), by, s.MeSource == "--as")
}

var doctorCommand = &cli.Command{
	Name: "doctor", Aliases: []string{"fsck", "health"}, Usage: "check everything, and name the command that fixes it",
	UsageText: `atm doctor
atm doctor --fix`,
	Description: `Checks the root, team.toml line by line, locks, disk, stray files, runners and hooks.
Exits 1 if something is wrong.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "fix", Aliases: []string{"repair"}, Usage: "fix what can be fixed without loss"},
	},
	Action: command.With(app.OpenRoot, runDoctor),
}

func runDoctor(c *cli.Context, s *app.Scope, p *command.Printer) error {
	ctx, stop := app.Interruptible(c.Context)
	defer stop()
	checks := append(doctor.Examine(ctx, s.Root, p.Place(), c.Bool("fix")), checkHooks(newInstaller(c))...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text := ""
	for i := range checks {
		checks[i].Fix = p.CompleteHint(checks[i].Fix)
		text += checks[i].Severity + ": " + letter.Escape(checks[i].Message) + "\n"
		if checks[i].Fix != "" {
			text += "  " + letter.Escape(checks[i].Fix) + "\n"
		}
	}
	isWrong := slices.ContainsFunc(checks, doctor.Check.IsProblem)
	if !isWrong {
		text += "nothing is wrong"
	}
	if err := p.PrintAs(map[string]any{"checks": checks}, text); err != nil || !isWrong {
		return err
	}
	return failure.Exit(failure.ExitFailed)
}

// checkHooks checks the hooks that atm install wrote.
func checkHooks(installer agentconfig.Installer) (checks []doctor.Check) {
	for _, tool := range agentconfig.Tools {
		for _, flag := range []string{"", " --local"} {
			damage, byHand, err := installer.Damage(tool, flag != "")
			if err == nil && damage != "" {
				fix := "atm install " + tool + flag
				if byHand {
					fix = "change that, then: " + fix
				}
				checks = append(checks, doctor.Check{Code: "hooks." + tool, Severity: "warning", Message: damage, Fix: fix})
			}
		}
	}
	return checks
}
