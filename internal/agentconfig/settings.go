package agentconfig

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// setting is a string in a JSON file: the value of a member, or in a list. The
// record of an install names those that it added.
type setting struct {
	Keys   []string `json:"keys"`
	Value  string   `json:"value"`
	InList bool     `json:"in_list,omitempty"`
}

// allowed is what a person is told where the verbs need no permission from now on.
var allowed = "runs without asking: atm " + strings.Join(Verbs, ", ")

// group is settings that a person is told of in one line.
type group struct {
	said     string
	settings []setting
}

// rootGroup is the root among the paths that sandboxed commands may write.
func (p *Installer) rootGroup(keys ...string) group {
	if p.Root == "" {
		return group{}
	}
	return group{"writable in the sandbox: " + p.Root, []setting{{Keys: keys, Value: p.Root, InList: true}}}
}

// jsonEdit is a JSON file while it is edited.
type jsonEdit struct {
	*file
	tool     string
	root     *hujson.Value
	original *hujson.Value // what the file was before us; nil: not known
}

// jsonFile is an edit of a JSON file: hooks and settings.
func jsonFile(path, tool string, h hookSet, groups []group) edit {
	return edit{
		path: path,
		install: func(f *file) error {
			return f.editJSON(tool, func(e *jsonEdit) error { return e.install(h, groups) })
		},
		uninstall: func(f *file) error { return f.editJSON(tool, (*jsonEdit).uninstall) },
	}
}

func (f *file) editJSON(tool string, do func(*jsonEdit) error) error {
	root, err := parseJSON(f.after)
	if err != nil {
		return f.notUnderstood(err)
	}
	e := &jsonEdit{file: f, tool: tool, root: root}
	if f.record != nil {
		e.original, _ = parseJSON(f.record.Original)
	}
	before := root.Pack()
	if err := do(e); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if after := root.Pack(); !bytes.Equal(before, after) {
		f.after = after
	}
	return nil
}

func (e *jsonEdit) install(h hookSet, groups []group) error {
	if err := h.install(e); err != nil {
		return err
	}
	for _, g := range groups {
		before := len(e.added)
		for _, s := range g.settings {
			if err := e.add(s); err != nil {
				return err
			}
		}
		if len(e.added) > before {
			e.say("%s", g.said)
		}
	}
	return nil
}

// add makes a setting what it is to be.
func (e *jsonEdit) add(s setting) error {
	last := len(s.Keys) - 1
	is := find(e.root, s.Keys...)
	if s.InList {
		list, err := container(e.root, '[', s.Keys...)
		if err != nil || indexOf(list, s.Value) >= 0 {
			return err
		}
		appendElement(list, hujson.String(s.Value), last+1)
	} else if is != nil && str(is) == s.Value {
		return nil
	} else if is != nil {
		is.Value = hujson.String(s.Value)
	} else {
		object, err := container(e.root, '{', s.Keys[:last]...)
		if err != nil {
			return err
		}
		appendMember(object, s.Keys[last], hujson.String(s.Value), last)
	}
	e.added = append(e.added, s)
	return nil
}

// uninstall takes out hooks of ours, and the settings that the record names.
func (e *jsonEdit) uninstall() error {
	hooks := visitHooks(e.root, e.tool, func(string, *hujson.Value) bool { return true })
	for _, event := range hooks {
		e.prune("hooks", event)
	}
	if len(hooks) > 0 {
		e.say("hooks taken out: %d", len(hooks))
	}
	if e.record == nil {
		return nil
	}
	n := 0
	for _, s := range e.record.Added {
		if e.remove(s) {
			n++
		}
	}
	if n > 0 {
		e.say("rules, paths and names taken out: %d", n)
	}
	return nil
}

// remove takes a setting out, unless it was there before us. A member that had
// another value gets that back.
func (e *jsonEdit) remove(s setting) bool {
	v, was := find(e.root, s.Keys...), find(e.original, s.Keys...)
	if s.InList {
		i := indexOf(v, s.Value)
		if i < 0 || indexOf(was, s.Value) >= 0 {
			return false
		}
		removeChild(v, i)
		e.prune(s.Keys...)
		return true
	}
	if str(v) != s.Value || str(was) == s.Value {
		return false
	}
	if was != nil {
		v.Value = was.Value
		return true
	}
	removeMember(e.root, s.Keys...)
	e.prune(s.Keys[:len(s.Keys)-1]...)
	return true
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

// perVerb makes something for each verb that needs no permission.
func perVerb[T any](f func(verb string) T) (all []T) {
	for _, v := range Verbs {
		all = append(all, f(v))
	}
	return all
}
