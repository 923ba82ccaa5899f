package agents

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/agentteammail/atm/internal/tomlfile"
)

// extend adds to a person's file what the built-in one has that it extends. A list of the screen or of what is typed begins
// with the person's own items, a table has the keys of both, and anything else is the person's if that file says it.
func (f *File) extend(from *File, lines tomlfile.Lines) {
	merge("", reflect.ValueOf(f).Elem(), reflect.ValueOf(from).Elem(), lines)
}

// merge adds what is at a path of a built-in file to what is there in a person's own.
func merge(path string, own, from reflect.Value, lines tomlfile.Lines) {
	_, isSaid := lines[path]
	isPart := strings.HasPrefix(path, "screen.") || strings.HasPrefix(path, "reader.") || strings.HasPrefix(path, "typing.")
	switch own.Type() {
	case reflect.TypeFor[Pattern](), reflect.TypeFor[*Pattern](), reflect.TypeFor[Keystrokes]():
		if own.IsZero() {
			own.Set(from)
		}
		return
	}
	switch own.Kind() {
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(own.Type()) {
			if key := cmp.Or(field.Tag.Get("toml"), strings.ToLower(field.Name)); key != "-" && !field.Anonymous {
				merge(strings.TrimPrefix(path+"."+key, "."), own.FieldByIndex(field.Index), from.FieldByIndex(field.Index), lines)
			}
		}
	case reflect.Pointer:
		switch {
		case own.IsNil():
			own.Set(from)
		case !from.IsNil():
			merge(path, own.Elem(), from.Elem(), lines)
		}
	case reflect.Map:
		if own.IsNil() && !from.IsNil() {
			own.Set(reflect.MakeMap(own.Type()))
		}
		for _, key := range from.MapKeys() {
			if !own.MapIndex(key).IsValid() {
				own.SetMapIndex(key, from.MapIndex(key))
			}
		}
	case reflect.Slice:
		if isPart {
			own.Set(reflect.AppendSlice(own, from))
		} else if !isSaid {
			own.Set(from)
		}
	default:
		if own.IsZero() && !isSaid {
			own.Set(from)
		}
	}
}
