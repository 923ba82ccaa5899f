package cmdline

import "context"

// Kind says what a flag takes.
type Kind int

const (
	// Bool is on or off: --peek, --peek=false.
	Bool Kind = iota
	// String takes any one word.
	String
	// Strings takes any one word and may be given many times; the order is kept.
	Strings
	// Int takes a whole number that is not negative.
	Int
	// Duration takes what ParseDuration reads.
	Duration
	// Pairs takes k=v and may be given many times; the order is kept.
	Pairs
)

// A Flag is one option of a verb, or of every verb.
type Flag struct {
	Name    string   // "attach", without dashes
	Aliases []string // "m" is written -m, "body" is written --body
	Kind    Kind
	Arg     string // what help shows for the value: "DIR"; empty for Bool
	Usage   string
	Default string // the value where none is given, as it would be typed
}

// named says whether the flag answers to name, which is written with two
// dashes where long.
func (f *Flag) named(name string, long bool) bool {
	if long != (len(name) > 1) {
		return false
	}
	if f.Name == name {
		return true
	}
	for _, alias := range f.Aliases {
		if alias == name {
			return true
		}
	}
	return false
}

// repeats says whether the flag may be given more than once.
func (f *Flag) repeats() bool { return f.Kind == Strings || f.Kind == Pairs }

// dashed returns a flag's name or alias as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// A Verb is one command.
type Verb struct {
	Name    string
	Aliases []string // synonyms; never shown in completions
	Args    string   // "TO[,TO…] [TEXT…]"
	Summary string
	// Examples are whole command lines, shown first on the help page; the
	// first is also the hint where an argument is missing.
	Examples []string
	Notes    []string // further lines of the help page, unusual exit codes among them
	Flags    []Flag
	Common   []Flag // further ones, that other verbs have as well; help shows them first
	// MinArgs and MaxArgs bound the words that are left for Run; MaxArgs < 0
	// is any number.
	MinArgs, MaxArgs int
	// StopAfter > 0: the first word after that many arguments ends the flags,
	// as -- does; what follows belongs to somebody else (`run NAME CMD…`).
	StopAfter int
	// Subs are verbs of this verb. Its own Run, where it has one, is called
	// when no sub is named; with MaxArgs 0 any other word is a misspelt sub.
	Subs   []*Verb
	Hidden bool // left out of lists and completions
	// Guesses are words that people try for this verb: they do nothing, but the
	// hint names it.
	Guesses []string
	// Stray, where the verb has subs and takes no arguments, is the command that
	// somebody means who puts a name there; the name is added.
	Stray string
	// FailsOpen is for a verb whose caller would be stopped by a failure: what
	// goes wrong, on the command line too, is one line on stderr and exit 0.
	FailsOpen bool
	Run       Runner
}

// A Runner does what a verb is for. It is an interface, and not a function, so
// that a program can say what all its verbs do around theirs and its table of
// verbs is laid down by the compiler nevertheless: closures would be made at
// every start.
type Runner interface {
	Run(ctx context.Context, c *Call) error
}

// RunnerFunc is a function that is a Runner.
type RunnerFunc func(ctx context.Context, c *Call) error

// Run calls f.
func (f RunnerFunc) Run(ctx context.Context, c *Call) error { return f(ctx, c) }

// flag returns the verb's flag that answers to name, or nil.
func (v *Verb) flag(name string, long bool) *Flag {
	if f := findFlag(v.Flags, name, long); f != nil {
		return f
	}
	return findFlag(v.Common, name, long)
}

// flags returns all flags of the verb.
func (v *Verb) flags() []Flag { return append(v.Common[:len(v.Common):len(v.Common)], v.Flags...) }

// findVerb returns the verb of that name or alias, or nil. Names go first, so
// that an alias never hides one.
func findVerb(verbs []*Verb, name string) *Verb {
	for _, v := range verbs {
		if v.Name == name {
			return v
		}
	}
	for _, v := range verbs {
		for _, alias := range v.Aliases {
			if alias == name {
				return v
			}
		}
	}
	return nil
}

// guessed returns the verb for which people try that word, or nil.
func guessed(verbs []*Verb, word string) *Verb {
	for _, v := range verbs {
		for _, g := range v.Guesses {
			if g == word {
				return v
			}
		}
	}
	return nil
}

// verbNames returns the names and aliases that a typing error is compared
// with.
func verbNames(verbs []*Verb) []string {
	var names []string
	for _, v := range verbs {
		if !v.Hidden {
			names = append(append(names, v.Name), v.Aliases...)
		}
	}
	return names
}
