package cmdline

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Every command pays for what this package imports.
func TestImportsAreCheap(t *testing.T) {
	allowed := " bytes context encoding/json errors fmt io io/fs math os runtime strconv strings syscall time unicode unicode/utf8 "
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if path := strings.Trim(spec.Path.Value, `"`); !strings.Contains(allowed, " "+path+" ") {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

func BenchmarkRun(b *testing.B) {
	a := mail(new([]string))
	a.Verbs[0].Run = nil
	for b.Loop() {
		a.parse([]string{"--as", "alice", "send", "bob", "the parser is done", "--ack", "--attach", "x"})
	}
}
