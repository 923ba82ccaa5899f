package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/internal/cmdline"
)

var demoVerb = &cmdline.Verb{
	Name: "demo", Summary: "the whole idea in a minute, in a temporary root",
	Examples: []string{"atm demo"},
	Run:      long(demo),
}

// demoStep is one command of the demonstration. $ID is the id that the last
// send printed.
type demoStep struct {
	say string
	cmd []string
	do  func(root string) error
}

var demoSteps = []demoStep{
	{say: "# Two agents and a person.", cmd: []string{"init", "alice", "bob", "me"}},
	{say: "# You ask alice for something, and want to know that she has it.", cmd: []string{"send", "alice", "Please split the parser out of main.go.", "--ack", "--as", "me"}},
	{say: "# Alice reads her mail: shown first, marked after.", cmd: []string{"read", "--as", "alice"}},
	{cmd: []string{"ack", "$ID", "--text", "on it", "--as", "alice"}},
	{cmd: []string{"trace", "$ID", "--as", "me"}},
	{say: "# Alice hands a part to bob; a file dropped into his inbox is a message too.", cmd: []string{"send", "bob", "I move the parser; please adapt the tests.", "--as", "alice"}},
	{say: "$ cp failing-tests.txt .atm/main/bob/inbox/", do: func(root string) error {
		return os.WriteFile(filepath.Join(root, "main", "bob", "inbox", "failing-tests.txt"), []byte("TestParse: want 3 nodes, got 2\n"), 0o600)
	}},
	{cmd: []string{"read", "--as", "bob"}},
	{cmd: []string{"reply", "$ID", "Done, all green.", "--as", "bob"}},
	{say: "# And everybody sees how things stand.", cmd: []string{"team"}},
	{cmd: []string{"thread", "$ID", "--as", "alice"}},
}

func demo(ctx context.Context, e *env) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "atm-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, ".atm")
	id := ""
	for _, s := range demoSteps {
		if s.say != "" {
			if err := e.print("%s", s.say); err != nil {
				return err
			}
		}
		if s.do != nil {
			if err := s.do(root); err != nil {
				return err
			}
		}
		if s.cmd == nil {
			continue
		}
		args := make([]string, len(s.cmd))
		shown := []string{"$ atm"}
		for i, a := range s.cmd {
			if args[i] = a; a == "$ID" {
				args[i] = id
			}
			if strings.Contains(args[i], " ") {
				shown = append(shown, `"`+args[i]+`"`)
			} else {
				shown = append(shown, args[i])
			}
		}
		if err := e.print("%s", strings.Join(shown, " ")); err != nil {
			return err
		}
		c := exec.CommandContext(ctx, self, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "ATM_ROOT="+root, "ATM_TEAM=", "ATM_AGENT=", "ATM_RUN=", "XDG_STATE_HOME="+filepath.Join(dir, "state"))
		c.Stderr = e.Stderr
		out, err := c.Output()
		if err != nil {
			return fmt.Errorf("atm %s: %w", strings.Join(args, " "), err)
		}
		text := strings.ReplaceAll(string(out), dir+"/", "")
		if words := strings.Fields(text); len(words) > 1 && words[0] == "sent" && s.cmd[0] == "send" {
			id = words[1]
		}
		if _, err := e.Stdout.WriteString(text); err != nil {
			return err
		}
	}
	return e.print("# That is all: files in a directory. Yours: atm init alice bob me")
}
