package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/agentconfig"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/hook"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

var installCommand = &cli.Command{
	Name: "install", ArgsUsage: "[TOOL]", Usage: "hooks for a coding agent, and permission to run atm",
	UsageText: "atm install claude\natm install codex --local --as bob\natm install gemini --mcp --dry-run",
	Description: "TOOL: claude, codex, gemini, opencode. Writes your own configuration of it, never a file\n" +
		"that a repository tracks; keeps what is there, and prints what it changed. Agents may then\n" +
		"read and send without being asked about it (for opencode it prints what to allow), and not\n" +
		"run, type, approve or stop.\n" +
		"--local with --as NAME: who the agent is here.",
	Flags: installFlags, Action: configure,
}

var uninstallCommand = &cli.Command{
	Name: "uninstall", ArgsUsage: "[TOOL]", Usage: "take out of a coding agent's configuration what install put there",
	UsageText:   "atm uninstall claude\natm uninstall codex --local",
	Description: "The files get back what was in them. What you changed since is kept.",
	Flags:       installFlags, Action: configure,
}

var installFlags = []cli.Flag{
	&cli.BoolFlag{Name: "local", Usage: "this worktree's own file, which git does not see"},
	&cli.BoolFlag{Name: "mcp", Usage: "only the entry that has it start atm mcp"},
	&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "print what would change, and write nothing"},
}

func configure(c *cli.Context) error {
	r, err := installRequest(c)
	if err != nil {
		return err
	}
	place := installPlace(c)
	found, _, err := rootdir.Find(command.Place(c))
	if err != nil && !errors.Is(err, rootdir.ErrNoRoot) {
		return err
	}
	if found.Accepted { // else no sandbox is opened for it
		place.Root = found.Path
	}
	if r.Agent != "" && place.Root != "" {
		if _, err := command.OpenMe(c); err != nil {
			return err
		}
	}
	if place.State != "" && !r.DryRun {
		lock, err := lockInstalls(c, place.State)
		if err != nil {
			return err
		}
		defer lock.Unlock()
	}
	do, nothing := place.Install, "nothing to change"
	if c.Command.Name == "uninstall" {
		do, nothing = place.Uninstall, "nothing of atm is there"
	}
	report, err := do(r)
	if err != nil {
		return explainInstall(err)
	}
	return printReport(c, r, report, nothing)
}

func installRequest(c *cli.Context) (agentconfig.Request, error) {
	tool := strings.TrimSuffix(strings.TrimSuffix(c.Args().First(), "-cli"), "-code") // claude-code
	r := agentconfig.Request{Tool: tool, Agent: c.String("as")}
	r.Local, r.DryRun, r.MCP = c.Bool("local"), c.Bool("dry-run"), c.Bool("mcp")
	if !slices.Contains(agentconfig.Tools, tool) {
		e := command.Usage("which tool? there are %s", command.Join(agentconfig.Tools)).
			WithHint("%s claude", c.Command.HelpName)
		if near, ok := command.Nearest(tool, agentconfig.Tools); ok {
			e.WithHint("did you mean %s?", near).WithCandidates(near)
		}
		return r, e
	}
	if !c.IsSet("as") {
		return r, nil
	}
	if !r.Local {
		return r, command.Usage("who an agent is belongs to one worktree, not to all that you do with %s", tool).
			WithHint("%s %s --local --as %s", c.Command.HelpName, tool, letter.Escape(r.Agent))
	}
	_, err := wire.ParseName(r.Agent)
	return r, err
}

func printReport(c *cli.Context, r agentconfig.Request, report *agentconfig.Report, nothing string) error {
	if c.Command.Name == "install" && r.Agent == "" && !r.MCP && len(report.Files) > 0 {
		command.Warn(c, "an agent has to be told who it is: ATM_AGENT=NAME %s, or atm run NAME -- %[1]s", r.Tool)
	}
	for _, note := range report.Notes {
		command.Warn(c, "%s", note)
	}
	verb, text := "changed", ""
	if report.DryRun {
		verb = "would change"
	}
	for _, f := range report.Files {
		text += fmt.Sprintf("%s %s\n", verb, letter.Escape(f.Path))
		for _, change := range f.Changes {
			text += fmt.Sprintf("  %s\n", letter.Escape(change))
		}
	}
	return command.PrintAs(c, report, cmp.Or(text, nothing))
}

