// Package agentconfig writes what a coding agent needs to know of atm into that program's own
// configuration, and takes it out again: hooks; permission to run atm's mail verbs without asking; the
// root among the writable paths of a sandbox; for one worktree, who the agent is. Each tool has a file
// (claude.go, codex.go, …). Apart from these, the MCP server (mcp.go).
//
//   - Nothing is written before every file was read, understood and found to be nobody's but the
//     user's. One that a repository tracks, directly or through a link, or that does not parse, is an
//     error that names it.
//   - What is there stays, with its order, comments and layout. Done again, it changes nothing. Older
//     hooks of ours are brought up to date.
//   - Uninstall gives back the bytes that were there, as long as nobody else changed the file; else it takes out what
//     is ours. It removes the directories that install made, once they are empty. For that a record is kept in the
//     user's state directory; without it only hooks, the MCP server, marked lines and files of our own go.
//   - Each file is replaced in one step; links are written through, modes kept. A file that another
//     program changes meanwhile is left alone. What a write that failed has left undone is done by the
//     same command again.
package agentconfig

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Tools are the programs whose configuration is known.
var Tools = []string{"claude", "codex", "gemini", "opencode"}

// Verbs are the commands of atm that an agent may run without being asked: its mail, and looking
// around. No pattern that this package writes may admit another.
var Verbs = []string{"send", "read", "reply", "ack", "ls", "show", "wait", "team", "trace", "where", "primer"}

// Installer knows the surroundings of an installation.
type Installer struct {
	Home  string // "" is none: only Local works
	Dir   string // the working directory, absolute
	State string // the user's state directory for atm; "" is none
	Self  string // this executable
	Root  string // the root that agents here are to use, accepted by the user; "" is none
}

// Request says what to do.
type Request struct {
	Tool   string
	Local  bool   // this worktree's own file, else the user's
	Agent  string // with Local: who the agent is here; "" leaves that as it is
	DryRun bool   // nothing is written
	MCP    bool   // the entry that starts `atm mcp`, and nothing else

	isRemoval bool
}

// Report says what was changed, or would be.
type Report struct {
	Tool   string   `json:"tool"`
	Files  []Change `json:"files"` // only those that changed
	DryRun bool     `json:"dry_run"`
	Notes  []string `json:"notes,omitempty"` // what the person still has to do or know
}

// Change is one file, with a line for each kind of change.
type Change struct {
	Path    string   `json:"path"`
	Changes []string `json:"changes"`
}

// plan is all that a tool has: its hooks, its server, and the lines that keep git from seeing them. The notes are what
// the person still has to do or know.
func (p *Installer) plan(r Request) (edits []edit, notes []string, err error) {
	local, err := p.localDir()
	if err != nil {
		return nil, nil, err
	}
	if !r.Local && p.Home == "" {
		return nil, nil, errors.New("there is no home directory, and so no configuration of the user's own")
	}
	plans := map[string]func(Request, string) ([]edit, []string){
		"claude": p.claude, "codex": p.codex, "gemini": p.gemini, "opencode": p.opencode,
	}
	edits, notes = plans[r.Tool](r, local)
	server, serverNotes := p.server(r, local)
	server.isServer = true
	edits = append(edits, server)
	if r.Local {
		edits = append(edits, excludeEdits(local, r, edits)...)
	}
	if r.MCP {
		return edits, serverNotes, nil
	}
	if p.onPath() == "" {
		notes = append(notes, "atm is not on your PATH: the hooks run "+p.Self+", but agents will type atm; link it into a directory on your PATH")
	}
	if p.Root == "" && r.Tool != "opencode" {
		notes = append(notes, "no team of yours was found here, so no sandbox was opened for it: run atm init in your project, then this again")
	}
	return edits, notes, nil
}

// userDir is a directory in the user's home, unless a variable names another.
func (p *Installer) userDir(variable, name string) string {
	return cmp.Or(os.Getenv(variable), filepath.Join(p.Home, name))
}

