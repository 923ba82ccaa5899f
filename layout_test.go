// Package layout holds the shape of the project: who may import whom, which
// modules are depended on and by whom, that every package says what it is.
package layout

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/agentteammail/atm/"

// mayImport is the import table: of ours, only these.
var mayImport = map[string][]string{
	"wire":                 {},
	"internal/durable":     {},
	"internal/lockfile":    {"internal/durable"},
	"internal/outlet":      {},
	"internal/cmdline":     {},
	"internal/screen":      {},
	"internal/child":       {},
	"internal/cast":        {},
	"internal/control":     {},
	"internal/foot":        {},
	"internal/driver":      {"reducer", "internal/screen"},
	"internal/fakeagent":   {},
	"mailbox":              {"mailbox/eventlog", "wire", "internal/durable", "internal/lockfile"},
	"mailbox/letter":       {"wire"},
	"mailbox/eventlog":     {"wire", "internal/durable"},
	"watcher":              {"mailbox/eventlog", "mailbox", "wire"},
	"reducer":              {"wire"},
	"session":              {"watcher", "mailbox", "wire", "internal/lockfile", "internal/durable"},
	"teams":                {"session", "internal/control", "watcher", "reducer", "mailbox/letter", "mailbox/eventlog", "mailbox", "wire", "internal/lockfile", "internal/durable"},
	"internal/hook":        {"reducer", "mailbox/letter", "mailbox", "wire"},
	"internal/confedit":    {},
	"internal/gitindex":    {},
	"internal/install":     {"teams", "internal/confedit", "internal/gitindex"},
	"ptyrun":               {"session", "watcher", "reducer", "mailbox/letter", "mailbox", "wire", "internal/screen", "internal/driver", "internal/child", "internal/cast", "internal/control", "internal/durable"},
	"cmd/atm":              {"internal/cli", "internal/foot", "internal/control", "internal/install", "internal/hook", "teams", "session", "watcher", "reducer", "mailbox/letter", "mailbox/eventlog", "mailbox", "wire", "internal/cmdline", "internal/outlet", "internal/lockfile", "internal/durable"},
	"internal/output":      {},
	"internal/cli/command": {"teams", "mailbox/letter", "mailbox", "wire", "internal/control", "internal/output", "internal/lockfile", "internal/durable"},
	"internal/cli/mail":    {"internal/cli/command", "teams", "watcher", "reducer", "mailbox/letter", "mailbox/eventlog", "mailbox", "wire", "internal/control", "internal/output", "internal/durable"},
	"internal/cli/agent":   {"internal/cli/command", "ptyrun", "internal/driver", "internal/control", "internal/output", "teams", "watcher", "reducer", "mailbox/letter", "mailbox/eventlog", "mailbox", "wire"},
	"internal/cli/session": {"internal/cli/command", "session", "teams", "watcher", "reducer", "mailbox/letter", "mailbox/eventlog", "mailbox", "wire"},
	"internal/cli/setup":   {"internal/cli/command", "internal/install", "internal/hook", "internal/control", "teams", "watcher", "reducer", "mailbox/letter", "mailbox/eventlog", "mailbox", "wire", "internal/durable", "internal/lockfile"},
	"internal/cli":         {"internal/cli/command", "internal/cli/mail", "internal/cli/agent", "internal/cli/session", "internal/cli/setup", "teams", "mailbox/letter", "mailbox", "wire"},
	"internal/crashtest":   {"wire"},
	"internal/realagents":  {},
	"internal/bench":       {"teams", "watcher", "mailbox", "wire"},

	"internal/fakeagent/cmd/fakeagent": {"internal/fakeagent"},
}

// onlyImporter names, for each module that is not ours, the packages that may
// import it. Tests may import more.
var onlyImporter = map[string][]string{
	"github.com/clipperhouse/displaywidth": {"internal/screen", "internal/foot", "internal/fakeagent"},
	"github.com/creack/pty":                {"internal/child"},
	"github.com/fsnotify/fsnotify":         {"watcher"},
	"github.com/go-json-experiment/json":   {"wire", "session"},
	"github.com/gofrs/flock":               {"internal/lockfile"},
	"github.com/google/uuid":               {"wire"},
	"github.com/pelletier/go-toml":         {"teams"},
	"github.com/urfave/cli":                {"internal/cli", "internal/cli/command", "internal/cli/mail", "internal/cli/agent", "internal/cli/session", "internal/cli/setup"},
	"golang.org/x/term":                    {"cmd/atm", "internal/cli/command", "internal/cli/agent", "internal/cli/session", "internal/fakeagent"},
	"golang.org/x/sys":                     {"internal/child", "internal/control", "internal/fakeagent", "internal/durable", "internal/lockfile", "internal/outlet", "internal/output", "mailbox", "teams", "watcher", "internal/crashtest"},
}

type listed struct {
	ImportPath string
	Doc        string
	Imports    []string
	GoFiles    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,GoFiles", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImportTable(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if len(p.GoFiles) == 0 {
			continue
		}
		allowed, known := mayImport[name]
		if !known {
			t.Errorf("package %s is not in the import table", name)
		}
		if p.Doc == "" {
			t.Errorf("package %s says nothing about itself", name)
		}
		for _, imp := range p.Imports {
			if ours, ok := strings.CutPrefix(imp, module); ok {
				if !slices.Contains(allowed, ours) {
					t.Errorf("%s imports %s", name, ours)
				}
				continue
			}
			if !strings.Contains(strings.Split(imp, "/")[0], ".") {
				continue // the standard library
			}
			found := false
			for mod, by := range onlyImporter {
				if imp == mod || strings.HasPrefix(imp, mod+"/") {
					found = true
					if !slices.Contains(by, name) {
						t.Errorf("%s imports %s: only %v may", name, imp, by)
					}
				}
			}
			if !found {
				t.Errorf("%s imports %s, which is not among the chosen modules", name, imp)
			}
		}
	}
}

func TestFiles(t *testing.T) {
	vague := []string{"types.go", "utils.go", "util.go", "helpers.go", "common.go", "misc.go"}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			if d != nil && d.IsDir() {
				return filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		if slices.Contains(vague, d.Name()) {
			t.Errorf("%s: a file is named by the noun it defines", path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(data), "\n"); n > 700 {
			t.Errorf("%s has %d lines: there is a second noun in it", path, n)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), path, data, parser.PackageClauseOnly); err != nil {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
