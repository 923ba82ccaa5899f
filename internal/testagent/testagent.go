// Package testagent is a program that acts like a coding agent in a terminal: Claude Code, Codex, Gemini CLI or
// opencode. Tests and the demonstrations run it, as `fakeagent`, in place of programs that need an account. It draws
// their prompts, busy lines, dialogs and titles; their exact screens are in testdata of the drivers.
//
// Words in what is submitted say what happens in that turn, in their order:
//
//	THINK d       is silent for d (200ms, 1.5s; a bare number is seconds)
//	STREAM d      writes words for d
//	CONFIRM cmd   asks before it runs cmd (up to the next word, or in [brackets])
//	QUESTION      asks its user something that is no permission
//	ECHO          answers with the submitted text in [[ ]]
//	SAY text      answers with the rest of the line, up to the next word
//	LEAVE-ORPHAN d  leaves a process in a session of its own that ignores HUP and TERM for d
//	EXIT n        leaves with code n
//	CRASH         is killed, the terminal left as it is
//
// Without a word that answers, the answer is "Pong from the fake model.". With Options.Model a command plays the model:
// what is submitted is its stdin, and what it prints is said, or acted if there are such words in it.
//
// The log is the witness: all that came, and each submit, dialog, answer and interrupt, as one JSON
// object a line (Entry).
package testagent

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// Options say what kind of program it is. The zero value is Claude Code at its best behaviour.
type Options struct {
	// These are flags too.
	Profile    string        // claude, codex, gemini, opencode
	Log        string        // file to which the log is appended
	Model      string        // command that plays the model
	Trap       string        // signals that it ignores: HUP,TERM
	StartDelay time.Duration // the terminal is left as it was found so long
	Trust      bool          // asks for trust before anything else
	Daemon     bool          // leaves a process behind from the start

	TrustLate    time.Duration // asks for trust so long after the prompt was drawn
	Junk         string        // stands in the draft from the start
	PasteOff     bool          // no bracketed paste
	Deaf         int           // after so many bytes it stops reading,
	DeafFor      time.Duration // for so long
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
	f.BoolVar(&o.Daemon, "daemon", false, "leave a process behind from the start")
	return f
}

func (o *Options) ignores(signal string) bool { return strings.Contains(o.Trap, signal) }

// optionsEnv makes a test binary the program: its value is the Options.
const optionsEnv = "FAKEAGENT_OPTIONS"

// Reexec is for TestMain, before anything else: in a process that Command described it runs the
// program and does not return.
func Reexec() {
	if os.Getenv(optionsEnv) != "" {
		os.Exit(Main())
	}
}

// Command is how this test binary is started as the program, with what its environment needs.
func Command(o Options) (argv, env []string, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	o.Profile = cmp.Or(o.Profile, "claude")
	data, err := json.Marshal(o)
	return []string{exe}, []string{optionsEnv + "=" + string(data)}, err
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
	json.Unmarshal([]byte(os.Getenv(optionsEnv)), &o)
	code, err := run(o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "fakeagent: %v\n", err)
	}
	return code
}
