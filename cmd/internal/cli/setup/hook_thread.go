package setup

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/hook"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

// findCaller returns the program whose hook this is. All threads of Codex share one server, which runs their hooks with the
// environment of whoever started it: then the thread says for whom this process acts (teams.Root.MemberOfThread), and it
// acts for nobody if that cannot be told. warning is for the person then.
func findCaller(c *cli.Context, tool hook.Tool, read func() ([]byte, error)) (p teams.Program, warning string, err error) {
	p = teams.ThisProgram(string(tool))
	if tool != hook.Codex && tool != hook.CodexNotify || os.Getenv("ATM_RUN") != "" {
		return p, "", nil
	}
	found, _, err := rootdir.Find(command.Given(c).Place())
	var root *teams.Root
	if err == nil {
		root, err = teams.OpenFound(found)
	}
	if err != nil || !root.InSharedServer() { // whoever opens the root for the member tells of the error
		return p, "", nil
	}
	in, err := read()
	if err != nil {
		return p, "", err
	}
	call, err := wire.ReadObject(bytes.ToValidUTF8(in, []byte("\ufffd")))
	if err != nil {
		return p, "", err
	}
	thread := cmp.Or(call.Text("session_id"), call.Text("thread-id"))
	of, bound, isBound := root.MemberOfThread(thread)
	if !isBound && call.Text("hook_event_name") == "SessionEnd" {
		of, bound, isBound = root.LastMemberOfThread(thread)
	}
	if isBound && (!c.IsSet("as") || c.String("as") == string(of.Agent)) {
		actAs(of.String())
		return bound, "", nil
	}
	isNew := call.Text("hook_event_name") == "SessionStart" && call.Text("source") != "resume"
	name, shows, names := root.FindProgram(thread, call.Text("cwd"), isNew, os.Getenv)
	if p = shows; p.PID == 0 { // the server, whose process this would be, shows nothing
		p.Tool = string(tool)
	}
	if c.IsSet("as") {
		return p, "", nil
	}
	isLost := len(names) > 1 || len(names) == 0 && os.Getenv("ATM_AGENT") != ""
	if actAs(name); isLost && call.Text("hook_event_name") == "SessionStart" {
		warning = "which member this session is cannot be told: all sessions of codex share one server"
		if names = slices.DeleteFunc(names, func(n string) bool { return n == "" }); len(names) > 0 {
			slices.Sort(names)
			warning += ", and here it may be " + strings.Join(names, " or ")
		}
		warning += ". It gets no mail. To begin one under a name: ATM_AGENT=NAME codex --no-daemon"
	}
	return p, warning, nil
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
