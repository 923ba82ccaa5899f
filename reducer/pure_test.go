package reducer

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPure looks at the package's own files: what they import and call, and
// that they keep nothing between two calls.
func TestPure(t *testing.T) {
	imports := []string{
		"cmp", "encoding/json", "fmt", "hash/fnv", "math", "reflect", "slices", "strconv", "strings", "time", "unicode/utf8",
		"github.com/agentteammail/atm/wire",
	}
	// Of these packages nothing else: the rest knows the clock or makes ids.
	allowed := map[string][]string{
		"time": {"Time", "Duration", "Millisecond", "Second", "Minute", "RFC3339Nano", "Parse", "ParseDuration"},
		"fmt":  {"Sprintf"},
		"wire": {
			"Name", "ID", "Event", "Body", "TurnStarted", "TurnCompleted", "TurnIdle", "StreamFailed", "DroppedCounters",
			"EventRead", "EventAcked", "EventAnnounced", "EventInjected", "EventWithdrawn", "EventInjecting", "EventInjectionFailed",
			"EventTaken", "EventReturned", "EventAside", "EventAgain",
		},
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		n++
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); !slices.Contains(imports, path) || i.Name != nil {
				t.Errorf("%s imports %s", entry.Name(), i.Path.Value)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			at := func(n ast.Node) token.Position { return fset.Position(n.Pos()) }
			switch n := n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType:
				t.Errorf("%s: a goroutine or a channel", at(n))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Obj == nil {
					if of, known := allowed[x.Name]; known && !slices.Contains(of, n.Sel.Name) {
						t.Errorf("%s: %s.%s", at(n), x.Name, n.Sel.Name)
					}
				}
			}
			return true
		})
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				t.Errorf("%s: a variable of the package", fset.Position(g.Pos()))
			}
		}
	}
	if n < 5 {
		t.Error("looked at", n, "files")
	}
}
