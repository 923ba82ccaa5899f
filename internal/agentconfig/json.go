package agentconfig

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

// Places in a document are JSON pointers (RFC 6901) in all of this package; "/-" behind one is the end of a list.

// parseJSON reads a document whose root is an object. A blank one counts as {}.
func parseJSON(data []byte) (*hujson.Value, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	root, err := hujson.Parse(data)
	if ended, again := hujson.Parse([]byte(string(data) + "\n")); err != nil && again == nil {
		root, err = ended, nil // a comment was the last line
	}
	if err != nil {
		return &root, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if root.Value.Kind() != '{' {
		return &root, errors.New("it is not an object")
	}
	standard := root.Clone()
	standard.Standardize()
	// Of two members with one name a tool takes one, and Find may take the other.
	once := jsontext.NewDecoder(bytes.NewReader(standard.Pack()), jsontext.AllowInvalidUTF8(true))
	if err := once.SkipValue(); err != nil {
		return &root, errors.New(strings.TrimPrefix(err.Error(), "jsontext: "))
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

// remove takes out what is at a place, if it is there.
func remove(root *hujson.Value, place string) {
	isStandard := root.IsStandard()
	root.Patch(fmt.Appendf(nil, `[{"op": "remove", "path": %s}]`, quoted(place)))
	if isStandard {
		root.Standardize() // Patch may leave a comma
	}
	outer, _ := around(place)
	if in := root.Find(outer); in != nil && isEmpty(in) {
		in.Value = map[hujson.Kind]hujson.ValueTrimmed{'{': &hujson.Object{}, '[': &hujson.Array{}}[in.Value.Kind()]
	}
}

// setting is a value in a JSON file, at a place.
type setting struct {
	place, value string
	said         string         // what a person is told, once for all settings that say the same
	own          *regexp.Regexp // in what is ours there, from whichever atm (see isOurs); nil: none is known by its looks
}

func isSame(a, b *hujson.Value) bool { return minimal(*a) == minimal(*b) }

func index(list []hujson.Value, v *hujson.Value) int {
	return slices.IndexFunc(list, func(one hujson.Value) bool { return isSame(&one, v) })
}

// allowed is what a person is told where the verbs need no permission from now on.
var allowed = "runs without asking: atm " + strings.Join(Verbs, ", ")

func each[T any](words []string, f func(string) T) (all []T) {
	for _, w := range words {
		all = append(all, f(w))
	}
	return all
}

func (p *Installer) writableRoot(place string) setting {
	return setting{place, quoted(p.Root), "writable in the sandbox: " + p.Root, nil}
}

// jsonFile puts hooks and settings into a JSON file.
func jsonFile(path string, hooks hookSet, all []setting) edit {
	return edit{path: path, apply: func(f *file) error {
		root, err := parseJSON(f.after)
		if err != nil {
			return fmt.Errorf("%s cannot be understood, and was left alone: %w", f.path, err)
		}
		before := root.Pack()
		if f.isRemoval {
			f.removeHooks(root, hooks)
			f.removeSettings(root, all)
		} else if err := cmp.Or(f.addHooks(root, hooks), f.addSettings(root, all)); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		if after := root.Pack(); !bytes.Equal(before, after) {
			f.after = after
		}
		return nil
	}}
}

func (f *file) addSettings(root *hujson.Value, all []setting) error {
	for _, s := range all {
		want, _ := hujson.Parse([]byte(s.value)) // what is ours never fails
		place, isList := strings.CutSuffix(s.place, "/-")
		is := root.Find(place)
		if s.value == `""` || isList && index(elements(is), &want) >= 0 || !isList && is != nil && isSame(is, &want) {
			continue
		}
		if is != nil && s.own != nil && !f.isOurs(s, is) {
			name := strings.ReplaceAll(place[1:], "/", ".")
			return fmt.Errorf("it has %s of its own: put %s there yourself", name, s.value)
		}
		if err := put(root, s.place, s.value); err != nil {
			return err
		}
		f.say("%s", s.said)
	}
	return nil
}

// removeSettings takes out what an install has added and the record has. What is known by its looks goes in any case.
func (f *file) removeSettings(root *hujson.Value, all []setting) {
	was, is := f.recorded()
	before := minimal(*root)
	for _, s := range all {
		place, isList := strings.CutSuffix(s.place, "/-")
		old, installed, now := was.Find(place), is.Find(place), root.Find(place)
		switch {
		case now == nil:
		case s.own != nil && f.isOurs(s, now), f.isNew(place) && isSame(now, installed):
			remove(root, place)
		case isList:
			for _, one := range elements(installed) {
				if i := index(elements(now), &one); i >= 0 && index(elements(old), &one) < 0 {
					remove(root, fmt.Sprintf("%s/%d", place, i))
				}
			}
		case old != nil && installed != nil && isSame(now, installed):
			now.Value = old.Value
		}
		outer, _ := around(s.place)
		f.removeEmpty(root, outer)
	}
	if minimal(*root) != before {
		f.say("settings taken out")
	}
}

// recorded is the file before and after an earlier install; both are empty without a record.
func (f *file) recorded() (was, is *hujson.Value) {
	was, _ = parseJSON(f.record.Original)
	is, _ = parseJSON(f.record.Installed)
	return was, is
}

// isNew reports whether an install has made a place.
func (f *file) isNew(place string) bool {
	was, is := f.recorded()
	return was.Find(place) == nil && is.Find(place) != nil
}

// removeEmpty takes out the empty objects and lists that an install has made, at a place and around it.
func (f *file) removeEmpty(root *hujson.Value, place string) {
	for ; f.isNew(place); place, _ = around(place) {
		if now := root.Find(place); now != nil && !isEmpty(now) {
			return
		}
		remove(root, place)
	}
}

// isOurs reports whether what stands at the setting's place is ours: what an install writes, with any path of atm; or
// where the record says that one has written it, that and whatever a tool has added since.
func (f *file) isOurs(s setting, now *hujson.Value) bool {
	want, _ := hujson.Parse([]byte(s.value)) // what is ours never fails
	text := minimal(*now)
	isAlike := s.own.ReplaceAllString(text, "") == s.own.ReplaceAllString(minimal(want), "")
	return text == minimal(want) || s.own.MatchString(text) && (isAlike || f.isNew(s.place))
}
