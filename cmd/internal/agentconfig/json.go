package agentconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/agentteammail/atm/internal/agents"
)

// parseJSON parses a document whose root is an object. A blank one counts as {}.
func parseJSON(data []byte) (*hujson.Value, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	root, err := hujson.Parse([]byte(endLine(string(data))))
	if err == nil && root.Value.Kind() != '{' {
		err = errors.New("it is not an object")
	}
	return &root, err
}

// lookUp returns the value at a pointer in a JSON or TOML file as JSON, "" if it has none, and its line in a JSON file.
func lookUp(path, pointer string) (value string, line int) {
	data, _, _ := readFile(path)
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	if filepath.Ext(path) == ".toml" {
		doc, _ := parseTOML(string(data))
		data, _ = json.Marshal(doc)
	}
	root, err := parseJSON(data)
	if v := root.Find(pointer); err == nil && v != nil {
		return compact(v), 1 + bytes.Count(data[:v.StartOffset], []byte("\n"))
	}
	return "", 0
}

// splitPointer returns the pointer to the object or list around a value, and the value's name there.
func splitPointer(pointer string) (outer, name string) {
	i := strings.LastIndex(pointer, "/")
	return pointer[:i], pointer[i+1:]
}

// stringOf returns the string that a value is, "" for any other value and for nil.
func stringOf(v *hujson.Value) string {
	if v == nil || v.Value.Kind() != '"' {
		return ""
	}
	return v.Value.(hujson.Literal).String()
}

// elements returns those of a list; nil and other values have none.
func elements(v *hujson.Value) []hujson.Value {
	if v != nil && v.Value.Kind() == '[' {
		return v.Value.(*hujson.Array).Elements
	}
	return nil
}

// compact returns a value without comments and white space, "" for nil.
func compact(v *hujson.Value) string {
	if v == nil {
		return ""
	}
	minimal := v.Clone()
	minimal.Minimize()
	return minimal.String()
}

// index returns the place in a list of an element with this compact text, -1 if there is none.
func index(list *hujson.Value, text string) int {
	return slices.IndexFunc(elements(list), func(v hujson.Value) bool { return compact(&v) == text })
}

// put sets the value at a pointer, and makes the objects and lists around it. A new value gets a line of its own.
func put(root *hujson.Value, pointer, value string) error {
	outer, name := splitPointer(pointer)
	kind, empty := hujson.Kind('{'), "{}"
	if name == "-" {
		kind, empty = '[', "[]"
	}
	if root.Find(outer) == nil {
		if err := put(root, outer, empty); err != nil {
			return err
		}
	}
	in := root.Find(outer)
	if in.Value.Kind() != kind {
		return fmt.Errorf("%s is not %s; atm left the file alone", strings.ReplaceAll(outer[1:], "/", "."), empty)
	}
	isNew := in.Find("/"+name) == nil
	err := root.Patch(fmt.Appendf(nil, `[{"op": "add", "path": %s, "value": %s}]`, agents.Quoted(pointer), value))
	if err != nil || !isNew {
		return err
	}
	var before, end *hujson.Extra // the white space before the new value, and before the closing bracket
	n := 0
	switch c := in.Value.(type) {
	case *hujson.Object:
		n = len(c.Members)
		c.Members[n-1].Value.BeforeExtra = hujson.Extra(" ")
		before, end = &c.Members[n-1].Name.BeforeExtra, &c.AfterExtra
	case *hujson.Array:
		n = len(c.Elements)
		before, end = &c.Elements[n-1].BeforeExtra, &c.AfterExtra
	}
	indent := "\n" + strings.Repeat("  ", strings.Count(outer, "/"))
	*before = slices.Concat(bytes.TrimRight(*before, " \t\r\n"), hujson.Extra(indent+"  "))
	if n == 1 && len(bytes.TrimSpace(*end)) == 0 {
		*end = hujson.Extra(indent)
	}
	return nil
}

func remove(root *hujson.Value, pointer string) {
	isStandard := root.IsStandard()
	root.Patch(fmt.Appendf(nil, `[{"op": "remove", "path": %s}]`, agents.Quoted(pointer)))
	if isStandard {
		root.Standardize() // Patch may leave a comma
	}
}

// jsonFile is the edit of a JSON file that gets hooks, unless the tool's plugin has them, and settings. A file that its tool
// does not take as it is gets none, but loses them all the same.
func jsonFile(path, tool string, d *agents.Dialect, hooks hookSet, hasPlugin bool, settings []agents.Setting) edit {
	return edit{path: path, isPlugins: hasPlugin && len(settings) == 0, apply: func(f *file, isRemoval bool) error {
		root, err := parseJSON(f.after)
		if err != nil {
			return fmt.Errorf("cannot parse %s (left unchanged): %w", f.path, err)
		}
		before, all := root.Clone(), append(hooks.settings(), settings...)
		hooks.removeFrom(root)
		if hasPlugin && !isRemoval {
			f.removeSettings(root, hooks.settings())
			if all = settings; compact(root) != compact(&before) {
				f.addChange("the plugin has the hooks")
			}
		}
		if isRemoval {
			f.removeSettings(root, all)
		} else if err := f.addSettings(root, all); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		} else if err := fault(d, f); err != nil {
			return fmt.Errorf("%s does not take %s as it is (left unchanged): %w", tool, f.path, err)
		}
		for _, s := range all {
			if !isRemoval && !isIn(s, &before) {
				f.addChange(s.Change)
			}
		}
		if compact(root) != compact(&before) {
			f.after = root.Pack()
		}
		return nil
	}}
}

