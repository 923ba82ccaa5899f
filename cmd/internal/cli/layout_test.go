package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The command line ends where a verb has its options, and streams begin in main.
func TestCommandLineAndStreamsAreInjected(t *testing.T) {
	forbidden := regexp.MustCompile(`os\.(Stdin|Stdout|Stderr|Args)\b|\bfmt\.Print|(?m)^\t\w+ +\*cli\.Context\b`)
	filepath.WalkDir("..", func(path string, _ fs.DirEntry, _ error) error {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testteam") {
			return nil
		}
		code, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(code), "\npackage main\n") { // a program of its own
			return nil
		}
		for _, found := range forbidden.FindAllString(string(code), -1) {
			t.Errorf("%s: %s", path, found)
		}
		return nil
	})
}
