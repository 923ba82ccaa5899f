package config

import (
	"reflect"

	"github.com/agentteammail/atm/internal/tomlfile"
	"github.com/agentteammail/atm/wire"
)

// Parse parses a team.toml and returns all mistakes by line; after a syntax error only that one, and beside a value of a
// wrong type only such, and unknown keys.
// The file may name a member without a section if hasMailbox (nil: never) reports true for it.
func Parse(data []byte, hasMailbox func(wire.Name) bool) (*Config, []Mistake) {
	k := checker{config: Default(), hasMailbox: hasMailbox, members: map[wire.Name]bool{}}
	var isUnread bool
	if k.lines, k.mistakes, isUnread = tomlfile.Decode(data, k.config); !isUnread {
		k.check()
		tomlfile.SortMistakes(k.mistakes)
	}
	return k.config, k.mistakes
}

// inherit gives a member's own session section what it leaves out.
func (k *checker) inherit(path string, own *Session) {
	of, team := reflect.ValueOf(own).Elem(), reflect.ValueOf(k.config.Session)
	for _, field := range reflect.VisibleFields(of.Type()) {
		if _, isSaid := k.lines[path+"."+tomlfile.Key(field)]; !isSaid {
			of.FieldByIndex(field.Index).Set(team.FieldByIndex(field.Index))
		}
	}
}

// Mistake is a mistake in team.toml.
type Mistake = tomlfile.Mistake

// Lines are the lines of a team.toml's keys.
type Lines = tomlfile.Lines

// FindLines finds the lines of a file's keys, up to a syntax error.
func FindLines(data []byte) Lines { return tomlfile.FindLines(data) }
