package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/screen"
)

// The built-in drivers.
var claude, codex = builtIn("claude"), builtIn("codex")

func builtIn(name string) *Driver {
	d, _ := Named(name)
	return d
}

const recordings = "../../testdata/screens"

// recording reads a recording from those for all packages, else from those of this package.
func recording(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(recordings, file+".bin"))
	if errors.Is(err, fs.ErrNotExist) {
		b, err = os.ReadFile(filepath.Join("testdata", file+".bin"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func driverOf(t testing.TB, file string) *Driver {
	t.Helper()
	name, _, _ := strings.Cut(file, "-")
	d, ok := Named(name)
	if !ok {
		t.Fatalf("no driver %s", name)
	}
	return d
}

// draw returns the screen of a text: ▮ is the cursor, and ═ a rule as wide as the screen.
func draw(title, text string) Look {
	text = strings.ReplaceAll(text, "═", strings.Repeat("─", 100))
	hasCursor := strings.Contains(text, "▮")
	s := screen.New(100, 30, 0)
	fmt.Fprintf(s, "\x1b]0;%s\a%s", title, strings.ReplaceAll(strings.Replace(text, "▮", "\x1b7", 1), "\n", "\r\n"))
	if hasCursor {
		fmt.Fprint(s, "\x1b8")
	}
	return LookAt(s)
}

// describe is a reading in one line, and a line for each option.
func describe(r Reading) string {
	text := strings.TrimSpace(string(r.Activity)+" "+r.Detail) + ", "
	switch {
	case r.Prompt:
		text += "at its prompt"
	default:
		text += string(r.NotPromptReason)
	}
	if r.Draft != "" {
		text += fmt.Sprintf(": %q", r.Draft)
	}
	if q := r.Dialog; q != nil {
		text += fmt.Sprintf("\n  %q", q.Prompt)
		if q.Tool != "" {
			text += " of " + q.Tool
		}
		for _, o := range q.Options {
			text += strings.TrimRight(fmt.Sprintf("\n  %s by %q: %s %s", o.ID, o.Keys, o.Label, o.Kind), " ")
		}
		if q.Cancel.ID != "" {
			text += "\n  cancel: " + q.Cancel.ID
		}
	}
	return text
}

// useOwn makes this process use a person's files until the test ends.
func useOwn(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	Use(agents.Load(dir))
	t.Cleanup(func() { Use(agents.Load("")) })
}

func lookAt(b []byte) Look {
	s := screen.New(100, 30, 100)
	s.Write(b)
	return LookAt(s)
}
