package agentconfig

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/agents/all"
)

// Hooks and the server are installed separately; uninstall removes both, in whatever order they came.
func TestHooksAndServer(t *testing.T) {
	for _, tool := range Tools() {
		for _, first := range []bool{false, true} {
			for _, isLocal := range []bool{false, true} {
				t.Run(fmt.Sprint(tool, first, isLocal), func(t *testing.T) {
					h := newSetup(t)
					h.git("repo", "init", "-q", ".")
					one, other := Request{Tool: tool, Local: isLocal, MCP: first}, Request{Tool: tool, Local: isLocal, MCP: !first}
					before := h.tree(".")
					h.install(one)
					h.install(other)
					if again := h.install(one); len(again.Files) > 0 {
						t.Errorf("again changes %v", again.Files)
					}
					dry := Request{Tool: tool, Local: isLocal, DryRun: true}
					both := h.tree(".")
					h.uninstall(dry)
					h.same("a dry run", both, h.tree("."))
					h.uninstall(Request{Tool: tool, Local: isLocal})
					h.same("uninstall of both", before, h.tree("."))
				})
			}
		}
	}
}

// An entry named atm that somebody else wrote, or that somebody has changed, stays.
func TestServerEntryOfOthers(t *testing.T) {
	for _, tool := range []string{"claude", "gemini", "opencode"} {
		h := newSetup(t)
		r := Request{Tool: tool, MCP: true}
		file := strings.TrimPrefix(h.install(r).Files[0].Path, h.dir)
		outer := strings.Split(all.Find(tool).MCP.At, "/")[1]
		theirs := `{"` + outer + `": {"atm": {"command": "/my/own/atm", "args": ["mcp", "--as", "zed"]}, "b": {}}}`
		h.write(file, theirs)
		if _, err := h.Install(r); err == nil || !strings.Contains(err.Error(), "already has its own "+outer+".atm: put {") {
			t.Error(err)
		}
		for range 2 {
			h.uninstall(Request{Tool: tool})
			if got := h.read(file); got != theirs {
				t.Error(got)
			}
		}
	}
}

// Uninstall ignores a file without atm's entry, whatever it looks like.
func TestUninstallPassesOver(t *testing.T) {
	h := newSetup(t)
	h.git("repo", "init", "-q", ".")
	h.write("repo/.mcp.json", "{}")
	h.git("repo", "add", ".mcp.json")
	h.write("home/.claude.json", "{ not JSON")
	before := h.tree(".")
	for _, isLocal := range []bool{false, true} {
		r := Request{Tool: "claude", Local: isLocal}
		h.install(r)
		h.uninstall(r)
		r.MCP = true
		if _, err := h.Install(r); err == nil {
			t.Error("it was written")
		}
	}
	h.same("uninstall", before, h.tree("."))
}
