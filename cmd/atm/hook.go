package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/hook"
	"github.com/agentteammail/atm/internal/outlet"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// What a hook waits for at most: its tool stands still meanwhile.
const (
	hookLock  = 200 * time.Millisecond
	hookInput = time.Second
	hookDrain = 100 * time.Millisecond // where nothing is made of it
)

var hookVerb = &cmdline.Verb{
	Name: "hook", Args: "TOOL", Summary: "what an agent's program calls: its events in, mail out",
	Examples: []string{"atm hook claude < event.json", "atm hook codex-notify JSON"},
	Notes: []string{
		"TOOL is claude, codex, gemini or opencode; atm install TOOL writes its configuration.",
		"Reads the tool's JSON from stdin, appends the events it means, prints the answer.",
		"Fails open: whatever goes wrong, one line on stderr, nothing on stdout, exit 0.",
	},
	MinArgs: 1, MaxArgs: -1, FailsOpen: true,
	Run: run(runHook),
}

func runHook(ctx context.Context, e *env) (err error) {
	defer func() {
		if p := recover(); p != nil { // Go's own exit code for it, 2, would block the tool
			err = fmt.Errorf("hook: %v", p)
		}
	}()
	tool, err := hook.ParseTool(e.Args[0])
	ok := false
	if err == nil {
		ok, err = e.hooked()
	}
	if !ok {
		hook.ReadInput(e.Stdin, hookDrain) // a tool may take a closed pipe for a failure
		return err
	}
	var in []byte
	if len(e.Args) > 1 { // Codex's older form
		in = []byte(e.Args[1])
	} else if in, err = hook.ReadInput(e.Stdin, hookInput); err != nil {
		return err
	}
	exit, err := hook.Handle(ctx, tool, in, hook.Options{
		Box: e.me, Turn: e.turnOf, Primer: e.hookPrimer, Flags: e.typed(),
		Pass:   func(m *wire.Message) bool { return e.team.HoldReason(m, e.me.Agent()) == "" },
		Stdout: quietPipe{e.Stdout}, Stderr: quietPipe{e.Stderr},
	})
	if exit != 0 {
		return &cmdline.Error{Exit: exit, Printed: true}
	}
	return err
}

// hooked reports whether a hook says something here: in a team, of an agent
// that the environment names and nobody else runs. An error tells why not,
// where that is no matter of course.
func (e *env) hooked() (bool, error) {
	name := e.asked()
	if name == "" {
		return false, nil
	}
	if ok, err := e.useFound(); !ok {
		return false, err
	}
	if !e.Given("lock-timeout") {
		e.root.LockTimeout = hookLock
	}
	team, err := e.teamName()
	if err != nil {
		return false, err
	}
	a, err := wire.ParseAddress(name, team)
	if err != nil {
		return false, err
	}
	if e.team, err = e.root.Team(team); err == nil && a.Team == team {
		e.me = e.team.Box(a.Agent)
		err = e.me.Present()
	}
	if errors.Is(err, teams.ErrNoTeam) || errors.Is(err, mailbox.ErrNoAgent) || a.Team != team {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Where it cannot be seen whose it is, that is said.
	var refused *cmdline.Error
	if err = e.mine(); errors.As(err, &refused) {
		return false, nil
	}
	return err == nil, err
}

// useFound is Find for a hook: outside of a team it is silent, and in a root
// that nobody accepted it does nothing.
func (e *env) useFound() (bool, error) {
	f, passed, err := teams.Find(e.place())
	var named *teams.NoRootError
	switch {
	case errors.Is(err, teams.ErrNoRoot) && !errors.As(err, &named):
		if len(passed) > 0 {
			return false, errors.New(passed[0])
		}
		return false, nil
	case err != nil:
		return false, err
	case !f.Accepted:
		return false, cmdline.Refused("nobody here made or accepted %s; if it is yours: atm init", f.Path)
	}
	err = e.use(f)
	return err == nil, err
}

// turnOf is what the events so far say about a session.
func (e *env) turnOf(session string) hook.Turn {
	if newest, err := e.me.Log().Newest(2); err == nil {
		if t, sure := hook.Rests(newest, session); sure {
			return t
		}
	}
	s, err := e.team.State(e.me.Agent())
	if err != nil {
		return hook.Turn{}
	}
	return hook.TurnOf(s, session)
}
func (e *env) hookPrimer() string {
	by := teams.Hooks
	if e.Getenv("ATM_RUN") != "" {
		by = teams.Runner
	}
	text, _ := e.team.Primer(e.me.Agent(), by, e.agentSource == "--as")
	return text
}

// quietPipe makes writing to a pipe that nobody reads an error.
type quietPipe struct{ *os.File }

func (q quietPipe) Write(p []byte) (int, error) {
	outlet.IgnoreSIGPIPE()
	return q.File.Write(p)
}
