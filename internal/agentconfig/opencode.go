package agentconfig

import (
	_ "embed"
	"path/filepath"
	"strings"
)

// opencodePlugin passes on the events that internal/hook understands, one at a time and without repetitions, and adds
// the primer to the system prompt of an agent that has a name. It fails open.
//
//go:embed opencode.js
var opencodePlugin string

// opencode plans the configuration of OpenCode (1.18): a plugin of atm's own. The permission rules are left to the
// user: OpenCode merges those of several files, and {"bash":{…}} in one replaces "bash":"ask" in another, which would
// allow everything. The last matching pattern decides; "atm *>*" asks about redirections. A plugin can only add to the
// system prompt, so no mail is delivered here.
//
// Sources: https://opencode.ai/docs/config, …/plugins, …/permissions; tried with 1.18.33.
func (p *Installer) opencode(r Request, top string) (edits []edit, notes []string) {
	dir := p.path(r, top, ".opencode", "XDG_CONFIG_HOME", ".config", "opencode")
	command, env := p.command(r.Agent, "hook", r.Tool), ""
	if r.Agent != "" {
		env = "    \"shell.env\": async (_, out) => { out.env.ATM_AGENT = " + quoted(r.Agent) + " },\n"
	}
	body := strings.NewReplacer("$COMMAND", quoted(command), "$ENV", env).Replace(opencodePlugin)
	rules := each(Verbs, func(verb string) string { return quoted("atm "+verb+" *") + `: "allow"` })
	change := "a plugin that runs " + shellLine(command)
	return []edit{ownFile(filepath.Join(dir, "plugins", "atm.js"), "//", r.Tool, body, change, "plugin removed")},
		[]string{`if "permission" in your opencode.json asks about "bash", allow atm there: "bash": {"*": "ask", ` + strings.Join(rules, ", ") + `, "atm *>*": "ask"}`}
}
