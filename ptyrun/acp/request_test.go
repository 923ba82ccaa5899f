//go:build linux || darwin

package acp

import (
	"testing"

	"github.com/coder/acp-go-sdk"
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
