package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// An action is named by its commit, which nobody can move, and the version is said beside it.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	pinned := regexp.MustCompile(`^\s*-? ?uses: (\./\.github/workflows/\w+\.yml|[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "uses:") && !pinned.MatchString(strings.TrimRight(line, "\n")) {
				t.Errorf("%s: %s", file, line)
			}
		}
	}
}
