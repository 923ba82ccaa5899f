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

	"github.com/tailscale/hujson"
)

// Places in a document are JSON pointers (RFC 6901) in all of this package; "/-" behind one is the end of a list.

// parseJSON reads a document whose root is an object. A blank one counts as {}.
func parseJSON(data []byte) (*hujson.Value, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	root, err := hujson.Parse(data)
	if err == nil && root.Value.Kind() != '{' {
		err = errors.New("it is not an object")
	}
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	return &root, nil
}

// around is the place of the object or list that a place lies in, and the name there.
func around(place string) (outer, name string) {
	i := strings.LastIndex(place, "/")
	return place[:i], place[i+1:]
}

func str(v *hujson.Value) string {
	if v == nil || v.Value.Kind() != '"' {
		return ""
	}
	return v.Value.(hujson.Literal).String()
}

// elements are those of a list; nil and what is no list have none.
func elements(v *hujson.Value) []hujson.Value {
	if v != nil && v.Value.Kind() == '[' {
		return v.Value.(*hujson.Array).Elements
	}
	return nil
}

func minimal(v hujson.Value) string {
	v = v.Clone()
	v.Minimize()
	return v.String()
}

// isEmpty reports whether an object or list holds nothing, no comment either.
func isEmpty(v *hujson.Value) bool {
	text := strings.Join(strings.Fields(hujson.Value{Value: v.Value}.String()), "")
	return text == "{}" || text == "[]"
}

// put makes a place in a document have a value, and makes what is missing around it. What is new gets a
// line of its own.
func put(root *hujson.Value, place, value string) error {
	outer, name := around(place)
	kind, what, empty := hujson.Kind('{'), "an object", "{}"
	if name == "-" {
		kind, what, empty = '[', "a list", "[]"
	}
	if root.Find(outer) == nil {
		if err := put(root, outer, empty); err != nil {
			return err
		}
	}
	in := root.Find(outer)
	if in.Value.Kind() != kind {
		return fmt.Errorf("%s is not %s; the file was left alone", strings.ReplaceAll(outer[1:], "/", "."), what)
	}
	isNew := in.Find("/"+name) == nil
	err := root.Patch(fmt.Appendf(nil, `[{"op": "add", "path": %s, "value": %s}]`, quoted(place), value))
	if err != nil || !isNew {
		return err
	}
	var before, end *hujson.Extra
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

// remove takes out what is at a place. It must be there.
func remove(root *hujson.Value, place string) {
	isStandard := root.IsStandard()
	root.Patch(fmt.Appendf(nil, `[{"op": "remove", "path": %s}]`, quoted(place)))
	if isStandard {
		root.Standardize() // Patch may leave a comma
	}
	outer, _ := around(place)
	if in := root.Find(outer); isEmpty(in) {
		in.Value = map[hujson.Kind]hujson.ValueTrimmed{'{': &hujson.Object{}, '[': &hujson.Array{}}[in.Value.Kind()]
	}
}

// setting is a value in a JSON file, at a place. The record of an install names those that it added.
type setting struct {
	Place string          `json:"place"`
	Value json.RawMessage `json:"value"`
	said  string          // what a person is told, once for all settings that say the same
	own   *regexp.Regexp  // of what stands there and is ours, recorded or not; nil: none is known by its looks
}

func stringSetting(place, value, said string) setting {
	return setting{Place: place, Value: json.RawMessage(quoted(value)), said: said}
}

// find returns the place of the setting in a document, and what is there; nil: nothing, or something else.
func (s *setting) find(root *hujson.Value) (place string, is *hujson.Value) {
	want, _ := hujson.Parse(s.Value)
	isSame := func(v hujson.Value) bool {
		return minimal(v) == minimal(want) || str(&v) != "" && str(&v) == str(&want)
	}
	place, isList := strings.CutSuffix(s.Place, "/-")
	is = root.Find(place)
	if i := slices.IndexFunc(elements(is), isSame); isList && i >= 0 {
		return fmt.Sprintf("%s/%d", place, i), &elements(is)[i]
	}
	if isList || is == nil || !isSame(*is) {
		return place, nil
	}
	return place, is
}

// allowed is what a person is told where the verbs need no permission from now on.
var allowed = "runs without asking: atm " + strings.Join(Verbs, ", ")

func perVerb[T any](f func(verb string) T) (all []T) {
	for _, v := range Verbs {
		all = append(all, f(v))
	}
	return all
}

func (p *Installer) withRoot(all []setting, place string) []setting {
	if p.Root == "" {
		return all
	}
	return append(all, stringSetting(place, p.Root, "writable in the sandbox: "+p.Root))
}

type jsonEdit struct {
	*file
	root     *hujson.Value
	original *hujson.Value // what the file was before us; nil: not known
}

// jsonFile puts hooks and settings into a JSON file.
func jsonFile(path string, hooks hookSet, all []setting) edit {
	return edit{path, func(f *file) error {
		root, err := parseJSON(f.after)
		if err != nil {
			return f.notUnderstood(err)
		}
		e, before := &jsonEdit{file: f, root: root}, root.Pack()
		if f.record != nil {
			e.original, _ = parseJSON(f.record.Original)
		}
		if f.isRemoval {
			e.removeHooks(hooks)
			e.removeSettings(all)
		} else if err := cmp.Or(e.addHooks(hooks), e.addSettings(all)); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		if after := root.Pack(); !bytes.Equal(before, after) {
			f.after = after
		}
		return nil
	}}
}

func (e *jsonEdit) addSettings(all []setting) error {
	for _, s := range all {
		if _, is := s.find(e.root); is != nil {
			continue
		}
		if err := put(e.root, s.Place, string(s.Value)); err != nil {
			return err
		}
		e.added = append(e.added, s)
		if !slices.Contains(e.changes, s.said) {
			e.say("%s", s.said)
		}
	}
	return nil
}

// removeSettings takes out the settings that the record names and that are still as they were added, and those that
// are known by their looks. What was there before comes back.
func (e *jsonEdit) removeSettings(all []setting) {
	n := 0
	for _, s := range all {
		if is := e.root.Find(s.Place); is != nil && s.own != nil && s.own.MatchString(minimal(*is)) {
			e.restore(s.Place)
			n++
		}
	}
	if e.record != nil {
		for _, s := range e.record.Added {
			if place, is := s.find(e.root); is != nil && place == s.Place {
				e.restore(place)
				n++
			} else if is != nil {
				e.takeOut(place)
				n++
			}
		}
	}
	if n > 0 {
		e.say("settings taken out: %d", n)
	}
}

// originally is what was at a place before us; nil: nothing, or that is not known.
func (e *jsonEdit) originally(place string) *hujson.Value {
	if e.original == nil {
		return nil
	}
	return e.original.Find(place)
}

// restore gives a member the value that it had before us, or takes it out.
func (e *jsonEdit) restore(place string) {
	if was := e.originally(place); was != nil {
		e.root.Find(place).Value = was.Value
	} else {
		e.takeOut(place)
	}
}

// takeOut takes out what is at a place, and what has become empty around it.
func (e *jsonEdit) takeOut(place string) {
	remove(e.root, place)
	outer, _ := around(place)
	e.prune(outer)
}

// prune takes out a list or object that is empty now and was not there before us. Where that is not known it stays.
func (e *jsonEdit) prune(place string) {
	v := e.root.Find(place)
	if place == "" || v == nil || !isEmpty(v) {
		return
	}
	if e.original != nil && e.originally(place) == nil {
		e.takeOut(place)
	}
}
