package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

// open opens the mailbox of the agent that a hook was called for. It returns nil if the hook has nothing to do.
func open(g *app.Given, o Options, read func() ([]byte, error)) (*call, error) {
	v := all.OfHook(o.Word)
	if v == nil {
		return nil, fmt.Errorf("no hook for %q; there are %s", wire.Clip(o.Word, 40), strings.Join(all.Names(), ", "))
	}
	if dir := os.Getenv(v.ProjectDir); dir != "" { // the hook runs where the agent has gone
		if err := os.Chdir(dir); err != nil {
			return nil, err
		}
	}
	program := sync.OnceValue(func() programs.Program { return programs.This(o.Word) })
	if v.Server != nil && os.Getenv("ATM_RUN") == "" {
		p, warning, err := findCaller(g, v, o.Word, read)
		if warning != "" {
			err = errors.Join(err, warnPerson(g.Out, warning))
		}
		if warning != "" || err != nil {
			return nil, err
		}
		program = func() programs.Program { return p }
	}
	s, isSecond, err := openMailbox(g)
	if s == nil {
		return nil, err
	}
	c := newCall(s, v, o, isSecond)
	c.program, c.err = program, err
	return c, nil
}

// openMailbox opens the mailbox of the agent that --as or the environment names. It returns nil if the hook has nothing
// to do: without a name, outside of a team, and in a program that the agent itself started in its shell, such as
// claude -p: the mail is not for that one. isSecond says that atm runs the agent, and this is another program.
func openMailbox(g *app.Given) (s *app.Scope, isSecond bool, err error) {
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

// findCaller returns the program whose hook this is, of a tool whose threads may share one server. That runs their hooks with the
// environment of whoever started it: then the thread says for whom this process acts (programs.MemberOfThread), and it
// acts for nobody if that cannot be told. warning is for the person then.
func findCaller(g *app.Given, v *agents.Vendor, word string, read func() ([]byte, error)) (p programs.Program, warning string, err error) {
	p = programs.This(word)
	found, _, err := rootdir.Find(g.Place())
	var root *teamdir.Root
	if err == nil {
		root, err = teamdir.OpenFound(found, notices.Tell)
	}
	if err != nil || !programs.InSharedServer(root) { // whoever opens the root for the member tells of the error
		return p, "", nil
	}
	in, err := read()
	if err != nil {
		return p, "", err
	}
	call, _, err := readObject(in)
	if err != nil {
		return p, "", err
	}
	thread := cmp.Or(call.Text("session_id"), call.Text("thread-id"))
	of, bound := programs.MemberOfThread(root, thread)
	hasEnded := call.Text("hook_event_name") == "SessionEnd" // a minute after its program
	if (bound.IsRunning() || hasEnded && bound.PID != 0) && (g.As == "" || g.As == string(of.Agent)) {
		actAs(of.String())
		return bound, "", nil
	}
	if hasEnded && g.As == "" { // of a thread that was nobody's
		actAs("")
		return p, "", nil
	}
	name, shows, names := programs.FindProgram(root, call.Text("cwd"), os.Getenv)
	if p = shows; p.PID == 0 { // the server, whose process this would be, shows nothing
		p.Tool = word
	}
	if g.As != "" {
		return p, "", nil
	}
	if call.Text("hook_event_name") == "SessionStart" {
		warning = unclear(v, names)
	}
	actAs(name)
	return p, warning, nil
}

// unclear says that a thread is nobody's, and what its person may do, unless that is clear from the names of the programs that
// may show it. Without any its server must have one.
func unclear(v *agents.Vendor, names []string) string {
	if len(names) == 1 || len(names) == 0 && os.Getenv("ATM_AGENT") == "" {
		return ""
	}
	text := "which member this session is cannot be told: all sessions of " + v.Name + " share one server"
	isNone := func(name string) bool { _, err := wire.ParseAddress(name, "main"); return err != nil }
	if names = slices.DeleteFunc(names, isNone); len(names) == 0 {
		return text + ". It gets no mail. To begin one under a name: ATM_AGENT=NAME " + strings.Join(v.Server.Unshared, " ")
	}
	slices.Sort(names)
	return text + ", and here it may be " + strings.Join(names, " or ") + ". It gets no mail until you type here: " +
		v.Server.Typed + "atm primer " + strings.Join(names, ", or "+v.Server.Typed+"atm primer ")
}

// actAs makes a member's name the one in this process's environment; "": none is.
func actAs(name string) {
	os.Setenv("ATM_AGENT", name)
	if strings.Contains(name, "@") {
		os.Unsetenv("ATM_TEAM")
	}
}

// tellPerson says, when a session begins, that the program has no name of its own, and so gets no mail.
func (c *call) tellPerson(input []byte) error {
	object, _, err := readObject(input)
	if err != nil || object.Text("hook_event_name") != "SessionStart" {
		return err
	}
	return warnPerson(c.scope.Given.Out, fmt.Sprintf("%s is a person, so this program gets no mail. To start it under a name of its own: ATM_AGENT=NAME %s",
		c.scope.Me.Agent(), c.Vendor.Name))
}
