package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/outlet"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var runVerb = &cmdline.Verb{
	Name: "run", Args: "NAME [--] [CMD…]", Summary: "run a program in a terminal as that agent, its mail typed in",
	Examples: []string{"atm run bob -- claude", "atm run bob --detach -- codex", "atm run sh --driver plain -- bash"},
	Notes: []string{
		"This terminal is attached to it; Ctrl-\\ d leaves it running, closing the terminal",
		"ends it. No CMD: that of team.toml (docs/format.md), which is restarted on a crash.",
		"Exits with the program's code, 128+n for a signal.",
	},
	Flags: []cmdline.Flag{
		{Name: "detach", Usage: "return when it waits at its prompt, or say why not"},
		{Name: "driver", Kind: cmdline.String, Arg: "D", Usage: "auto, claude, codex, gemini, opencode or plain"},
		{Name: "inject", Kind: cmdline.String, Arg: "HOW", Usage: "body, pointer (one line that says atm read) or off"},
		{Name: "size", Kind: cmdline.String, Arg: "120x30", Usage: "of its terminal"},
		{Name: "cwd", Kind: cmdline.String, Arg: "DIR", Usage: "where it runs"},
		{Name: "env", Kind: cmdline.Pairs, Arg: "k=v", Usage: "in its environment"},
		{Name: "restart", Kind: cmdline.String, Arg: "WHEN", Usage: "never (for a CMD), on-crash (for team.toml's) or always"},
		{Name: "record-input", Usage: "record what is typed, too: it may hold secrets"},
		{Name: "leftovers", Kind: cmdline.String, Arg: "end|keep", Usage: "what a runner that was killed has left; end it (the default) or let it go on"},
	},
	MinArgs: 1, MaxArgs: -1, StopAfter: 1,
	Guesses: []string{"start", "spawn", "launch", "exec", "shell"},
	Run:     run(runAgent),
}

// runnerPipe, in the environment, says that this process is to be a runner and
// tells over which descriptor its parent hears of it.
const runnerPipe = "ATM_RUNNER_PIPE"

// plan is what is to be run.
type plan struct {
	box     *mailbox.Box
	command []string
	opt     ptyrun.Options
	keep    bool // what was left goes on
	policy  teams.Policy
}

func runAgent(ctx context.Context, e *env) error {
	if err := e.open(); err != nil {
		return err
	}
	if !e.root.Accepted {
		return cmdline.Refused("nothing is started from %s: nobody here made or accepted it", e.root.Path).WithHint("if it is yours: atm init")
	}
	name, err := wire.ParseName(e.Args[0])
	if err != nil {
		return cmdline.Usage("run: %v", err)
	}
	if err := e.mayAct("run", name); err != nil {
		return err
	}
	p, err := e.plan(ctx, name)
	if err != nil {
		return err
	}
	pipe := e.Getenv(runnerPipe)
	attached := term.IsTerminal(int(os.Stdin.Fd())) && e.terminal()
	switch {
	case pipe != "":
		return e.runDetached(ctx, p, pipe)
	case e.Bool("detach"):
		return e.launch(ctx, p)
	case attached:
		all, err := e.launchFor(ctx, p)
		if err != nil {
			return err
		}
		var said *cmdline.Error
		if err = e.attachOwner(ctx, p.box); err != nil && !(errors.As(err, &said) && said.Printed) {
			if over, ended := e.overAlready(p, all); over {
				return ended
			}
		}
		return err
	}
	e.Warn("%s runs here, with no terminal to show it: atm attach %s, atm play %s", name, name, name)
	return whileRunning(ctx, func(ctx context.Context) error { return e.runHere(ctx, p, func(news) {}) })
}

