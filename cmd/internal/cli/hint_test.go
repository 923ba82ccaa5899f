package cli

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/policy"
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

// Every command in a hint or a warning can be typed: it is one of ours, with flags that this has and the arguments that it
// needs. What stands for a value is tried with a name, an id, a file and flags.
func TestHintsCanBeTyped(t *testing.T) {
	inHint, typed := regexp.MustCompile("`(atm [^`\n]*)`"), 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || d.Name() == "plugin.go" { // a prompt
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING || lit.Value[0] != '"' {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range inHint.FindAllStringSubmatch(text, -1) {
				typed++
				if err := typeIt(found[1]); err != nil {
					t.Errorf("%s: %s: %v", fset.Position(lit.Pos()), found[1], err)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || typed < 150 {
		t.Errorf("%d commands typed: %v", typed, err)
	}
}

var standIn = regexp.MustCompile(`%(?:\[\d\])?[sdq]|\{name\}`)

// typeIt parses a command of a hint as Run does, and does not run it.
func typeIt(hint string) (err error) {
	for _, value := range []string{"bob", "9f3a1c", "30s", " --idle bob", "--reply 9f3a1c", "", "claude", "bash", "done", "wait"} {
		words, splitErr := policy.SplitWords(standIn.ReplaceAllLiteralString(hint, value))
		if splitErr != nil {
			return splitErr
		}
		program := newApp("test")
		program.Writer, program.ErrWriter = io.Discard, io.Discard
		var checked error
		var doNothing func(commands []*cli.Command)
		doNothing = func(commands []*cli.Command) {
			for _, c := range commands {
				c.Action = func(c *cli.Context) error { checked = cmdline.CheckWords(c); return checked }
				doNothing(c.Subcommands)
			}
		}
		doNothing(program.Commands)
		line, sortErr := cmdline.Sort(program, words[1:])
		if err = sortErr; err == nil && line.IsUnknown() {
			err = cmdline.UnknownCommand(program, words[1])
		}
		if err == nil {
			err = cmp.Or(line.Alone().Run(append([]string{"atm"}, line.Args()...)), checked)
		}
		if err == nil {
			return nil
		}
	}
	return err
}