func (f *file) addSettings(root *hujson.Value, settings []agents.Setting) error {
	for _, s := range settings {
		if isIn(s, root) {
			continue
		}
		if now := root.Find(s.Pointer); s.KeepsTheirs && now != nil && !f.isOurs(now, s.Pointer) {
			name := strings.ReplaceAll(s.Pointer[1:], "/", ".")
			return fmt.Errorf("it already has its own %s: put %s there yourself", name, s.Value)
		}
		if err := put(root, s.Pointer, s.Value); err != nil {
			return err
		}
	}
	return nil
}

// isIn reports whether a document has the setting, or it is for an empty text and so not wanted.
func isIn(s agents.Setting, root *hujson.Value) bool {
	pointer, isList := strings.CutSuffix(s.Pointer, "/-")
	value, _ := hujson.Parse([]byte(s.Value)) // atm's own values always parse
	now, want := root.Find(pointer), compact(&value)
	return want == `""` || isList && index(now, want) >= 0 || !isList && compact(now) == want
}

// removeSettings removes what the record says that install added, and what is empty then.
func (f *file) removeSettings(root *hujson.Value, settings []agents.Setting) {
	original, installed := f.recorded()
	for _, s := range settings {
		pointer, isList := strings.CutSuffix(s.Pointer, "/-")
		old, now := original.Find(pointer), root.Find(pointer)
		switch {
		case now == nil:
		case isList:
			for _, v := range elements(installed.Find(pointer)) {
				text := compact(&v)
				if i := index(now, text); i >= 0 && index(old, text) < 0 {
					remove(root, fmt.Sprintf("%s/%d", pointer, i))
				}
			}
		case !f.isOurs(now, pointer):
		case old != nil:
			now.Value = old.Value
		default:
			remove(root, pointer)
		}
		for pointer, _ = splitPointer(s.Pointer); pointer != "" && f.isRecorded && original.Find(pointer) == nil; pointer, _ = splitPointer(pointer) {
			if text := compact(root.Find(pointer)); text == "{}" || text == "[]" {
				remove(root, pointer)
			}
		}
	}
}

// recorded returns the document without atm's part, and as install left it; both are empty without a record.
func (f *file) recorded() (original, installed *hujson.Value) {
	original, _ = parseJSON(f.record.Original)
	installed, _ = parseJSON(f.record.Installed)
	return original, installed
}

// isOurs reports whether the value at a pointer is what install put there.
func (f *file) isOurs(now *hujson.Value, pointer string) bool {
	original, installed := f.recorded()
	text := compact(now)
	return text == compact(installed.Find(pointer)) && text != compact(original.Find(pointer))
}

// hookSet is a program's hooks with their command.
type hookSet struct {
	agents.HookSet
	tool, command string
}

// Timeouts in seconds: of a hook that waits, and of one of brief, which such a program clamps to with a warning if it is longer.
const aDay, briefly = 24 * 60 * 60, 3

// removeFrom removes atm's hooks for the tool, and the groups that are empty then.
func (h hookSet) removeFrom(root *hujson.Value) {
	hooks := root.Find("/hooks")
	if hooks == nil || hooks.Value.Kind() != '{' {
		return
	}
	// A command that runs atm for the tool, wherever atm is.
	own := regexp.MustCompile(`^'?([^'"|&;<>()$]*[/\\])?atm(\.exe)?'? hook ` + h.tool + `( --as \S+)?$`)
	for _, m := range hooks.Value.(*hujson.Object).Members {
		event := "/hooks/" + agents.EscapePointer(stringOf(&m.Name))
		for g, group := range slices.Backward(elements(&m.Value)) {
			list := fmt.Sprintf("%s/%d/hooks", event, g)
			old := elements(group.Find("/hooks"))
			for i, hook := range slices.Backward(old) {
				if own.MatchString(stringOf(hook.Find("/command"))) {
					remove(root, fmt.Sprintf("%s/%d", list, i))
				}
			}
			if left := root.Find(list); len(old) > 0 && len(elements(left)) == 0 {
				remove(root, fmt.Sprintf("%s/%d", event, g))
			}
		}
	}
}

// settings are a group of its own for each event, behind those of others.
func (h hookSet) settings() []agents.Setting {
	change := fmt.Sprintf("hooks for %d events: %s", len(h.Events), h.command)
	hook := func(event, command string, timeout int) agents.Setting {
		group := fmt.Sprintf(`{"hooks": [{"type": "command", "command": %s, "timeout": %d}]}`, agents.Quoted(command), timeout)
		return agents.Setting{Pointer: "/hooks/" + event + "/-", Value: group, Change: change}
	}
	var all []agents.Setting
	for _, event := range h.Events {
		timeout := h.Timeout
		if slices.Contains(h.Waiting, event) {
			timeout = aDay
		} else if slices.Contains(h.Brief, event) {
			timeout = briefly
		}
		all = append(all, hook(event, h.command, timeout))
	}
	return all
}
