package agentconfig

import (
	"regexp"
	"strings"
)

// servers says where each tool's configuration lists its MCP servers, and how an entry is written there: in a file of
// the user's, below the home or the directory that a variable names, or in a file of the project. Codex passes only the
// variables in env_vars on.
//
// Sources: https://code.claude.com/docs/en/mcp, https://developers.openai.com/codex/mcp, docs/tools/mcp-server.md
// in the package of Gemini CLI 0.61.0, https://opencode.ai/docs/mcp-servers; tried with the versions of the hooks.
var servers = map[string]struct{ variable, home, file, local, place, entry string }{
	"claude": {
		"CLAUDE_CONFIG_DIR", "", ".claude.json", ".mcp.json",
		"/mcpServers/atm", `{"type": "stdio", "command": $PROGRAM, "args": $ARGS}`,
	},
	"codex": {
		"CODEX_HOME", ".codex", "config.toml", ".codex/config.toml",
		"mcp_servers.atm", "$PROGRAM\nargs = $ARGS\nenv_vars = [\"ATM_AGENT\", \"ATM_ROOT\", \"ATM_TEAM\", \"ATM_RUN\"]",
	},
	"gemini": {
		"GEMINI_CLI_HOME", "", ".gemini/settings.json", ".gemini/settings.json",
		"/mcpServers/atm", `{"command": $PROGRAM, "args": $ARGS}`,
	},
	"opencode": {
		"XDG_CONFIG_HOME", ".config", "opencode/opencode.json", "opencode.json",
		"/mcp/atm", `{"type": "local", "command": $COMMAND}`,
	},
}

// server plans the entry that makes a tool start `atm mcp` as the server "atm". The server takes the agent's name from
// its environment, unless the entry has one.
func (p *Installer) server(r Request, top string) (e edit, notes []string) {
	words := p.command(r.Agent, "mcp")
	t := servers[r.Tool]
	path := p.path(r, top, t.local, t.variable, t.home, t.file)
	entry := strings.NewReplacer("$PROGRAM", quoted(words[0]), "$ARGS", quoted(words[1:]), "$COMMAND", quoted(words)).Replace(t.entry)
	change := "MCP server atm: " + shellLine(words)
	if r.Tool == "codex" {
		if r.Agent == "" {
			notes = []string{sharedServer}
		}
		return tomlFile(path, r.Tool, true, []tomlKey{{t.place, "command", words[0], entry, change}}), notes
	}
	// The beginning of a compact entry that starts `atm mcp`, wherever atm is.
	own := `"command":\[?"([^"]*[/\\])?atm(\.exe)?"(,"args":\[|,)"mcp"`
	if r.Local {
		own += `(,"--as","[^"]*")?`
	}
	if r.Tool == "claude" {
		notes = []string{`claude asks before each use of atm's tools until you allow "mcp__atm"`}
	}
	e = jsonFile(path, hookSet{}, []setting{{t.place, entry, change, regexp.MustCompile(own)}})
	e.isServer = true
	return e, notes
}
