// Package agentconfig writes atm's part of a coding agent's own configuration, and removes it again: hooks, permission
// to run atm's mail verbs without asking, the root among a sandbox's writable paths, the agent's name in one worktree,
// and, only on request, the entry that starts `atm mcp`. What the programs take is in internal/agents.
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
//     are kept. A file that another program changes meanwhile is left alone. If one cannot be
//     written, all stay as they are. After a kill, running the same command again does the rest.
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
	"strings"
	"sync"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/teamdir/git"
	"github.com/agentteammail/atm/teams/policy"
)

// Tools are the programs that atm can configure.
func Tools() (names []string) {
	for _, v := range all.Vendors {
		if v.Configuration != nil {
			names = append(names, v.Name)
		}
	}
	return names
}

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
	Claims bool   // also what has the program refuse to edit what another member has claimed
	Accept bool   // also what has the program take mail without asking where it asks for no permissions; not with Local

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
	v, in := all.Find(r.Tool), p.of(r, top)
	files, notes := v.Files(in)
	for _, f := range files {
		edits = append(edits, p.edit(r, f))
	}
	server, serverNotes := p.server(r, in)
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
	if p.Root == "" && v.IsSandboxed {
		notes = append(notes, "no atm team of yours here, so the agent's sandbox was not opened for it: run atm init in your project, then this again")
	}
	return edits, notes, nil
}

// of returns what a vendor plans an installation by.
func (p *Installer) of(r Request, top string) *agents.Install {
	return &agents.Install{
		Home: p.Home, Top: top, Root: p.Root, Agent: r.Agent, Hook: p.command(r.Agent, "hook", r.Tool),
		Local: r.Local, Claims: r.Claims, Accept: r.Accept, IsRemoval: r.isRemoval,
	}
}

// edit is the edit of one of a program's files.
func (p *Installer) edit(r Request, f agents.File) edit {
	switch {
	case f.Comment != "":
		return ownFile(f.Path, f.Comment, r.Tool, f.Body, f.Change)
	case f.Format == nil:
		return tomlFile(f.Path, r.Tool, false, f.Keys)
	}
	h := hookSet{tool: r.Tool}
	if f.HasHooks {
		h.HookSet = all.Find(r.Tool).Hooks
	}
	agent := ""
	if f.NamesAgent {
		agent = r.Agent
	}
	h.command = policy.QuoteAll(p.command(agent, "hook", r.Tool))
	return jsonFile(f.Path, r.Tool, f.Format, h, r.Plugin, f.Settings)
}

// server plans the entry that makes a program start `atm mcp` as the server "atm". The server takes the agent's name from
// its environment, unless the entry has one.
func (p *Installer) server(r Request, in *agents.Install) (e edit, notes []string) {
	words, s := p.command(r.Agent, "mcp"), all.Find(r.Tool).MCP
	entry := strings.NewReplacer("$PROGRAM", agents.Quoted(words[0]), "$ARGS", agents.Quoted(words[1:]), "$COMMAND", agents.Quoted(words)).Replace(s.Entry)
	change := "MCP server atm: " + policy.QuoteAll(words)
	if s.Note != "" {
		notes = append(notes, s.Note)
	}
	if s.NamelessNote != "" && r.Agent == "" {
		notes = append(notes, s.NamelessNote)
	}
	if s.Format == nil {
		return tomlFile(in.Path(s.Place), r.Tool, true, []agents.Key{{Table: s.At, Name: "command", Want: words[0], Value: entry, Change: change}}), notes
	}
	e = jsonFile(in.Path(s.Place), r.Tool, s.Format, hookSet{}, false, []agents.Setting{{Pointer: s.At, Value: entry, Change: change, KeepsTheirs: true}})
	e.isServer = true
	return e, notes
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

// obstacle says what keeps a program from running the hooks that are installed, "" if nothing is known to. isHere: only in
// this project, while the hooks are the user's.
func (p *Installer) obstacle(r Request, top string) (why string, isHere bool) {
	if find := all.Find(r.Tool).Obstacle; find != nil {
		return find(p.of(r, top), lookUp)
	}
	return "", false
}

// editFiles edits all files in memory, writes all of them beside what is there, and then puts them in place.
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
		err = files[i].stage()
	}
	for _, f := range files {
		if err != nil {
			f.unstage()
			continue
		}
		err = f.commit()
	}
	removeEmptyDirs(files)
	return report, err
}

