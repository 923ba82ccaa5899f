// Package agentconfig writes atm's part of a coding agent's own configuration, and removes it again: hooks, permission
// to run atm's mail verbs without asking, the root among a sandbox's writable paths, the agent's name in one worktree,
// and, only on request, the entry that starts `atm mcp`. The tools are in tools.go.
//
//   - All files are read, parsed and checked before any is written. A file that a repository tracks, directly or
//     through a link, or that does not parse, is an error that names it.
//   - The rest of a file stays, with its order, comments and layout. Installing again only updates older hooks.
//   - Uninstall restores the original bytes if nobody else has changed the file since; otherwise it removes what
//     install added and nobody has changed. It also removes the directories that install made, once they are empty. For
//     this, install keeps a record in the user's state directory. Without one, only hooks, marked lines and files of
//     atm's own go.
//   - Nothing is written that the tool would ignore: not into a file that it does not take as it is, and no hooks if a
//     setting keeps it from running any.
//   - Each file is replaced atomically; links are followed, though with Local none that leads out of the worktree; modes
//     are kept. A file that another program changes meanwhile is left alone. After a write that failed or was killed,
//     running the same command again does the rest.
package agentconfig

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/teamdir/git"
)

// Tools are the programs that atm can configure.
var Tools = []string{"claude", "codex", "gemini", "opencode"}

// Installer holds the environment of an installation.
type Installer struct {
	Home  string // "": there is none, and only Local works
	Dir   string // the working directory, absolute
	State string // the user's state directory for atm; "": no records are kept
	Self  string // this executable
	Root  string // the root that agents here use, accepted by the user; "": there is none
}

// Request says what to install or uninstall.
type Request struct {
	Tool   string
	Local  bool   // this worktree's own file, else the user's
	Agent  string // with Local: who the agent is here; "" leaves that as it is
	DryRun bool   // nothing is written
	MCP    bool   // only the entry that starts `atm mcp`
	Plugin bool   // all but the hooks and the server, which the tool's plugin has
	Claims bool   // also what has Claude Code refuse to edit what another member has claimed
	Accept bool   // also what has Claude Code take mail without asking where it asks for no permissions; not with Local

	isRemoval bool
}

// Report says what was changed, or would be.
type Report struct {
	Tool   string     `json:"tool"`
	Files  []Change   `json:"files"` // only those that changed
	DryRun bool       `json:"dry_run"`
	Plugin [][]string `json:"plugin,omitempty"` // commands of the tool that were run, or would be
	Notes  []string   `json:"notes,omitempty"`  // what the person still has to do or know
}

// Change is one file, with a line for each kind of change.
type Change struct {
	Path    string   `json:"path"`
	Changes []string `json:"changes"`
}

// Install writes a tool's configuration.
func (p *Installer) Install(r Request) (*Report, error) { return p.editFiles(r) }

// Uninstall removes all that Install wrote. It ignores r.MCP, r.Plugin, r.Accept and r.Agent.
func (p *Installer) Uninstall(r Request) (*Report, error) {
	r.MCP, r.Plugin, r.Agent, r.isRemoval = false, false, "", true
	return p.editFiles(r)
}

// top returns the top of this worktree, without a repository the working directory.
func (p *Installer) top() (string, error) {
	dir, err := durable.RealPath(p.Dir)
	if c, ok := git.Nearest(dir); ok && err == nil {
		dir = c.Top
	}
	return dir, err
}

// plan returns all edits for a tool, whether the request asks for them or not, and notes for the person.
func (p *Installer) plan(r Request, top string) (edits []edit, notes []string, err error) {
	if !r.Local && p.Home == "" {
		return nil, nil, errors.New("no home directory, so no user configuration to change")
	}
	plans := map[string]func(Request, string) ([]edit, []string){
		"claude": p.claude, "codex": p.codex, "gemini": p.gemini, "opencode": p.opencode,
	}
	edits, notes = plans[r.Tool](r, top)
	server, serverNotes := p.server(r, top)
	edits = append(edits, server)
	if r.Local {
		edits = append(edits, excludeEdits(top, r, edits)...)
	}
	if r.MCP {
		return edits, serverNotes, nil
	}
	if p.onPath() == "" {
		notes = append(notes, "atm is not on your PATH: the hooks run "+p.Self+", but agents will type atm; link it into a directory on your PATH")
	}
	if p.Root == "" && r.Tool != "opencode" {
		notes = append(notes, "no atm team of yours here, so the agent's sandbox was not opened for it: run atm init in your project, then this again")
	}
	return edits, notes, nil
}

// path returns the path of a tool's file or directory: local in the worktree, or user in the directory that a variable
// names, else in this one in the home.
func (p *Installer) path(r Request, top, local, variable, home, user string) string {
	if r.Local {
		return filepath.Join(top, local)
	}
	return filepath.Join(cmp.Or(os.Getenv(variable), filepath.Join(p.Home, home)), user)
}

// command returns the words of a command of atm. The program is the absolute path that PATH gives, since programs that
// a desktop starts have another PATH. If that is a link, it still works after it has been pointed elsewhere.
func (p *Installer) command(agent string, words ...string) []string {
	words = append([]string{filepath.ToSlash(cmp.Or(p.onPath(), p.Self))}, words...)
	if agent != "" {
		words = append(words, "--as", agent)
	}
	return words
}