// Install writes a tool's configuration.
func (p *Installer) Install(r Request) (*Report, error) { return p.editFiles(r) }

// Uninstall takes out of a tool's configuration what Install put there: with MCP that entry, else everything.
func (p *Installer) Uninstall(r Request) (*Report, error) {
	r.Agent, r.isRemoval = "", true
	return p.editFiles(r)
}

// editFiles edits all files in memory, then writes them.
func (p *Installer) editFiles(r Request) (*Report, error) {
	edits, notes, err := p.plan(r)
	if err != nil {
		return nil, err
	}
	report := &Report{Tool: r.Tool, DryRun: r.DryRun, Files: []Change{}}
	if !r.isRemoval {
		report.Notes = notes
	}
	all := map[string][]edit{}
	for _, e := range edits {
		all[e.path] = append(all[e.path], e)
	}
	var files []*file
	for _, e := range edits {
		f, err := p.editFile(r, all[e.path])
		delete(all, e.path)
		if err != nil {
			return nil, err
		}
		report.Notes = append(report.Notes, f.notes...)
		if f.changed() {
			report.Files = append(report.Files, Change{Path: f.path, Changes: f.changes})
		}
		if f.changed() || f.isDone && f.isRecorded {
			files = append(files, f)
		}
	}
	if r.DryRun {
		return report, nil
	}
	if !r.isRemoval {
		slices.Reverse(files) // the exclude file first: what fails leaves nothing that git sees
	}
	return report, saveAll(files)
}

// editFile makes in memory those of a file's edits that are asked for.
func (p *Installer) editFile(r Request, all []edit) (*file, error) {
	wanted := slices.DeleteFunc(slices.Clone(all), func(e edit) bool {
		return r.MCP != e.isServer && (r.MCP || !r.isRemoval)
	})
	if len(wanted) == 0 {
		return &file{}, nil
	}
	f, err := p.openFile(r.Tool, all[0].path)
	f.edits = all
	if err == nil {
		err = checkUntracked(f.path, f.real)
	}
	if err == nil && r.isRemoval {
		err = f.uninstall(wanted)
	} else if err == nil {
		err = f.install(wanted)
	}
	if err != nil && !f.isRecorded && !r.MCP && all[0].isServer {
		return &file{}, nil // what has none of ours may be anybody's
	}
	return f, err
}

// Damage is what is wrong with our hooks in a tool's configuration, the user's or this worktree's; "": nothing, or there
// are none.
func (p *Installer) Damage(tool string, local bool) (string, error) {
	edits, _, err := p.plan(Request{Tool: tool, Local: local})
	if err != nil {
		return "", err
	}
	f, err := p.openFile(tool, edits[0].path)
	if err != nil {
		return "", err
	}
	// The program that hooks, or a plugin, of ours run.
	hookProgram := regexp.MustCompile(`"'?([^"']*atm(?:\.exe)?)'?(?:","| )hook[ "]`)
	words := hookProgram.FindStringSubmatch(string(f.before))
	if words != nil && filepath.IsAbs(words[1]) {
		if _, err := os.Stat(words[1]); err != nil {
			const said = "the hooks in %s run %s, which is not there: %s gets no mail in its turns"
			return fmt.Sprintf(said, f.path, words[1], tool), nil
		}
	}
	events := map[string][]string{"claude": claudeEvents, "codex": codexEvents, "gemini": geminiEvents}[tool]
	if events == nil || words == nil && !f.isRecorded { // it has no such hooks, or none of ours
		return "", nil
	}
	root, err := parseJSON(f.before)
	if err != nil {
		return fmt.Sprintf("%s cannot be understood: %v", f.path, err), nil
	}
	if n := len(ownHooks(root, tool)); n > 0 && n < len(events) {
		return fmt.Sprintf("%s has hooks of atm for %d events of %d", f.path, n, len(events)), nil
	}
	return "", nil
}
