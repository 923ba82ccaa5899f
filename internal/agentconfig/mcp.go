package agentconfig

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tailscale/hujson"
)

// A tool starts `atm mcp` as a server called atm, under the name that the shell it runs in gives it. Codex
// hands on only the variables that it is told to.
const (
	claudeServer   = `{"type": "stdio", "command": $PROGRAM, "args": $ARGS}`
	geminiServer   = `{"command": $PROGRAM, "args": $ARGS}`
	openCodeServer = `{"type": "local", "command": $COMMAND}`
	codexServer    = "$PROGRAM\nargs = $ARGS\nenv_vars = [\"ATM_AGENT\", \"ATM_ROOT\", \"ATM_TEAM\", \"ATM_RUN\"]"
)

// server is the plan for the entry of a tool that has it start `atm mcp`, in the file where that tool looks
// for it.
//
// Sources: https://code.claude.com/docs/en/mcp, https://developers.openai.com/codex/mcp, docs/tools/mcp-server.md
// in the package of Gemini CLI 0.61.0, https://opencode.ai/docs/mcp-servers; tried with the versions of the hooks.
func (p *Installer) server(r Request, local string) *plan {
	words := []string{p.program(), "mcp"}
	if r.Agent != "" {
		words = append(words, "--as", r.Agent)
	}
	entry := strings.NewReplacer("$PROGRAM", quoted(words[0]), "$ARGS", quoted(words[1:]), "$COMMAND", quoted(words))
	said := "an MCP server, atm: " + shellLine(words)
	pl := &plan{}
	add := func(home, name, inProject, place, form string) {
		path := filepath.Join(home, name)
		if r.Local {
			path = filepath.Join(local, inProject)
		}
		pl.edits = []edit{serverEdit(path, place, entry.Replace(form), said)}
		if r.Tool == "codex" {
			pl.edits = []edit{tomlFile(path, r.label(), []tomlKey{{place, "command", words[0], entry.Replace(form), said}})}
		}
	}
	switch r.Tool {
	case "claude":
		add(cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), p.Home), ".claude.json", ".mcp.json", "/mcpServers/atm", claudeServer)
		pl.notes = []string{`claude asks before it uses a tool of atm, until you allow "mcp__atm"`}
	case "codex":
		add(cmp.Or(os.Getenv("CODEX_HOME"), filepath.Join(p.Home, ".codex")), "config.toml", ".codex/config.toml", "mcp_servers.atm", codexServer)
	case "gemini":
		add(cmp.Or(os.Getenv("GEMINI_CLI_HOME"), p.Home), ".gemini/settings.json", ".gemini/settings.json", "/mcpServers/atm", geminiServer)
	case "opencode":
		add(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(p.Home, ".config")), "opencode/opencode.json", "opencode.json", "/mcp/atm", openCodeServer)
	}
	return pl
}

// serverEdit makes an entry of a JSON file the one wanted, or takes it out; one that was there before us comes
// back then.
func serverEdit(path, place, entry, said string) edit {
	// An entry that starts `atm mcp`, as minimal writes it, whatever else a tool has added to it.
	ownServer := regexp.MustCompile(`"command":\[?"([^"]*[/\\])?atm(\.exe)?"(,"args":\[|,)"mcp"`)
	return edit{path, func(f *file) error {
		root, err := parseJSON(f.after)
		if err != nil {
			return f.notUnderstood(err)
		}
		want, err := hujson.Parse([]byte(entry))
		if err != nil {
			return err
		}
		e, before, is := &jsonEdit{file: f, root: root}, root.Pack(), root.Find(place)
		if f.record != nil {
			e.original, _ = parseJSON(f.record.Original)
		}
		isOurs := is != nil && ownServer.MatchString(minimal(*is))
		switch was := e.originally(place); {
		case !f.isRemoval && (is == nil || minimal(*is) != minimal(want)):
			err = put(root, place, entry)
			f.say("%s", said)
		case f.isRemoval && isOurs && was != nil && !ownServer.MatchString(minimal(*was)):
			is.Value = was.Value
			f.say("the MCP server atm is the one that was there before")
		case f.isRemoval && isOurs:
			remove(root, place)
			outer, _ := around(place)
			e.prune(outer)
			f.say("the MCP server atm taken out")
		}
		if after := root.Pack(); !bytes.Equal(before, after) {
			f.after = after
		}
		return err
	}}
}