// plan makes of the command line and team.toml what is to be run.
func (e *env) plan(ctx context.Context, name wire.Name) (*plan, error) {
	toml, err := e.team.Plan()
	if err != nil {
		return nil, err
	}
	m := toml.Members[name]
	p := &plan{command: e.Args[1:]}
	restart := "never"
	if len(p.command) == 0 {
		p.command, restart = m.Command, "on-crash"
	}
	if running, err := e.team.Running(name); err == nil && running {
		return nil, cmdline.Refused("%s runs already", name).WithHint("atm attach %s joins it, atm stop %s ends it", name, name)
	}
	if len(p.command) == 0 {
		return nil, cmdline.Usage("run what? %s gives %s no command", filepath.Join(e.team.Dir().Path(), "team.toml"), name).WithHint("atm run %s -- claude", name)
	}
	if p.box, err = e.runnable(ctx, name); err != nil {
		return nil, err
	}
	o := &p.opt
	o.Box, o.Command = p.box, p.command
	o.Dir = e.String("cwd")
	if o.Dir == "" && m.Cwd != "" {
		o.Dir = m.Cwd
		if !filepath.IsAbs(o.Dir) {
			o.Dir = filepath.Join(filepath.Dir(e.root.Path), o.Dir)
		}
	}
	if o.Dir == "" {
		o.Dir, _ = os.Getwd()
	}
	if info, err := os.Stat(o.Dir); err != nil || !info.IsDir() {
		return nil, cmdline.Failed("run %s: %s is no directory", name, o.Dir)
	}
	choose := func(flag, toml, standard string, of ...string) string {
		v := e.String(flag)
		if v == "" {
			v = toml
		}
		if v == "" {
			v = standard
		}
		for _, w := range of {
			if v == w {
				return v
			}
		}
		if err == nil {
			err = cmdline.Usage("--%s is one of %s, not %q", flag, strings.Join(of, ", "), v)
		}
		return v
	}
	which := choose("driver", m.Driver, "auto", append([]string{"auto"}, driver.Names()...)...)
	o.Inject = ptyrun.Inject(choose("inject", m.Inject, "body", teams.Injects...))
	o.Restart = ptyrun.Restart(choose("restart", m.Restart, restart, teams.Restarts...))
	p.keep = choose("leftovers", "", "end", "end", "keep") == "keep"
	if err != nil {
		return nil, err
	}
	o.Auto = which == "auto"
	o.Driver = driver.ForCommand(p.command)
	if d, ok := driver.Named(which); ok {
		o.Driver = d
	}
	size := e.String("size")
	if size == "" {
		size = m.Size
	}
	if size == "" {
		size = "120x30"
	}
	if o.Cols, o.Rows, err = teams.ParseSize(size); err != nil {
		return nil, cmdline.Usage("--size: %v", err)
	}
	o.Input, o.Prompt = e.Bool("record-input"), m.Prompt
	o.Run = string(wire.NewID())
	o.Env = e.environment(p, m.Env)
	if _, err := lookPath(p.command[0], o.Dir, o.Env); err != nil {
		return nil, cmdline.Failed("run %s: %v", name, err).WithHint("atm run %s -- bash runs a shell", name)
	}
	policy, err := e.policy(name, toml.Policy())
	if err != nil {
		return nil, err
	}
	p.policy = policy
	o.May = func(pid int, by string) error { return policy.MayAnswer(name, wire.Name(by), e.ofAgent(pid)) }
	o.Decide = func(tool, input string) ptyrun.Decision {
		return ptyrun.Decision(policy.Decide(name, tool, input, false))
	}
	return p, nil
}

// policy is whose rules count: what team.toml says now, or where an agent starts
// another, what it said when a person did so last.
func (e *env) policy(name wire.Name, now teams.Policy) (teams.Policy, error) {
	if now.Lead == "" {
		lead, err := e.lead()
		if err != nil {
			return now, err
		}
		now.Lead = lead
	}
	if !e.inAgent() {
		return now, nil
	}
	kept, ok, err := e.team.KeptPolicy(name)
	if !ok {
		return now.Cautious(), err
	}
	return kept, nil
}

// runnable is the agent's mailbox: a new name is added and said, unless it is
// near one that is there.
func (e *env) runnable(ctx context.Context, name wire.Name) (*mailbox.Box, error) {
	box, err := e.team.Member(name)
	var unknown *teams.UnknownError
	if !errors.As(err, &unknown) || unknown.Retired {
		return box, err
	}
	if _, near := cmdline.Nearest(string(name), strs(unknown.Members)); near {
		return box, err
	}
	if _, err := addAll(ctx, e.team, []wire.Name{name}); err != nil {
		return nil, err
	}
	if !e.Quiet() {
		e.Warn("%s is new in team %s", name, e.team.Name)
	}
	return e.team.Member(name)
}

