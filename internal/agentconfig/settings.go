package agentconfig

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// setting is a string in a JSON file, at a place. The record of an install names those that it added.
type setting struct {
	Place string `json:"place"`
	Value string `json:"value"`
	said  string // what a person is told, once for all settings that say the same
}

// allowed is what a person is told where the verbs need no permission from now on.
var allowed = "runs without asking: atm " + strings.Join(Verbs, ", ")

// perVerb makes something for each verb that needs no permission.
func perVerb[T any](f func(verb string) T) (all []T) {
	for _, v := range Verbs {
		all = append(all, f(v))
	}
	return all
}

// withRoot adds the root to what sandboxed commands may write.
func (p *Installer) withRoot(settings []setting, place string) []setting {
	if p.Root == "" {
		return settings
	}
	return append(settings, setting{place, p.Root, "writable in the sandbox: " + p.Root})
}

// jsonEdit is a JSON file while it is edited.
type jsonEdit struct {
	*file
	tool     string
	root     *hujson.Value
	original *hujson.Value // what the file was before us; nil: not known
}

// jsonFile is an edit of a JSON file: hooks and settings.
func jsonFile(path, tool string, h hookSet, settings []setting) edit {
	return edit{path, func(f *file) error {
		root, err := parseJSON(f.after)
		if err != nil {
			return f.notUnderstood(err)
		}
		e, before := &jsonEdit{file: f, tool: tool, root: root}, root.Pack()
		if f.record != nil {
			e.original, _ = parseJSON(f.record.Original)
		}
		if f.isRemoval {
			e.uninstall()
		} else if err := e.install(h, settings); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		if after := root.Pack(); !bytes.Equal(before, after) {
			f.after = after
		}
		return nil
	}}
}

func (e *jsonEdit) install(h hookSet, settings []setting) error {
	if err := e.installHooks(h); err != nil {
		return err
	}
	for _, s := range settings {
		place, isList := strings.CutSuffix(s.Place, "/-")
		is := e.root.Find(place)
		if isList && indexOf(is, s.Value) >= 0 || !isList && str(is) == s.Value {
			continue
		}
		if err := put(e.root, s.Place, quoted(s.Value)); err != nil {
			return err
		}
		e.added = append(e.added, s)
		if !slices.Contains(e.changes, s.said) {
			e.say("%s", s.said)
		}
	}
	return nil
}

// uninstall takes out hooks of ours, and the settings that the record names.
func (e *jsonEdit) uninstall() {
	hooks, n := e.ownHooks(), 0
	e.removeHooks(hooks)
	for _, h := range hooks {
		e.prune(h.event)
	}
	if len(hooks) > 0 {
		e.say("hooks taken out: %d", len(hooks))
	}
	if e.record != nil {
		for _, s := range e.record.Added {
			n += e.removeSetting(s)
		}
	}
	if n > 0 {
		e.say("rules, paths and names taken out: %d", n)
	}
}

// removeSetting takes out a setting that is still as it was added, and counts it. A member that had
// another value before gets that back.
func (e *jsonEdit) removeSetting(s setting) int {
	place, isList := strings.CutSuffix(s.Place, "/-")
	is := e.root.Find(place)
	if isList {
		i := indexOf(is, s.Value)
		if i < 0 {
			return 0
		}
		remove(e.root, fmt.Sprintf("%s/%d", place, i))
		e.prune(place)
		return 1
	}
	if str(is) != s.Value {
		return 0
	}
	if was := e.originally(place); was != nil {
		is.Value = was.Value
		return 1
	}
	remove(e.root, place)
	outer, _ := around(place)
	e.prune(outer)
	return 1
}

// originally is what was at a place before us; nil: nothing, or that is not known.
func (e *jsonEdit) originally(place string) *hujson.Value {
	if e.original == nil {
		return nil
	}
	return e.original.Find(place)
}

// prune takes out a list or object that is empty now and was not there before us. Where that is not
// known it stays.
func (e *jsonEdit) prune(place string) {
	v := e.root.Find(place)
	if place == "" || v == nil || e.original == nil || e.originally(place) != nil || !isEmpty(v) {
		return
	}
	remove(e.root, place)
	outer, _ := around(place)
	e.prune(outer)
}
