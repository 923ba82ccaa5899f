package agents

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Look returns the value at a pointer in a JSON or TOML file as JSON, "" if it has none, and its line in a JSON file.
type Look func(path, pointer string) (value string, line int)

// A SwitchFile is a file with a setting that may keep a program from running hooks.
type SwitchFile struct {
	Path   string
	IsHere bool // it belongs to this project
}

// LastOff says which file switches the hooks off, if the last that has the setting does.
func (look Look) LastOff(in *Install, pointer, off string, files []SwitchFile) (why string, isHere bool) {
	for _, f := range files {
		if value, _ := look(f.Path, pointer); value != "" {
			why = look.IsSet(f.Path, pointer, off)
			isHere = why != "" && f.IsHere && !in.Local
		}
	}
	return why, isHere
}

// IsSet says that a setting has a value, with its place; "": it has not. Programs take "false" for false.
func (look Look) IsSet(path, pointer, want string) string {
	value, line := look(path, pointer)
	if strings.Trim(value, `"`) != want {
		return ""
	}
	place := path
	if line > 0 {
		place = fmt.Sprintf("%s, line %d", path, line)
	}
	return fmt.Sprintf("%s is %s in %s", Dotted(pointer), value, place)
}

// Dotted returns a JSON pointer as people write it.
func Dotted(pointer string) string {
	return strings.NewReplacer("/", ".", "~1", "/", "~0", "~").Replace(strings.TrimPrefix(pointer, "/"))
}

// EscapePointer returns a name as an element of a JSON pointer.
func EscapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Quoted returns words as JSON, which is also TOML.
func Quoted[T string | []string | []any](v T) string {
	data, _ := json.Marshal(v) // strings never fail
	return string(data)
}