// lockInstalls keeps others from editing the same files: all worktrees share an exclude file.
func lockInstalls(c *cli.Context, state string) (*lockfile.Lock, error) {
	if err := os.MkdirAll(filepath.Join(state, ".locks"), 0o700); err != nil {
		return nil, err
	}
	dir, err := durable.Open(state, nil)
	if err != nil {
		return nil, err
	}
	return lockfile.In(dir).Lock(c.Context, "install", lockfile.Exclusive, command.Duration(c, "lock-timeout"), nil)
}

// installPlace says what the surroundings are, but for the root.
func installPlace(c *cli.Context) agentconfig.Installer {
	at := command.Place(c)
	self, _ := os.Executable()
	return agentconfig.Installer{Home: at.Home, Dir: at.Dir, State: at.State, Self: self}
}

func explainInstall(err error) error {
	if errors.Is(err, agentconfig.ErrTracked) {
		return command.Failed("%w", err).WithHint("atm install writes no file that others share: try it with --local, or without")
	}
	if _, isPath := errors.AsType[*fs.PathError](err); isPath {
		return err
	}
	words := strings.ReplaceAll(strings.Join(os.Args[1:], " "), " --dry-run", "")
	return command.Failed("%w", err).WithHint("mend it, then try again: atm %s --dry-run", letter.Escape(words))
}

// What a hook waits for at most: its tool stands still meanwhile.
const (
	hookLock  = 200 * time.Millisecond
	hookInput = time.Second
	hookDrain = 100 * time.Millisecond // where nothing is made of it
)

var hookCommand = &cli.Command{
	Name: "hook", ArgsUsage: "TOOL [JSON…]", Usage: "what an agent's program calls: its events in, mail out",
	UsageText: "atm hook claude < event.json\natm hook codex-notify JSON",
	Description: "TOOL: claude, codex, gemini, opencode; atm install TOOL writes its configuration.\n" +
		"Reads the tool's JSON from stdin, appends the events it means, prints the answer.\n" +
		"Fails open: whatever goes wrong, one line on stderr, nothing on stdout, exit 0.",
	Action: runHook,
}

// runHook returns what went wrong; the app fails open with that.
func runHook(c *cli.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // Go's own exit code for it, 2, would block the tool
			err = fmt.Errorf("hook: %v", p)
		}
	}()
	signal.Ignore(syscall.SIGPIPE) // no program is started from here, and catching it would cost a thread
	tool, err := hook.ParseTool(c.Args().First())
	var s *command.Scope
	if err == nil {
		s, err = openForHook(c)
	}
	if s == nil {
		hook.ReadInput(os.Stdin, hookDrain) // a tool may take a closed pipe for a failure
		return err
	}
	var in []byte
	if c.Args().Len() > 1 { // Codex's older form
		in = []byte(c.Args().Get(1))
	} else if in, err = hook.ReadInput(os.Stdin, hookInput); err != nil {
		return err
	}
	exit, err := hook.Handle(c.Context, tool, in, hook.Options{
		Box: s.Me, Flags: s.Flags(), Stdout: os.Stdout, Stderr: os.Stderr,
		Runs:  s.Team.Runs,
		Pass:  func(m *mailbox.Item) bool { return s.Team.HoldReason(m.Message, s.Me.Agent()) == "" },
		State: func() (*reducer.State, error) { return s.Team.State(s.Me.Agent()) },
		Primer: func() string {
			text, _ := primerText(s, true)
			return text
		},
	})
	if exit != 0 {
		return command.Exit(exit)
	}
	return err
}

// openForHook opens the mailbox of the agent that the environment names. nil without an error: there is
// nothing to say outside of a team, where nobody is named, and where a runner speaks for the agent.
func openForHook(c *cli.Context) (*command.Scope, error) {
	if c.String("as") == "" && os.Getenv("ATM_AGENT") == "" {
		return nil, nil
	}
	if !c.IsSet("lock-timeout") {
		c.Set("lock-timeout", hookLock.String())
	}
	s, err := command.OpenMe(c)
	if errors.Is(err, rootdir.ErrNoRoot) || errors.Is(err, teams.ErrNoTeam) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !s.Root.Accepted {
		return nil, command.Refused("nobody here made or accepted %s; if it is yours: atm init", s.Root.Path)
	}
	var refused *command.Error
	if err = s.MayWrite(); errors.As(err, &refused) {
		return nil, nil
	}
	return s, err
}
