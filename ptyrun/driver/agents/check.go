package agents

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/tomlfile"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
)

// Unknown is what a dialog of no known kind is.
const Unknown = "unknown"

// The keys that choose an option of a numbered list in which none is selected.
const (
	DigitKey   = "digit"
	DigitEnter = "digit Enter"
)

// The words that a file may use.
var (
	chosenBy     = []string{DigitKey, DigitEnter}
	optionKinds  = []string{"allow_once", "allow_always", "reject_once", "reject_always"}
	optionGroups = []string{"label", "key", "selected", "twice"}
	DialogKinds  = []string{"permission", "trust", "question"}
	// ProgressStates are those of the bar that a program has its terminal show: see package screen.
	ProgressStates = []string{"none", "normal", "error", "indeterminate", "paused"}
	states         = words(reducer.Idle, reducer.Thinking, reducer.Confirming)
	gates          = words(
		control.GateBusy, control.GateLimit, control.GateShellMode, control.GateMemoryMode, control.GateVim, control.GateExitKey,
		control.GateSameKey, control.GatePaste, control.GateHelp, control.GateMenu, control.GateAgents, control.GateTranscript,
		control.GateOverlay, control.GateServer,
	)
)

// The kinds of rows.
const (
	MessageRow = "message" // starts a message to the agent
	AnswerRow  = "answer"  // starts an answer
	TextRow    = "text"    // is part of an answer, and starts one if none is open
	ToolRow    = "tool"    // a tool call that has ended
	RunningRow = "running" // shows that a tool is running, this one or the one above
	BusyRow    = "busy"    // shows an open turn
	RetryRow   = "retry"   // shows an open turn after an error
	DoneRow    = "done"    // ends a turn
	WaitsRow   = "waits"   // likewise; sub-agents go on in the background
	ErrorRow   = "error"   // ends a turn with an error
	LimitRow   = "limit"   // ends a turn because of a usage limit
	NoteRow    = "note"    // a note of the program itself
	QueuedRow  = "queued"  // says that the message above it waits for the end of the turn
	HintRow    = "hint"    // anything else that is no text of an answer: a hint, a tool's output, a queued message
)

// Kinds are the kinds of rows.
var Kinds = []string{
	MessageRow, AnswerRow, TextRow, ToolRow, RunningRow, BusyRow, RetryRow, DoneRow, WaitsRow, ErrorRow, LimitRow, NoteRow, QueuedRow, HintRow,
}

func words[T ~string](values ...T) (all []string) {
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}

const (
	maxPattern = 2000 // bytes
	maxList    = 200  // items
	maxDepth   = 16   // of conditions in conditions
	maxTerms   = 5000 // of all rows' conditions, with those that they name
	maxColumns = 100  // that a number may say
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
		k.add(m.Line, "%s", withNewKey(m.Text))
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
	if f.Keys.Submit == nil {
		f.Keys.Submit = Keystrokes{"\r"}
	}
	if f.Keys.Interrupt == nil {
		f.Keys.Interrupt = Keystrokes{"\x1b"}
	}
	k.check(f)
	tomlfile.SortMistakes(k.mistakes)
	return f, k.mistakes
}

// newKeys are the keys that have taken the place of former ones.
var newKeys = map[string]string{
	"glyph": "box.text", "column": "box.text", "needs_glyph": "box.text", "centred": "box.top", "above": "box.top", "tail_rows": "box.bottom",
	"shape": "top, bottom and box.text or dialog.row", "selected": "dialog.option", "keyed": "dialog.option", "buttons": "dialog.option",
	"asks_reason": "dialog.option", "allows_once": "dialog.answers", "digits_hint": "dialog.choose", "numbers_hint": "dialog.choose",
	"views": "box.never_below",
}

// withNewKey adds to the text of a mistake, if it is about a former key, what to say instead.
func withNewKey(text string) string {
	rest, _ := strings.CutPrefix(text, "unknown key \"")
	key, _, _ := strings.Cut(rest, "\"")
	if now := newKeys[key]; rest != text && now != "" {
		text, _, _ = strings.Cut(text, ";")
		return text + ": say it with a pattern: " + now
	}
	return text
}

// A checker collects the mistakes in a file that was decoded.
type checker struct {
	lines    tomlfile.Lines
	mistakes []tomlfile.Mistake
	terms    int // conditions yet
}

const minPaste = 100 // bytes

// add adds a mistake once: a condition is checked wherever it is named.
func (k *checker) add(line int, format string, args ...any) {
	m := tomlfile.Mistake{Line: line, Text: fmt.Sprintf(format, args...)}
	if !slices.Contains(k.mistakes, m) {
		k.mistakes = append(k.mistakes, m)
	}
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
	k.checkWays(f.Ways)
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
	if f.Plain || f.Protocol != "" {
		return
	}
	k.checkScreen("screen", &f.Screen)
	if f.Screen.Shown != nil {
		k.add(k.lines.Of("screen.shown"), "shown: only [reader] has one")
	}
	if f.Reader != nil {
		k.checkScreen("reader", f.Reader)
		if f.Reader.Shown == nil {
			k.add(k.lines.Of("reader"), "reader needs shown: the pattern of a screen that is drawn for a screen reader")
		}
		f.Reader.inherit(&f.Screen)
	}
}

