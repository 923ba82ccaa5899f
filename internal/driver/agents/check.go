package agents

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/tomlfile"
)

// Unknown is what a dialog of no known kind is.
const Unknown = "unknown"

// The words that a file may use.
var (
	DialogKinds  = []string{"permission", "trust", "question"}
	optionGroups = []string{"label", "key", "number", "selected"}
)

const (
	maxPattern = 2000 // bytes
	maxList    = 200  // items
	maxRows    = 200  // that a pattern sees
)

// Parse reads the text of a driver's file. It returns all mistakes; but only the first that makes it no TOML, or of a wrong
// type.
func Parse(name string, text []byte) (f *File, mistakes []string) {
	f = &File{Name: name, Text: text}
	found, isWhole := tomlfile.Decode(text, f)
	if !isWhole {
		return f, found
	}
	k := checker{}
	if f.Extends != "" {
		if both := f.extended(); both != nil {
			f = both
		} else {
			k.Add("extends", "%q is no built-in driver of an agent", f.Extends)
		}
	}
	var pairs []string
	for name, part := range f.Parts {
		if len(part) <= maxPattern {
			pairs = append(pairs, "{{"+name+"}}", part)
		}
	}
	parts := strings.NewReplacer(pairs...)
	for path, p := range f.patterns() {
		if p != nil {
			k.AddError(path, p.compile(strings.HasPrefix(path, "screen."), parts))
		}
	}
	if f.Keys.Interrupt == nil {
		f.Keys.Interrupt = Keystrokes{"\x1b"}
	}
	k.check(f)
	slices.Sort(k.Mistakes)
	return f, append(found, k.Mistakes...)
}

// A checker collects the mistakes in a file that was decoded.
type checker struct{ tomlfile.Mistakes }

const minPaste = 100 // bytes

func (k *checker) check(f *File) {
	if slices.Contains(f.Command.Names, "") {
		k.Add("command.names", "a name is empty")
	}
	for path, n := range map[string]int{"command.names": len(f.Command.Names), "parts": len(f.Parts)} {
		k.checkLength(path, n)
	}
	if f.Unproven && len(f.Versions) > 0 {
		k.Add("unproven", "it was tried with the versions %s", strings.Join(f.Versions, ", "))
	}
	for key, args := range map[string][]string{"resume.id": f.Resume.ID, "resume.fork": f.Resume.Fork} {
		if args != nil && !slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "{id}") }) {
			k.Add(key, "{id} is missing")
		}
	}
	if t := f.Typing; t != nil {
		k.checkLength("typing.escapes", len(t.Escapes))
		k.checkLength("typing.refused", len(t.Refused))
		if n := t.MaxPaste; n != 0 && n < minPaste {
			k.Add("typing.max_paste", "%d bytes are too few: %d at least", n, minPaste)
		}
		for i, e := range t.Escapes {
			if e.Typed == "" || e.Legend == "" {
				k.Add(fmt.Sprintf("typing.escapes[%d]", i), "an escape needs a pattern, what is typed and a legend")
			}
		}
	}
	k.checkScreen(&f.Screen)
}

func (k *checker) checkLength(path string, n int) {
	if n > maxList {
		k.Add(path, "%d items are more than %d", n, maxList)
	}
}

func (k *checker) checkScreen(s *Screen) {
	for key, a := range map[string]Area{"asks": s.Asks.Area, "busy": s.Busy, "prompt": s.Prompt} {
		if a.Last < 0 || a.Last > maxRows {
			k.Add("screen."+key+".last", "%d is not from 0 to %d", a.Last, maxRows)
		}
	}
	k.checkGroups("screen.asks.pattern", s.Asks.Pattern, append([]string{"tool"}, DialogKinds...))
	k.checkGroups("screen.asks.option", s.Asks.Option, optionGroups)
	k.checkGroups("screen.busy.pattern", s.Busy.Pattern, nil)
	k.checkGroups("screen.prompt.pattern", s.Prompt.Pattern, []string{"draft"})
	if p := s.Prompt.Pattern; p != nil && p.Regexp != nil && p.SubexpIndex("draft") < 0 {
		k.Add("screen.prompt.pattern", "it needs a group for what is typed: (?P<draft>.*)")
	}
	if s.Prompt.Title != nil {
		k.Add("screen.prompt.title", "a title is no prompt: say what the rows of an empty box are")
	}
	if p := s.Asks.Option; p != nil && p.Regexp != nil && p.SubexpIndex("label") < 0 {
		k.Add("screen.asks.option", "it needs a group label, as in (?P<label>.*)")
	}
}

// checkGroups checks the names of the groups of a pattern.
func (k *checker) checkGroups(path string, p *Pattern, known []string) {
	if p == nil || p.Regexp == nil {
		return
	}
	for _, name := range p.SubexpNames() {
		if name != "" && !slices.Contains(known, name) {
			k.Add(path, "the group %q is not known here; known are: %s", name, strings.Join(known, ", "))
		}
	}
}
