package driver

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/driver/agents"
)

// ForCommand returns the driver for a command line by the name of its program: that of the agent, or plain for a shell or
// REPL, else the one of an unknown program. Who runs an agent by another name, as a wrapper does, says its driver.
func ForCommand(argv []string) *Driver {
	none, _ := Named(agents.None)
	if len(argv) == 0 {
		return none
	}
	program := programOf(argv[0])
	for _, agent := range drivers() {
		if slices.Contains(agent.file.Command.Names, program) {
			return agent
		}
	}
	if !isAtPrompt(program, argv[1:]) {
		return none
	}
	plain, _ := Named("plain")
	return plain
}

// Unshared returns the command line with the flag that has the agent share no server, if its sessions would otherwise share one
// that has the environment of the first.
func (d *Driver) Unshared(argv []string) []string {
	args, isNamed := d.arguments(argv)
	c := &d.file.Command
	if c.Unshared == "" || !isNamed || slices.ContainsFunc(args, func(arg string) bool { return startsAny(arg, c.IsUnshared) }) {
		return argv
	}
	return slices.Insert(slices.Clone(argv), len(argv)-len(args), c.Unshared)
}

// ErrChosen means that the command line says itself which conversation it continues.
var ErrChosen = errors.New("its command chooses a conversation itself")

// ErrUnknown means that nothing says which program the command starts.
var ErrUnknown = errors.New("its command names no program that atm knows, and no driver says which one it starts")

// plainID is an id that cannot be taken for a flag.
var plainID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// Resume returns the command line with the arguments that continue the conversation with that id. last names the driver
// of the program that had it, if that is known.
func (d *Driver) Resume(argv []string, id, last string) ([]string, error) {
	resumed, err := d.choose(argv, d.file.Resume.ID, id, "continue a conversation")
	if err == nil && !slices.Contains([]string{"", agents.None, d.Name}, last) {
		return argv, fmt.Errorf("its last conversation was one of %s", last)
	}
	return resumed, err
}

// Fork returns the command line with the arguments that go on from a copy of a conversation.
func (d *Driver) Fork(argv []string, id string) ([]string, error) {
	return d.choose(argv, d.file.Resume.Fork, id, "go on from a copy of a conversation")
}

// choose returns a command line with the arguments that choose a conversation, in which {id} stands for its id. They
// stand behind the program's name, wherever that is in the command; if a wrapper has another name, at the end.
func (d *Driver) choose(argv, more []string, id, does string) ([]string, error) {
	args, isNamed := d.arguments(argv)
	switch {
	case d.Unknown:
		return argv, ErrUnknown
	case d.isChosen(args):
		return argv, ErrChosen
	case more == nil:
		return argv, fmt.Errorf("%s cannot %s", d.Name, does)
	case id == "":
		return argv, errors.New("nothing has told the id of its conversation")
	case !plainID.MatchString(id):
		return argv, fmt.Errorf("%q is no id of a conversation", id)
	}
	more = slices.Clone(more)
	for i := range more {
		more[i] = strings.ReplaceAll(more[i], "{id}", id)
	}
	at := len(argv) - len(args)
	if !isNamed {
		at = len(argv)
	}
	return slices.Insert(slices.Clone(argv), at, more...), nil
}

// isChosen reports whether a program's arguments choose its conversation, or draw none.
func (d *Driver) isChosen(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		if strings.HasPrefix(arg, "-") {
			arg, _, _ = strings.Cut(arg, "=")
		}
		return slices.Contains(d.file.Resume.IsChosen, arg)
	})
}

// arguments returns the arguments of the program in a command line: what stands behind its name. A command that does not
// have that name is a wrapper, and hands on its own.
func (d *Driver) arguments(argv []string) (args []string, isNamed bool) {
	i := slices.IndexFunc(argv, func(word string) bool { return slices.Contains(d.file.Command.Names, programOf(word)) })
	return argv[min(max(i, 0)+1, len(argv)):], i >= 0
}

// programOf returns the program that a word of a command line names, also as a login shell.
func programOf(word string) string { return strings.TrimPrefix(filepath.Base(word), "-") }
