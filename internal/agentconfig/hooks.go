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

	"github.com/agentteammail/atm/teams/policy"
)

// hookSet are the hooks of a tool that keeps them as Claude Code does, three levels deep:
// {"hooks":{EVENT:[{"matcher":…,"hooks":[{"type":"command",…}]}]}}. Without a matcher a group is for everything.
type hookSet struct {
	tool    string
	command string
	timeout int // in the tool's own unit
	events  []string
}

// ownHooks are the places of our hooks for a tool.
func ownHooks(root *hujson.Value, tool string) (own []string) {
	hooks := root.Find("/hooks")
	if hooks == nil || hooks.Value.Kind() != '{' {
		return nil
	}
	// The command of a hook that runs atm, for a tool, as this package writes it, now or earlier.
	ownCommand := regexp.MustCompile(`^'?([^'"|&;<>()$]*[/\\])?atm(\.exe)?'? hook (\S+)( --as \S+)?$`)
	for _, m := range hooks.Value.(*hujson.Object).Members {
		event := "/hooks/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(str(&m.Name))
		for g, group := range elements(&m.Value) {
			for i, hook := range elements(group.Find("/hooks")) {
				if words := ownCommand.FindStringSubmatch(str(hook.Find("/command"))); words != nil && words[3] == tool {
					own = append(own, fmt.Sprintf("%s/%d/hooks/%d", event, g, i))
				}
			}
		}
	}
	return own
}

// takeOut removes hooks, and the groups that hold none then.
func takeOut(root *hujson.Value, places []string) {
	for _, place := range slices.Backward(places) {
		remove(root, place)
		list, _ := around(place)
		if group, _ := around(list); len(elements(root.Find(list))) == 0 {
			remove(root, group)
		}
	}
}

// addHooks puts one command for each event into a document. Where anything is otherwise, all of ours go, and
// come anew behind those of others.
func (f *file) addHooks(root *hujson.Value, h hookSet) error {
	hook := fmt.Sprintf(`{"type": "command", "command": %s, "timeout": %d}`, quoted(h.command), h.timeout)
	parsed, _ := hujson.Parse([]byte(hook)) // what is ours never fails
	old := ownHooks(root, h.tool)
	if n := len(h.events); len(old) == n && strings.Count(minimal(*root), minimal(parsed)) == n {
		return nil
	}
	takeOut(root, old)
	for _, event := range h.events {
		if err := put(root, "/hooks/"+event+"/-", `{"hooks": [`+hook+`]}`); err != nil {
			return err
		}
	}
	f.say("hooks for %d events: %s", len(h.events), h.command)
	return nil
}

// removeHooks leaves the empty lists that were there before. Without a record these are all but the last ones, in the
// order of an install.
func (f *file) removeHooks(root *hujson.Value, h hookSet) {
	hooks := ownHooks(root, h.tool)
	if len(hooks) == 0 {
		return
	}
	f.say("hooks taken out: %d", len(hooks))
	takeOut(root, hooks)
	for _, event := range slices.Backward(h.events) {
		place := "/hooks/" + event
		members := root.Find("/hooks").Value.(*hujson.Object).Members
		isLast := len(members) > 0 && str(&members[len(members)-1].Name) == event
		if list := root.Find(place); list != nil && isEmpty(list) && (f.isNew(place) || !f.isRecorded && isLast) {
			remove(root, place)
		}
	}
	f.removeEmpty(root, "/hooks")
	if !f.isRecorded {
		f.notes = append(f.notes, f.path+" keeps what else may be atm's: there is no record of its install")
	}
}

// program is atm by its absolute path, as PATH finds it: a link there goes on working when what it leads to
// changes, and programs that are started from a desktop have another PATH.
func (p *Installer) program() string { return filepath.ToSlash(cmp.Or(p.onPath(), p.Self)) }

func (p *Installer) command(agent string, words ...string) []string {
	words = append([]string{p.program()}, words...)
	if agent != "" {
		words = append(words, "--as", agent)
	}
	return words
}

// onPath is where PATH finds this program under the name atm, "" where it finds another one or none.
func (p *Installer) onPath() string {
	path, _ := exec.LookPath("atm")
	found, _ := os.Stat(path)
	self, _ := os.Stat(p.Self)
	if filepath.IsAbs(path) && os.SameFile(found, self) {
		return path
	}
	return ""
}

func shellLine(words []string) string { return strings.Join(each(words, policy.Quote), " ") }

func quoted[T string | []string | []any](v T) string {
	data, _ := json.Marshal(v) // strings never fail
	return string(data)
}
