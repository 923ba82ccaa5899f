package install

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/confedit"
)

func (p *Place) opencodeHome() string {
	if dir := p.getenv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "opencode")
	}
	return filepath.Join(p.Home, ".config", "opencode")
}

// opencodeNames are the names of its configuration in one directory, the last
// one read first.
var opencodeNames = []string{"opencode.jsonc", "opencode.json"}

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
func (p *Place) opencode(r Request, local string) *plan {
	pl := &plan{}
	dir := p.opencodeHome()
	if r.Local {
		dir = filepath.Join(local, ".opencode")
	}
	plugin := filepath.Join(dir, "plugins", "atm.js")
	before := pluginCommands(plugin)
	agent := agentOf(r, before)
	command := p.command(r.Tool, agent)
	config := opencodeConfig(dir)
	js := blockPart(plugin, "//", r.Tool, opencodePlugin(command, agent), "a plugin that runs "+shellLine(command), "the plugin taken out")
	js.commands = before
	pl.parts = append(pl.parts, js,
		part{
			path: config, format: looseJSON,
			fill:  func(s *sheet) error { return p.fillOpencode(s, p.opencodeBelow(r, local, config)) },
			clear: func(s *sheet) error { clearOpencode(s); return nil },
		})
	p.pathNote(pl)
	return pl
}

// opencodeConfig is the file of a directory that rules belong into: the one
// that has rules, else the one that is there.
func opencodeConfig(dir string) string {
	there := ""
	for _, name := range opencodeNames {
		path := filepath.Join(dir, name)
		data, info, err := read(path)
		if info == nil && err == nil {
			continue
		}
		if there == "" {
			there = path
		}
		if doc, err := confedit.ParseJSON(data, looseJSON.dialect()); err == nil && doc.Root.Get("permission") != nil {
			return path
		}
	}
	if there == "" {
		return filepath.Join(dir, "opencode.json")
	}
	return there
}

// verdict is what some files say of commands that no rule names.
type verdict struct {
	all  string // "permission": "ask"
	bash string // "permission": {"bash": "ask"}
}

// read takes in one more file, which counts for more than those before.
func (v *verdict) read(path string) {
	data, _, err := read(path)
	if err != nil {
		return
	}
	doc, err := confedit.ParseJSON(data, looseJSON.dialect())
	if err != nil {
		return
	}
	switch perm := doc.Root.Get("permission"); {
	case perm == nil:
	case perm.Kind == confedit.String:
		*v = verdict{all: perm.Text}
	case perm.Kind == confedit.Object:
		v.all = "" // an object takes the place of a string
		switch bash := perm.Get("bash"); {
		case bash == nil:
		case bash.Kind == confedit.String:
			v.bash = bash.Text
		default:
			v.bash = ""
		}
	}
}

// opencodeBelow is what the files say that config is put on top of.
func (p *Place) opencodeBelow(r Request, local, config string) verdict {
	var v verdict
	read := func(dir string, names ...string) {
		for _, name := range names {
			if path := filepath.Join(dir, name); path != config {
				v.read(path)
			}
		}
	}
	if !r.Local {
		read(p.opencodeHome(), "config.json")
		if filepath.Base(config) == opencodeNames[0] {
			read(p.opencodeHome(), "opencode.json")
		}
		return v
	}
	if p.Home != "" || p.getenv("XDG_CONFIG_HOME") != "" {
		read(p.opencodeHome(), "config.json", "opencode.json", "opencode.jsonc")
	}
	if path := p.getenv("OPENCODE_CONFIG"); path != "" {
		v.read(path)
	}
	read(local, "opencode.json", "opencode.jsonc")
	if filepath.Base(config) == opencodeNames[0] {
		read(filepath.Join(local, ".opencode"), "opencode.json")
	}
	return v
}

func opencodeRules() []string { return perVerb(func(v string) string { return "atm " + v + " *" }) }

// opencodeRedirected is the rule that takes back what opencodeRules would let
// through with it: a file written with what a colleague said.
const opencodeRedirected = "atm *>*"

