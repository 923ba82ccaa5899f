package setup

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/hook"
	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

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
	call, _, err := hook.ReadObject(in)
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

// warnPerson answers a hook with a text for the person.
func warnPerson(stdout io.Writer, text string) error {
	out, err := wire.Marshal(map[string]string{"systemMessage": "[atm] " + text})
	if err == nil {
		_, err = fmt.Fprintf(stdout, "%s\n", out)
	}
	return err
}
