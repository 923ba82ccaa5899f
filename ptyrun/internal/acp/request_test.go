//go:build linux || darwin

package acp

import (
	"fmt"
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/internal/policy"
)

// Rules match the kind of a call and the first word of its title, and know if it may run a command.
func TestNamesOfCalls(t *testing.T) {
	const command = `{"command":"git push"}`
	for _, c := range []struct {
		kind               acp.ToolKind
		title              string
		input              string
		tool, alias, asked string
		isCommand          bool
	}{
		{"execute", "Run: touch made.txt", "null", "execute", "Run", "touch made.txt", true},
		{"execute", "Bash: git push", command, "execute", "Bash", "git push", true},
		{"execute", "touch made.txt", "null", "execute", "touch", "touch made.txt", true},
		{"execute", "read x | curl y", "null", "execute", "read", "read x | curl y", true},
		{"execute", "Search it", command, "execute", "Search", "git push", true},
		{"edit", "Edit main.go", `{"path":"main.go"}`, "edit", "Edit", "Edit main.go", false},
		{"read", "cat x", command, "read", "cat", "git push", true},
		{"read", "git push", command, "read", "git", "git push", true},
		{"", "Bash ls", "null", "Bash", "", "Bash ls", true},
		{"", "read x | curl y", "null", "read", "", "read x | curl y", true},
		{"other", "mcp__x__y", "null", "mcp__x__y", "", "mcp__x__y", true},
		{"execute", "Run", `{"command":["bash","-lc","ls -l"]}`, "execute", "Run", "bash -lc 'ls -l'", true},
	} {
		a, q := &Agent{tools: map[acp.ToolCallId]*toolCall{}}, newQuestion("permission", "")
		u := callUpdate{ToolCallUpdate: acp.ToolCallUpdate{ToolCallId: "1", Kind: &c.kind, Title: &c.title}, RawInput: []byte(c.input)}
		q.describe(a.mergeCall(u))
		if d := q.request; d.Tool != c.tool || d.Alias != c.alias || d.Input != c.asked || d.Command != c.isCommand {
			t.Errorf("%s %q %v: %s|%s %v %q", c.kind, c.title, c.input, d.Tool, d.Alias, d.Command, d.Input)
		}
	}
}

// Who says yes has seen the command and the files of a call, and the title as a remark.
func TestQuestionShowsAll(t *testing.T) {
	at := func(paths ...string) (all []acp.ToolCallLocation) {
		for _, p := range paths {
			all = append(all, acp.ToolCallLocation{Path: p})
		}
		return all
	}
	many := make([]string, maxCallPaths+1)
	for i := range many {
		many[i] = fmt.Sprint("/w/", i)
	}
	for _, c := range []struct {
		kind         acp.ToolKind
		title, input string
		locations    []acp.ToolCallLocation
		want         string // "": it cannot be allowed
	}{
		{"execute", "Bash: git push", `{"command":"git push"}`, nil, "git push"},
		{"execute", "`git push`", `{"command":"git push"}`, nil, "git push"},
		{"execute", "Clean up", `{"command":"rm -rf x\ntrue"}`, at("/w"), "rm -rf x\ntrue\n# Clean up"},
		{"execute", "true # git\npush", `{"command":"git push"}`, nil, "git push\n# true # git push"},
		{"execute", "", `{"command":"git push"}`, nil, "git push"},
		{"edit", "Tidy", "null", at("/w/a.go", "/w/b c"), "/w/a.go\n'/w/b c'\n# Tidy"},
		{"edit", "Write /w/a.go", "null", at("/w/a.go"), "/w/a.go"},
		{"edit", "Tidy", `{"command":"insert"}`, at("/w/a.go"), "insert\n/w/a.go\n# Tidy"},
		{"delete", "Tidy", "null", at("/w/a.go"), "/w/a.go\n# Tidy"},
		{"move", "Tidy", "null", at("/w/a.go", "/w/b.go"), "/w/a.go\n/w/b.go\n# Tidy"},
		{"other", "rm -r x", "null", at("/w/a.go"), "rm -r x\n/w/a.go"},
		{"execute", "rm -r x", "null", at("/w/a.go"), "rm -r x"},
		{"read", "Read it", "null", at("/w/a.go"), "Read it"},
		{"edit", "Tidy", "null", at(many...), ""},
	} {
		a, q := &Agent{tools: map[acp.ToolCallId]*toolCall{}}, newQuestion("permission", "")
		u := callUpdate{ToolCallUpdate: acp.ToolCallUpdate{ToolCallId: "1", Kind: &c.kind, Title: &c.title, Locations: c.locations}, RawInput: []byte(c.input)}
		q.describe(a.mergeCall(u))
		if q.Cut != (c.want == "") || c.want != "" && q.Prompt != c.want || q.Cut && q.request.Tool != "" {
			t.Errorf("%s %q %v: cut %v, %q, not %q", c.kind, c.title, c.input, q.Cut, q.Prompt, c.want)
		}
	}
}

// Rules see every file. The title may only deny.
func TestRulesSeeFiles(t *testing.T) {
	rules := policy.Rules{
		{Tool: "edit(*prod*)", Decision: policy.Deny}, {Tool: "edit(/w/src/*)", Decision: policy.Allow}, {Tool: "edit(Edit *)", Decision: policy.Allow},
	}
	for _, c := range []struct {
		title string
		paths []string
		want  policy.Decision
	}{
		{"Edit it", []string{"/w/src/a", "/w/src/b"}, policy.Allow},
		{"Edit it", []string{"/w/src/a", "/etc/b"}, policy.Ask},
		{"Edit it", []string{"/etc/b", "/w/src/a"}, policy.Ask},
		{"Edit it", []string{"/etc/b", "/w/prod/b"}, policy.Deny},
		{"Edit prod", []string{"/w/src/a"}, policy.Deny},
		{"Edit it", nil, policy.Allow},
		{"Tidy", nil, policy.Ask},
	} {
		a, q := &Agent{Options: Options{Dir: "/w", Rules: rules}, realDir: "/w"}, newQuestion("permission", "")
		q.describe(&toolCall{kind: "edit", tool: "edit", title: c.title, paths: c.paths})
		if got := a.ruleFor(q); got != c.want {
			t.Errorf("%s %v: %s, not %s", c.title, c.paths, got, c.want)
		}
	}
}
