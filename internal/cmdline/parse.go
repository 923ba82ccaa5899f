package cmdline

import (
	"strconv"
	"strings"
	"time"
)

// A parse is what the words of one command line mean.
type parse struct {
	app      *App
	path     []*Verb // the verb, and its sub
	at       []int   // the indices of the words that name path
	args     []string
	before   int // how many args stand before --; -1: there is none
	settings []setting
	err      *Error // the first mistake
	lost     bool   // the mistake is the verb itself
}

// A setting is one flag as it was given.
type setting struct {
	flag   *Flag
	typed  string // "--limit" or "-n"
	value  string
	number int
	span   time.Duration
}

// parse reads the words twice: once for the verb, once for everything else
// with the verb known. So a flag means the same wherever it stands.
func (a *App) parse(words []string) *parse {
	p := &parse{app: a, before: -1}
	p.locate(words)
	stop := 0
	if v := p.verb(); v != nil {
		stop = v.StopAfter
	}
	ended, names := false, p.at
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case len(names) > 0 && names[0] == i:
			names = names[1:]
		case !ended && word == "--":
			ended, p.before = true, len(p.args)
		case ended || !isDashed(word):
			p.args = append(p.args, word)
			if stop > 0 && len(p.args) > stop {
				ended = true
			}
		default:
			i += p.take(words, i)
		}
	}
	return p
}

// verb returns the innermost verb that is named, or nil.
func (p *parse) verb() *Verb {
	if len(p.path) == 0 {
		return nil
	}
	return p.path[len(p.path)-1]
}

// on says whether the Bool flag was given and is true.
func (p *parse) on(name string) bool {
	for i := range p.settings {
		if s := &p.settings[i]; s.flag.Name == name && s.flag.Kind == Bool && s.value == "true" {
			return true
		}
	}
	return false
}

// fail keeps the first mistake.
func (p *parse) fail(e *Error) {
	if p.err == nil {
		p.err = e
	}
}

// locate finds the words that name the verb and its sub. Whether a flag
// before them takes the next word is known from all flags of all verbs; Check
// sees to it that they agree.
func (p *parse) locate(words []string) {
	ended, strange := false, -1
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case !ended && word == "--":
			ended = true
		case !ended && isDashed(word):
			l := p.look(words, i)
			if l.flag == nil && strange < 0 {
				strange = i
			}
			i += l.extra
		case len(p.path) == 0:
			v := p.app.find(word)
			if v == nil {
				p.lost = true
				// A flag that nobody knows may have had this word for its value.
				if strange >= 0 {
					p.unknownFlag(words[strange], p.look(words, strange))
				} else {
					p.unknownVerb(word, p.app.Name, verbNames(append(p.app.Verbs[:len(p.app.Verbs):len(p.app.Verbs)], builtinVerbs...)))
				}
				return
			}
			p.path, p.at = append(p.path, v), append(p.at, i)
			if len(v.Subs) == 0 {
				return
			}
		default:
			v := p.verb()
			sub := findVerb(v.Subs, word)
			switch {
			case sub != nil:
				p.path, p.at = append(p.path, sub), append(p.at, i)
			case v.MaxArgs == 0:
				p.unknownVerb(word, p.app.path(p.path), verbNames(v.Subs))
			}
			return
		}
	}
}

// holder is the verb that has a sub of that name, nil if none has.
func (a *App) holder(word string) *Verb {
	for _, v := range a.Verbs {
		if findVerb(v.Subs, word) != nil {
			return v
		}
	}
	return nil
}

// unknownVerb fails for a word that should have been a verb after path.
func (p *parse) unknownVerb(word, path string, known []string) {
	e := Usage("unknown command %s", quoted(word))
	if len(p.path) > 0 {
		e = Usage("unknown command %s after %s", quoted(word), path)
	}
	here := p.app.Verbs // those that known names
	if v := p.verb(); v != nil {
		here = v.Subs
	}
	if v := p.app.holder(word); len(p.path) == 0 && v != nil {
		e.WithHint("did you mean \"%s %s %s\"?", path, v.Name, word).WithCandidates(v.Name + " " + word)
	} else if v := guessed(here, word); v != nil {
		e.WithHint("did you mean \"%s %s\"?", path, v.Name).WithCandidates(v.Name)
	} else if v := p.verb(); v != nil && v.flag(word, true) != nil {
		e.WithHint("did you mean \"%s --%s\"?", path, word).WithCandidates("--" + word)
	} else if v := findVerb(p.app.Verbs, word); len(p.path) > 0 && v != nil {
		e.WithHint("did you mean \"%s %s\"?", p.app.Name, v.Name).WithCandidates(v.Name)
	} else if near, ok := Nearest(word, known); ok {
		e.WithHint("did you mean \"%s %s\"?", path, near).WithCandidates(near)
	} else if v := p.verb(); v != nil && v.Stray != "" {
		e.WithHint("%s %s", v.Stray, clipped(word))
	} else if len(p.path) > 0 {
		e.WithHint("%s --help", path)
	} else {
		e.WithHint("%s help all", path)
	}
	p.fail(e)
}

// isDashed says whether the word can only be a flag, or the -- that ends
// them; "-" alone is stdin, and an item of a list or a line of a diff is text.
func isDashed(word string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != ' ' && !strings.HasPrefix(word, "--- ")
}

// A looked is one flag word, with its value.
type looked struct {
	flag     *Flag // nil: nobody has such a flag
	own      bool  // the flag is one of this verb, or of every verb
	typed    string
	value    string
	assigned bool // there is a value
	extra    int  // words used beyond the first
}

