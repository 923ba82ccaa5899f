package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/hook"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/ptyrun/runinfo"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/teams/rootdir"
)

// How long a hook may keep its tool waiting: for a lock, for the input, and for an input that it ignores.
const (
	hookLock  = 200 * time.Millisecond
	hookInput = time.Second
	hookDrain = 100 * time.Millisecond
)

var hookCommand = &cli.Command{
	Name: "hook", ArgsUsage: "TOOL [JSON…]", Usage: "called by an agent's hooks: records its events and hands it mail",
	Action: runHook,
}

// runHook returns errors as other verbs do; Report makes them fail open.
func runHook(c *cli.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // Go's exit code 2 would block the tool
			err = fmt.Errorf("hook: %v", p)
		}
	}()
	signal.Ignore(syscall.SIGPIPE) // cheaper than catching it; no child process inherits it
	tool, err := hook.ParseTool(c.Args().First())
	var s *command.Scope
	var isSecond bool
	if dir := tool.ProjectDir(os.Getenv); err == nil && dir != "" {
		err = os.Chdir(dir) // the hook runs where the agent has gone
	}
	read := sync.OnceValues(func() ([]byte, error) {
		if c.Args().Len() > 1 { // Codex's older form
			return []byte(c.Args().Get(1)), nil
		}
		return hook.ReadInput(os.Stdin, hookInput)
	})
	var program teams.Program
	if err == nil {
		var warning string
		if program, warning, err = findCaller(c, tool, read); warning != "" {
			return errors.Join(err, warnPerson(warning))
		}
	}
	if err == nil {
		s, isSecond, err = openForHook(c)
	}
	if s == nil {
		hook.ReadInput(os.Stdin, hookDrain) // to some tools a closed pipe is a failure
		return err
	}
	in, err := read()
	if err != nil {
		return err
	}
	if file := os.Getenv("CLAUDE_ENV_FILE"); file != "" && !isSecond { // when a session begins
		err = markShell(file, s)
	}
	var asks func(context.Context, *hook.Permission, func(hook.Verdict) error) error
	canAsk := runtime.GOOS != "windows"                                                    // where no kernel says whose process answers
	if canAsk && (tool == hook.OpenCode || os.Getenv("CLAUDE_CODE_ENTRYPOINT") == "cli") { // else it would keep claude -p, which nobody looks at
		asks = func(ctx context.Context, p *hook.Permission, give func(hook.Verdict) error) error {
			return askFor(ctx, s, tool, p, give)
		}
	}
	run, _ := runinfo.Read(s.Team.Dir(), s.Me.Agent())
	running, _ := s.Team.Running(s.Me.Agent())
	var wakes func() (may, isIdle bool)
	var opens []string
	// A script's claude -p would wait for such a hook, or lose what it says.
	if tool == hook.Claude && os.Getenv("CLAUDE_CODE_ENTRYPOINT") == "cli" && !running {
		wakes, opens = func() (bool, bool) { return s.Team.Wakes(s.Me.Agent()) }, []string{agents.WatchedInbox}
	}
	ended := sync.OnceValue(func() []string { return s.Team.EndedSessions(s.Me.Agent()) })
	exit, e := hook.Handle(c.Context, tool, in, hook.Options{
		Box: s.Me, Now: time.Now(), IsACP: run.Driver == "acp", IsSecond: isSecond, IsScript: isScript(tool), Flags: s.Flags(), Ask: asks,
		Stdout: os.Stdout, Stderr: os.Stderr,
		MayDeliver: func(m *mailbox.Item) bool { return s.Team.HoldReason(m.Message, s.Me.Agent()) == "" },
		State:      func() (*reducer.State, error) { return s.Team.State(s.Me.Agent()) },
		Wakes:      wakes,
		Arguments:  arguments,
		HasEnded:   func(session string) bool { return slices.Contains(ended(), session) },
		Begins: func(session hook.Session, isNew bool) string {
			if !running || isSecond { // a runner knows its own
				ended() // before those are forgotten
				if isNew && !isSecond {
					err = errors.Join(err, s.SavePolicy())
				}
				p := program
				p.Session, p.Mode, p.Entry, p.Flags = session.ID, session.Mode, os.Getenv("CLAUDE_CODE_ENTRYPOINT"), s.Flags()
				if session.HasPlugin {
					p.Opens = []string{agents.Plugin}
				} else if isNew {
					p.Opens = opens
				}
				err = errors.Join(err, s.Team.NoteProgram(s.Me.Agent(), p, isNew))
				if tool == hook.Codex && !isSecond {
					err = errors.Join(err, startFollower(s, session.ID))
				}
			}
			if !isNew {
				return ""
			}
			return s.Team.SharingWarning(s.Me.Agent(), program, !isSecond)
		},
		Ends: func() { s.Team.ForgetProgram(s.Me.Agent(), program) },
		Primer: func() string {
			text, err := primerText(s, true)
			if s.WarnUnaccepted(); err != nil || s.CheckAccepted() != nil {
				return ""
			}
			return text
		},
	})
	if exit != 0 {
		return failure.Exit(exit)
	}
	return errors.Join(err, e)
}

// arguments are the words that the program was started with, which runs this hook.
func arguments() []string {
	p, _ := process.Program()
	return process.Arguments(p.PID)
}

// scripts are the words with which a program answers one prompt, and ends.
var scripts = map[hook.Tool][]string{hook.Codex: {"exec", "e", "review"}, hook.Gemini: {"-p", "--prompt"}}

// isScript reports whether a script reads what the program prints, as far as the program or its command line says.
func isScript(tool hook.Tool) bool {
	if entry := os.Getenv("CLAUDE_CODE_ENTRYPOINT"); tool == hook.Claude {
		return entry != "" && entry != "cli"
	}
	return slices.ContainsFunc(arguments(), func(word string) bool { return slices.Contains(scripts[tool], word) })
}

// markShell adds command.ShellOf and the root to the variables that Claude Code sets for the commands of a session, but
// not for its hooks.
func markShell(file string, s *command.Scope) error {
	f, err := durable.OpenRegular(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "export %s=%s\nexport ATM_ROOT=%s\n", command.ShellOf, s.Me.Address(), policy.Quote(s.Root.Path))
	return cmp.Or(err, f.Close())
}

// openForHook opens the mailbox of the agent that --as or the environment names. It returns nil if the hook has nothing
// to do: without a name, outside of a team, and in a program that the agent itself started in its shell, such as
// claude -p: the mail is not for that one. isSecond says that atm runs the agent, and this is another program.
func openForHook(c *cli.Context) (s *command.Scope, isSecond bool, err error) {
	if c.String("as") == "" && os.Getenv("ATM_AGENT") == "" {
		return nil, false, nil
	}
	if !c.IsSet("lock-timeout") {
		c.Set("lock-timeout", hookLock.String())
	}
	s, err = command.OpenMe(c)
	if errors.Is(err, rootdir.ErrNoRoot) || errors.Is(err, teams.ErrNoTeam) {
		return nil, false, nil
	}
	if err == nil {
		err = s.Root.CheckNoted()
	}
	if err != nil || os.Getenv(command.ShellOf) == s.Me.Address().String() {
		return nil, false, err
	}
	err = s.MayWrite()
	if _, isRefused := errors.AsType[*failure.Error](err); isRefused {
		return s, true, nil
	}
	return s, false, err
}
