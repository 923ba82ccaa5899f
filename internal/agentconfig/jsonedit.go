package agentconfig

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonEdit is a JSON file while it is edited.
type jsonEdit struct {
	*file
	tool     string
	root     *hujson.Value
	original *hujson.Value // what the file was before us; nil: not known
}

// newJSONEdit is an edit of a JSON file. known are the strings that an install
// puts in, as entry writes them.
func newJSONEdit(path, tool string, d dialect, known []string, install func(*jsonEdit) error) edit {
	return edit{
		path:      path,
		install:   func(f *file) error { return f.editJSON(tool, d, install) },
		uninstall: func(f *file) error { return f.editJSON(tool, d, func(e *jsonEdit) error { return e.uninstall(known) }) },
	}
}

func (f *file) editJSON(tool string, d dialect, do func(*jsonEdit) error) error {
	root, err := parseJSON(f.after, d)
	if err != nil {
		return f.notUnderstood(err)
	}
	e := &jsonEdit{file: f, tool: tool, root: root}
	if f.record != nil {
		e.original, _ = parseJSON(f.record.Original, d)
	}
	before := root.Pack()
	if err := do(e); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	after := root.Pack()
	if bytes.Equal(before, after) {
		return nil
	}
	if _, err := parseJSON(after, d); err != nil {
		return fmt.Errorf("%s was left alone: an edit of it went wrong: %w", f.path, err)
	}
	f.after = after
	return nil
}

func (f *file) notUnderstood(err error) error {
	return fmt.Errorf("%s cannot be understood, and was left alone: %w", f.path, err)
}

// entry names a string in a list or object, as a record notes what we added.
func entry(value string, keys ...string) string { return strings.Join(keys, ".") + "=" + value }

// addStrings puts into a list what of values is not in it.
func (e *jsonEdit) addStrings(values []string, keys ...string) (added []string, err error) {
	for _, s := range values {
		list, sep, outer, err := container(e.root, '[', keys...)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(strs(list), s) {
			appendElement(list, hujson.String(s), sep, outer)
			e.added = append(e.added, entry(s, keys...))
			added = append(added, s)
		}
	}
	return added, nil
}

// setString gives a member a string.
func (e *jsonEdit) setString(value string, keys ...string) (changed bool, err error) {
	last := len(keys) - 1
	obj, sep, outer, err := container(e.root, '{', keys[:last]...)
	if err != nil {
		return false, err
	}
	is := member(obj, keys[last])
	if is != nil && is.Value.Kind() != '"' {
		return false, wrongKind(keys, is.Value, '"')
	}
	if is != nil && str(is) == value {
		return false, nil
	}
	if is != nil {
		is.Value = hujson.String(value)
	} else {
		appendMember(obj, keys[last], hujson.Value{Value: hujson.String(value)}, sep, outer)
	}
	e.added = append(e.added, entry(value, keys...))
	return true, nil
}

// addRoot puts the root among the paths that sandboxed commands may write.
// inherited are paths that a new list would hide.
func (e *jsonEdit) addRoot(root string, inherited []string, keys ...string) error {
	if root == "" {
		return nil
	}
	want := []string{root}
	if find(e.root, keys...) == nil {
		want = union(inherited, want)
	}
	added, err := e.addStrings(want, keys...)
	if len(added) > 0 {
		e.say("writable in the sandbox: %s", strings.Join(added, ", "))
	}
	return err
}

// uninstall takes out hooks of ours, and the strings that the record names;
// without one, those that an install puts in.
func (e *jsonEdit) uninstall(known []string) error {
	hooks := e.visitHooks(func(_ string, command *hujson.Value) bool { return e.ownerOf(command) == ours })
	for _, event := range hooks {
		e.prune("hooks", event)
	}
	if len(hooks) > 0 {
		e.say("hooks taken out: %d", len(hooks))
	}
	removed := e.removeStrings(e.root, e.original, e.ours(known), "")
	if len(removed) > 4 {
		removed = []string{fmt.Sprintf("%d rules and paths", len(removed))}
	}
	if len(removed) > 0 {
		e.say("taken out: %s", strings.Join(removed, ", "))
	}
	return nil
}

// removeStrings takes these entries out of an object or list and all within it.
// What was there before us gets its old value back.
func (e *jsonEdit) removeStrings(v, original *hujson.Value, entries []string, path string) (removed []string) {
	if list, ok := v.Value.(*hujson.Array); ok {
		for i := len(list.Elements) - 1; i >= 0; i-- {
			s := str(&list.Elements[i])
			if s != "" && slices.Contains(entries, path+"="+s) && !slices.Contains(strs(original), s) {
				removed = append(removed, s)
				removeChild(v, i)
			}
		}
	}
	obj, _ := v.Value.(*hujson.Object)
	for i := len(members(v)) - 1; i >= 0; i-- {
		key, child := str(&obj.Members[i].Name), &obj.Members[i].Value
		at, was := strings.TrimPrefix(path+"."+key, "."), find(original, key)
		s := str(child)
		switch {
		case !slices.Contains(entries, at+"="+s) || s == str(was):
			inside := e.removeStrings(child, was, entries, at)
			removed = append(removed, inside...)
			if len(inside) > 0 && was != nil && was.Value.Kind() == '"' && isEmpty(child) {
				child.Value = was.Value
			} else if len(inside) > 0 {
				e.prune(strings.Split(at, ".")...)
			}
		case was != nil:
			removed = append(removed, s)
			child.Value = was.Value
		case key != "*" || len(obj.Members) == 1: // else it says what holds for others' rules
			removed = append(removed, key+": "+s)
			removeChild(v, i)
		}
	}
	return removed
}

// prune takes out a list or object that is empty now and was not there before
// us. Where that is not known it stays.
func (e *jsonEdit) prune(keys ...string) {
	v := find(e.root, keys...)
	if len(keys) == 0 || v == nil || !isEmpty(v) || e.original == nil || find(e.original, keys...) != nil {
		return
	}
	removeMember(e.root, keys...)
	e.prune(keys[:len(keys)-1]...)
}

// isFlag reports whether a member is just this word.
func (e *jsonEdit) isFlag(word string, keys ...string) bool {
	v := find(e.root, keys...)
	return v != nil && string(hujson.Value{Value: v.Value}.Pack()) == word
}
