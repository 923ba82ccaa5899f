// Package layout holds the shape of the project: imports point downwards only, each
// module that is not ours has its importers, and every package says what it is.
package layout

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/agentteammail/atm/"

// layers are the packages from the bottom up: each may import those above it here.
var layers = strings.Fields(`
	cmd/internal/output
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
	reducer/history
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
	cmd/internal/backup
	cmd/internal/agentconfig
	ptyrun/acp
	ptyrun
	ptyrun/sessions
	cmd/internal/failure
	cmd/internal/aswire
	cmd/internal/app
	cmd/internal/doctor
	cmd/internal/room
	cmd/internal/cli/cmdline
	cmd/internal/cli/command
	cmd/internal/ask
	cmd/internal/runspec
	cmd/internal/runner
	cmd/internal/acpagent
	cmd/internal/mcp
	cmd/internal/bridge
	cmd/internal/claudeteam
	cmd/internal/cli/mail
	cmd/internal/cli/agent
	cmd/internal/cli/session
	cmd/internal/cli/setup
	cmd/internal/cli
	cmd/internal/testteam
	cmd/internal/follow
	cmd/internal/web
	cmd/internal/tui
	cmd/atm
	cmd/atm-tui
	cmd/atm-acp
	cmd/atm-codex
	cmd/atm-bridge
	cmd/atm-claude
	cmd/atm-runner
	cmd/atm-mcp
	cmd/atm-web
	cmd/internal/crashtest
	cmd/internal/machines
	cmd/internal/wine
	cmd/internal/realagents
	cmd/internal/bench
`)

// importers are the packages that may import a module that is not ours; tests may
// import more.
var importers = map[string][]string{
	"charm.land/bubbles":                     {"cmd/internal/tui"},
	"charm.land/bubbletea":                   {"cmd/internal/tui"},
	"charm.land/lipgloss":                    {"cmd/internal/tui"},
	"github.com/charmbracelet/ultraviolet":   {"ptyrun/screen", "cmd/internal/web"},
	"github.com/charmbracelet/x/ansi":        {"internal/testagent", "cmd/internal/tui", "cmd/internal/web", "ptyrun/acp", "ptyrun/driver", "ptyrun/screen"},
	"github.com/charmbracelet/x/vt":          {"ptyrun/screen"},
	"github.com/clipperhouse/displaywidth":   {"internal/testagent", "internal/testframe", "mailbox/letter"},
	"github.com/coder/acp-go-sdk":            {"cmd/internal/acpagent", "internal/testagent", "ptyrun/acp"},
	"github.com/coder/websocket":             {"internal/push/codex"},
	"github.com/creack/pty":                  {"ptyrun/process"},
	"github.com/fsnotify/fsnotify":           {"watcher"},
	"github.com/go-json-experiment/json":     {"cmd/internal/agentconfig", "session", "wire"},
	"github.com/gofrs/flock":                 {"internal/lockfile"},
	"github.com/google/uuid":                 {"wire"},
	"github.com/modelcontextprotocol/go-sdk": {"cmd/internal/mcp"},
	"github.com/nats-io/nats.go":             {"cmd/internal/bridge"},
	"github.com/pelletier/go-toml":           {"internal/tomlfile", "cmd/internal/agentconfig", "internal/testagent"},
	"github.com/rogpeppe/go-internal":        {"cmd/internal/testteam"},
	"github.com/tailscale/peercred":          {"internal/push/claude", "internal/push/codex", "ptyrun/control"},
	"github.com/tailscale/hujson":            {"cmd/internal/agentconfig"},
	"github.com/urfave/cli":                  {"cmd/internal/cli", "cmd/internal/cli/cmdline", "cmd/internal/cli/command", "cmd/internal/cli/mail", "cmd/internal/cli/agent", "cmd/internal/cli/session", "cmd/internal/cli/setup", "cmd/internal/acpagent", "cmd/internal/bridge", "cmd/internal/claudeteam", "cmd/internal/mcp", "cmd/internal/follow", "cmd/internal/runner", "cmd/internal/tui", "cmd/internal/web"},
	"github.com/xrash/smetrics":              {"internal/tomlfile", "cmd/internal/failure"},
	"golang.org/x/term":                      {"cmd/atm", "cmd/internal/failure", "cmd/internal/app", "cmd/internal/cli/command", "cmd/internal/cli/mail", "cmd/internal/cli/agent", "cmd/internal/cli/session", "cmd/internal/cli/setup", "internal/testagent", "cmd/internal/tui"},
	"golang.org/x/sys":                       {"ptyrun/process", "internal/testagent", "internal/durable", "internal/lockfile", "cmd/internal/output", "mailbox", "cmd/internal/doctor", "teams/rootdir", "watcher", "cmd/internal/cli/agent"},
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
