package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// One finds the test of a verb: a folder of testdata/script has one of its name. No two scripts have the same name.
func TestEachVerbHasItsScript(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "script", "*", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	scripts := map[string]string{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if scripts[name] != "" {
			t.Errorf("%s and %s have one name", scripts[name], file)
		}
		scripts[name] = file
	}
	for _, c := range newApp("test").Commands {
		if scripts[c.Name] == "" {
			t.Errorf("%s has no script", c.Name)
		}
	}
}
