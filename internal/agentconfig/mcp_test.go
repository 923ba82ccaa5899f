package agentconfig

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Hooks and the server are installed and uninstalled separately; a plain uninstall removes both, in whatever order they
// came.
func TestHooksAndServer(t *testing.T) {
	for _, tool := range Tools {
		for _, first := range []bool{false, true} {
			for _, isLocal := range []bool{false, true} {
				t.Run(fmt.Sprint(tool, first, isLocal), func(t *testing.T) {
					h := newSetup(t)
					h.git("repo", "init", "-q", ".")
					one, other := Request{Tool: tool, Local: isLocal, MCP: first}, Request{Tool: tool, Local: isLocal, MCP: !first}
					before := h.tree(".")
					h.install(one)
					with := h.tree(".")
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
					if first { // --mcp removes only the entry
						return
					}
					h.install(one)
					h.install(other)
					h.uninstall(other)
					h.same("uninstall --mcp", with, h.tree("."))
					h.uninstall(Request{Tool: tool, Local: isLocal})
					h.same("uninstall of the rest", before, h.tree("."))
				})
			}
		}
	}
}

// An entry of atm's goes even if it was changed or there is no record of it.
func TestServerEntry(t *testing.T) {
	h := newSetup(t)
	const file, own = "home/.claude.json", `{"numStartups": 3, "mcpServers": {"b": {}}}`
	r := Request{Tool: "claude", MCP: true}
	h.write(file, own)
	h.install(r)
	changed := strings.Replace(h.read(file), `"numStartups": 3`, `"numStartups": 4`, 1)
	h.write(file, strings.Replace(changed, `"args": ["mcp"]`, `"args": ["mcp", "--as", "bob"], "env": {}`, 1))
	h.uninstall(r)
	if got := h.read(file); got != strings.Replace(own, "3", "4", 1) {
		t.Error(got)
	}
	h.install(r)
	if err := os.RemoveAll(h.State); err != nil {
		t.Fatal(err)
	}
	moved := strings.Replace(h.read(file), h.at("bin/atm"), "/old/atm", 1)
	h.write(file, moved)
	if h.install(r); !strings.Contains(h.read(file), h.at("bin/atm")) {
		t.Error(h.read(file))
	}
	if err := os.RemoveAll(h.State); err != nil {
		t.Fatal(err)
	}
	h.write(file, moved)
	h.uninstall(Request{Tool: "claude"})
	if got := h.read(file); strings.Contains(got, `"atm"`) || !strings.Contains(got, `"b"`) {
		t.Error(got)
	}
	if h.uninstall(r); !strings.Contains(h.read(file), `"b"`) {
		t.Error(h.read(file))
	}
}

// An entry named atm that somebody else wrote stays, also if it has replaced one of atm's.
func TestServerEntryOfOthers(t *testing.T) {
	for _, tool := range []string{"claude", "gemini", "opencode"} {
		for _, entry := range []string{
			`{"type": "stdio", "command": "other", "args": ["mcp"]}`,
			`{"command": "/my/own/atm", "args": ["mcp", "--as", "zed"]}`,
			`{"command": "atm", "args": ["mcp"], "env": {"X": "1"}}`,
			`{"type": "local", "command": ["/my/own/atm", "mcp"], "enabled": false}`,
			`{"url": "https://example.com"}`,
			`null`,
		} {
			t.Run(tool+entry, func(t *testing.T) {
				h := newSetup(t)
				r := Request{Tool: tool, MCP: true}
				file := strings.TrimPrefix(h.install(r).Files[0].Path, h.dir)
				ours := h.read(file)
				h.uninstall(r)
				outer := strings.Split(servers[tool].place, "/")[1]
				theirs := `{"` + outer + `": {"atm": ` + entry + `, "b": {}}}`
				h.write(file, theirs)
				h.uninstall(Request{Tool: tool})
				if _, err := h.Install(r); err == nil || !strings.Contains(err.Error(), "already has its own "+outer+".atm: put {") {
					t.Error(err)
				}
				h.uninstall(r)
				if got := h.read(file); got != theirs {
					t.Error(got)
				}
				if strings.Contains(entry, `atm"`) {
					return // there it would count as a changed one of atm's
				}
				if err := os.Remove(h.at(file)); err != nil {
					t.Fatal(err)
				}
				h.install(r)
				if got := h.read(file); got != ours {
					t.Error(got)
				}
				h.write(file, theirs)
				h.uninstall(r)
				if got := h.read(file); got != theirs {
					t.Error(got)
				}
			})
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