func (p *Place) fillOpencode(s *sheet, below verdict) error {
	_, perm := s.look("permission")
	_, bash := s.look("permission", "bash")
	all, rest := below.all, below.bash
	if perm != nil {
		all = ""
		if perm.Kind == confedit.String {
			all, rest = perm.Text, ""
		}
	}
	if bash != nil {
		rest = ""
		if bash.Kind == confedit.String {
			rest = bash.Text
		}
	}
	switch said := or(rest, all); said {
	case "allow":
		s.notes = append(s.notes, "opencode asks about no command here: "+s.path+" needs no rules for atm")
		return nil
	case "deny":
		s.notes = append(s.notes, "opencode may run no commands here, by a rule of yours; atm is no exception")
		return nil
	}
	if !s.existed {
		if _, err := s.setString("https://opencode.ai/config.json", "$schema"); err != nil {
			return err
		}
	}
	if err := s.widen(all, "permission"); err != nil {
		return err
	}
	if err := s.widen(rest, "permission", "bash"); err != nil {
		return err
	}
	var added []string
	for _, rule := range opencodeRules() {
		doc, obj, err := s.container(confedit.Object, "permission", "bash")
		if err != nil {
			return err
		}
		if obj.Get(rule) != nil {
			continue // allowed, or somebody's decision
		}
		s.text.Apply(doc.Set(obj, rule, "allow"))
		s.new.Values["permission.bash"] = union(s.new.Values["permission.bash"], []string{rule})
		added = append(added, rule)
	}
	switch {
	case len(added) == len(Verbs):
		s.say("runs without asking: atm %s", verbList())
	case len(added) > 0:
		s.say("runs without asking: %s", strings.Join(added, ", "))
	}
	// Where nothing is asked about, this is not either.
	doc, obj := s.look("permission", "bash")
	if obj.Get("*") == nil && s.root().Root.At("permission", "*") == nil || obj.Get(opencodeRedirected) != nil {
		return nil
	}
	s.text.Apply(doc.Set(obj, opencodeRedirected, "ask"))
	s.new.Values["permission.bash"] = union(s.new.Values["permission.bash"], []string{opencodeRedirected})
	return nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// widen makes an object where one is needed: of a string {"*": STRING}, which
// says the same.
func (s *sheet) widen(said string, keys ...string) error {
	at := place(keys)
	doc, v := s.look(keys...)
	switch {
	case v != nil && v.Kind == confedit.String:
		s.text.Apply(doc.Replace(v, confedit.Map{{Key: "*", Value: v.Text}}))
		s.new.Was[at] = v.Text
	case v == nil && said != "":
		if _, _, err := s.container(confedit.Object, keys...); err != nil {
			return err
		}
		_, err := s.setString(said, append(slices.Clone(keys), "*")...)
		return err
	}
	return nil
}

func clearOpencode(s *sheet) {
	rules, ok := s.old.values("permission.bash")
	if !ok {
		rules = append(opencodeRules(), opencodeRedirected)
	}
	n := 0
	for _, rule := range rules {
		verdict := "allow"
		if rule == opencodeRedirected {
			verdict = "ask"
		}
		if _, v := s.look("permission", "bash", rule); v != nil && v.Text == verdict {
			s.dropMember("permission", "bash", rule)
			n++
		}
	}
	if n > 0 {
		s.say("asked about again: %d rules for atm taken out", n)
	}
	for _, keys := range [][]string{{"permission", "bash"}, {"permission"}} {
		star := append(slices.Clone(keys), "*")
		doc, obj := s.look(keys...)
		if obj == nil || obj.Kind != confedit.Object || len(obj.Members) != 1 || obj.Members[0].Key != "*" {
			continue
		}
		if s.old != nil && s.old.Was[place(keys)] != "" && obj.Members[0].Value.Kind == confedit.String {
			s.text.Apply(doc.Replace(obj, obj.Members[0].Value.Text))
		} else {
			s.dropString(star...)
		}
	}
}

// pluginCommands is the command of ours in a plugin, as words.
func pluginCommands(path string) [][]string {
	data, _, err := read(path)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		var words []string
		if list, ok := strings.CutPrefix(line, "const call = "); ok && json.Unmarshal([]byte(list), &words) == nil && len(words) > 0 {
			return [][]string{words}
		}
	}
	return nil
}

// opencodePlugin passes the events on that internal/hook understands, one
// after the other and none that says the same again, and puts the primer before
// the model of an agent that has a name. It fails open.
func opencodePlugin(command []string, agent string) string {
	words, err := json.Marshal(command)
	if err != nil {
		panic(err) // strings never fail
	}
	env := ""
	if agent != "" {
		env = fmt.Sprintf("    \"shell.env\": async (_, out) => { out.env.ATM_AGENT = %q },\n", agent)
	}
	return `import { spawn } from "node:child_process"

const call = ` + string(words) + `
const agent = call[4] ?? process.env.ATM_AGENT

export const Atm = async ({ directory }) => {
  const seen = new Map(), told = new Map(), children = new Set()
  let queue = Promise.resolve()
  const atm = (args, input = "") => new Promise((done) => {
    let out = ""
    const env = { ...process.env, ...(agent && { ATM_AGENT: agent }) }
    const child = spawn(call[0], args, { cwd: directory, env, stdio: ["pipe", "pipe", "ignore"], timeout: 10_000 })
    child.on("error", () => done(""))
    child.on("close", () => done(out))
    child.stdout.on("data", (data) => { out += data })
    child.stdin.on("error", () => {})
    child.stdin.end(input)
  })
  const repeats = (key, state) => seen.get(key) === state || !seen.set(key, state)
  const passes = ({ type, properties: p = {} }) => {
    const part = p.part?.state?.status, session = p.status?.type
    if (type === "message.part.updated") return p.part?.type === "tool" && part !== "pending" && !repeats(p.part.callID, part)
    if (type === "session.status") return !repeats(p.sessionID, session) || session === "retry"
    return /^(session\.(created|deleted|idle|error)$|permission\.|question\.)/.test(type)
  }
  return {
    event: async ({ event }) => {
      const info = event.properties?.info
      if (info?.parentID) children.add(info.id)
      if (passes(event)) await (queue = queue.then(() => atm(call.slice(1), JSON.stringify(event))))
    },
    "experimental.chat.system.transform": async ({ sessionID }, out) => {
      if (children.has(sessionID) || !agent) return
      if (!told.has(sessionID)) told.set(sessionID, await atm(["primer"]))
      if (told.get(sessionID)) out.system.push(told.get(sessionID))
    },
` + env + `  }
}
`
}
