package agentconfig

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// hookSet is the hooks of a tool whose configuration has the shape of Claude Code's:
// {"hooks":{EVENT:[{"matcher":…,"hooks":[{"type":"command",…}]}]}}. A group without a matcher is for everything.
type hookSet struct {
	tool    string
	command string
	timeout int // in the tool's own unit
	events  []string
}

// ownHooks returns the pointers to atm's hooks for a tool.
func ownHooks(root *hujson.Value, tool string) (own []string) {
	hooks := root.Find("/hooks")
	if hooks == nil || hooks.Value.Kind() != '{' {
		return nil
	}
	// A command that runs atm for a tool, as this package writes it or used to.
	ownCommand := regexp.MustCompile(`^'?([^'"|&;<>()$]*[/\\])?atm(\.exe)?'? hook (\S+)( --as \S+)?$`)
	for _, m := range hooks.Value.(*hujson.Object).Members {
		event := "/hooks/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(stringOf(&m.Name))
		for g, group := range elements(&m.Value) {
			for i, hook := range elements(group.Find("/hooks")) {
				words := ownCommand.FindStringSubmatch(stringOf(hook.Find("/command")))
				if words != nil && words[3] == tool {
					own = append(own, fmt.Sprintf("%s/%d/hooks/%d", event, g, i))
				}
			}
		}
	}
	return own
}

// removeOwn removes hooks, and the groups that are empty then.
func removeOwn(root *hujson.Value, hooks []string) {
	for _, pointer := range slices.Backward(hooks) {
		remove(root, pointer)
		list, _ := splitPointer(pointer)
		if group, _ := splitPointer(list); len(elements(root.Find(list))) == 0 {
			remove(root, group)
		}
	}
}

// settings are a group of its own for each event, behind those of others.
func (h hookSet) settings() (all []setting) {
	change := fmt.Sprintf("hooks for %d events: %s", len(h.events), h.command)
	for _, event := range h.events {
		all = append(all, setting{"/hooks/" + event + "/-", `{"hooks": [` + h.entry() + `]}`, change, nil})
	}
	return all
}

func (h hookSet) entry() string {
	return fmt.Sprintf(`{"type": "command", "command": %s, "timeout": %d}`, quoted(h.command), h.timeout)
}

// addHooks adds the hooks in place of older ones of atm, unless all are there already.
func (f *file) addHooks(root *hujson.Value, h hookSet) error {
	old := ownHooks(root, h.tool)
	if n := len(h.events); len(old) == n && strings.Count(compact(root), compactText(h.entry())) == n {
		return nil
	}
	removeOwn(root, old)
	return f.addSettings(root, h.settings())
}

// removeHooks removes atm's hooks, whoever has changed or moved them, and the lists that install added for them.
func (f *file) removeHooks(root *hujson.Value, h hookSet) {
	hooks := ownHooks(root, h.tool)
	if len(hooks) == 0 {
		return
	}
	f.addChange(fmt.Sprintf("hooks removed: %d", len(hooks)))
	removeOwn(root, hooks)
	f.removeSettings(root, h.settings())
	if !f.isRecorded {
		f.notes = append(f.notes, f.path+" may keep other settings of atm: atm has no record of installing them")
	}
}
