package fakeagent

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// Options say what kind of program it is. The zero value is Claude Code at its
// best behaviour. Each is a flag, and the variable FAKEAGENT_ with the flag's
// name in capitals; a flag wins.
type Options struct {
	Profile string // claude, codex, gemini, opencode, plain
	Log     string // file to which the log is appended
	Hook    string // command line that gets the hook events on stdin
	Model   string // command line that gets what is submitted on stdin, and prints what the model says

	Deterministic bool          // no random verbs
	Think         time.Duration // silence before an answer, 0: 30 ms
	Tick          time.Duration // pace of spinners, 0: 100 ms
	Life          time.Duration // ends itself after this, 0: 5 minutes

	// The start.
	StartDelay   time.Duration // draws nothing so long
	LoseEarly    bool          // and throws away what is typed meanwhile
	AwaitReplies time.Duration // waits so long for the terminal's answers to its queries
	NoQueries    bool          // asks the terminal nothing
	Trust        bool          // asks for trust before anything else
	TrustLate    time.Duration // asks for trust so long after the prompt was drawn
	Junk         string        // stands in the draft from the start
	JunkAfter    time.Duration // or appears there so much later
	Daemon       bool          // leaves a process behind from the start

	// The terminal.
	Paste      string        // bracketed paste: on (default), off, late
	PasteAfter time.Duration // late is so long after the prompt, 0: 300 ms
	Split      int           // writes so many bytes at a time, cutting runes and escapes
	SplitPause time.Duration // with this pause between
	TitleLies  bool          // shows its idle title during a dialog
	Marks      bool          // the shell marks its prompts and commands: OSC 133

	// What becomes of input.
	Swallow          time.Duration // Return so soon after text is a line break; 0: as the profile, <0: never
	SwallowPaste     bool          // after a bracketed paste too
	PlaceholderLines int           // a paste of so many lines is shown as a placeholder; 0: as the profile, <0: never
	PlaceholderChars int           // as one of so many characters
	IgnoreCR         int           // the first so many Returns do nothing
	Drop             int           // the first so many characters vanish
	Deaf             int           // after so many bytes it stops reading
	DeafFor          time.Duration // for so long, 0: for ever
	Busy             string        // Return during a turn: queue, steer, ignore; "": as the profile
	Escs             int           // how many Escapes interrupt; 0: as the profile
	NoRestore        bool          // an interrupt never puts the prompt back
	CtrlC            string        // at the prompt: exit, ask; "": as the profile

	// Dialogs.
	DialogEats   int           // a dialog ignores its first so many keys
	DialogVanish time.Duration // a permission dialog goes away by itself after this
	DialogChange time.Duration // becomes one about another command after this
	DialogFlip   string        // vanish or change: at the first key, before that key acts

	Trap string // signals that it ignores: HUP,TERM,INT
}

// badOption is the error of a value that is none.
func badOption(name, value, want string) error {
	return fmt.Errorf("--%s %q is not %s", name, value, want)
}

