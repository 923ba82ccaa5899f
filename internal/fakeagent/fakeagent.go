// Package fakeagent is a program that acts like a coding agent in a terminal:
// Claude Code, Codex, Gemini CLI, opencode, or a small shell.
//
// It draws their screens with their words, titles, modes and spinners, takes
// typing and pastes as they do, shows their dialogs, and can be told to do
// what real ones do only now and then: lose early input, swallow a Return,
// answer a signal with nothing, leave a process behind. Tests run it in place
// of programs that need an account; what it shows was made after captures of
// the real ones, which the tests of the drivers hold as well.
//
// What it does is told in two ways. Options, as flags or as FAKEAGENT_*
// variables, say what kind of program it is. Words in what is submitted say
// what happens in that turn; they act in their order, wherever they stand:
//
//	THINK d       is silent for d (200ms, 1.5s; a bare number is seconds)
//	STREAM d      writes words for d
//	TOOL d [cmd]  runs a tool for d, without asking
//	CONFIRM cmd   asks before it runs cmd (up to the next word, or in [brackets])
//	QUESTION      asks its user something that is no permission
//	TRUST         asks whether the folder is to be trusted
//	ERROR d       retries its API for d, then gives the turn up
//	QUOTE         answers with a picture of a dialog
//	ECHO          answers with the submitted text in [[ ]]
//	SAY text      answers with the rest of the line, up to the next word
//	FLOOD n       writes n megabytes
//	LEAVE-ORPHAN d  leaves a process in a session of its own that ignores
//	              HUP and TERM and ends after d (60s); with "tty" behind
//	              it, that process holds the terminal open
//	RESTART       starts itself anew in the same terminal
//	EXIT n        leaves with code n
//	CRASH sig     dies of that signal (KILL), the terminal left as it is
//
// Without any word that answers, the answer is "Pong from the fake model.".
//
// With Options.Model a command plays the model: what is submitted is its stdin,
// and what it prints is said, or acted if there are such words in it. It runs in
// the agent's directory and environment, as what real ones run in their tools
// does, so it may say `atm reply` itself. One that fails is an API that does.
//
// The log (Options.Log) is the witness: every byte that came, and each
// submit, dialog, answer and interrupt, as one JSON object a line (Entry).
// A test proves with it that a text arrived once, word for word, and never in
// a dialog.
//
// A test binary becomes the program by calling Reexec first in TestMain and
// starting what Command returns; testscript takes Main as a command.
package fakeagent

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// Answers of the fake model.
const (
	pong = "Pong from the fake model."
	done = "All done."
)

// runEnv makes a test binary the program.
const runEnv = "FAKEAGENT_RUN"

// Reexec is for TestMain, before anything else: in a process that Command
// described it runs the program and does not return.
func Reexec() {
	if os.Getenv(runEnv) != "" {
		os.Exit(Main())
	}
}

// Command is how this test binary is started as the program. The words of env
// are to be added to the process's own.
func Command(o Options) (argv, env []string, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find the test binary: %w", err)
	}
	return append([]string{exe}, o.Args()...), []string{runEnv + "=1"}, nil
}

// Main is the whole program: it takes os.Args and the environment, and returns
// the exit code. 2 says that it was called wrongly or has no terminal.
//
// Called by the name of a profile (a link named "claude"), it has that one.
func Main() int {
	if d := os.Getenv(orphanEnv); d != "" {
		return linger(d)
	}
	o, err := parse(filepath.Base(os.Args[0]), os.Args[1:], os.LookupEnv)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	code := 2
	if err == nil {
		code, err = Run(o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "fakeagent: %v\n", err)
	}
	return code
}
