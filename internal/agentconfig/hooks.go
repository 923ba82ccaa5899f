package agentconfig

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// hookSet are the hooks of a tool that keeps them as Claude Code does, three
// levels deep: {"hooks":{EVENT:[{"matcher":…,"hooks":[{"type":"command",…}]}]}}.
// Without a matcher a group is for everything.
type hookSet struct {
	command string
	timeout int // in the tool's own unit
	events  []string
}

// ownCommand is a hook's command as we write it, for a tool.
var ownCommand = regexp.MustCompile(`^'?([^'"|&;<>()$]*[/\\])?atm(\.exe)?'? hook (\S+)( --as \S+)?$`)

// isOurs reports whether a hook runs atm for a tool, as this package writes it, now
// or earlier.
func isOurs(hook *hujson.Value, tool string) bool {
	words := ownCommand.FindStringSubmatch(str(find(hook, "command")))
	return words != nil && words[3] == tool
}

// visitHooks calls f for every hook of ours in a document, in order, and takes out
// those that f says so of, with their group if that held nothing else. It gives the
// events of those that were taken out.
func visitHooks(root *hujson.Value, tool string, f func(event string, hook *hujson.Value) (remove bool)) (removed []string) {
	for _, event := range members(find(root, "hooks")) {
		name, groups := str(&event.Name), &event.Value
		for g := len(elements(groups)) - 1; g >= 0; g-- {
			list := find(&elements(groups)[g], "hooks")
			before := len(elements(list))
			for i := before - 1; i >= 0; i-- {
				if hook := &elements(list)[i]; isOurs(hook, tool) && f(name, hook) {
					removeChild(list, i)
					removed = append(removed, name)
				}
			}
			if before > 0 && len(elements(list)) == 0 {
				removeChild(groups, g)
			}
		}
	}
	return removed
}

// install puts the hooks into a document: one command for each event.
func (h hookSet) install(e *jsonEdit) error {
	entry, err := hujson.Parse(fmt.Appendf(nil, `{"type": "command", "command": %s, "timeout": %d}`, quoted(h.command), h.timeout))
	if err != nil {
		return err
	}
	there, changed := map[string]bool{}, 0
	removed := visitHooks(e.root, e.tool, func(event string, hook *hujson.Value) bool {
		if there[event] || !slices.Contains(h.events, event) {
			return true
		}
		there[event] = true
		if entry.String() != (hujson.Value{Value: hook.Value}).String() {
			hook.Value = entry.Value
			changed++
		}
		return false
	})
	for _, event := range h.events {
		if there[event] {
			continue
		}
		groups, err := container(e.root, '[', "hooks", event)
		if err != nil {
			return err
		}
		group, err := hujson.Parse([]byte(`{"hooks": [` + entry.String() + `]}`))
		if err != nil {
			return err
		}
		appendElement(groups, group.Value, 2)
		changed++
	}
	for _, event := range removed {
		e.prune("hooks", event)
		changed++
	}
	if changed > 0 {
		e.say("hooks for %d events: %s", changed, h.command)
	}
	return nil
}

// hookProgram finds the program that hooks, or a plugin, of ours run.
var hookProgram = regexp.MustCompile(`"'?([^"']*atm(?:\.exe)?)'?(?:","| )hook[ "]`)

// command is what a tool's hooks run, as words. The program is named by its
// absolute path, as PATH finds it: a link there goes on working when what it leads to
// changes, and programs that are started from a desktop have another PATH.
func (p *Installer) command(tool, agent string) []string {
	words := []string{filepath.ToSlash(cmp.Or(p.onPath(), p.Self)), "hook", tool}
	if agent != "" {
		words = append(words, "--as", agent)
	}
	return words
}

// onPath is where PATH finds this program under the name atm, "" where it finds
// another one or none.
func (p *Installer) onPath() string {
	path, err := exec.LookPath("atm")
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	found, err := os.Stat(path)
	self, selfErr := os.Stat(p.Self)
	if err != nil || selfErr != nil || !os.SameFile(found, self) {
		return ""
	}
	return path
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
