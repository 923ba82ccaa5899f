package agents

import (
	"fmt"
	"maps"
	"reflect"
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

// A Mistake is a mistake in a driver's file.
type Mistake struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

func (m Mistake) String() string { return tomlfile.Mistake(m).String() }

// Parse reads the text of a driver's file. It returns all mistakes by line; after a syntax error only that one.
func Parse(name string, text []byte) (f *File, mistakes []Mistake) {
	f, found := parse(name, text)
	for _, m := range found {
		mistakes = append(mistakes, Mistake(m))
	}
	return f, mistakes
}

func parse(name string, text []byte) (*File, []tomlfile.Mistake) {
	f, from := &File{Name: name, Text: text}, &File{}
	lines, mistakes, isUnread := tomlfile.Decode(text, f)
	if isUnread {
		return f, mistakes
	}
	k := checker{lines: lines}
	for _, m := range mistakes {
		k.add(m.Line, "%s", m.Text)
	}
	base := checker{}
	if f.Extends != "" {
		baseText, err := embedded.ReadFile(f.Extends + ".toml")
		base.lines, _, _ = tomlfile.Decode(baseText, from)
		if err != nil || from.isOurs() {
			k.add(lines.Of("extends"), "extends: %q is no built-in driver of an agent", f.Extends)
		}
	}
	var pairs []string
	for name, part := range withOwn(f.Parts, from.Parts) {
		if len(part) <= maxPattern {
			pairs = append(pairs, "{{"+name+"}}", part)
		}
	}
	parts := strings.NewReplacer(pairs...)
	k.finish("", reflect.ValueOf(f).Elem(), parts)
	base.finish("", reflect.ValueOf(from).Elem(), parts)
	for _, m := range base.mistakes { // its patterns, with the parts of this file
		k.add(lines.Of("parts"), "parts: in %s, %s", f.Extends, m)
	}
	if f.Extends != "" {
		f.extend(from, lines)
	}
	if f.Keys.Interrupt == nil {
		f.Keys.Interrupt = Keystrokes{"\x1b"}
	}
	k.check(f)
	tomlfile.SortMistakes(k.mistakes)
	return f, k.mistakes
}

// A checker collects the mistakes in a file that was decoded.
type checker struct {
	lines    tomlfile.Lines
	mistakes []tomlfile.Mistake
}

const minPaste = 100 // bytes

func (k *checker) add(line int, format string, args ...any) {
	k.mistakes = append(k.mistakes, tomlfile.Mistake{Line: line, Text: fmt.Sprintf(format, args...)})
}

func (k *checker) check(f *File) {
	if slices.Contains(f.Command.Names, "") {
		k.add(k.lines.Of("command"), "command: a name is empty")
	}
	for path, n := range map[string]int{"command.names": len(f.Command.Names), "parts": len(f.Parts)} {
		k.checkLength(path, n)
	}
	if f.Unproven && len(f.Versions) > 0 {
		k.add(k.lines.Of("unproven"), "unproven: it was tried with the versions %s", strings.Join(f.Versions, ", "))
	}
	for key, args := range map[string][]string{"resume.id": f.Resume.ID, "resume.fork": f.Resume.Fork} {
		if args != nil && !slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "{id}") }) {
			k.add(k.lines.Of(key), "%s: {id} is missing", key)
		}
	}
	if t := f.Typing; t != nil {
		k.checkLength("typing.escapes", len(t.Escapes))
		k.checkLength("typing.refused", len(t.Refused))
		if n := t.MaxPaste; n != 0 && n < minPaste {
			k.add(k.lines.Of("typing.max_paste"), "typing.max_paste: %d bytes are too few: %d at least", n, minPaste)
		}
		for i, e := range t.Escapes {
			if path := fmt.Sprintf("typing.escapes.%d", i); e.Pattern.Regexp == nil || e.Typed == "" || e.Legend == "" {
				k.add(k.lines.Of(path), "an escape needs a pattern, what is typed and a legend")
			}
		}
	}
	k.checkScreen(&f.Screen)
}

// withOwn returns the entries of from, except where own has others.
func withOwn(own, from map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, from)
	maps.Copy(all, own)
	return all
}

func (k *checker) checkLength(path string, n int) {
	if n > maxList {
		k.add(k.lines.Of(path), "%s has %d items, of %d at most", path, n, maxList)
	}
}

func (k *checker) checkScreen(s *Screen) {
	for key, a := range map[string]Area{"asks": s.Asks.Area, "busy": s.Busy, "prompt": s.Prompt} {
		if a.Last < 0 || a.Last > maxRows {
			k.add(k.lines.Of("screen."+key+".last"), "last is %d, not from 0 to %d", a.Last, maxRows)
		}
	}
	k.checkGroups("screen.asks.pattern", s.Asks.Pattern, append([]string{"tool"}, DialogKinds...))
	k.checkGroups("screen.asks.option", s.Asks.Option, optionGroups)
	k.checkGroups("screen.busy.pattern", s.Busy.Pattern, nil)
	k.checkGroups("screen.prompt.pattern", s.Prompt.Pattern, []string{"draft"})
	if p := s.Prompt.Pattern; p != nil && p.Regexp != nil && p.SubexpIndex("draft") < 0 {
		k.add(k.lines.Of("screen.prompt.pattern"), "the pattern of the prompt needs a group for what is typed: (?P<draft>.*)")
	}
	if s.Prompt.Title != nil {
		k.add(k.lines.Of("screen.prompt.title"), "a title is no prompt: say what the rows of an empty box are")
	}
	if p := s.Asks.Option; p != nil && p.Regexp != nil && p.SubexpIndex("label") < 0 {
		k.add(k.lines.Of("screen.asks.option"), "option needs a group label, as in (?P<label>.*)")
	}
}

// checkGroups checks the names of the groups of a pattern.
func (k *checker) checkGroups(path string, p *Pattern, known []string) {
	if p == nil || p.Regexp == nil {
		return
	}
	for _, name := range p.SubexpNames() {
		if name != "" && !slices.Contains(known, name) {
			k.add(k.lines.Of(path), "the group %q is not known here; known are: %s", name, strings.Join(known, ", "))
		}
	}
}
