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

// The packages outside cmd are for programs of others, too: what they say names things, and package app makes commands of
// that.
func TestPackagesNameNoCommands(t *testing.T) {
	mayName := map[string]string{ // a file, or one text
		"mailbox/letter/frame.go":           "how a message is answered stands with it, also where no command shows it",
		"mailbox/letter/letter.go":          "the same of what a message is cut by",
		"internal/maildir/frames.go":        "what hooks hand over is mail",
		"ptyrun/letter.go":                  "what it types into an agent is mail",
		"ptyrun/sessions/input.go":          "the same of what people say in a session",
		"internal/teamdir/later_deliver.go": "a notice of what was not delivered is mail",
		"internal/teamdir/due.go":           "a reminder is mail, and kept",
		"internal/teamdir/notify.go":        "so is a question to the lead",
		"internal/teamdir/edits.go":         "so is what two members at one file are told",
		"internal/teamdir/subscribe.go":     "so is a notice that was asked for",

		"a dropped file has at most %d MiB; atm send %s --attach FILE takes any size": "kept as the reason beside the file",
		"%s still runs: atm stop %s":             "of a detail, which goes to other hosts",
		"its mailbox cannot be read: atm doctor": "the same",
		"the draft of %s is %w: the answer was not given with atm approve or atm reject by a member": "how an answer counts, and no advice",
	}
	var names []string
	for _, c := range slices.Concat(mail.Commands(), agent.Commands(), session.Commands(), setup.Commands()) {
		names = append(append(names, c.Name), c.Aliases...)
	}
	isCommand := regexp.MustCompile(`\batm (%|$|(` + strings.Join(names, "|") + `)\b)`)
	found := map[string]bool{}
	check := func(file string) {
		name, fset := filepath.ToSlash(strings.TrimPrefix(file, filepath.FromSlash("../../../"))), token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, _ := strconv.Unquote(lit.Value); isCommand.MatchString(text) {
					found[name], found[text] = true, true
					if mayName[name] == "" && mayName[text] == "" {
						t.Errorf("%s names a command: %s", fset.Position(lit.Pos()), lit.Value)
					}
				}
			}
			return true
		})
	}
	for _, dir := range strings.Fields("internal/maildir internal/teamdir mailbox ptyrun reducer session teams watcher wire") {
		err := filepath.WalkDir("../../../"+dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				check(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range mayName {
		if !found[name] {
			t.Errorf("%s names no command any more", name)
		}
	}
}
