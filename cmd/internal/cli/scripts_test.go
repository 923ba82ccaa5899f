package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// One finds the test of a verb: testdata/script has one of its name.
func TestEachVerbHasItsScript(t *testing.T) {
	for _, c := range newApp("test").Commands {
		if _, err := os.Stat(filepath.Join("..", "..", "..", "testdata", "script", c.Name+".txtar")); err != nil {
			t.Error(err)
		}
	}
}
