package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Setting is a key with a value that is not the one which it has without the file.
type Setting struct {
	Path  []string // "members", "bob", "inject"; of an item of a list its number, from 0
	Value any
}

// Key is the path as it stands in the file: "members.bob.inject".
func (s Setting) Key() string { return strings.Join(s.Path, ".") }

// Text is the value as JSON, which is also how TOML writes it.
func (s Setting) Text() string {
	data, _ := json.Marshal(s.Value) // no type of a Config fails
	return string(data)
}

// Settings lists all keys that say something, in the order of the types, and by name. It knows no key: a new field is in
// the list as it is.
func (c *Config) Settings() (all []Setting) {
	w := settings{team: reflect.ValueOf(c.Session)}
	w.add(nil, reflect.ValueOf(*c), reflect.ValueOf(*Default()))
	return w.all
}

type settings struct {
	team reflect.Value // the session section that those of members are compared with
	all  []Setting
}

func (w *settings) add(path []string, v, without reflect.Value) {
	below := func(key string) []string { return append(slices.Clip(path), key) }
	isTable := func(t reflect.Type) bool { return t.Kind() == reflect.Struct }
	switch t := v.Type(); {
	case isTable(t):
		for _, field := range reflect.VisibleFields(t) {
			key := cmp.Or(field.Tag.Get("toml"), strings.ToLower(field.Name))
			w.add(below(key), v.FieldByIndex(field.Index), without.FieldByIndex(field.Index))
		}
	case t.Kind() == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, key := range keys {
			w.add(below(key.String()), v.MapIndex(key), reflect.Zero(t.Elem()))
		}
	case t.Kind() == reflect.Slice && isTable(t.Elem()):
		for i := range v.Len() {
			w.add(below(fmt.Sprint(i)), v.Index(i), reflect.Zero(t.Elem()))
		}
	case t.Kind() == reflect.Pointer && v.IsNil():
	case t.Kind() == reflect.Pointer && t.Elem() == w.team.Type():
		w.add(path, v.Elem(), w.team)
	case t.Kind() == reflect.Pointer && isTable(t.Elem()):
		w.add(path, v.Elem(), reflect.Zero(t.Elem()))
	case !reflect.DeepEqual(v.Interface(), without.Interface()):
		w.all = append(w.all, Setting{path, v.Interface()})
	}
}