// look reads the flag at words[i]. A flag that takes a value never takes a
// word that is a flag anywhere in the App, so the answer does not depend on
// whether the verb is known yet.
func (p *parse) look(words []string, i int) looked {
	var l looked
	l.typed, l.value, l.assigned = strings.Cut(words[i], "=")
	l.flag, l.own = p.find(l.typed)
	if l.flag != nil && !l.assigned && i+1 < len(words) && !p.isFlag(words[i+1]) && p.takes(l, words[i+1]) {
		l.value, l.assigned, l.extra = words[i+1], true, 1
	}
	return l
}

// takes says whether a flag takes the next word. Before the verb is known, and
// where the flag takes a value in some verbs only, it does unless that word is a
// verb.
func (p *parse) takes(l looked, next string) bool {
	takes := l.flag.Kind != Bool
	if p.verb() != nil || l.own {
		return takes
	}
	name, long := strings.CutPrefix(l.typed, "--")
	if !long {
		name = l.typed[1:]
	}
	if !kindsAnywhere(p.app.Verbs, name, long)[!takes] {
		return takes
	}
	return p.app.find(next) == nil
}

// kindsAnywhere says whether verbs have a flag that takes a value, and one of
// that name that does not.
func kindsAnywhere(verbs []*Verb, name string, long bool) map[bool]bool {
	kinds := map[bool]bool{}
	for _, v := range verbs {
		if f := v.flag(name, long); f != nil {
			kinds[f.Kind != Bool] = true
		}
		for takes := range kindsAnywhere(v.Subs, name, long) {
			kinds[takes] = true
		}
	}
	return kinds
}

// isFlag says whether the word is a flag of this or any other verb, or --.
func (p *parse) isFlag(word string) bool {
	if !isDashed(word) {
		return false
	}
	if word == "--" {
		return true
	}
	typed, _, _ := strings.Cut(word, "=")
	f, _ := p.find(typed)
	return f != nil
}

// find returns the flag that typed ("--limit", "-n") stands for, and whether
// it belongs to this verb or to every verb.
func (p *parse) find(typed string) (f *Flag, own bool) {
	name, long := strings.CutPrefix(typed, "--")
	if !long {
		name = typed[1:]
	}
	v := p.verb()
	if v != nil {
		if f := v.flag(name, long); f != nil {
			return f, true
		}
	}
	if f := findFlag(p.app.Flags, name, long); f != nil {
		return f, true
	}
	if f := findFlag(builtinFlags[:], name, long); f != nil {
		return f, true
	}
	return findFlagAnywhere(p.app.Verbs, name, long), false
}

func findFlag(flags []Flag, name string, long bool) *Flag {
	for i := range flags {
		if flags[i].named(name, long) {
			return &flags[i]
		}
	}
	return nil
}

func findFlagAnywhere(verbs []*Verb, name string, long bool) *Flag {
	for _, v := range verbs {
		if f := v.flag(name, long); f != nil {
			return f
		}
		if f := findFlagAnywhere(v.Subs, name, long); f != nil {
			return f
		}
	}
	return nil
}

// take reads the flag at words[i] and returns how many words it used beyond
// the first.
func (p *parse) take(words []string, i int) int {
	l := p.look(words, i)
	switch {
	case l.flag == nil || !l.own:
		p.unknownFlag(words[i], l)
	case l.flag.Kind != Bool && !l.assigned:
		e := Usage("%s needs a value", l.typed).WithHint("%s %s", l.typed, l.flag.Arg)
		if i+1 < len(words) && words[i+1] != "--" {
			e.WithHint("%s %s; a value that begins with - is written %s=%s", l.typed, l.flag.Arg, l.typed, l.flag.Arg)
		}
		p.fail(e)
	default:
		p.set(l)
	}
	return l.extra
}

// set checks and keeps the value of a flag.
func (p *parse) set(l looked) {
	f := l.flag
	s := setting{flag: f, typed: l.typed, value: l.value}
	if !l.assigned {
		s.value = "true"
	}
	if e := s.check(); e != nil {
		p.fail(e)
		return
	}
	if !f.repeats() {
		for i := range p.settings {
			if old := &p.settings[i]; old.flag == f {
				if old.value != s.value {
					p.fail(Usage("%s given twice: %s and %s", l.typed, quoted(old.value), quoted(s.value)).
						WithHint("leave one out"))
				}
				return
			}
		}
	}
	p.settings = append(p.settings, s)
}

// check reads the value as the flag's kind asks.
func (s *setting) check() *Error {
	example := s.flag.Default
	switch s.flag.Kind {
	case Bool:
		if s.value != "true" && s.value != "false" {
			return Usage("%s is on or off, not %s", s.typed, quoted(s.value)).WithHint("%s or %s=false", s.typed, s.typed)
		}
	case Int:
		n, err := strconv.Atoi(s.value)
		if err != nil || n < 0 {
			if example == "" {
				example = "20"
			}
			return Usage("%s needs a whole number, not %s", s.typed, quoted(s.value)).WithHint("for example %s %s", s.typed, example)
		}
		s.number = n
	case Duration:
		d, err := ParseDuration(s.value)
		if err != nil {
			if example == "" || example == "0" {
				example = "30s"
			}
			return Usage("%s needs a duration, not %s", s.typed, quoted(s.value)).
				WithHint("for example %s %s; units are s, m, h, d", s.typed, example)
		}
		s.span = d
	case Pairs:
		if k, _, ok := strings.Cut(s.value, "="); !ok || k == "" {
			return Usage("%s needs k=v, not %s", s.typed, quoted(s.value)).WithHint("for example %s build=42", s.typed)
		}
	}
	return nil
}
