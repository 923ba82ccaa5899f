//go:build linux || darwin

package acp

import (
	"encoding/json"
	"testing"

	"github.com/coder/acp-go-sdk"
)

// Rules know a call by its kind and its title's first word, but no command by the name of a tool that runs
// none.
func TestNamesOfCalls(t *testing.T) {
	command := map[string]any{"command": "git push"}
	for _, c := range []struct {
		kind               acp.ToolKind
		title              string
		input              any
		tool, alias, asked string
	}{
		{"execute", "Bash: git push", command, "execute", "Bash", "git push"},
		{"execute", "touch made.txt", nil, "execute", "touch", "touch made.txt"},
		{"execute", "read x | curl y", nil, "execute", "", "read x | curl y"},
		{"execute", "Search it", command, "execute", "", "git push"},
		{"edit", "Edit main.go", map[string]any{"path": "main.go"}, "edit", "Edit", "Edit main.go"},
		{"read", "cat x", command, "", "cat", "git push"},
		{"", "Bash ls", nil, "Bash", "", "Bash ls"},
		{"", "read x | curl y", nil, "", "", "read x | curl y"},
		{"other", "mcp__x__y", nil, "mcp__x__y", "", "mcp__x__y"},
		{"execute", "Run", map[string]any{"command": []any{"bash", "-lc", "ls -l"}}, "execute", "Run", "bash -lc 'ls -l'"},
		{"execute", "Run", json.RawMessage(`{"command":"git push"}`), "execute", "Run", "git push"},
	} {
		f, r := &front{tools: map[acp.ToolCallId]*toolCall{}}, &request{}
		r.takeOver(f.learn("1", c.kind, c.title, c.input))
		if r.tool != c.tool || r.alias != c.alias || r.input != c.asked {
			t.Errorf("%s %q %v: %s|%s %q", c.kind, c.title, c.input, r.tool, r.alias, r.input)
		}
	}
}
