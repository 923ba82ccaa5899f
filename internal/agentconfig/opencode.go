package agentconfig

import (
	"cmp"
	_ "embed"
	"os"
	"path/filepath"
	"strings"
)

// opencode is the plan for OpenCode (1.18): a plugin of our own.
//
// Sources: https://opencode.ai/docs/config, …/plugins and …/permissions; how
// patterns match and files are put together, the program's bundle; tried with
// 1.18.33.
//
//   - The user's files are in opencode in XDG_CONFIG_HOME, else in ~/.config; a
//     project's in .opencode. Plugins are read from plugins/ in both, and all run.
//   - Where there is no rule for bash everything runs. Rules of several files are put
//     together, and {"bash":{…}} in one takes the place of "bash":"ask" in another,
//     and would let everything through: so they are the user's to write.
//   - The last pattern that matches decides. A command is judged together with its
//     redirections: "atm *>*" asks about those.
//   - A plugin's shell.env adds to the environment of commands. What it adds to the
//     system prompt is all that it can tell a model: mail is not handed over here, and
//     the primer says so.
func (p *Installer) opencode(r Request, local string) *plan {
	dir := filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(p.Home, ".config")), "opencode")
	if r.Local {
		dir = filepath.Join(local, ".opencode")
	}
	command := p.command(r.Tool, r.Agent)
	env := ""
	if r.Agent != "" {
		env = "    \"shell.env\": async (_, out) => { out.env.ATM_AGENT = " + quoted(r.Agent) + " },\n"
	}
	body := strings.NewReplacer("$COMMAND", quoted(command), "$ENV", env).Replace(opencodePlugin)
	rules := perVerb(func(verb string) string { return quoted("atm "+verb+" *") + `: "allow"` })
	return &plan{
		edits: []edit{blockEdit(filepath.Join(dir, "plugins", "atm.js"), "//", r.Tool, body, "a plugin that runs "+shellLine(command), "the plugin taken out")},
		notes: []string{`where "permission" of your opencode.json asks about "bash", let it run atm: "bash": {"*": "ask", ` + strings.Join(rules, ", ") + `, "atm *>*": "ask"}`},
	}
}

// opencodePlugin passes the events on that internal/hook understands, one after
// the other and none that says the same again, and puts the primer before the
// model of an agent that has a name. It fails open.
//
//go:embed opencode.js
var opencodePlugin string
