// Package layout holds the shape of the project: imports point downwards only, each
// module that is not ours has its importers, and every package says what it is.
package layout

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/cli/agent"
	"github.com/agentteammail/atm/internal/cli/mail"
	"github.com/agentteammail/atm/internal/cli/session"
	"github.com/agentteammail/atm/internal/cli/setup"
)

const module = "github.com/agentteammail/atm/"

// layers are the packages from the bottom up: each may import those above it here.
var layers = strings.Fields(`
	internal/output
	internal/tomlfile
	internal/durable
	internal/lockfile
	wire
	internal/hostkey
	mailbox/letter
	mailbox/eventlog
	mailbox
	internal/push/codex
	watcher
	reducer
	session
	internal/hook
	ptyrun/control
	ptyrun/process
	internal/push/claude
	ptyrun/runinfo
	ptyrun/record
	ptyrun/screen
	ptyrun/driver/agents
	ptyrun/driver
	internal/testagent
	internal/testagent/cmd/fakeagent
	internal/testtree
	internal/testframe
	teams/policy
	teams/config
	teams/git
	teams/rootdir
	teams
	teams/backup
	teams/doctor
	internal/agentconfig
	internal/claudeteam
	ptyrun/acp
	ptyrun
	ptyrun/sessions
	internal/cli/failure
	internal/cli/cmdline
	internal/cli/command
	internal/ask
	internal/runspec
	internal/runner
	internal/acpagent
	internal/mcp
	internal/bridge
	internal/cli/mail
	internal/cli/agent
	internal/cli/session
	internal/cli/setup
	internal/cli
	internal/testteam
	internal/push/codex/follow
	internal/room
	internal/web
	internal/tui
	cmd/atm
	cmd/atm-tui
	cmd/atm-acp
	cmd/atm-codex
	cmd/atm-bridge
	cmd/atm-runner
	cmd/atm-mcp
	cmd/atm-web
	internal/crashtest
	internal/machines
	internal/wine
	internal/realagents
	internal/bench
`)

// importers are the packages that may import a module that is not ours; tests may
// import more.
var importers = map[string][]string{
	"charm.land/bubbles":                     {"internal/tui"},
	"charm.land/bubbletea":                   {"internal/tui"},
	"charm.land/lipgloss":                    {"internal/tui"},
	"github.com/charmbracelet/ultraviolet":   {"ptyrun/screen", "internal/web"},
	"github.com/charmbracelet/x/ansi":        {"internal/testagent", "internal/tui", "internal/web", "ptyrun/acp", "ptyrun/driver", "ptyrun/screen"},
	"github.com/charmbracelet/x/vt":          {"ptyrun/screen"},
	"github.com/clipperhouse/displaywidth":   {"internal/testagent", "internal/testframe", "mailbox/letter"},
	"github.com/coder/acp-go-sdk":            {"internal/acpagent", "internal/testagent", "ptyrun/acp"},
	"github.com/coder/websocket":             {"internal/push/codex"},
	"github.com/creack/pty":                  {"ptyrun/process"},
	"github.com/fsnotify/fsnotify":           {"watcher"},
	"github.com/go-json-experiment/json":     {"internal/agentconfig", "session", "wire"},
	"github.com/gofrs/flock":                 {"internal/lockfile"},
	"github.com/google/uuid":                 {"wire"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/mcp"},
	"github.com/nats-io/nats.go":             {"internal/bridge"},
	"github.com/pelletier/go-toml":           {"internal/tomlfile", "internal/agentconfig", "internal/testagent"},
	"github.com/rogpeppe/go-internal":        {"internal/testteam"},
	"github.com/tailscale/peercred":          {"internal/push/claude", "internal/push/codex", "ptyrun/control"},
	"github.com/tailscale/hujson":            {"internal/agentconfig"},
	"github.com/urfave/cli":                  {"internal/cli", "internal/cli/cmdline", "internal/cli/command", "internal/cli/mail", "internal/cli/agent", "internal/cli/session", "internal/cli/setup", "internal/acpagent", "internal/bridge", "internal/mcp", "internal/push/codex/follow", "internal/runner", "internal/tui", "internal/web"},
	"github.com/xrash/smetrics":              {"internal/tomlfile", "internal/cli/failure"},
	"golang.org/x/term":                      {"cmd/atm", "internal/cli/failure", "internal/cli/command", "internal/cli/mail", "internal/cli/agent", "internal/cli/session", "internal/cli/setup", "internal/testagent", "internal/tui"},
	"golang.org/x/sys":                       {"ptyrun/process", "internal/testagent", "internal/durable", "internal/lockfile", "internal/output", "mailbox", "teams/doctor", "teams/rootdir", "watcher", "internal/cli/agent"},
	"mvdan.cc/sh":                            {"teams/policy"},
	"pgregory.net/rapid":                     {"internal/testframe"},
}

func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,GoFiles", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Doc  string
			Imports, GoFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) == 0 {
			continue
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		if !slices.Contains(layers, name) {
			t.Errorf("package %s is in no layer", name)
		}
		if p.Doc == "" {
			t.Errorf("package %s does not say what it is", name)
		}
		for _, imported := range p.Imports {
			checkImport(t, name, imported)
		}
	}
}

// The terminal emulator costs every start: it is linked into atm-runner alone.
func TestEmulatorIsNotInAtm(t *testing.T) {
	for program, wants := range map[string]bool{"./cmd/atm": false, "./cmd/atm-acp": false, "./cmd/atm-tui": false, "./cmd/atm-runner": true} {
		out, err := exec.Command("go", "list", "-deps", program).Output()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(out), "github.com/charmbracelet/x/vt\n") != wants {
			t.Errorf("%s links the emulator: %v", program, !wants)
		}
	}
}

// Package ptyrun is for programs of others, too: what it says names things, and package command makes commands of that.
func TestRunnerNamesNoCommands(t *testing.T) {
	mayName := map[string]string{
		"letter.go": "what it types into an agent is mail, which says how it is answered",
		"input.go":  "the same of what people say in a session",
	}
	var names []string
	for _, c := range slices.Concat(mail.Commands(), agent.Commands(), session.Commands(), setup.Commands()) {
		names = append(append(names, c.Name), c.Aliases...)
	}
	isCommand := regexp.MustCompile(`\batm (%|$|(` + strings.Join(names, "|") + `)\b)`)
	check := func(file string) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, _ := strconv.Unquote(lit.Value); isCommand.MatchString(text) {
					t.Errorf("%s names a command: %s", fset.Position(lit.Pos()), lit.Value)
				}
			}
			return true
		})
	}
	err := filepath.WalkDir("ptyrun", func(path string, d fs.DirEntry, err error) error {
		isCode := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
		if err == nil && isCode && mayName[d.Name()] == "" {
			check(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkImport(t *testing.T, name, imported string) {
	if ours, ok := strings.CutPrefix(imported, module); ok {
		if slices.Index(layers, ours) >= slices.Index(layers, name) {
			t.Errorf("%s imports %s, which is above it", name, ours)
		}
		return
	}
	if !strings.Contains(strings.Split(imported, "/")[0], ".") {
		return // the standard library
	}
	for path, by := range importers {
		if imported == path || strings.HasPrefix(imported, path+"/") {
			if !slices.Contains(by, name) {
				t.Errorf("%s imports %s: only %v may", name, imported, by)
			}
			return
		}
	}
	t.Errorf("%s imports %s, which is not among the chosen modules", name, imported)
}
