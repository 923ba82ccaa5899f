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

// addHooks adds one command for each event, unless all are there already. Older hooks of atm go; the new ones come
// behind those of others.
func (f *file) addHooks(root *hujson.Value, h hookSet) error {
	hook := fmt.Sprintf(`{"type": "command", "command": %s, "timeout": %d}`, quoted(h.command), h.timeout)
	old := ownHooks(root, h.tool)
	if n := len(h.events); len(old) == n && strings.Count(compact(root), compactText(hook)) == n {
		return nil
	}
	removeOwn(root, old)
	for _, event := range h.events {
		if err := put(root, "/hooks/"+event+"/-", `{"hooks": [`+hook+`]}`); err != nil {
			return err
		}
	}
	f.addChange(fmt.Sprintf("hooks for %d events: %s", len(h.events), h.command))
	return nil
}

// removeHooks removes atm's hooks, and the lists that install added for them. Without a record, it takes those lists
// for added that are the last ones, in the order of an install.
func (f *file) removeHooks(root *hujson.Value, h hookSet) {
	hooks := ownHooks(root, h.tool)
	if len(hooks) == 0 {
		return
	}
	f.addChange(fmt.Sprintf("hooks removed: %d", len(hooks)))
	removeOwn(root, hooks)
	for _, event := range slices.Backward(h.events) {
		pointer := "/hooks/" + event
		members := root.Find("/hooks").Value.(*hujson.Object).Members
		isLast := len(members) > 0 && stringOf(&members[len(members)-1].Name) == event
		if list := root.Find(pointer); list != nil && isEmpty(list) && (f.isNew(pointer) || !f.isRecorded && isLast) {
			remove(root, pointer)
		}
	}
	f.removeEmptyAround(root, "/hooks/-")
	if !f.isRecorded {
		f.notes = append(f.notes, f.path+" may keep other settings of atm: atm has no record of installing them")
	}
}
