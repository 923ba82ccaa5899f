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
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/agentteammail/atm/"

// layers are the packages from the bottom up, a floor at a time: each may import those above it here.
var layers = strings.Fields(
	// Files, locks, keys, and the words of all.
	"internal/durable internal/lockfile internal/tomlfile internal/jsonextra wire wire/foreign internal/delivery internal/hostkey internal/runinfo " +
		// Messages.
		"internal/letter mailbox/eventlog internal/maildir/holder internal/maildir/filestore internal/maildir/headers internal/maildir " +
		"internal/maildir/once internal/maildir/drop internal/maildir/inbox internal/maildir/claim internal/maildir/keep watcher mailbox " +
		// What events and messages say: an agent's state, its sessions, its past.
		"reducer reducer/ask session reducer/history " +
		// One program: its process, its screen, its socket, and the ways into it.
		"internal/process internal/tmux internal/control ptyrun/internal/loop ptyrun/internal/record internal/screen internal/driver/agents internal/driver internal/pane " +
		"internal/queue internal/policy internal/questions internal/agents internal/agents/claude internal/agents/codex/appserver internal/agents/codex " +
		"internal/agents/gemini internal/agents/opencode internal/agents/all internal/runhost " +
		// Several mailboxes.
		"internal/teamdir/config internal/teamdir/git internal/teamdir/rootdir internal/teamdir/snapshot internal/teamdir " +
		"internal/teamdir/programs internal/teamdir/presence internal/teamdir/push internal/teamdir/search internal/teamdir/post " +
		"internal/teamdir/work internal/teamdir/setaside " +
		"internal/teamdir/input internal/teamdir/notices internal/teamdir/edits teams " +
		// What runs an agent.
		"ptyrun/internal/run ptyrun/internal/inbox ptyrun/internal/terminal ptyrun/internal/viewers " +
		"ptyrun/internal/acp ptyrun/internal/speaker ptyrun cmd/internal/runner/sessions " +
		// What all programs use; what some of them do.
		"cmd/internal/output cmd/internal/failure cmd/internal/aswire cmd/internal/outlook cmd/internal/app " +
		"cmd/internal/room cmd/internal/hook cmd/internal/agentconfig cmd/internal/backup cmd/internal/doctor cmd/internal/runspec cmd/internal/tui/keymap " +
		// The command line.
		"cmd/internal/cli/cmdline cmd/internal/cli/command " +
		"cmd/internal/cli/mail cmd/internal/cli/agent cmd/internal/cli/session cmd/internal/cli/setup cmd/internal/cli " +
		// The other programs.
		"cmd/internal/runner cmd/internal/acpagent cmd/internal/bridge cmd/internal/claudeteam " +
		"cmd/internal/mcp cmd/internal/tui cmd/internal/web " +
		"cmd/atm cmd/atm-runner cmd/atm-more " +
		// What only tests use, and tests of the whole.
		"internal/delivery/waytest internal/teamdir/teamtest internal/testtree internal/testround internal/testframe internal/testprogram internal/testagent internal/testagent/cmd/fakeagent internal/testrig cmd/internal/testteam " +
		"cmd/internal/crashtest cmd/internal/machines cmd/internal/windows cmd/internal/packaging cmd/internal/realagents cmd/internal/bench")

// importers are the packages that import a module that is not ours; tests may import more.
var importers = map[string][]string{
	"charm.land/bubbles":                     {"cmd/internal/tui", "cmd/internal/tui/keymap"},
	"charm.land/bubbletea":                   {"cmd/internal/tui"},
	"charm.land/lipgloss":                    {"cmd/internal/tui"},
	"github.com/charmbracelet/ultraviolet":   {"internal/screen", "cmd/internal/web"},
	"github.com/charmbracelet/x/ansi":        {"internal/testagent", "cmd/internal/tui", "cmd/internal/web", "internal/driver", "internal/screen"},
	"github.com/charmbracelet/x/vt":          {"internal/screen"},
	"github.com/clipperhouse/displaywidth":   {"internal/testframe", "internal/letter"},
	"github.com/coder/acp-go-sdk":            {"cmd/internal/acpagent", "internal/testagent", "ptyrun/internal/acp"},
	"github.com/coder/websocket":             {"internal/delivery/waytest"},
	"github.com/creack/pty":                  {"internal/process"},
	"github.com/fsnotify/fsnotify":           {"watcher"},
	"github.com/go-json-experiment/json":     {"internal/jsonextra", "wire"},
	"github.com/gofrs/flock":                 {"internal/lockfile", "internal/testprogram", "internal/testrig"},
	"github.com/google/uuid":                 {"wire"},
	"github.com/modelcontextprotocol/go-sdk": {"cmd/internal/mcp"},
	"github.com/nats-io/nats.go":             {"cmd/internal/bridge"},
	"github.com/pelletier/go-toml":           {"internal/tomlfile", "cmd/internal/agentconfig", "internal/testagent"},
	"github.com/tailscale/peercred":          {"internal/agents/claude", "internal/agents/codex/appserver", "internal/control"},
	"github.com/tailscale/hujson":            {"cmd/internal/agentconfig", "internal/agents/opencode"},
	"github.com/urfave/cli":                  {"cmd/internal/cli", "cmd/internal/cli/cmdline", "cmd/internal/cli/command", "cmd/internal/cli/mail", "cmd/internal/cli/agent", "cmd/internal/cli/session", "cmd/internal/cli/setup", "cmd/internal/acpagent", "cmd/internal/bridge", "cmd/internal/claudeteam", "cmd/internal/mcp", "cmd/internal/tui", "cmd/internal/web"},
	"github.com/xrash/smetrics":              {"cmd/internal/failure"},
	"golang.org/x/term":                      {"internal/testagent", "cmd/internal/output", "cmd/internal/cli/session"},
	"golang.org/x/sys":                       {"internal/durable", "internal/lockfile", "internal/process", "internal/teamdir/rootdir", "cmd/internal/output", "cmd/internal/doctor"},
	"mvdan.cc/sh":                            {"internal/policy"},
	"pgregory.net/rapid":                     {"internal/testframe", "internal/testround"},
}

