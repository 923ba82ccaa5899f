package agentconfig

import (
	_ "embed"
	"path/filepath"
	"strings"
)

// opencodePlugin passes the events on that internal/hook understands, one after the other and none that
// says the same again, and puts the primer before the model of an agent that has a name. It fails open.
//
//go:embed opencode.js
var opencodePlugin string

// opencode is the plan for OpenCode (1.18): a plugin of our own. Rules of several files are put together, and
// {"bash":{…}} in one takes the place of "bash":"ask" in another, and would let everything through: so they are the
// user's to write. The last pattern that matches decides; "atm *>*" asks about redirections. A plugin can tell a model
// nothing but in the system prompt: mail is not handed over here.
//
// Sources: https://opencode.ai/docs/config, …/plugins, …/permissions; tried with 1.18.33.
func (p *Installer) opencode(r Request, local string) (edits []edit, notes []string) {
	dir := filepath.Join(p.userDir("XDG_CONFIG_HOME", ".config"), "opencode")
	if r.Local {
		dir = filepath.Join(local, ".opencode")
	}
	command, env := p.command(r.Agent, "hook", r.Tool), ""
	if r.Agent != "" {
		env = "    \"shell.env\": async (_, out) => { out.env.ATM_AGENT = " + quoted(r.Agent) + " },\n"
	}
	body := strings.NewReplacer("$COMMAND", quoted(command), "$ENV", env).Replace(opencodePlugin)
	rules := each(Verbs, func(verb string) string { return quoted("atm "+verb+" *") + `: "allow"` })
	said := "a plugin that runs " + shellLine(command)
	return []edit{ownFile(filepath.Join(dir, "plugins", "atm.js"), "//", r.Tool, body, said, "the plugin taken out")},
		[]string{`where "permission" of your opencode.json asks about "bash", let it run atm: "bash": {"*": "ask", ` + strings.Join(rules, ", ") + `, "atm *>*": "ask"}`}
}