// editFile makes those of a file's edits in memory that the request asks for.
func (p *Installer) editFile(r Request, top, path string, edits []edit) (*file, error) {
	edits = slices.DeleteFunc(slices.Clone(edits), func(e edit) bool { return e.path != path })
	wanted := slices.DeleteFunc(slices.Clone(edits), func(e edit) bool { return e.isServer != r.MCP && !r.isRemoval })
	isRemoval := r.isRemoval || !slices.ContainsFunc(wanted, func(e edit) bool { return !e.isPlugins })
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
	if err == nil && isRemoval {
		err = f.uninstall(edits)
	} else if err == nil {
		err = f.install(edits, wanted)
	}
	return f, err
}

// hookProgram finds the calls of atm in a file with hooks or in the plugin of atm's own: its program and its arguments.
var hookProgram = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"'?([^"']*atm(?:\.exe)?)'?(?:","| )hook(?:","| )([^"\]]*)`)
})

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
	hooks, hasPlugin := hookProgram().FindAllSubmatch(f.before, -1), !local && p.HasPlugin(tool)
	if err != nil || len(hooks) == 0 && !f.isRecorded && !hasPlugin {
		return "", false, err
	}
	again, fresh := *f, file{}
	if err := cmp.Or(again.apply(edits[:1], false), fresh.apply(edits[:1], false)); err != nil {
		return err.Error(), true, nil
	}
	if why, _ := p.obstacle(r, top); why != "" && (hasPlugin || len(hooks) > 0) {
		return tool + " runs no hooks here: " + why, true, nil
	}
	if hasPlugin && p.onPath() == "" {
		return tool + " has atm's plugin, which runs the atm on PATH, and there is another one or none", true, nil
	}
	for _, hook := range hooks {
		if _, err := os.Stat(string(hook[1])); err != nil && filepath.IsAbs(string(hook[1])) {
			return fmt.Sprintf("the hooks in %s run %s, which does not exist", f.path, hook[1]), false, nil
		}
	}
	if n, all := len(hooks), len(hookProgram().FindAll(fresh.after, -1)); n > 0 && n < all {
		return fmt.Sprintf("%s has only %d of the %d hooks of atm", f.path, n, all), false, nil
	}
	return "", false, nil
}

// Callers are what has a tool call atm for its events here: files, and the plugin. With more than one each event starts atm
// more than once.
func (p *Installer) Callers(tool string) (callers []string) {
	top, err := p.top()
	if err != nil || p.Home == "" {
		return nil
	}
	v, known := all.Find(tool), map[string]bool{}
	user, _ := v.Files(p.of(Request{Tool: tool}, top))
	local, _ := v.Files(p.of(Request{Tool: tool, Local: true}, top))
	for _, path := range []string{user[0].Path, local[0].Path, filepath.Join(top, v.Shared)} {
		data, _, _ := readFile(path)
		call := string(hookProgram().Find(data))
		isKnown := call == "" || known[path] || v.Hooks.IsOnce && known[call]
		if known[path], known[call] = true, true; !isKnown {
			callers = append(callers, path)
		}
	}
	if p.HasPlugin(tool) {
		callers = append(callers, "its plugin")
	}
	return callers
}

// HasPlugin reports whether a tool has atm's plugin switched on, whoever has installed it.
func (p *Installer) HasPlugin(tool string) bool {
	plugin := all.Find(tool).Plugin
	return plugin != nil && p.Home != "" && agents.Look(lookUp).IsSet(p.of(Request{Tool: tool}, "").UserPath(plugin.SwitchedIn), plugin.Switch, plugin.On) != ""
}
