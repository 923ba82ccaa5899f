package agentconfig

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// hookSet are the hooks of a tool that keeps them as Claude Code does, three
// levels deep: {"hooks":{EVENT:[{"matcher":…,"hooks":[{"type":"command",…}]}]}}.
// Without a matcher a group is for everything.
type hookSet struct {
	name    string // what the tool shows while a hook runs; "": the command
	command string
	events  []hookEvent
}

// hookEvent is a moment that a tool has hooks for. The timeout is in the tool's
// own unit.
type hookEvent struct {
	name    string
	timeout int
}

// owner says whose a hook's command is.
type owner int

const (
	foreign  owner = iota
	adjusted       // calls atm in somebody's own way: left alone, and enough
	ours           // as this package writes it, now or earlier
)

// ownCommand is a command line as we write it: one word for the program, which
// may be quoted, and a plain call of the hook.
var ownCommand = regexp.MustCompile(`^\s*((?:'[^']*'|"[^"$` + "`" + `]*"|\\.|[^\s'"|&;<>()$` + "`" + `\\=])+)\s+hook\s+(\S+)(?:\s+--as\s+(\S+))?\s*$`)

// ownerOf looks at a hook's command.
func ownerOf(line, tool string) owner {
	if program, _ := splitCommand(line); isAtm(program) && ownCommand.FindStringSubmatch(line)[2] == tool {
		return ours
	}
	if strings.Contains(line, " hook "+tool) && slices.ContainsFunc(strings.Fields(line), isAtm) {
		return adjusted
	}
	return foreign
}

// splitCommand gives the program of a command line of ours, and the agent that
// it speaks for. Both are "" where the line is none of ours.
func splitCommand(line string) (program, agent string) {
	m := ownCommand.FindStringSubmatch(line)
	if m == nil {
		return "", ""
	}
	unquote := strings.NewReplacer(`'\''`, `'`, `'`, ``, `"`, ``, `\ `, ` `)
	return unquote.Replace(m[1]), m[3]
}

