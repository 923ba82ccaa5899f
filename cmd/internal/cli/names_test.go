package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentteammail/atm/cmd/internal/cli/agent"
	"github.com/agentteammail/atm/cmd/internal/cli/mail"
	"github.com/agentteammail/atm/cmd/internal/cli/session"
	"github.com/agentteammail/atm/cmd/internal/cli/setup"
)

// Package ptyrun is for programs of others, too: what it says names things, and package command makes commands of that.
func TestRunnerNamesNoCommands(t *testing.T) {
	mayName := map[string]string{
		"letter.go": "what it types into an agent is mail, which says how it is answered",
		"input.go":  "the same of what people say in a session",
	}
	var names []string
	for _, c := range slices.Concat(mail.Commands(), agent.Commands(), session.Commands(), setup.Commands()) {
		names = append(append(names, c.Name), c.Aliases...)
	}
	isCommand := regexp.MustCompile(`\batm (%|$|(` + strings.Join(names, "|") + `)\b)`)
	check := func(file string) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, _ := strconv.Unquote(lit.Value); isCommand.MatchString(text) {
					t.Errorf("%s names a command: %s", fset.Position(lit.Pos()), lit.Value)
				}
			}
			return true
		})
	}
	err := filepath.WalkDir("../../../ptyrun", func(path string, d fs.DirEntry, err error) error {
		isCode := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
		if err == nil && isCode && mayName[d.Name()] == "" {
			check(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
