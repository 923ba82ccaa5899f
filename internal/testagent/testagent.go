// Package testagent is a program that acts like a coding agent in a terminal: Claude Code, Codex,
// Gemini CLI or opencode. Tests and the demonstrations run it, as `fakeagent`, in place of programs
// that need an account. It draws their prompts, busy lines, dialogs and titles; their exact screens
// are in testdata of the drivers.
//
// Words in what is submitted say what happens in that turn, in their order:
//
//	THINK d       is silent for d (200ms, 1.5s; a bare number is seconds)
//	STREAM d      writes words for d
//	TOOL d [cmd]  runs a tool for d, without asking
//	CONFIRM cmd   asks before it runs cmd (up to the next word, or in [brackets])
//	QUESTION      asks its user something that is no permission
//	QUOTE         answers with a picture of a dialog
//	ECHO          answers with the submitted text in [[ ]]
//	SAY text      answers with the rest of the line, up to the next word
//	LEAVE-ORPHAN d  leaves a process in a session of its own that ignores HUP and TERM for d
//	EXIT n        leaves with code n
//	CRASH sig     dies of that signal, the terminal left as it is
//
// Without a word that answers, the answer is "Pong from the fake model.". With Options.Model a
// command plays the model: what is submitted is its stdin, and what it prints is said, or acted if
// there are such words in it. One that fails is an API that fails.
//
// The log is the witness: every byte that came, and each submit, dialog, answer and interrupt, as
// one JSON object a line (Entry).
package testagent

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// Options say what kind of program it is; each is a flag too. The zero value is Claude Code at its
// best behaviour.
type Options struct {
	Profile string // claude, codex, gemini, opencode
	Log     string // file to which the log is appended
	Model   string // command that plays the model
	Trap    string // signals that it ignores: HUP,TERM

	StartDelay time.Duration // the terminal is left as it was found so long
	Trust      bool          // asks for trust before anything else
	TrustLate  time.Duration // asks for trust so long after the prompt was drawn
	Junk       string        // stands in the draft from the start
	Daemon     bool          // leaves a process behind from the start

	PasteOff     bool          // no bracketed paste
	Deaf         int           // after so many bytes it stops reading
	DeafFor      time.Duration // for so long, 0: for ever
	DialogVanish time.Duration // a permission dialog goes away by itself after this
	DialogChange time.Duration // becomes one about another command after this
}

func (o *Options) flags() *flag.FlagSet {
	f := flag.NewFlagSet("fakeagent", flag.ContinueOnError)
	f.StringVar(&o.Profile, "profile", "claude", "claude, codex, gemini or opencode")
	f.StringVar(&o.Log, "log", "", "append what happens to this `file`, as JSON lines")
	f.StringVar(&o.Model, "model", "", "ask this `command` what to answer: what is submitted on its stdin")
	f.StringVar(&o.Trap, "trap", "", "signals to ignore: HUP,TERM")
	f.DurationVar(&o.StartDelay, "start-delay", 0, "draw nothing so long")
	f.BoolVar(&o.Trust, "trust", false, "ask for trust first")
	f.DurationVar(&o.TrustLate, "trust-late", 0, "ask for trust so long after the prompt was drawn")
	f.StringVar(&o.Junk, "junk", "", "`text` that stands in the draft")
	f.BoolVar(&o.Daemon, "daemon", false, "leave a process behind from the start")
	f.BoolVar(&o.PasteOff, "paste-off", false, "no bracketed paste")
	f.IntVar(&o.Deaf, "deaf", 0, "stop reading after so many bytes")
	f.DurationVar(&o.DeafFor, "deaf-for", 0, "for so long; 0: for ever")
	f.DurationVar(&o.DialogVanish, "dialog-vanish", 0, "a permission dialog goes away after this")
	f.DurationVar(&o.DialogChange, "dialog-change", 0, "a permission dialog becomes another after this")
	return f
}

// ignores reports whether a signal, by its short name, is ignored.
func (o *Options) ignores(signal string) bool { return strings.Contains(o.Trap, signal) }

// runEnv makes a test binary the program.
const runEnv = "FAKEAGENT_RUN"

// Reexec is for TestMain, before anything else: in a process that Command described it runs the
// program and does not return.
func Reexec() {
	if os.Getenv(runEnv) != "" {
		os.Exit(Main())
	}
}

// Command is how this test binary is started as the program, with what its environment needs.
func Command(o Options) (argv, env []string, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	argv, given := []string{exe}, o
	f := o.flags() // sets the defaults
	o = given
	f.VisitAll(func(one *flag.Flag) {
		if v := one.Value.String(); v != one.DefValue && v != "" {
			argv = append(argv, "--"+one.Name+"="+v)
		}
	})
	return argv, []string{runEnv + "=1"}, nil
}

// Main is the whole program: it takes os.Args, and returns the exit code. 2 says that it was called
// wrongly or has no terminal.
func Main() int {
	if d, err := time.ParseDuration(os.Getenv(orphanEnv)); err == nil {
		linger(d)
		return 0
	}
	if len(os.Args) > 1 && os.Args[1] == "acp" {
		return mainACP()
	}
	var o Options
	if err := o.flags().Parse(os.Args[1:]); err != nil {
		return 2
	}
	code, err := run(o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "fakeagent: %v\n", err)
	}
	return code
}