// inherit adds what also holds for the look for a screen reader. Rows, headings and everything that is not a list are the
// look's own.
func (s *Screen) inherit(from *Screen) {
	s.DeclaresAs = from.DeclaresAs
	s.Titles = slices.Concat(s.Titles, from.Titles)
	s.Progress = withOwn(s.Progress, from.Progress)
	s.Box.Placeholders = slices.Concat(s.Box.Placeholders, from.Box.Placeholders)
	s.Box.Pasted = slices.Concat(s.Box.Pasted, from.Box.Pasted)
	s.Box.Below = slices.Concat(s.Box.Below, from.Box.Below)
	s.Box.NeverBelow = slices.Concat(s.Box.NeverBelow, from.Box.NeverBelow)
	s.Dialog.Kinds = slices.Concat(s.Dialog.Kinds, from.Dialog.Kinds)
	s.Tools = withOwn(s.Tools, from.Tools)
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

func (k *checker) checkWord(line int, key, word string, known []string) {
	if err := oneOf(word, known); err != nil {
		k.add(line, "%s: %v", key, err)
	}
}

func (k *checker) checkScreen(path string, s *Screen) {
	b, d := &s.Box, &s.Dialog
	of := func(key string) int { return k.lines.Of(path + "." + key) }
	if d.Option != nil && d.Option.Regexp != nil {
		k.checkOption(of("dialog.option"), d.Option)
	}
	if b.Text == nil && (b.Top != nil || b.Bottom != nil) {
		k.add(of("box"), "box needs text: the pattern of the first row of what is typed")
	}
	for key, n := range map[string]int{"indent": s.Indent, "box.max_below": b.MaxBelow} {
		if n < 0 || n > maxColumns {
			k.add(of(key), "%s is %d, not from 0 to %d", key, n, maxColumns)
		}
	}
	for key, list := range map[string][]string{
		"box.placeholders": b.Placeholders, "box.pasted": b.Pasted, "box.never_below": b.NeverBelow,
		"dialog.hints": d.Hints,
	} {
		k.checkLength(path+"."+key, len(list))
		if slices.Contains(list, "") {
			k.add(of(key), "%s: a text is empty, so it would be everywhere", key)
		}
	}
	k.checkMeanings(path, "box.modes", b.Modes, gates)
	k.checkPhrases(path, "box.below", b.Below, gates)
	k.checkPhrases(path, "dialog.kinds", d.Kinds, DialogKinds)
	k.checkMeanings(path, "titles", s.Titles, states)
	k.checkMeanings(path, "dialog.choose", d.Choose, chosenBy)
	k.checkMeanings(path, "dialog.answers", d.Answers, optionKinds)
	for state, means := range s.Progress {
		k.checkWord(of("progress"), "progress", state, ProgressStates)
		k.checkWord(of("progress"), "progress", means, states)
	}
	k.checkLength(path+".rows", len(s.Rows))
	for i := range s.Rows {
		r := &s.Rows[i]
		k.checkWord(r.Line, "kind", r.Kind, Kinds)
		if r.Pattern == nil {
			k.add(r.Line, "a row needs a pattern")
		}
		k.checkCondition(r.Line, s, &r.Condition, 0)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Conditions)) {
		k.checkCondition(of("conditions."+name), s, s.Conditions[name], 0)
	}
}

// checkPhrases checks a list of phrases, which may mean the known words; nil: any.
func (k *checker) checkPhrases(path, key string, phrases []Phrase, known []string) {
	k.checkLength(path+"."+key, len(phrases))
	for _, p := range phrases {
		if p.Text == "" {
			k.add(p.Line, "%s: a text is empty, so it would be everywhere", key)
		}
		if known != nil {
			k.checkWord(p.Line, "means", p.Means, known)
		}
	}
}

// checkOption checks the names of the groups of the pattern of an option.
func (k *checker) checkOption(line int, p *Pattern) {
	hasText := false
	for _, name := range p.SubexpNames() {
		if name != "" {
			k.checkWord(line, "a group of dialog.option", name, optionGroups)
		}
		hasText = hasText || name == "label" || name == "key"
	}
	if !hasText {
		k.add(line, "dialog.option needs a group label or key, as in (?P<label>.*)")
	}
}

// checkMeanings checks a list of patterns, which may mean the known words.
func (k *checker) checkMeanings(path, key string, meanings []Meaning, known []string) {
	k.checkLength(path+"."+key, len(meanings))
	for _, m := range meanings {
		k.checkWord(m.Line, "means", m.Means, known)
		if m.Pattern.Regexp == nil {
			k.add(m.Line, "%s: a pattern is missing", key)
		}
	}
}

// checkCondition also finds the condition that c names.
func (k *checker) checkCondition(line int, s *Screen, c *Condition, depth int) {
	k.terms++
	switch {
	case k.terms > maxTerms:
		if k.terms == maxTerms+1 {
			k.add(line, "the conditions up to here have more than %d parts", maxTerms)
		}
		return
	case depth > maxDepth:
		k.add(line, "conditions are in one another more than %d deep, or in a circle", maxDepth)
		return
	}
	if c.Is != "" {
		if c.Named = s.Conditions[c.Is]; c.Named == nil {
			k.add(line, "is: there is no condition %q", c.Is)
		} else {
			k.checkCondition(line, s, c.Named, depth+1)
		}
	}
	for _, inner := range []*Condition{c.Above, c.Below, c.Not} {
		if inner != nil {
			k.checkCondition(line, s, inner, depth+1)
		}
	}
	for i := range c.All {
		k.checkCondition(line, s, &c.All[i], depth+1)
	}
	for i := range c.Any {
		k.checkCondition(line, s, &c.Any[i], depth+1)
	}
}
