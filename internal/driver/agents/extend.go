package agents

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/agentteammail/atm/internal/tomlfile"
)

func below(path string, key any) string { return strings.TrimPrefix(fmt.Sprint(path, ".", key), ".") }

// finish sets the lines and compiles the patterns of what is at a path, after decoding.
func (k *checker) finish(path string, v reflect.Value, parts *strings.Replacer) {
	switch v.Kind() {
	case reflect.Pointer:
		if p, ok := v.Interface().(*Pattern); ok && p != nil && p.text == "" {
			k.addError(path, errors.New("a string in quotes is needed"))
		} else if !v.IsNil() {
			k.finish(path, v.Elem(), parts)
		}
	case reflect.Slice:
		for i := range v.Len() {
			k.finish(below(path, i), v.Index(i), parts)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			k.finish(below(path, key), v.MapIndex(key), parts)
		}
	case reflect.Struct:
		if p, ok := v.Addr().Interface().(*Pattern); ok {
			if p.text != "" {
				k.addError(path, p.compile(strings.HasPrefix(path, "screen."), parts))
			}
			return
		}
		for _, field := range reflect.VisibleFields(v.Type()) {
			if key := tomlfile.Key(field); key != "" {
				k.finish(below(path, key), v.FieldByIndex(field.Index), parts)
			}
		}
	}
}

func (k *checker) addError(path string, err error) {
	if err != nil {
		k.add(k.lines.Of(path), "%s: %v", path[strings.LastIndexByte(path, '.')+1:], err)
	}
}

// extend adds to a person's file what the built-in one has that it extends. A list of what is typed begins with the
// person's own items, a table has the keys of both, and anything else is the person's if that file says it.
func (f *File) extend(from *File, lines tomlfile.Lines) {
	merge("", reflect.ValueOf(f).Elem(), reflect.ValueOf(from).Elem(), lines)
}

// merge adds what is at a path of a built-in file to what is there in a person's own.
func merge(path string, own, from reflect.Value, lines tomlfile.Lines) {
	_, isSaid := lines[path]
	isPart := strings.HasPrefix(path, "typing.")
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
			if key := tomlfile.Key(field); key != "" {
				merge(below(path, key), own.FieldByIndex(field.Index), from.FieldByIndex(field.Index), lines)
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