// environment is the agent's: ours, with who it is, and without what would make
// it take itself for part of another agent or terminal.
func (e *env) environment(p *plan, toml map[string]string) []string {
	set := map[string]string{
		"TERM": "xterm-256color", "COLORTERM": "truecolor",
		"ATM_ROOT": e.root.Path, "ATM_TEAM": string(e.team.Name), "ATM_AGENT": string(p.box.Agent()), "ATM_RUN": p.opt.Run,
	}
	for k, v := range toml {
		set[k] = v
	}
	for _, kv := range e.Pairs("env") {
		set[kv[0]] = kv[1]
	}
	var out []string
	for _, kv := range os.Environ() {
		k, _, _ := strings.Cut(kv, "=")
		if _, ours := set[k]; ours || foreign(k) {
			continue
		}
		out = append(out, kv)
	}
	for k, v := range set {
		out = append(out, k+"="+v)
	}
	return out
}

// ofAgent reports whether a process belongs to an agent, where the system shows
// that: by its environment, or by who started it.
func (e *env) ofAgent(pid int) bool {
	if pid <= 0 {
		return false
	}
	if _, ok := marked(pid); ok || e.team.RunBy(lineage(pid)) != "" {
		return true
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for _, kv := range bytes.Split(data, []byte{0}) {
		name, value, _ := bytes.Cut(kv, []byte{'='})
		if len(value) > 0 && slices.Contains(agentMarks, string(name)) {
			return true
		}
	}
	return false
}

// foreign reports whether a variable speaks of another agent or terminal.
func foreign(k string) bool {
	switch k {
	case "TMUX", "TMUX_PANE", "STY", "WINDOW", "COLUMNS", "LINES", runnerPipe, "TERM_PROGRAM", "TERM_PROGRAM_VERSION":
		return true
	}
	for _, m := range agentMarks {
		if k == m {
			return true
		}
	}
	return false
}

// lookPath finds a command as the agent's environment would.
func lookPath(command, dir string, environ []string) (string, error) {
	if strings.Contains(command, "/") {
		if !filepath.IsAbs(command) {
			command = filepath.Join(dir, command)
		}
		info, err := os.Stat(command)
		if err != nil {
			return "", fmt.Errorf("%s is not there", command)
		}
		if info.IsDir() || info.Mode()&0o111 == 0 {
			return "", fmt.Errorf("%s is no program", command)
		}
		return command, nil
	}
	for _, kv := range environ {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			for _, d := range filepath.SplitList(path) {
				if !filepath.IsAbs(d) {
					d = filepath.Join(dir, d)
				}
				if info, err := os.Stat(filepath.Join(d, command)); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
					return filepath.Join(d, command), nil
				}
			}
		}
	}
	return "", fmt.Errorf("no program %q on the PATH", command)
}

