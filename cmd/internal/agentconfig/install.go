// Package agentconfig has a coding agent take atm's part: the agent's own plugin command takes hooks, the MCP server, a skill and a
// command from a folder that atm writes, and what a plugin cannot say is added to the agent's settings, the permission to
// run atm's mail verbs and the root among a sandbox's writable paths. What the programs take is in internal/agents.
//
//		plugins/TOOL/    in the user's state directory: the folder, with the path of the atm that wrote it
//
//	  - What is added is taken out again; the rest of a file stays.
//	  - A file that does not parse is an error that names it, and nothing is changed.
//	  - Each file is replaced atomically; links are followed, and modes are kept.
package agentconfig

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/teamdir/git"
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
	Home  string      // "": there is none
	Dir   string      // the working directory, absolute
	State string      // the user's state directory for atm
	Self  string      // this executable
	Root  string      // the root that agents here use, accepted by the user; "": there is none
	Verbs [][2]string // examples of commands and what they do, for a plugin's skill
}

// Request says what to install or to remove.
type Request struct {
	Tool      string
	IsRemoval bool
	Accept    bool // also what has the program take mail without asking where it asks for no permissions
	DryRun    bool // nothing is written
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

// Edit changes a tool's files, all but the plugin's.
func (p *Installer) Edit(r Request) (*Report, error) {
	if p.Home == "" {
		return nil, errors.New("no home directory, so no configuration to change")
	}
	v, in := all.Find(r.Tool), p.of(r.Tool)
	in.Accept = r.Accept || r.IsRemoval
	report := &Report{Tool: r.Tool, DryRun: r.DryRun, Files: []Change{}}
	settings, notes, err := p.settings(v, in, r.IsRemoval)
	if report.Notes = notes; !r.IsRemoval {
		report.Notes = append(report.Notes, p.notes(v)...)
	}
	files := slices.DeleteFunc(append(p.ownFiles(v, in, r.IsRemoval), settings...), func(f *file) bool {
		err = cmp.Or(err, f.err)
		return f.after == f.before
	})
	for _, f := range files {
		report.Files = append(report.Files, Change{f.path, f.changes})
		if err == nil && !r.DryRun {
			err = f.write()
		}
	}
	return report, err
}

func (p *Installer) notes(v *agents.Vendor) []string {
	notes := slices.Clone(v.Notes)
	if p.onPath() == "" {
		notes = append(notes, "atm is not on your PATH: the hooks run "+p.Self+", but agents will type atm; link it into a directory on your PATH")
	}
	if p.Root == "" && v.Writable != nil {
		notes = append(notes, "no atm team of yours here, so the agent's sandbox was not opened for it: run atm init in your project, then this again")
	}
	return notes
}

// of returns what a vendor plans an installation by.
func (p *Installer) of(tool string) *agents.Install {
	top, _ := durable.RealPath(p.Dir)
	if c, ok := git.Nearest(top); ok {
		top = c.Top
	}
	return &agents.Install{Home: p.Home, Top: top, Root: p.Root, Hook: p.command("hook", tool)}
}

// command returns the words of a command of atm. The program is the absolute path that PATH gives, since programs that
// a desktop starts have another PATH. If that is a link, it still works after it has been pointed elsewhere.
func (p *Installer) command(words ...string) []string { return append([]string{p.Program()}, words...) }

// Program returns the path of this program, as PATH has it if it does.
func (p *Installer) Program() string { return filepath.ToSlash(cmp.Or(p.onPath(), p.Self)) }

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

// A file is one that is changed.
type file struct {
	path          string // as a person names it
	before, after string // "": there is none
	changes       []string
	err           error // it cannot be read
}

const removed = "atm's part removed"

// maxFile is the most bytes of a file.
const maxFile = 16 << 20

func readFile(path string) *file {
	data, err := durable.ReadRegular(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return &file{path: path, before: string(data), after: string(data), err: err}
}

// write puts the text in the place of the one before it. Without a text the file goes, and the directory if that was all.
func (f *file) write() error {
	path, err := durable.RealPath(f.path)
	if err != nil {
		return err
	}
	if f.after == "" {
		err := os.Remove(path)
		os.Remove(filepath.Dir(path)) // fails if there is more
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	dir, err := durable.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	was, _ := os.Stat(path)
	if err := dir.Replace(filepath.Base(path), []byte(f.after), true); err != nil || was == nil {
		return err
	}
	return os.Chmod(path, was.Mode().Perm())
}

// ownFiles are a program's files that are atm's as a whole. One that does not begin with atm's line is somebody else's.
func (p *Installer) ownFiles(v *agents.Vendor, in *agents.Install, isRemoval bool) (files []*file) {
	if v.Files == nil {
		return nil
	}
	for _, own := range v.Files(in) {
		f := readFile(own.Path)
		head := fmt.Sprintf("%s atm install %s writes this file, atm uninstall %[2]s removes it\n", own.Comment, v.Name)
		switch isOurs := strings.HasPrefix(f.before, head); {
		case f.err != nil:
		case isOurs && isRemoval:
			f.after, f.changes = "", []string{removed}
		case !isRemoval && f.before != "" && !isOurs:
			f.err = fmt.Errorf("%s was not written by atm install: left alone", f.path)
		case !isRemoval:
			f.after, f.changes = head+own.Body, []string{own.Change}
		}
		files = append(files, f)
	}
	return files
}
