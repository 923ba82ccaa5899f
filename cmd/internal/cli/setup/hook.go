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
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/hook"
	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/edits"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/internal/teamdir/work"
	"github.com/agentteammail/atm/internal/tmux"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// How long a hook may keep its tool waiting: for a lock, also before it records what nothing else tells; and for more of
// the input.
const (
	hookLock     = 200 * time.Millisecond
	hookLongLock = 5 * time.Second
	hookInput    = time.Second
)

var hookCommand = &cli.Command{
	Name: "hook", ArgsUsage: "TOOL", Usage: "called by an agent's hooks: records its events and hands it mail",
	UsageText: `atm hook claude < event.json`,
	Description: `TOOL: claude, codex, gemini, opencode; atm install TOOL sets it up.
claude-status: for the statusLine in Claude Code's settings; prints nothing.
Reads the tool's JSON from stdin, appends its events, and prints the answer for the tool.
Fails open: whatever goes wrong, one line on stderr, nothing on stdout, exit 0.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "brought", Hidden: true}, // it is called by a hook that atm run brings
		&cli.BoolFlag{Name: "wake", Hidden: true},    // older settings of Claude Code have it: nothing is done
	},
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
	p := command.PrinterOf(c)
	hasRead := false
	defer func() {
		if !hasRead {
			hook.ReadInput(p.In, hookInput) // to some tools a closed pipe is a failure
		}
	}()
	isPatient := !c.IsSet("lock-timeout")
	if isPatient {
		p.LockTimeout = hookLock
	}
	if c.Bool("wake") || !c.Bool("brought") && all.IsBrought(c.Args().First(), os.Getenv, arguments) {
		return nil
	}
	h, err := openHook(p.Given, c.Args().First())
	if h == nil {
		return err
	}
	h.commands, h.isPatient = cmdline.LineOf(c).Program, isPatient
	in, err := h.read()
	if err != nil {
		return err
	}
	hasRead = true
	if s := h.scope; isPerson(s) {
		return errors.Join(h.err, h.tellPerson(in))
	}
	if file := os.Getenv(h.vendor.EnvFile); file != "" && !h.isSecond { // when a session begins
		h.err = errors.Join(h.err, markShell(file, h.scope))
	}
	exit, err := hook.Handle(c.Context, h.word, in, h.options())
	if exit != 0 {
		return failure.Exit(exit)
	}
	return errors.Join(h.err, err)
}

// isPerson reports whether the name of the scope is a person's: the name of their shell, in which they have started a program.
func isPerson(s *app.Scope) bool {
	c, _ := s.Team.Config() // doctor reports its mistakes
	return c.IsPerson(s.Me.Agent())
}

// tellPerson says, when a session begins, that the program has no name of its own, and so gets no mail.
func (h *hookCall) tellPerson(input []byte) error {
	call, _, err := hook.ReadObject(input)
	if err != nil || call.Text("hook_event_name") != "SessionStart" {
		return err
	}
	return warnPerson(h.scope.Given.Out, fmt.Sprintf("%s is a person, so this program gets no mail. To start it under a name of its own: ATM_AGENT=NAME %s",
		h.scope.Me.Agent(), h.vendor.Name))
}

// A hookCall is one call of a tool's hook, for the agent that it is for.
type hookCall struct {
	commands  *cli.App // what the primer explains
	word      string   // what it was called with
	vendor    *agents.Vendor
	scope     *app.Scope
	isSecond  bool                    // atm runs the agent, and this is another program
	isRunning bool                    // atm runs the agent
	isPatient bool                    // it waits longer for a lock where an event would be lost
	program   func() programs.Program // whose hook this is

	read  func() ([]byte, error) // the input
	ended func() []string        // see programs.EndedSessions
	err   error                  // what went wrong and changes no answer
}

// openHook opens the mailbox of the agent that a hook was called for. It returns nil if the hook has nothing to do.
func openHook(g *app.Given, word string) (*hookCall, error) {
	v := all.OfHook(word)
	if v == nil {
		return nil, fmt.Errorf("no hook for %q; there are %s", wire.Clip(word, 40), strings.Join(all.Names(), ", "))
	}
	if dir := os.Getenv(v.ProjectDir); dir != "" { // the hook runs where the agent has gone
		if err := os.Chdir(dir); err != nil {
			return nil, err
		}
	}
	h := &hookCall{word: word, vendor: v, read: sync.OnceValues(func() ([]byte, error) {
		return hook.ReadInput(g.In, hookInput)
	})}
	h.program = sync.OnceValue(func() programs.Program { return programs.This(word) })
	if v.Server != nil && os.Getenv("ATM_RUN") == "" {
		p, warning, err := findCaller(g, v, word, h.read)
		if warning != "" {
			err = errors.Join(err, warnPerson(g.Out, warning))
		}
		if warning != "" || err != nil {
			return nil, err
		}
		h.program = func() programs.Program { return p }
	}
	if h.scope, h.isSecond, h.err = openForHook(g); h.scope == nil {
		return nil, h.err
	}
	team, name := h.scope.Team, h.scope.Me.Agent()
	h.isRunning, _ = team.Running(name)
	h.ended = sync.OnceValue(func() []string { return programs.EndedSessions(team, name) })
	return h, nil
}

// options are what the hook's call needs from here.
func (h *hookCall) options() hook.Options {
	s, team, name, v := h.scope, h.scope.Team, h.scope.Me.Agent(), h.vendor
	run, _ := runinfo.Read(team.Dir(), name)
	o := hook.Options{
		Box: s.Me, Now: time.Now(), IsACP: run.Driver == "acp", IsSecond: h.isSecond, IsScript: v.IsScript != nil && v.IsScript(os.Getenv, arguments), IsTyped: h.isRunning && run.Inject != "body", Flags: s.Given.Flags("", "root", "team", "as"),
		Stdout: s.Given.Out, Stderr: s.Given.Err,
		MayDeliver: func() func(*wire.Item) bool {
			holds := team.Holds(name)
			return func(m *wire.Item) bool { return holds(m.Message) == (teamdir.Hold{}) }
		},
		State:     func() (*reducer.State, error) { return team.State(name) },
		Arguments: arguments,
		HasEnded:  func(session string) bool { return slices.Contains(h.ended(), session) },
		Begins:    h.begin,
		Ends: func() string {
			if p := h.program(); p.Server == "" || !p.IsRunning() { // else it shows another one: see programs.Ask
				programs.Forget(team, name, p)
			}
			return programs.OtherSession(team, name, h.program())
		},
		TakesContextAtStop: func() bool { return h.program().TakesContextAtStop() },
		Primer:             h.primer,
		Edited: func(ctx context.Context, path string) {
			h.err = errors.Join(h.err, edits.NoteEdit(ctx, team, s.Me, path, s.Origin()))
		},
	}
	if h.isPatient {
		o.Patient = func() { team.Store.LockTimeout = hookLongLock }
	}
	o.Dir, _ = os.Getwd() // see agents.Vendor.ProjectDir
	if os.Getenv(agents.Claims) == agents.Refuse {
		o.RefuseEdit = h.refuseEdit
	}
	if !h.isRunning && !h.isSecond { // else its runner does that
		o.Work = h.work
	}
	if h.mayAsk() {
		o.Ask = func(ctx context.Context, p *agents.Permission, give func(agents.Verdict) error) error {
			return waitForAnswer(ctx, s, v, h.isRunning, p, give)
		}
	}
	if !h.isRunning && !h.isSecond {
		o.Push = func(ctx context.Context) bool { return push.Unread(ctx, team, name).IsIn }
	}
	return o
}

// work has a member that team.toml has serve shared inboxes take the next message, or keep the one that it has.
func (h *hookCall) work(ctx context.Context, isFree bool) error {
	team, name := h.scope.Team, h.scope.Me.Agent()
	plan, err := team.Config()
	m := plan.Members[name]
	if err != nil || len(m.Serves) == 0 { // doctor reports the mistakes
		return nil
	}
	w := work.Taker{Team: team, Agent: name, From: m.Serves, Lease: m.LeaseTime(), Origin: h.scope.Origin()}
	return w.Look(ctx, isFree)
}

// mayAsk reports whether the hook may wait for an answer from elsewhere. On Windows no kernel says whose process answers.
func (h *hookCall) mayAsk() bool {
	return runtime.GOOS != "windows" && h.vendor.Decide != nil && (h.isRunning || h.vendor.Entry == "" || os.Getenv(h.vendor.Entry) == "cli")
}

// begin notes the program and its conversation when a session begins (isNew) or a turn does, and returns what to warn of.
func (h *hookCall) begin(session hook.Session, isNew bool) (warning string) {
	h.ended() // before those are forgotten
	isByHand := !h.isRunning && !h.isSecond
	if isByHand && isNew {
		h.err = errors.Join(h.err, h.scope.SavePolicy())
	}
	h.err = errors.Join(h.err, h.noteProgram(session, isNew))
	if !isNew {
		return ""
	}
	h.err = errors.Join(h.err, edits.PruneEdits(context.Background(), h.scope.Team))
	return app.SharingWarning(h.scope.Team, h.scope.Me.Agent(), h.program(), !h.isSecond)
}

func (h *hookCall) noteProgram(session hook.Session, isNew bool) error {
	p := h.program()
	p.Session, p.Mode, p.Entry, p.Flags = session.ID, session.Mode, os.Getenv(h.vendor.Entry), h.scope.Given.Flags("", "root", "team", "as")
	if h.isRunning && !h.isSecond {
		run, _ := runinfo.Read(h.scope.Team.Dir(), h.scope.Me.Agent())
		p.Run = run.Run
	} else if !h.isSecond && h.vendor.Server == nil { // a server runs its hooks in the pane that it was started in
		p.Pane = tmux.Of(p.PID, os.Getenv)
	}
	if session.HasPlugin {
		p.Opens = []string{agents.ByPlugin}
	}
	return programs.Note(h.scope.Team, h.scope.Me.Agent(), p, isNew)
}

// primer returns the text for the agent when its session begins; "": it may not act here.
func (h *hookCall) primer() string {
	text, err := primerText(h.commands, h.scope, true)
	if h.scope.WarnUnaccepted(); err != nil || h.scope.CheckAccepted() != nil {
		return ""
	}
	return text
}

// refuseEdit returns why the agent may not edit a file now; "": it may.
func (h *hookCall) refuseEdit(path string) string {
	team := h.scope.Team
	c, isClaimed := edits.ClaimedBy(team, path, h.scope.Me.Agent())
	if !isClaimed || h.scope.CheckAccepted() != nil {
		return ""
	}
	return fmt.Sprintf(`%s has claimed %s until %s. Do something else until then, or ask: atm send %s "…"%s`,
		c.By, letter.Quote(edits.ShownPath(team, c.Path), 300), letter.Stamp(c.Until), c.By, h.scope.Given.Flags("", "root", "team", "as"))
}

// arguments are the words that the program was started with, which runs this hook.
func arguments() []string {
	p, _ := process.Program()
	return process.Arguments(p.PID)
}

// markShell adds programs.ShellOf and the root to the variables that a program sets for the commands of a session, but
// not for its hooks.
func markShell(file string, s *app.Scope) error {
	f, err := durable.OpenRegular(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "export %s=%s\nexport ATM_ROOT=%s\n", programs.ShellOf, s.Me.Address(), policy.Quote(s.Root.Path))
	return cmp.Or(err, f.Close())
}

// openForHook opens the mailbox of the agent that --as or the environment names. It returns nil if the hook has nothing
// to do: without a name, outside of a team, and in a program that the agent itself started in its shell, such as
// claude -p: the mail is not for that one. isSecond says that atm runs the agent, and this is another program.
func openForHook(g *app.Given) (s *app.Scope, isSecond bool, err error) {
	if g.As == "" && os.Getenv("ATM_AGENT") == "" {
		return nil, false, nil
	}
	s, err = app.OpenMe(g)
	if errors.Is(err, rootdir.ErrNoRoot) || errors.Is(err, teamdir.ErrNoTeam) {
		return nil, false, nil
	}
	if err == nil {
		notices.TellKilled(context.Background(), s.Team)
		err = s.Root.WasNoted()
	}
	if err != nil {
		return nil, false, err
	}
	if of, _ := programs.MemberOfShell(s.Team, os.Getenv); of == s.Me.Address() {
		return nil, false, nil
	}
	err = s.MayWrite()
	if _, isRefused := errors.AsType[*failure.Error](err); isRefused {
		return s, true, nil
	}
	return s, false, err
}