// flags binds each option to its flag.
func (o *Options) flags() *flag.FlagSet {
	f := flag.NewFlagSet("fakeagent", flag.ContinueOnError)
	f.SetOutput(os.Stderr)
	f.StringVar(&o.Profile, "profile", "claude", "claude, codex, gemini, opencode or plain")
	f.StringVar(&o.Log, "log", "", "append what happens to this `file`, as JSON lines")
	f.StringVar(&o.Hook, "hook", "", "run this `command` at hook events")
	f.StringVar(&o.Model, "model", "", "ask this `command` what to answer: what is submitted on its stdin")
	f.BoolVar(&o.Deterministic, "deterministic", false, "no random verbs")
	f.DurationVar(&o.Think, "think", 0, "silence before an answer (30ms)")
	f.DurationVar(&o.Tick, "tick", 0, "pace of spinners (100ms)")
	f.DurationVar(&o.Life, "life", 0, "end after this (5m)")
	f.DurationVar(&o.StartDelay, "start-delay", 0, "draw nothing so long")
	f.BoolVar(&o.LoseEarly, "lose-early", false, "throw away what is typed during start-delay")
	f.DurationVar(&o.AwaitReplies, "await-replies", 0, "wait so long for the terminal's answers")
	f.BoolVar(&o.NoQueries, "no-queries", false, "ask the terminal nothing")
	f.BoolVar(&o.Trust, "trust", false, "ask for trust first")
	f.DurationVar(&o.TrustLate, "trust-late", 0, "ask for trust so long after the prompt was drawn")
	f.StringVar(&o.Junk, "junk", "", "`text` that stands in the draft")
	f.DurationVar(&o.JunkAfter, "junk-after", 0, "when the junk appears")
	f.BoolVar(&o.Daemon, "daemon", false, "leave a process behind from the start")
	f.StringVar(&o.Paste, "paste", "", "bracketed paste: on, off or late")
	f.DurationVar(&o.PasteAfter, "paste-after", 0, "when late is (300ms)")
	f.IntVar(&o.Split, "split", 0, "write so many bytes at a time")
	f.DurationVar(&o.SplitPause, "split-pause", 0, "pause between these")
	f.BoolVar(&o.TitleLies, "title-lies", false, "idle title during a dialog")
	f.BoolVar(&o.Marks, "marks", false, "the shell marks prompts and commands (OSC 133)")
	f.DurationVar(&o.Swallow, "swallow", 0, "Return so soon after text is a line break; negative: never")
	f.BoolVar(&o.SwallowPaste, "swallow-paste", false, "after a bracketed paste too")
	f.IntVar(&o.PlaceholderLines, "placeholder-lines", 0, "placeholder for a paste of so many lines; negative: never")
	f.IntVar(&o.PlaceholderChars, "placeholder-chars", 0, "placeholder for a paste of so many characters; negative: never")
	f.IntVar(&o.IgnoreCR, "ignore-cr", 0, "the first so many Returns do nothing")
	f.IntVar(&o.Drop, "drop", 0, "the first so many characters vanish")
	f.IntVar(&o.Deaf, "deaf", 0, "stop reading after so many bytes")
	f.DurationVar(&o.DeafFor, "deaf-for", 0, "for so long; 0: for ever")
	f.StringVar(&o.Busy, "busy", "", "Return during a turn: queue, steer or ignore")
	f.IntVar(&o.Escs, "escs", 0, "how many Escapes interrupt")
	f.BoolVar(&o.NoRestore, "no-restore", false, "never put an interrupted prompt back")
	f.StringVar(&o.CtrlC, "ctrl-c", "", "Ctrl-C at the prompt: exit or ask")
	f.IntVar(&o.DialogEats, "dialog-eats", 0, "a dialog ignores its first so many keys")
	f.DurationVar(&o.DialogVanish, "dialog-vanish", 0, "a permission dialog goes away after this")
	f.DurationVar(&o.DialogChange, "dialog-change", 0, "a permission dialog becomes another after this")
	f.StringVar(&o.DialogFlip, "dialog-flip", "", "at a dialog's first key: vanish or change")
	f.StringVar(&o.Trap, "trap", "", "signals to ignore: HUP,TERM,INT")
	return f
}

// Args are the flags that say o, without those that say the default.
func (o Options) Args() []string {
	var args []string
	given := o
	var bound Options
	f := bound.flags()
	bound = given
	f.VisitAll(func(one *flag.Flag) {
		if v := one.Value.String(); v != one.DefValue && v != "" {
			args = append(args, "--"+one.Name+"="+v)
		}
	})
	return args
}

// parse reads the call. name is what the program was called by.
func parse(name string, args []string, env func(string) (string, bool)) (Options, error) {
	var o Options
	f := o.flags()
	if profileNamed(name) != nil || name == plain {
		o.Profile = name
	}
	var wrong error
	f.VisitAll(func(one *flag.Flag) {
		key := "FAKEAGENT_" + strings.ToUpper(strings.ReplaceAll(one.Name, "-", "_"))
		if v, ok := env(key); ok && wrong == nil {
			if err := one.Value.Set(v); err != nil {
				wrong = fmt.Errorf("%s=%q: %w", key, v, err)
			}
		}
	})
	if wrong != nil {
		return o, wrong
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is no option", f.Arg(0))
	}
	return o, o.check()
}

// check finds words that are none, so that a test with a slip says so instead
// of passing.
func (o *Options) check() error {
	for _, one := range []struct{ name, value, allowed string }{
		{"paste", o.Paste, "on off late"},
		{"busy", o.Busy, "queue steer ignore"},
		{"ctrl-c", o.CtrlC, "exit ask"},
		{"dialog-flip", o.DialogFlip, "vanish change"},
	} {
		if one.value != "" && !hasWord(one.allowed, one.value) {
			return badOption(one.name, one.value, "one of "+one.allowed)
		}
	}
	if o.Profile != plain && profileNamed(o.Profile) == nil {
		return badOption("profile", o.Profile, "one of claude, codex, gemini, opencode, plain")
	}
	for s := range strings.SplitSeq(o.Trap, ",") {
		if s != "" && signalNamed(s) == nil {
			return badOption("trap", s, "a signal")
		}
	}
	o.Think = orElse(o.Think, 30*time.Millisecond)
	o.Tick = orElse(o.Tick, 100*time.Millisecond)
	o.Life = orElse(o.Life, 5*time.Minute)
	o.PasteAfter = orElse(o.PasteAfter, 300*time.Millisecond)
	return nil
}

func hasWord(words, word string) bool {
	for w := range strings.FieldsSeq(words) {
		if w == word {
			return true
		}
	}
	return false
}

func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
