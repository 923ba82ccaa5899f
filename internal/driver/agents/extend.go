package agents

import (
	"fmt"
	"maps"
	"slices"

	"github.com/agentteammail/atm/internal/tomlfile"
)

// extended is the built-in driver that a file extends, with what the file says instead. A list of what is typed begins with
// the file's own items, and a table has the keys of both. It is nil if no agent's driver has that name.
func (f *File) extended() *File {
	text, err := embedded.ReadFile(f.Extends + ".toml")
	from, both := &File{}, &File{Name: f.Name, Text: f.Text}
	tomlfile.Decode(text, from)
	if err != nil || from.isOurs() {
		return nil
	}
	tomlfile.Decode(text, both)
	tomlfile.Decode(f.Text, both) // what it does not say stays
	both.Parts = map[string]string{}
	maps.Copy(both.Parts, from.Parts)
	maps.Copy(both.Parts, f.Parts)
	if f.Typing != nil && from.Typing != nil {
		both.Typing.Escapes = slices.Concat(f.Typing.Escapes, from.Typing.Escapes)
		both.Typing.Refused = slices.Concat(f.Typing.Refused, from.Typing.Refused)
	}
	return both
}

// patterns returns the patterns by the paths of their keys.
func (f *File) patterns() map[string]*Pattern {
	s := &f.Screen
	all := map[string]*Pattern{
		"screen.asks.title": s.Asks.Title, "screen.asks.pattern": s.Asks.Pattern, "screen.asks.option": s.Asks.Option,
		"screen.busy.title": s.Busy.Title, "screen.busy.pattern": s.Busy.Pattern,
		"screen.prompt.title": s.Prompt.Title, "screen.prompt.pattern": s.Prompt.Pattern,
	}
	if f.Typing != nil {
		for i := range f.Typing.Escapes {
			all[fmt.Sprintf("typing.escapes[%d].pattern", i)] = &f.Typing.Escapes[i].Pattern
		}
		for i := range f.Typing.Refused {
			all[fmt.Sprintf("typing.refused[%d]", i)] = &f.Typing.Refused[i]
		}
	}
	return all
}
