package teams

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// Sample is what a team.toml to start from speaks of.
type Sample struct {
	Agents  []wire.Name
	People  []wire.Name
	Others  []wire.Name // who write and read mail, and are not started here
	Command string      // the program that its agents run
	Trees   bool        // members can have git worktrees here
}

// Text is a team.toml with every key that there is: those that make these
// members run, and the others as comments behind a #, with the # before the
// key. It is in order as it stands, and with all of them taken in.
func (s Sample) Text() string {
	off := ""
	if len(s.Agents)+len(s.People)+len(s.Others) == 0 { // nobody yet: examples of members, too
		s.Agents, s.People, off = []wire.Name{"alice", "bob"}, []wire.Name{"me"}, "#"
	}
	var b strings.Builder
	line := func(mark, setting, why string) {
		fmt.Fprintf(&b, "%-28s # %s\n", mark+setting, why)
	}
	b.WriteString(`# The team: who is in it, how its agents are started, what they may do. atm up
# starts it, atm down stops it, atm team check names every mistake in this file,
# which atm never changes. A # right before a key can be taken away: those lines
# are examples, or say what is so without them.

`)
	if n := len(s.Agents); n > 0 {
		line("#", fmt.Sprintf("lead = %q", s.Agents[0]), "whom questions go to; absent: the member called lead")
	}
	if all := slices.Concat(s.People, s.Agents); len(all) > 0 {
		line("#", fmt.Sprintf("approvers = [%q]", all[0]), "who answers permission requests; absent: people, and the lead")
	}
	for _, n := range s.People {
		fmt.Fprintf(&b, "\n%s[members.%s]\n", off, n)
		line(off, "person = true", "shown as one; nothing is started")
	}
	for _, n := range s.Others {
		fmt.Fprintf(&b, "\n[members.%s]\n", n)
		line("#", fmt.Sprintf("command = [%q]", s.Command), "absent: nothing is started; with one it is an agent")
	}
	for i, n := range s.Agents {
		fmt.Fprintf(&b, "\n%s[members.%s]\n", off, n)
		line(off, fmt.Sprintf("command = [%q]", s.Command), "a program and its arguments; absent: started elsewhere")
		if i != min(1, len(s.Agents)-1) {
			continue // one of them shows what else there is
		}
		after := []wire.Name{}
		if i > 0 {
			after = s.Agents[:1]
		}
		line("#", `role = "coder"`, "what it is for; rules can be about a role")
		line("#", `cwd = "."`, "where it runs, from the directory that holds .atm")
		line("#", `env = { LANG = "C.UTF-8" }`, "in its environment")
		line("#", `driver = "auto"`, "how its screen is read: auto claude codex gemini opencode plain")
		line("#", `inject = "body"`, "how mail gets in: body, pointer (a line that says atm read), off")
		line("#", `restart = "on-crash"`, "never on-crash always")
		line("#", `size = "120x30"`, "of its terminal")
		line("#", `prompt = "Run atm primer."`, "typed once, when it first waits at its prompt")
		line("#", fmt.Sprintf("after = [%s]", quotedNames(after)), "started when these are ready")
		line("#", fmt.Sprintf("worktree = %t", s.Trees), fmt.Sprintf("true: a git worktree of its own, branch atm/%s", n))
	}
	b.WriteString("\n# What agents may do without asking: the first rule that fits; none: it is asked.\n#[[rules]]\n")
	if n := len(s.Agents); n > 0 {
		line("#", fmt.Sprintf("agent = %q", s.Agents[min(1, n-1)]), `or role = "coder"; absent: everybody`)
	}
	line("#", `tool = "Bash(git *)"`, "a tool's name, or name(pattern of what it does); * is every tool")
	line("#", `decision = "allow"`, "allow deny ask")
	b.WriteString("\n# Conversations with agents: atm session.\n#[session]\n")
	line("#", "enabled = true", "absent: false")
	line("#", `output_capture = "pipe"`, "what of the agent is shown: pipe (what it says) pty log")
	line("#", "allow_human_input = true", "false: nobody writes to the agent in a session")
	line("#", `auto_exit_on = "goal_complete"`, `what ends one; or "idle_timeout: 300s"`)
	line("#", `resume_cmd = "claude --resume {session_id}"`, "started by atm session resume")
	return b.String()
}

func quotedNames(names []wire.Name) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ", ")
}

// HasWorktrees reports whether a member whose cwd is not said could have one.
func (t *Team) HasWorktrees() bool {
	_, _, err := t.repositoryOf("")
	return err == nil
}

// WriteToml writes a team.toml unless there is one, whole or not at all, and
// reports whether it did, and where it lies.
func (t *Team) WriteToml(text string) (path string, made bool, err error) {
	path = t.Dir().Path() + "/" + rosterFile
	temp := "." + rosterFile + "." + string(wire.NewID()) + ".tmp"
	if err := t.Dir().Create(temp, []byte(text)); err != nil {
		return path, false, err
	}
	defer t.Dir().Remove(temp)
	if err = t.Dir().Link(temp, rosterFile); errors.Is(err, fs.ErrExist) {
		return path, false, nil
	}
	if err == nil {
		err = t.Dir().Sync(".")
	}
	return path, err == nil, err
}