func isAtm(program string) bool {
	program = program[strings.LastIndexAny(program, `/\`)+1:]
	return strings.TrimSuffix(program, ".exe") == "atm"
}

// visitHooks calls f for every command in a document's hooks, in order, and takes
// out those that f says so of, with their group if that held nothing else. It
// gives the events of those that were taken out.
func (e *jsonEdit) visitHooks(f func(event string, hook *hujson.Value) (remove bool)) (removed []string) {
	hooks := find(e.root, "hooks")
	if hooks == nil {
		return nil
	}
	for _, event := range members(hooks) {
		name, groups := str(&event.Name), &event.Value
		for g := 0; g < len(elements(groups)); g++ {
			group := &elements(groups)[g]
			list := member(group, "hooks")
			before := len(elements(list))
			for i := 0; i < len(elements(list)); i++ {
				if f(name, &elements(list)[i]) {
					removeChild(list, i)
					removed = append(removed, name)
					i--
				}
			}
			plain := len(members(group)) == 1 || member(group, "matcher") != nil && len(members(group)) == 2
			if before > 0 && len(elements(list)) == 0 && plain {
				removeChild(groups, g)
				g--
			}
		}
	}
	return removed
}

// ownerOf looks at an entry of a list of commands.
func (e *jsonEdit) ownerOf(hook *hujson.Value) owner {
	words := append([]string{str(member(hook, "command"))}, strs(member(hook, "args"))...)
	return ownerOf(strings.Join(words, " "), e.tool)
}

// install puts the hooks into a document: one command for each event.
func (h hookSet) install(e *jsonEdit) error {
	timeouts := map[string]int{}
	for _, ev := range h.events {
		timeouts[ev.name] = ev.timeout
	}
	there := map[string]bool{}
	e.visitHooks(func(event string, hook *hujson.Value) bool {
		there[event] = there[event] || e.ownerOf(hook) == adjusted
		return false
	})
	var updated []string
	removed := e.visitHooks(func(event string, hook *hujson.Value) bool {
		if e.ownerOf(hook) != ours {
			return false
		}
		timeout, known := timeouts[event]
		if !known || there[event] {
			return true
		}
		there[event] = true
		if h.refresh(hook, timeout) {
			updated = append(updated, event)
		}
		return false
	})
	var added []string
	for _, ev := range h.events {
		if there[ev.name] {
			continue
		}
		groups, sep, outer, err := container(e.root, '[', "hooks", ev.name)
		if err != nil {
			return err
		}
		group, err := hujson.Parse([]byte(`{"hooks": [` + h.entry(ev.timeout) + `]}`))
		if err != nil {
			return err
		}
		appendElement(groups, group.Value, sep, outer)
		added = append(added, ev.name)
	}
	for _, event := range removed {
		e.prune("hooks", event)
	}
	e.sayHooks("hooks for", added, h.command)
	e.sayHooks("hooks brought up to date for", union(updated, removed), h.command)
	return nil
}

func (f *file) sayHooks(what string, events []string, command string) {
	if len(events) > 4 {
		events = []string{fmt.Sprintf("%d events", len(events))}
	}
	if len(events) > 0 {
		f.say("%s %s: %s", what, strings.Join(events, ", "), command)
	}
}

// entry is a command as it is written into a list.
func (h hookSet) entry(timeout int) string {
	name := ""
	if h.name != "" {
		name = `"name": ` + quoted(h.name) + `, `
	}
	return fmt.Sprintf(`{%s"type": "command", "command": %s, "timeout": %d}`, name, quoted(h.command), timeout)
}

// refresh brings a command of ours up to date, and leaves the fields alone that
// somebody added.
func (h hookSet) refresh(entry *hujson.Value, timeout int) (changed bool) {
	want, err := hujson.Parse([]byte(h.entry(timeout)))
	if err != nil {
		return false
	}
	if member(entry, "args") != nil {
		removeMember(entry, "args")
		changed = true
	}
	for _, m := range want.Value.(*hujson.Object).Members {
		is := member(entry, str(&m.Name))
		if is == nil {
			appendMember(entry, str(&m.Name), m.Value, " ", "")
			changed = true
		} else if string(hujson.Value{Value: is.Value}.Pack()) != string(hujson.Value{Value: m.Value.Value}.Pack()) {
			is.Value = m.Value.Value
			changed = true
		}
	}
	return changed
}

// currentHook is the first command of ours in a file, "" where there is none or
// the file cannot be understood.
func currentHook(path, tool string) (command string) {
	e := &jsonEdit{tool: tool, root: readJSON(path)}
	if e.root == nil {
		return ""
	}
	e.visitHooks(func(_ string, hook *hujson.Value) bool {
		if command == "" && e.ownerOf(hook) == ours {
			command = str(member(hook, "command"))
		}
		return false
	})
	return command
}

// command is what a tool's hooks run, as words. The program is named by its
// absolute path, as PATH finds it, so that a link there goes on working when
// what it leads to changes: programs that are started from a desktop, or that
// run hooks in a login shell, have another PATH. A worktree's hooks go on
// speaking for the agent that they spoke for before.
func (p *Installer) command(r Request, before string) []string {
	program := p.onPath()
	if program == "" {
		program = p.Self
	}
	words := []string{filepath.ToSlash(program), "hook", r.Tool}
	agent := r.Agent
	if _, was := splitCommand(before); r.Local && agent == "" {
		agent = was
	}
	if agent != "" {
		words = append(words, "--as", agent)
	}
	return words
}

// onPath is where PATH finds this program under the name atm, "" where it finds
// another one or none. A relative entry does not count: agents are elsewhere.
func (p *Installer) onPath() string {
	self, err := os.Stat(p.Self)
	if err != nil {
		return ""
	}
	name := "atm"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	for _, dir := range filepath.SplitList(p.getenv("PATH")) {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if !filepath.IsAbs(dir) || err != nil || !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode()&0o111 == 0 {
			continue
		}
		if os.SameFile(info, self) {
			return path
		}
		return ""
	}
	return ""
}

// shellLine is words as a line for a shell.
func shellLine(words []string) string {
	plain := regexp.MustCompile(`^[\w./+@%:=-]+$`)
	out := slices.Clone(words)
	for i, w := range words {
		if !plain.MatchString(w) {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// quoted is a string, or a list of them, as JSON, JavaScript and TOML write it.
func quoted[T string | []string](v T) string {
	data, _ := json.Marshal(v) // strings never fail
	return string(data)
}
