package cmdline

import (
	"errors"
	"fmt"
	"strings"
)

// Check returns every mistake in the App itself; a test calls it. It sees to
// what parsing and help rely on: a flag's name takes a value in every verb or
// in none, names are unique and plain, defaults can be read, every verb has a
// summary and an example, and a help page has at most 25 lines of 100 columns.
func (a *App) Check() error {
	k := &check{app: a}
	k.flags(a.Name, builtinFlags[:])
	k.flags(a.Name, a.Flags)
	k.verbs(nil, append(a.Verbs[:len(a.Verbs):len(a.Verbs)], builtinVerbs...))
	k.page(a.Name, a.Help)
	return errors.Join(k.found...)
}

type check struct {
	app   *App
	found []error
}

func (k *check) add(format string, args ...any) {
	k.found = append(k.found, fmt.Errorf(format, args...))
}

func (k *check) verbs(path []*Verb, verbs []*Verb) {
	seen := map[string]bool{}
	for _, v := range verbs {
		here := append(path[:len(path):len(path)], v)
		name := k.app.path(here)
		builtin := v == helpVerb || v == versionVerb
		if builtin && seen[v.Name] {
			continue // the App has its own
		}
		for _, n := range append([]string{v.Name}, v.Aliases...) {
			if seen[n] {
				k.add("%s: the name %q is taken", name, n)
			}
			if !plain(n) {
				k.add("%s: %q is not a plain name", name, n)
			}
			seen[n] = true
		}
		switch {
		case len(path) > 0 && len(v.Subs) > 0:
			k.add("%s: a sub has no subs", name)
		case v.Run == nil && len(v.Subs) == 0 && !builtin:
			k.add("%s: does nothing", name)
		case v.MaxArgs >= 0 && v.MinArgs > v.MaxArgs:
			k.add("%s: needs more arguments than it takes", name)
		case (v.Args == "") != (v.MaxArgs == 0) && v.Run != nil:
			k.add("%s: Args and MaxArgs contradict each other", name)
		}
		if v.Summary == "" {
			k.add("%s: no summary", name)
		}
		if len(v.Examples) == 0 && !v.Hidden {
			k.add("%s: no example", name)
		}
		k.flags(name, v.flags())
		k.shadows(name, v.flags())
		k.page(name, k.app.page(here))
		k.verbs(here, v.Subs)
	}
}

// shadows finds flags of a verb that every verb has.
func (k *check) shadows(where string, flags []Flag) {
	for i := range flags {
		for _, name := range append([]string{flags[i].Name}, flags[i].Aliases...) {
			long := len(name) > 1
			if findFlag(k.app.Flags, name, long) != nil || findFlag(builtinFlags[:], name, long) != nil {
				k.add("%s: every verb has %s", where, dashed(name))
			}
		}
	}
}

func (k *check) flags(where string, flags []Flag) {
	seen := map[string]bool{}
	for i := range flags {
		f := &flags[i]
		takes := f.Kind != Bool
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			switch {
			case !plain(name):
				k.add("%s: %q is not a plain name", where, dashed(name))
			case seen[name]:
				k.add("%s: %s is there twice", where, dashed(name))
			}
			seen[name] = true
		}
		if takes != (f.Arg != "") {
			k.add("%s: %s: Arg does not fit its kind", where, dashed(f.Name))
		}
		if f.Usage == "" {
			k.add("%s: %s: no usage", where, dashed(f.Name))
		}
		if f.Default == "" {
			continue
		}
		s := setting{flag: f, typed: dashed(f.Name), value: f.Default}
		if f.Kind == Bool || f.repeats() || s.check() != nil {
			k.add("%s: %s: %q cannot be its default", where, dashed(f.Name), f.Default)
		}
	}
}

func (k *check) page(where, page string) {
	lines := strings.Split(strings.TrimSuffix(page, "\n"), "\n")
	if len(lines) > pageLines {
		k.add("%s: the help page has %d lines, %d are allowed", where, len(lines), pageLines)
	}
	for _, line := range lines {
		if n := columns(line); n > pageColumns {
			k.add("%s: the help page has a line of %d columns, %d are allowed: %s", where, n, pageColumns, line)
		}
	}
}

// plain says whether a name is lower-case letters, digits and inner hyphens;
// completion scripts rely on it.
func plain(name string) bool {
	return name != "" && name[0] != '-' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
