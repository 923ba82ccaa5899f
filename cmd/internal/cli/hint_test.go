package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/teams/policy"
)

// Where a command lacks its argument, the hint has it, and each flag that was typed: without --done an ack is another
// act.
func TestHintsKeepFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	tried := 0
	var walk func(commands []*cli.Command)
	walk = func(commands []*cli.Command) {
		for _, c := range commands {
			walk(c.Subcommands)
			if c.Hidden || c.Args || required(c) == 0 {
				continue
			}
			for _, f := range c.Flags {
				if f.(cli.DocGenerationFlag).GetUsage() != "" {
					tried++
					checkHint(t, c, f)
				}
			}
		}
	}
	walk(newApp("test").Commands)
	if tried < 40 {
		t.Errorf("only %d flags tried", tried)
	}
}

// required counts the arguments that a command cannot do without.
func required(c *cli.Command) (n int) {
	for word := range strings.FieldsSeq(c.ArgsUsage) {
		if word[0] != '[' {
			n++
		}
	}
	return n
}

func checkHint(t *testing.T, c *cli.Command, f cli.Flag) {
	t.Helper()
	flag, values := "--"+f.Names()[0], []string{""}
	if f.(cli.DocGenerationFlag).TakesValue() {
		values = append([]string{"it's so", "3m", "3"}, cmdline.Choices(c, flag)...)
	}
	for _, value := range values {
		words := []string{flag}
		if value != "" {
			words = append(words, value)
		}
		called := strings.Fields(c.HelpName)[1:]
		program, stderr := newApp("test"), new(bytes.Buffer)
		program.ErrWriter = stderr
		line, err := cmdline.Sort(program, slices.Concat(called, words))
		if code := command.Run(program, line, err); code != failure.ExitUsage {
			t.Fatalf("%s %q: exit code %d", c.HelpName, words, code)
		}
		_, hint, _ := strings.Cut(stderr.String(), "hint: ")
		if strings.Contains(stderr.String(), "invalid value") || strings.Contains(stderr.String(), "must be one of") {
			continue
		}
		again, err := cmdline.Sort(newApp("test"), strings.Fields(strings.NewReplacer(`"it's so"`, "X", `"`, "").Replace(strings.TrimSpace(hint)))[1:])
		if err != nil || again.Command.HelpName != c.HelpName || len(again.Words) < required(c) || !strings.Contains(hint, " "+policy.QuoteAll(words)) {
			t.Errorf("%s %s: %s (%v)", c.HelpName, policy.QuoteAll(words), stderr, err)
		}
		return
	}
	t.Errorf("%s %s: no value is accepted", c.HelpName, flag)
}
