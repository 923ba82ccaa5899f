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
	root     *hujson.Value
	original *hujson.Value // what the file was before us; nil: not known
}

// editJSON has a function edit the document in a file.
func (f *file) editJSON(d dialect, do func(*jsonEdit) error) error {
	root, err := parseJSON(f.after, d)
	if err != nil {
		return f.notUnderstood(err)
	}
	e := &jsonEdit{file: f, root: root}
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

// addStrings puts into a list what of values is not in it.
func (e *jsonEdit) addStrings(values []string, keys ...string) (added []string, err error) {
	for _, s := range values {
		list, sep, outer, err := container(e.root, '[', keys...)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(strs(list), s) {
			appendElement(list, hujson.String(s), sep, outer)
			added = append(added, s)
		}
	}
	e.added = append(e.added, added...)
	return added, nil
}

// removeStrings takes these values out of a list, but for those that were in it
// before us.
func (e *jsonEdit) removeStrings(values []string, keys ...string) (removed []string) {
	list := find(e.root, keys...)
	for i := len(elements(list)) - 1; i >= 0; i-- {
		s := str(&elements(list)[i])
		if slices.Contains(values, s) && !slices.Contains(strs(find(e.original, keys...)), s) {
			removeChild(list, i)
			removed = append(removed, s)
		}
	}
	if len(removed) > 0 {
		e.prune(keys...)
	}
	return removed
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
	e.added = append(e.added, value)
	return true, nil
}

// resetString takes back what setString did, unless somebody else has changed
// the member since.
func (e *jsonEdit) resetString(keys ...string) (changed bool) {
	is := find(e.root, keys...)
	if e.record == nil || is == nil || !slices.Contains(e.record.Added, str(is)) {
		return false
	}
	was := find(e.original, keys...)
	if was != nil {
		changed = str(is) != str(was)
		is.Value = was.Value
		return changed
	}
	removeMember(e.root, keys...)
	e.prune(keys[:len(keys)-1]...)
	return true
}

// prune takes out a list or object that is empty now and was not there before
// us, and what it was in likewise. Where that is not known it stays.
func (e *jsonEdit) prune(keys ...string) {
	v := find(e.root, keys...)
	if len(keys) == 0 || v == nil || e.original == nil || find(e.original, keys...) != nil {
		return
	}
	if before, _, end := extras(v); len(before) == 0 && !hasComment(*end) {
		removeMember(e.root, keys...)
		e.prune(keys[:len(keys)-1]...)
	}
}

// allow puts rules into a list.
func (e *jsonEdit) allow(rules []string, keys ...string) error {
	added, err := e.addStrings(rules, keys...)
	e.sayVerbs(added)
	return err
}

// disallow takes rules of ours out again.
func (e *jsonEdit) disallow(rules []string, keys ...string) {
	if n := len(e.removeStrings(rules, keys...)); n > 0 {
		e.say("asked about again: %d rules for atm taken out", n)
	}
}

// addRoot puts the root among the paths that sandboxed commands may write.
// inherited are paths that a new list would hide.
func (p *Installer) addRoot(e *jsonEdit, inherited []string, keys ...string) error {
	if p.Root == "" {
		return nil
	}
	want := []string{p.Root}
	if find(e.root, keys...) == nil {
		want = union(inherited, want)
	}
	added, err := e.addStrings(want, keys...)
	if len(added) > 0 {
		e.say("writable in the sandbox: %s", strings.Join(added, ", "))
	}
	return err
}

func (e *jsonEdit) removeRoots(roots []string, keys ...string) {
	if removed := e.removeStrings(roots, keys...); len(removed) > 0 {
		e.say("no longer writable in the sandbox: %s", strings.Join(removed, ", "))
	}
}

// setAgent writes who the agent is.
func (e *jsonEdit) setAgent(agent string, keys ...string) error {
	if agent == "" {
		return nil
	}
	changed, err := e.setString(agent, keys...)
	if changed {
		e.say("ATM_AGENT is %s here", agent)
	}
	return err
}

func (e *jsonEdit) resetAgent(keys ...string) {
	if e.resetString(keys...) {
		e.say("ATM_AGENT taken out")
	}
}

// isFlag reports whether a member is just this word.
func (e *jsonEdit) isFlag(word string, keys ...string) bool {
	v := find(e.root, keys...)
	return v != nil && string(hujson.Value{Value: v.Value}.Pack()) == word
}

// readJSON reads a file that is not going to be edited; nil is one that cannot
// be understood.
func readJSON(path string) *hujson.Value {
	data, _, err := readFile(path)
	if err != nil {
		return nil
	}
	root, err := parseJSON(data, looseJSON)
	if err != nil {
		return nil
	}
	return root
}
