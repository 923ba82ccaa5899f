package agentconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

// A setting is a value in a JSON file. Its place is a JSON pointer (RFC 6901), where "/-" at the end adds to a list.
type setting struct {
	pointer, value string
	change         string         // for the report, once for all settings with the same text
	own            *regexp.Regexp // matches every value that atm may have written; nil: any value may be the user's
}

func (p *Installer) writableRoot(pointer string) setting {
	return setting{pointer, quoted(p.Root), "writable in the sandbox: " + p.Root, nil}
}

func quoted[T string | []string | []any](v T) string {
	data, _ := json.Marshal(v) // strings never fail
	return string(data)
}

// parseJSON parses a document whose root is an object. A blank one counts as {}.
func parseJSON(data []byte) (*hujson.Value, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	root, err := hujson.Parse(data)
	if ended, again := hujson.Parse([]byte(string(data) + "\n")); err != nil && again == nil {
		root, err = ended, nil // the last line is a comment, which hujson wants to be ended
	}
	if err != nil {
		return &root, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if root.Value.Kind() != '{' {
		return &root, errors.New("it is not an object")
	}
	// Of two members with one name the tool may use one, and hujson's Find the other.
	standard := root.Clone()
	standard.Standardize()
	decoder := jsontext.NewDecoder(bytes.NewReader(standard.Pack()), jsontext.AllowInvalidUTF8(true))
	if err := decoder.SkipValue(); err != nil {
		return &root, errors.New(strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	return &root, nil
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

func compactText(value string) string {
	v, _ := hujson.Parse([]byte(value)) // atm's own values always parse
	return compact(&v)
}

// index returns the place in a list of an element with this compact text, -1 if there is none.
func index(list *hujson.Value, text string) int {
	return slices.IndexFunc(elements(list), func(v hujson.Value) bool { return compact(&v) == text })
}

// isEmpty reports whether an object or list holds nothing, not even a comment.
func isEmpty(v *hujson.Value) bool {
	text := strings.Join(strings.Fields(hujson.Value{Value: v.Value}.String()), "")
	return text == "{}" || text == "[]"
}

// put sets the value at a pointer, and makes the objects and lists around it. A new value gets a line of its own.
func put(root *hujson.Value, pointer, value string) error {
	outer, name := splitPointer(pointer)
	kind, kindName, empty := hujson.Kind('{'), "an object", "{}"
	if name == "-" {
		kind, kindName, empty = '[', "a list", "[]"
	}
	if root.Find(outer) == nil {
		if err := put(root, outer, empty); err != nil {
			return err
		}
	}
	in := root.Find(outer)
	if in.Value.Kind() != kind {
		return fmt.Errorf("%s is not %s; atm left the file alone", strings.ReplaceAll(outer[1:], "/", "."), kindName)
	}
	isNew := in.Find("/"+name) == nil
	err := root.Patch(fmt.Appendf(nil, `[{"op": "add", "path": %s, "value": %s}]`, quoted(pointer), value))
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

// remove removes the value at a pointer, if there is one.
func remove(root *hujson.Value, pointer string) {
	isStandard := root.IsStandard()
	root.Patch(fmt.Appendf(nil, `[{"op": "remove", "path": %s}]`, quoted(pointer)))
	if isStandard {
		root.Standardize() // Patch may leave a comma
	}
	outer, _ := splitPointer(pointer)
	if in := root.Find(outer); in != nil && isEmpty(in) { // no white space stays in it
		in.Value = map[hujson.Kind]hujson.ValueTrimmed{'{': &hujson.Object{}, '[': &hujson.Array{}}[in.Value.Kind()]
	}
}

// jsonFile is the edit of a JSON file that gets hooks and settings.
func jsonFile(path string, hooks hookSet, settings []setting) edit {
	return edit{path: path, apply: func(f *file) error {
		root, err := parseJSON(f.after)
		if err != nil {
			return fmt.Errorf("cannot parse %s (left unchanged): %w", f.path, err)
		}
		before := root.Pack()
		if f.isRemoval {
			f.removeHooks(root, hooks)
			if f.removeSettings(root, settings) {
				f.addChange("settings removed")
			}
		} else if err := cmp.Or(f.addHooks(root, hooks), f.addSettings(root, settings)); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		if after := root.Pack(); !bytes.Equal(before, after) {
			f.after = after
		}
		return nil
	}}
}

func (f *file) addSettings(root *hujson.Value, settings []setting) error {
	for _, s := range settings {
		pointer, isList := strings.CutSuffix(s.pointer, "/-")
		now, want := root.Find(pointer), compactText(s.value)
		if want == `""` || isList && index(now, want) >= 0 || !isList && compact(now) == want {
			continue
		}
		if now != nil && s.own != nil && !f.isOurs(s, now) {
			name := strings.ReplaceAll(pointer[1:], "/", ".")
			return fmt.Errorf("it already has its own %s: put %s there yourself", name, s.value)
		}
		if err := put(root, s.pointer, s.value); err != nil {
			return err
		}
		f.addChange(s.change)
	}
	return nil
}

// removeSettings removes what the record says that install added. A value that matches own goes without a record too.
func (f *file) removeSettings(root *hujson.Value, settings []setting) (isChanged bool) {
	original, installed := f.recorded()
	before := compact(root)
	for _, s := range settings {
		pointer, isList := strings.CutSuffix(s.pointer, "/-")
		old, new, now := original.Find(pointer), installed.Find(pointer), root.Find(pointer)
		isUnchanged := compact(now) == compact(new)
		switch {
		case now == nil:
		case isList:
			for _, v := range elements(new) {
				text := compact(&v)
				if i := index(now, text); i >= 0 && index(old, text) < 0 {
					remove(root, fmt.Sprintf("%s/%d", pointer, i))
				}
			}
		case s.own != nil && f.isOurs(s, now), old == nil && isUnchanged:
			remove(root, pointer)
		case isUnchanged:
			now.Value = old.Value
		}
		f.removeEmptyAround(root, s.pointer)
	}
	return compact(root) != before
}

// recorded returns the document without atm's part, and as install left it; both are empty without a record.
func (f *file) recorded() (original, installed *hujson.Value) {
	original, _ = parseJSON(f.record.Original)
	installed, _ = parseJSON(f.record.Installed)
	return original, installed
}

// isNew reports whether install added the value at a pointer.
func (f *file) isNew(pointer string) bool {
	original, installed := f.recorded()
	return original.Find(pointer) == nil && installed.Find(pointer) != nil
}

// removeEmptyAround removes the objects and lists around a pointer that install added and that are empty now.
func (f *file) removeEmptyAround(root *hujson.Value, pointer string) {
	for pointer, _ = splitPointer(pointer); f.isNew(pointer); pointer, _ = splitPointer(pointer) {
		if now := root.Find(pointer); now != nil && !isEmpty(now) {
			return
		}
		remove(root, pointer)
	}
}

// isOurs reports whether atm wrote the value at the setting's pointer: it is what install writes, with any path of atm,
// or install added it and a tool has changed it since.
func (f *file) isOurs(s setting, now *hujson.Value) bool {
	text := compact(now)
	isAlike := s.own.ReplaceAllString(text, "") == s.own.ReplaceAllString(compactText(s.value), "")
	return isAlike || s.own.MatchString(text) && f.isNew(s.pointer)
}