// onPath returns where PATH finds this program under the name atm, "" if it finds another one or none.
func (p *Installer) onPath() string {
	path, _ := exec.LookPath("atm")
	found, _ := os.Stat(path)
	self, _ := os.Stat(p.Self)
	if filepath.IsAbs(path) && os.SameFile(found, self) {
		return path
	}
	return ""
}

func each[T any](words []string, f func(string) T) (all []T) {
	for _, w := range words {
		all = append(all, f(w))
	}
	return all
}

// editFiles edits all files in memory, then saves them, up to the first error.
func (p *Installer) editFiles(r Request) (*Report, error) {
	top, err := p.top()
	if err != nil {
		return nil, err
	}
	edits, notes, err := p.plan(r, top)
	if err != nil {
		return nil, err
	}
	if why, isHere := p.obstacle(r, top); isHere {
		notes = append(notes, r.Tool+" runs no hooks in this project: "+why)
	} else if why != "" && !r.isRemoval && !r.MCP {
		return nil, fmt.Errorf("%s runs no hooks: %s", r.Tool, why)
	}
	report := &Report{Tool: r.Tool, DryRun: r.DryRun, Files: []Change{}}
	if !r.isRemoval {
		report.Notes = notes
	}
	var files []*file
	seen := map[string]bool{}
	for _, e := range edits {
		if seen[e.path] {
			continue
		}
		seen[e.path] = true
		f, err := p.editFile(r, top, e.path, edits)
		if err != nil {
			return nil, err
		}
		files, report.Notes = append(files, f), append(report.Notes, f.notes...)
		if f.isChanged() {
			report.Files = append(report.Files, Change{Path: f.path, Changes: f.changes})
		}
	}
	if !r.isRemoval {
		slices.Reverse(files) // the exclude file first: after an error git still sees nothing new
	}
	if r.DryRun {
		return report, nil
	}
	for i := 0; i < len(files) && err == nil; i++ {
		err = files[i].save()
	}
	removeEmptyDirs(files)
	return report, err
}

// editFile makes those of a file's edits in memory that the request asks for.
func (p *Installer) editFile(r Request, top, path string, edits []edit) (*file, error) {
	edits = slices.DeleteFunc(slices.Clone(edits), func(e edit) bool { return e.path != path })
	wanted := slices.DeleteFunc(slices.Clone(edits), func(e edit) bool { return e.isServer != r.MCP && !r.isRemoval })
	f, err := p.read(r.Tool, path)
	if len(wanted) == 0 || r.isRemoval && edits[0].isServer && !f.isRecorded {
		return f, nil // what is wrong in such a file does not matter
	}
	if err == nil {
		err = checkUntracked(f.path, f.real)
	}
	if err == nil {
		err = checkPlace(r, top, f)
	}
	if err == nil && r.isRemoval {
		err = f.uninstall(edits)
	} else if err == nil {
		err = f.install(edits, wanted)
	}
	return f, err
}

// Damage says what is wrong with atm's hooks in a tool's configuration, the user's or this worktree's. It is "" if
// nothing is, or if there are none. byHand: Install mends it only after somebody has changed the file.
func (p *Installer) Damage(tool string, local bool) (damage string, byHand bool, err error) {
	r := Request{Tool: tool, Local: local}
	top, err := p.top()
	if err != nil {
		return "", false, err
	}
	edits, _, err := p.plan(r, top)
	if err != nil {
		return "", false, err
	}
	f, err := p.read(tool, edits[0].path)
	// The program that a hook or the plugin runs.
	hookProgram := regexp.MustCompile(`"'?([^"']*atm(?:\.exe)?)'?(?:","| )hook[ "]`)
	hooks := hookProgram.FindAllSubmatch(f.before, -1)
	if err == nil && !local && p.hasClaudePlugin(r, top) && p.onPath() == "" {
		return "claude has atm's plugin, which runs the atm on PATH, and there is another one or none", true, nil
	}
	if err != nil || len(hooks) == 0 && !f.isRecorded {
		return "", false, err
	}
	again, fresh := *f, file{}
	if err := cmp.Or(again.apply(edits[:1], false), fresh.apply(edits[:1], false)); err != nil {
		return err.Error(), true, nil
	}
	if why, _ := p.obstacle(r, top); why != "" && len(hooks) > 0 {
		return tool + " runs no hooks here: " + why, true, nil
	}
	for _, hook := range hooks {
		if _, err := os.Stat(string(hook[1])); err != nil && filepath.IsAbs(string(hook[1])) {
			return fmt.Sprintf("the hooks in %s run %s, which does not exist", f.path, hook[1]), false, nil
		}
	}
	if len(hooks) > 0 && p.hasClaudePlugin(r, top) {
		return fmt.Sprintf("claude has atm's plugin as well as the hooks in %s: each event starts atm twice", f.path), true, nil
	}
	if n, all := len(hooks), len(hookProgram.FindAll(fresh.after, -1)); n > 0 && n < all {
		return fmt.Sprintf("%s has only %d of the %d hooks of atm", f.path, n, all), false, nil
	}
	return "", false, nil
}

// hasClaudePlugin reports whether Claude Code has atm's plugin switched on, whoever has installed it.
func (p *Installer) hasClaudePlugin(r Request, top string) bool {
	r.Local = false
	return r.Tool == "claude" && isSet(p.path(r, top, "", "CLAUDE_CONFIG_DIR", ".claude", "settings.json"), "/enabledPlugins/atm@atm", "true") != ""
}
