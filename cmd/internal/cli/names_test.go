package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The packages outside cmd are for programs of others, too: what they say names things, and package app makes commands of
// that. Mail is an exception, which says how it is answered wherever it is shown; so is what is kept, as a notice or a reason.
func TestPackagesNameNoCommands(t *testing.T) {
	mayName := map[string]int{ // how many texts of which files
		"internal/letter/frame.go":              3,
		"internal/letter/letter.go":             4,
		"internal/maildir/drop/content.go":      1,
		"internal/maildir/claim/frames.go":      1,
		"internal/teamdir/notices/due.go":       3,
		"internal/teamdir/edits/edits.go":       3,
		"internal/teamdir/work/work.go":         1,
		"internal/teamdir/post/job.go":          1,
		"internal/teamdir/presence/member.go":   2, // details of a member, which go to other hosts
		"internal/teamdir/notices/notify.go":    3,
		"internal/teamdir/notices/subscribe.go": 1,
		"ptyrun/internal/inbox/letter.go":       2,
		"ptyrun/internal/speaker/speaker.go":    2, // a transcript, which the recording keeps
	}
	var names []string
	for _, c := range newApp("test").Commands {
		names = append(names, c.Names()...)
	}
	isCommand := regexp.MustCompile(`\batm (%|$|(` + strings.Join(names, "|") + `)\b)`)
	found, texts := map[string]int{}, map[string]string{}
	check := func(file string) {
		name, fset := filepath.ToSlash(strings.TrimPrefix(file, filepath.FromSlash("../../../"))), token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, _ := strconv.Unquote(lit.Value); isCommand.MatchString(text) {
					found[name]++
					texts[name] += lit.Value + "\n"
				}
			}
			return true
		})
	}
	for _, dir := range strings.Fields("internal/letter internal/maildir internal/policy internal/process internal/teamdir mailbox ptyrun reducer session teams watcher wire") {
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
	for name, n := range found {
		if n > mayName[name] {
			t.Errorf("%s: %d of its texts name commands, not %d:\n%s", name, n, mayName[name], texts[name])
		}
	}
	for name, n := range mayName {
		if n > found[name] {
			t.Errorf("%s: only %d of its texts name commands", name, found[name])
		}
	}
}
