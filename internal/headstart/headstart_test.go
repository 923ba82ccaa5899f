package headstart

import (
	"go/parser"
	"go/token"
	"testing"
)

// What is imported is initialised before, on a small stack.
func TestNothingIsImported(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "headstart.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range file.Imports {
		t.Errorf("imports %s", i.Path.Value)
	}
}

// A goroutine that has grown this far is spared the steps between.
func TestGrow(t *testing.T) {
	if grow(0) != 0 || grow(5) != 0 {
		t.Error("the stack is not empty")
	}
}
