// Package testagent is a program that acts like Claude Code in a terminal, with its hooks and its inbox, or like an agent
// that speaks the Agent Client Protocol. Tests and demonstrations run it, as `fakeagent`, in place of programs that need an
// account. The exact screens of these are in the testdata of the drivers.
//
// Words in the submitted text say what happens in the turn, in their order:
//
//	THINK d [file]  is silent for d (200ms, 1.5s; a bare number is seconds), and until there is that file
//	STREAM d      writes words for d
//	CONFIRM cmd   asks before it runs cmd (up to the next word, or in [brackets])
//	QUESTION      asks its user something that is no permission
//	ECHO          answers with the submitted text in [[ ]]
//	SAY text      answers with the rest of the line, up to the next word
//	WAIT d [file]  does the same, and declares that it waits for its user
//	LIMIT text    ends the turn with the notice of a usage limit, which goes on with the text;
//	              in LIMIT [limit reached|+3] the limit ends three seconds from then
//	LEAVE-ORPHAN d  leaves a process in a session of its own that ignores HUP and TERM for d
//	EXIT n        leaves with code n
//	CRASH         is killed, the terminal left as it is
//
// If no word answers, the answer is "Pong from the fake model.". With Options.Model, a command plays the model: it gets
// the submitted text on stdin, and its output is the answer, or is acted if it has such words.
//
// The log has all input, and each submit, dialog, answer and interrupt, one JSON object a line (Entry).
package testagent

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Options say how the program behaves. The zero value is Claude Code without any trouble.
type Options struct {
	// These are flags too.
	Profile    string        // claude; opencode: the same with atm's plugin for its inbox
	Log        string        // file to which the log is appended
	Model      string        // command that plays the model
	Trap       string        // signals that it ignores: HUP,TERM
	StartDelay time.Duration // before it touches the terminal
	Trust      bool          // asks for trust before anything else
	Daemon     bool          // leaves a process behind at the start
	Declares   bool          // declares its state (OSC 7501) if the terminal reads that
	Resume     string        // the conversation that it says it continues
	Inbox      string        // Claude Code's inbox for messages, in CLAUDE_CONFIG_DIR, or the plugin: open, drops or shut; "": there is none
	Settings   string        `json:"-"` // a file whose hooks it calls, as those in CLAUDE_CONFIG_DIR/settings.json

	TrustLate    time.Duration // asks for trust so long after the prompt was drawn
	PasteOff     bool          // no bracketed paste
	Deaf         int           // stops reading after so many bytes,
	DeafFor      time.Duration // for so long
	DialogVanish time.Duration // a permission dialog disappears after this
	DialogChange time.Duration // a permission dialog becomes one about another command after this
}

func (o *Options) flags() *flag.FlagSet {
	f := flag.NewFlagSet("fakeagent", flag.ContinueOnError)
	f.StringVar(&o.Profile, "profile", "claude", "claude; opencode: with atm's plugin for its inbox")
	f.StringVar(&o.Log, "log", "", "append what happens to this `file`, as JSON lines")
	f.StringVar(&o.Model, "model", "", "ask this `command` what to answer: what is submitted on its stdin")
	f.StringVar(&o.Trap, "trap", "", "signals to ignore: HUP,TERM")
	f.DurationVar(&o.StartDelay, "start-delay", 0, "draw nothing so long")
	f.BoolVar(&o.Trust, "trust", false, "ask for trust first")
	f.BoolVar(&o.Declares, "declares", false, "declare its state, if the terminal reads that")
	f.StringVar(&o.Resume, "resume", "", "continue the conversation with this `id`")
	f.StringVar(&o.Inbox, "inbox", "", "have an inbox for messages, in CLAUDE_CONFIG_DIR or by the plugin, that is `open`, drops them or is shut")
	f.String("name", "", "what other sessions know it by")
	f.StringVar(&o.Settings, "settings", "", "call the hooks of this `file`, too")
	f.String("C", ".", "work in this `directory`")
	f.BoolVar(&o.Daemon, "daemon", false, "leave a process behind from the start")
	return f
}

func (o *Options) ignores(signal string) bool { return strings.Contains(o.Trap, signal) }

const (
	optionsEnv = "FAKEAGENT_OPTIONS" // the Options, as JSON
	orphanEnv  = "FAKEAGENT_ORPHAN"  // makes a process the orphan: its value is the duration
)

// Command returns the arguments and the environment of the program that is fakeagent on PATH, where package testprogram
// puts it.
func Command(o Options) (argv, env []string, err error) {
	exe, err := exec.LookPath("fakeagent")
	if err != nil {
		return nil, nil, err
	}
	o.Profile = cmp.Or(o.Profile, "claude")
	data, err := json.Marshal(o)
	return []string{exe}, []string{optionsEnv + "=" + string(data)}, err
}

// Main runs the program with os.Args and returns its exit code, 2 for wrong arguments or a missing terminal.
func Main() int {
	if d, err := time.ParseDuration(os.Getenv(orphanEnv)); err == nil {
		runOrphan(d)
		return 0
	}
	if len(os.Args) > 1 && os.Args[1] == "acp" {
		return mainACP(os.Args[2:])
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
