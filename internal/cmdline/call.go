package cmdline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// A Call is one use of a verb. Asking for a flag that the verb does not have,
// or for another kind than it is, panics: that is a mistake in the verb.
type Call struct {
	Verb                  *Verb
	Path                  string   // "atm team add"
	Args                  []string // the words that are no flags
	Before                int      // how many of them stand before --; -1: there is no --
	Stdin, Stdout, Stderr *os.File
	Getenv                func(string) string

	app      *App
	ctx      context.Context // the verb's own, for Text
	settings []setting
	patience time.Duration
}

// Has says whether the verb has the flag, given or not.
func (c *Call) Has(name string) bool { return c.flag(name) != nil }

// flag returns the flag of that name or alias, or nil.
func (c *Call) flag(name string) *Flag {
	long := len(name) > 1
	if c.Verb != nil {
		if f := c.Verb.flag(name, long); f != nil {
			return f
		}
	}
	if f := findFlag(c.app.Flags, name, long); f != nil {
		return f
	}
	return findFlag(builtinFlags[:], name, long)
}

// one returns the flag and how it was given, nil where it was not.
func (c *Call) one(name string, kind Kind) (*Flag, *setting) {
	f := c.flag(name)
	if f == nil || f.Kind != kind {
		panic("cmdline: " + c.Path + " has no such flag of this kind: " + name)
	}
	for i := range c.settings {
		if c.settings[i].flag == f {
			return f, &c.settings[i]
		}
	}
	return f, nil
}

// Given says whether the flag stands on the command line, also with the value
// that it has by default.
func (c *Call) Given(name string) bool {
	f := c.flag(name)
	if f == nil {
		panic("cmdline: " + c.Path + " has no such flag: " + name)
	}
	for i := range c.settings {
		if c.settings[i].flag == f {
			return true
		}
	}
	return false
}

// Bool says whether the flag is on.
func (c *Call) Bool(name string) bool {
	_, s := c.one(name, Bool)
	return s != nil && s.value == "true"
}

// String returns the flag's value, or its default.
func (c *Call) String(name string) string {
	f, s := c.one(name, String)
	if s == nil {
		return f.Default
	}
	return s.value
}

// Int returns the flag's value, or its default, or 0.
func (c *Call) Int(name string) int {
	f, s := c.one(name, Int)
	if s == nil {
		s = &setting{flag: f, value: f.Default}
		s.check() // Check has seen every default; without one it is 0
	}
	return s.number
}

// Duration returns the flag's value, or its default, or 0.
func (c *Call) Duration(name string) time.Duration {
	f, s := c.one(name, Duration)
	if s == nil {
		s = &setting{flag: f, value: f.Default}
		s.check()
	}
	return s.span
}

// Strings returns every value of the flag, in order.
func (c *Call) Strings(name string) []string {
	f, _ := c.one(name, Strings)
	var all []string
	for i := range c.settings {
		if c.settings[i].flag == f {
			all = append(all, c.settings[i].value)
		}
	}
	return all
}

// Pairs returns every k=v of the flag, in order.
func (c *Call) Pairs(name string) [][2]string {
	f, _ := c.one(name, Pairs)
	var all [][2]string
	for i := range c.settings {
		if c.settings[i].flag == f {
			k, v, _ := strings.Cut(c.settings[i].value, "=")
			all = append(all, [2]string{k, v})
		}
	}
	return all
}

// NotBoth returns a usage error where more than one of the flags is given.
// A Bool that is off is not given.
func (c *Call) NotBoth(names ...string) error {
	first := ""
	for _, name := range names {
		if !c.Given(name) || c.flag(name).Kind == Bool && !c.Bool(name) {
			continue
		}
		if first != "" {
			return Usage("%s and %s contradict each other", dashed(first), dashed(name)).WithHint("leave one out")
		}
		first = name
	}
	return nil
}

// JSON says whether the result is to be JSON.
func (c *Call) JSON() bool { return c.Bool("json") }

// Quiet says whether nothing but errors goes to stderr.
func (c *Call) Quiet() bool { return c.Bool("quiet") }

// Form returns the verb and its arguments: "atm send TO[,TO…] [TEXT…]".
func (c *Call) Form() string { return form(c.Path, c.Verb) }

// Warn writes one line to stderr, escaped, unless --quiet.
func (c *Call) Warn(format string, args ...any) {
	if !c.Quiet() {
		c.Stderr.WriteString(c.app.Name + ": " + Escape(fmt.Sprintf(format, args...)) + "\n")
	}
}

// PrintJSON writes v to stdout as one compact document and a newline. What
// could steer a terminal is written as \u escapes, which a reader undoes;
// <, > and & stay as they are.
func (c *Call) PrintJSON(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := c.Stdout.Write(EscapeJSON(b.Bytes()))
	return err
}