func TestImports(t *testing.T) {
	// Without a look at them here, go test would not know that the test depends on the files that go list reads.
	filepath.WalkDir(".", func(string, fs.DirEntry, error) error { return nil })
	out, err := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,GoFiles", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	unused := map[[2]string]bool{} // a module, and an importer of it that was not seen to be one
	for path, by := range importers {
		for _, name := range by {
			unused[[2]string{path, name}] = true
		}
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Doc  string
			Imports, GoFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
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
			if path := checkImport(t, name, imported); path != "" {
				delete(unused, [2]string{path, name})
			}
		}
	}
	if runtime.GOOS == "linux" { // where all that is listed is imported
		for pair := range unused {
			t.Errorf("%[2]s does not import %[1]s: take it out of importers", pair[0], pair[1])
		}
	}
}

// onPublic are programs of ours that do with mail and teams what the public packages offer, and no more: so others can, too.
// The command line around them is atm's.
var onPublic = []string{"cmd/internal/claudeteam"}

func TestProgramsOnPublicPackages(t *testing.T) {
	offered := 0
	for _, name := range onPublic {
		out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, "./"+name).Output()
		if err != nil {
			t.Fatal(err)
		}
		for imported := range strings.FieldsSeq(string(out)) {
			ours, isOurs := strings.CutPrefix(imported, module)
			isNoMail := slices.Contains([]string{"internal/durable", "internal/lockfile", "internal/letter", "internal/policy"}, ours) // files of another program's, and words
			if isOurs && strings.HasPrefix(ours, "internal/") && !isNoMail {
				t.Errorf("%s imports %s: what it needs of that is for package mailbox or teams to offer", name, ours)
			}
			if ours == "teams" {
				offered++
			}
		}
	}
	if offered != len(onPublic) {
		t.Errorf("%d of %v import package teams", offered, onPublic)
	}
}

// What atm sends, asks, acknowledges and withdraws goes through package teams, as what others do.
func TestMailGoesThroughTeams(t *testing.T) {
	by := regexp.MustCompile(`\b(post\.(Send|SendAll|Ack|AckAll|Withdraw|StoreFor)|Opened\(\)\.(SendAll|AckAll|Withdraw|Await))\(`)
	calls := 0
	err := filepath.WalkDir("cmd", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, call := range by.FindAllString(string(text), -1) {
			if calls++; strings.HasPrefix(call, "post.") {
				t.Errorf("%s: %s: call package teams", path, call)
			}
		}
		return err
	})
	if err != nil || calls < 5 {
		t.Error(calls, err)
	}
}

// The terminal emulator would cost every start of atm.
func TestEmulatorIsNotInAtm(t *testing.T) {
	for program, wants := range map[string]bool{"./cmd/atm": false, "./cmd/atm-runner": true} {
		out, err := exec.Command("go", "list", "-deps", program).Output()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(out), "github.com/charmbracelet/x/vt\n") != wants {
			t.Errorf("%s links the emulator: %v", program, !wants)
		}
	}
}

