package agentconfig

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

func (p *Installer) opencodeHome() string {
	if dir := p.getenv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "opencode")
	}
	return filepath.Join(p.Home, ".config", "opencode")
}

// opencode is the plan for OpenCode (1.18): a plugin of our own, and rules in
// opencode.json(c).
//
// Sources: https://opencode.ai/docs/config, …/plugins and …/permissions; how
// patterns match and files are put together, the program's bundle; tried with
// 1.18.33.
//
//   - The user's files are in opencode in XDG_CONFIG_HOME, else in ~/.config; a
//     project's in .opencode. Plugins are read from plugins/ in both, and all
//     run. There are no sandboxes.
//   - Every opencode.json and opencode.jsonc counts, comments and a comma too
//     many allowed; objects are put together, and the last one's strings win.
//     So {"bash":{…}} in a project takes the place of "bash":"ask" of the
//     user's, and would let everything through: the string is carried over as
//     "*".
//   - The last pattern that matches decides. "atm send *" is "atm send", alone
//     or with a blank and more behind it. Each command of a line is judged on
//     its own, together with its redirections: "atm *>*" asks about those, where
//     other commands are asked about.
//   - Where there is no rule for bash everything runs, and where it is "allow"
//     as well; "deny" is somebody's decision, and stays.
//   - A plugin's shell.env adds to the environment of commands. What it adds to
//     the system prompt is all that it can tell a model: mail is not handed
//     over here, and the primer says so.
func (p *Installer) opencode(r Request, local string) *plan {
	dir := p.opencodeHome()
	if r.Local {
		dir = filepath.Join(local, ".opencode")
	}
	path := filepath.Join(dir, "plugins", "atm.js")
	before := pluginCommand(path)
	command := p.command(r, before)
	body := strings.Replace(opencodePlugin, "$COMMAND", quoted(command), 1)
	_, agent := splitCommand(shellLine(command))
	env := ""
	if agent != "" {
		env = "    \"shell.env\": async (_, out) => { out.env.ATM_AGENT = " + quoted(agent) + " },\n"
	}
	body = strings.Replace(body, "$ENV", env, 1)
	plugin := blockEdit(path, "//", r.Tool, body, "a plugin that runs "+shellLine(command), "the plugin taken out")
	file := opencodeConfig(dir)
	known := append(perVerb(entry("allow", "permission", "bash", "atm %s *")), entry("ask", "permission", "bash", askRedirected))
	config := newJSONEdit(file, r.Tool, looseJSON, known, func(e *jsonEdit) error {
		return e.allowInOpencode(p.opencodeBelow(r, local, file))
	})
	return &plan{edits: []edit{plugin, config}, command: before}
}

// opencodeConfig is the file of a directory that rules belong into: the one
// that has rules, else the one that is there.
func opencodeConfig(dir string) string {
	there := ""
	for _, name := range []string{"opencode.jsonc", "opencode.json"} {
		path := filepath.Join(dir, name)
		if find(readJSON(path), "permission") != nil {
			return path
		}
		if _, err := os.Lstat(path); err == nil && there == "" {
			there = path
		}
	}
	if there == "" {
		return filepath.Join(dir, "opencode.json")
	}
	return there
}

// defaults are what the files below another one say of commands that no rule
// names.
type defaults struct {
	all  string // "permission": "ask"
	bash string // "permission": {"bash": "ask"}
}

// read takes in one more file, which counts for more than those before.
func (d *defaults) read(root *hujson.Value) {
	permission := find(root, "permission")
	if permission == nil {
		return
	}
	if s := str(permission); s != "" {
		*d = defaults{all: s}
		return
	}
	d.all = "" // an object takes the place of a string
	if bash := find(permission, "bash"); bash != nil {
		d.bash = str(bash)
	}
}

// opencodeBelow is what the files say that config is put on top of.
func (p *Installer) opencodeBelow(r Request, local, config string) (d defaults) {
	home := p.opencodeHome()
	paths := []string{filepath.Join(home, "config.json"), filepath.Join(home, "opencode.json"), filepath.Join(home, "opencode.jsonc")}
	if r.Local {
		dir := filepath.Join(local, ".opencode")
		paths = append(paths, p.getenv("OPENCODE_CONFIG"), filepath.Join(local, "opencode.json"), filepath.Join(local, "opencode.jsonc"),
			filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc"))
	}
	for _, path := range paths {
		if path == config {
			break // those after it count for more than it does
		}
		d.read(readJSON(path))
	}
	return d
}

// askRedirected takes back what the rules for the verbs would let through with
// them: a file written with what a colleague said.
const askRedirected = "atm *>*"

func (e *jsonEdit) allowInOpencode(d defaults) error {
	d.read(e.root)
	said := d.bash
	if said == "" {
		said = d.all
	}
	switch said {
	case "allow":
		e.note("opencode asks about no command here: %s needs no rules for atm", e.path)
		return nil
	case "deny":
		e.note("opencode may run no commands here, by a rule of yours; atm is no exception")
		return nil
	}
	if e.info == nil {
		if _, err := e.setString("https://opencode.ai/config.json", "$schema"); err != nil {
			return err
		}
	}
	if err := e.widen(d.all, "permission"); err != nil {
		return err
	}
	if err := e.widen(d.bash, "permission", "bash"); err != nil {
		return err
	}
	var added []string
	for _, rule := range perVerb("atm %s *") {
		if find(e.root, "permission", "bash", rule) != nil {
			continue // allowed, or somebody's decision
		}
		if _, err := e.setString("allow", "permission", "bash", rule); err != nil {
			return err
		}
		added = append(added, rule)
	}
	e.sayVerbs(added)
	// Where nothing is asked about, redirections are not either.
	asks := find(e.root, "permission", "bash", "*") != nil || find(e.root, "permission", "*") != nil
	if !asks || find(e.root, "permission", "bash", askRedirected) != nil {
		return nil
	}
	_, err := e.setString("ask", "permission", "bash", askRedirected)
	return err
}

// widen makes an object where one is needed: of a string {"*": STRING}, which
// says the same.
func (e *jsonEdit) widen(said string, keys ...string) error {
	if said == "" {
		return nil
	}
	if v := find(e.root, keys...); v != nil && v.Value.Kind() == '"' {
		v.Value = &hujson.Object{}
	}
	_, err := e.setString(said, append(slices.Clone(keys), "*")...)
	return err
}

// pluginCommand is the command of ours in a plugin, "" where there is none.
func pluginCommand(path string) string {
	data, _, err := readFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		var words []string
		if list, ok := strings.CutPrefix(line, "const call = "); ok && json.Unmarshal([]byte(list), &words) == nil {
			return shellLine(words)
		}
	}
	return ""
}

// opencodePlugin passes the events on that internal/hook understands, one after
// the other and none that says the same again, and puts the primer before the
// model of an agent that has a name. It fails open.
//
//go:embed opencode.js
var opencodePlugin string