// news is what a runner tells who started it, a line of JSON each.
type news struct {
	Event  string   `json:"event"` // started, ready, asks, failed
	PID    int      `json:"pid,omitempty"`
	Detail string   `json:"detail,omitempty"`
	Tail   []string `json:"tail,omitempty"` // the last lines of the screen

	Exit    int    `json:"exit,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// whileRunning calls f with a context that a signal ends. Unlike interruptible
// it never cuts f short: to end an agent and all that it started takes some
// seconds, and what is left of it then is nobody's.
func whileRunning(ctx context.Context, f func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	outlet.IgnoreSIGPIPE()
	return f(ctx)
}

// runHere is the runner.
func (e *env) runHere(ctx context.Context, p *plan, tell func(news)) error {
	name := p.box.Agent()
	hold, err := p.box.Store().HoldRunner(ctx, name)
	if err != nil {
		return err
	}
	defer hold.Release()
	if err := e.leftovers(p, tell); err != nil {
		return err
	}
	if err := e.team.KeepPolicy(name, p.policy); err != nil {
		return err
	}
	state, err := e.team.State(name)
	if err != nil {
		return err
	}
	origin := &wire.Origin{Via: "runner", Run: p.opt.Run, UID: e.origin().UID}
	o := p.opt
	o.State = *state
	o.Held = hold.StillHeld
	o.Log = slog.New(slog.NewTextHandler(e.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	o.Started = func(pid int) { tell(news{Event: "started", PID: pid}) }
	o.Ready = func() { tell(news{Event: "ready"}) }
	o.Unsure = func() { tell(news{Event: "unsure"}) }
	o.Told = func(ctx context.Context, q ptyrun.Question) error {
		tell(news{Event: "asks", Detail: q.Dialog.Kind, Message: q.Dialog.Prompt})
		return e.team.TellLead(ctx, p.box, teams.Asked{
			ID: q.ID, Kind: q.Dialog.Kind, Prompt: q.Dialog.Prompt, Tool: q.Dialog.Tool, Input: q.Dialog.Input, Options: q.Options(),
		}, origin)
	}
	o.Answered = func(ctx context.Context, id wire.ID) error { return e.team.Untell(ctx, p.box, id) }
	o.Overdue = func(ctx context.Context, lead bool, ids []wire.ID) error {
		var errs []error
		for _, id := range ids {
			errs = append(errs, e.team.Overdue(ctx, p.box, lead, id, origin))
		}
		return errors.Join(errs...)
	}
	exit, err := ptyrun.Run(ctx, o)
	if err != nil {
		return err
	}
	if exit.Loop {
		return e.failedWith(exit.Tail, "%s crashes again and again", name)
	}
	if exit.Code != 0 && !exit.Asked {
		tell(news{Event: "failed", Exit: exit.Code, Detail: exit.Signal, Tail: exit.Tail})
		return &cmdline.Error{Exit: exit.Code, Printed: true, Message: fmt.Sprintf("%s ended with %d", name, exit.Code)}
	}
	tell(news{Event: "ended", Exit: exit.Code, Tail: exit.Tail})
	return nil
}

// leftovers names what a runner that was killed has left running, and ends it
// unless it is to go on.
func (e *env) leftovers(p *plan, tell func(news)) error {
	left, err := ptyrun.Leftovers(p.box)
	if err != nil || len(left.Processes) == 0 {
		return err
	}
	var named []string
	for _, q := range left.Processes {
		named = append(named, q.String())
	}
	say := "ended"
	if p.keep {
		p.opt.Kept = left.Runs
		say = "left running"
	} else if err := left.End(2 * time.Second); err != nil {
		return fmt.Errorf("end what the last runner of %s left (%s): %w", p.box.Agent(), strings.Join(named, ", "), err)
	}
	text := fmt.Sprintf("%s: what its last runner left was %s: %s", p.box.Agent(), say, strings.Join(named, ", "))
	tell(news{Event: "note", Message: text})
	if e.Getenv(runnerPipe) == "" {
		e.Warn("%s", text)
	}
	return nil
}

// runDetached is the runner as a process of its own, which tells its parent
// over a pipe how it goes.
func (e *env) runDetached(ctx context.Context, p *plan, pipe string) error {
	fd, err := strconv.Atoi(pipe)
	if err != nil {
		return cmdline.Usage("%s is no number", runnerPipe)
	}
	out := os.NewFile(uintptr(fd), "parent")
	defer out.Close()
	tell := func(n news) {
		line, _ := json.Marshal(n)
		out.Write(append(line, '\n')) // the parent may have gone: that is no error
	}
	err = whileRunning(ctx, func(ctx context.Context) error { return e.runHere(ctx, p, tell) })
	if err == nil {
		return nil
	}
	var said *cmdline.Error
	if errors.As(e.explain(err), &said) && !said.Printed {
		tell(news{Event: "refused", Exit: said.Exit, Code: said.Code, Message: said.Message, Hint: said.Hint})
	}
	return err
}

// start starts the runner as a process of its own, and returns when it has
// started its program, with what it tells from then on.
func (e *env) startRunner(p *plan) (<-chan news, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	dir := filepath.Join(p.box.Path(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		r.Close()
		return nil, err
	}
	logFile, err := os.OpenFile(filepath.Join(dir, "run.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		r.Close()
		return nil, err
	}
	defer logFile.Close()
	c := exec.Command(exe, os.Args[1:]...)
	c.Env = append(os.Environ(), runnerPipe+"=3", "ATM_ROOT="+e.root.Path, "ATM_TEAM="+string(e.team.Name))
	c.ExtraFiles = []*os.File{w}
	c.Stderr = logFile
	detached(c)
	if err := c.Start(); err != nil {
		r.Close()
		return nil, err
	}
	go c.Wait()
	out := make(chan news, 16)
	go func() {
		defer close(out)
		defer r.Close()
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadBytes('\n')
			var n news
			if len(line) > 0 && json.Unmarshal(line, &n) == nil {
				// Nobody may listen any more: the newest are kept, and the runner is
				// never kept waiting.
				select {
				case out <- n:
				default:
					select {
					case <-out:
					default:
					}
					out <- n
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return out, nil
}

// overAlready shows what a program wrote that had ended before this terminal
// could be attached to it, and gives its code.
func (e *env) overAlready(p *plan, all <-chan news) (over bool, ended error) {
	late := time.NewTimer(endSaid)
	defer late.Stop()
	for {
		var n news
		select {
		case got, ok := <-all:
			if !ok {
				return false, nil
			}
			n = got
		case <-late.C:
			return false, nil
		}
		switch n.Event {
		case "failed", "ended":
			for _, line := range n.Tail {
				fmt.Fprintln(e.Stdout, mailbox.Escape(line))
			}
			if n.Exit != 0 {
				ended = &cmdline.Error{Exit: n.Exit, Printed: true, Message: fmt.Sprintf("%s ended with %d", p.box.Agent(), n.Exit)}
			}
			return true, ended
		}
	}
}

// endSaid is how soon a runner that has ended says so.
const endSaid = time.Second

// launchFor starts a runner and returns when its program runs, with what it
// tells from then on.
func (e *env) launchFor(ctx context.Context, p *plan) (<-chan news, error) {
	all, err := e.startRunner(p)
	if err != nil {
		return nil, err
	}
	for {
		select {
		case n, ok := <-all:
			if !ok {
				return nil, cmdline.Failed("the runner of %s ended before it had started anything", p.box.Agent()).WithHint("atm run %s, without --detach and in a pipe, shows why", p.box.Agent())
			}
			switch n.Event {
			case "started":
				return all, nil
			case "note":
				e.Warn("%s", n.Message)
			case "refused":
				return nil, n.err()
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (n news) err() error {
	return &cmdline.Error{Exit: n.Exit, Code: n.Code, Message: n.Message, Hint: n.Hint}
}

// readyWithin is how long a program may take to its prompt.
const readyWithin = 60 * time.Second

// launch starts a runner and returns when the agent is ready, or says why it is
// not.
func (e *env) launch(ctx context.Context, p *plan) error {
	name := p.box.Agent()
	all, err := e.startRunner(p)
	if err != nil {
		return err
	}
	late := time.NewTimer(readyWithin)
	defer late.Stop()
	pid := 0
	done := func(state, detail string) error {
		if e.JSON() {
			return e.PrintJSON(map[string]any{"agent": name, "pid": pid, "state": state, "detail": detail})
		}
		if detail != "" {
			state += " (" + detail + ")"
		}
		return e.print("%s runs: %s, process %d; atm attach %s", name, state, pid, name)
	}
	for {
		select {
		case n, ok := <-all:
			if !ok {
				return cmdline.Failed("the runner of %s ended", name).WithHint("atm play %s", name)
			}
			switch n.Event {
			case "note":
				e.Warn("%s", n.Message)
			case "unsure":
				return done("no prompt that is known", "mail waits until there is one")
			case "started":
				pid = n.PID
			case "refused":
				return n.err()
			case "ready":
				return done("ready", "")
			case "asks":
				return cmdline.Failed("%s runs, and asks before it is ready (%s): %s", name, n.Detail, mailbox.Escape(firstLine(n.Message))).WithHint("atm attach %s", name)
			case "failed", "ended":
				return e.failedWith(n.Tail, "%s ended with %d before it was ready", name, n.Exit)
			}
		case <-late.C:
			return done("not at a prompt that is known", "mail waits until it is")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// failedWith is the failure of a program whose screen's last lines say why.
func (e *env) failedWith(tail []string, format string, args ...any) error {
	var said []string
	for _, line := range tail {
		if line = strings.TrimRight(line, " "); line != "" {
			said = append(said, line)
		}
	}
	err := cmdline.Failed(format, args...).WithHint("atm play %s shows all of it", e.Args[0])
	switch {
	case len(said) == 0:
		err.Message += ", without a word"
	case e.JSON():
		err.Extra = map[string]any{"tail": said}
	default:
		for _, line := range said[max(len(said)-5, 0):] {
			e.Warn("| %s", mailbox.Clip(mailbox.Escape(line), 200))
		}
	}
	return err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