// Which of a repository's programs git may run is said in one place, so all calls of git are there.
func TestOnlyOnePackageRunsGit(t *testing.T) {
	isGit := func(e ast.Expr) bool {
		word, ok := e.(*ast.BasicLit)
		return ok && (word.Value == `"git"` || word.Value == "`git`")
	}
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		ast.Inspect(f, func(n ast.Node) bool {
			var words []ast.Expr // of a call, a list or an assignment: exec.Command("git"), []string{"git"}, const x = "git"
			switch n := n.(type) {
			case *ast.CallExpr:
				words = n.Args
			case *ast.CompositeLit:
				words = n.Elts
			case *ast.AssignStmt:
				words = n.Rhs
			case *ast.ValueSpec:
				words = n.Values
			}
			if !slices.ContainsFunc(words, isGit) {
				return true
			}
			if seen++; !slices.Contains([]string{"internal/teamdir/git", "internal/teamdir/teamtest"}, filepath.ToSlash(filepath.Dir(path))) {
				t.Errorf("%s: git is run by internal/teamdir/git only", fset.Position(n.Pos()))
			}
			return true
		})
		return err
	})
	if err != nil || seen == 0 {
		t.Error(seen, err)
	}
}

// mayNameVendors are the files and folders, beside internal/agents, whose code may name a vendor. The list shrinks.
var mayNameVendors = map[string]string{
	"internal/testagent/":      "it plays them",
	"wire/foreign/":            "their formats",
	"cmd/internal/claudeteam/": "a companion for one", "cmd/atm-more/": "the list of companions",
	"cmd/internal/cli/":       "help has examples, and lists what can be installed",
	"internal/letter/mark.go": "what programs say to their models", "internal/testframe/testframe.go": "what programs say to their models",
}

func TestOnlyVendorsFoldersNameThem(t *testing.T) {
	vendor, unused := regexp.MustCompile(`(?i)claude|codex|gemini|opencode`), maps.Clone(mayNameVendors)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "internal/agents/") {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		ast.Inspect(f, func(n ast.Node) bool {
			word := ""
			switch n := n.(type) {
			case *ast.Ident:
				word = n.Name
			case *ast.BasicLit:
				word = n.Value
			}
			if !vendor.MatchString(word) {
				return true
			}
			isMay := false
			for place := range mayNameVendors {
				if strings.HasPrefix(path, place) {
					isMay = true
					delete(unused, place)
				}
			}
			if !isMay {
				t.Errorf("%s: %.40s is named by internal/agents only", fset.Position(n.Pos()), word)
			}
			return true
		})
		return err
	})
	for place, why := range unused {
		t.Errorf("%s names no vendor (%s): take it out", place, why)
	}
	if err != nil {
		t.Error(err)
	}
}

// checkImport returns the module of importers that was imported; "": it is ours or the standard library's.
func checkImport(t *testing.T, name, imported string) string {
	if ours, ok := strings.CutPrefix(imported, module); ok {
		if slices.Index(layers, ours) >= slices.Index(layers, name) {
			t.Errorf("%s imports %s, which is above it", name, ours)
		}
		return ""
	}
	if !strings.Contains(strings.Split(imported, "/")[0], ".") {
		return "" // the standard library
	}
	for path, by := range importers {
		if imported == path || strings.HasPrefix(imported, path+"/") {
			if !slices.Contains(by, name) {
				t.Errorf("%s imports %s: only %v may", name, imported, by)
			}
			return path
		}
	}
	t.Errorf("%s imports %s, which is not among the chosen modules", name, imported)
	return ""
}

// wire.Unmarshal takes names as they are written, so a field without a tag stays empty.
func TestUnmarshalledFieldsHaveTags(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			var structs []*ast.StructType
			calls := false
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.StructType:
					structs = append(structs, n)
				case *ast.SelectorExpr:
					x, _ := n.X.(*ast.Ident)
					calls = calls || x != nil && x.Name == "wire" && n.Sel.Name == "Unmarshal"
				}
				return true
			})
			for _, s := range structs {
				for _, field := range s.Fields.List {
					if seen++; calls && field.Tag == nil && len(field.Names) > 0 {
						t.Errorf("%s: %s has no tag", fset.Position(field.Pos()), field.Names[0].Name)
					}
				}
			}
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Error(seen, err)
	}
}

// What atm links compiles no regular expression at its start: each command and each hook would pay for it.
func TestNoRegexpAtStart(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}", "./cmd/atm").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for name := range strings.FieldsSeq(string(out)) {
		dir, isOurs := strings.CutPrefix(name, module)
		if !isOurs {
			continue
		}
		seen++
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range f.Decls {
				vars, isVar := decl.(*ast.GenDecl)
				if !isVar || strings.HasSuffix(path, "_test.go") {
					continue
				}
				ast.Inspect(vars, func(n ast.Node) bool {
					if _, isLater := n.(*ast.FuncLit); isLater {
						return false
					}
					if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "MustCompile" {
						t.Errorf("%s: compile it when it is first used: sync.OnceValue", fset.Position(n.Pos()))
					}
					return true
				})
			}
		}
	}
	if seen == 0 {
		t.Error("no package was looked at")
	}
}
