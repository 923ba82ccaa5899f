// Package rootdir finds or makes the root, the directory that holds the teams, and knows whether this user has named,
// made or accepted it: a root may also have come with a cloned repository.
//
//	<root>/FORMAT                          "1" or "2": makes the directory a root
//	<state>/roots/<sha256 of path>.json    this user made or accepted the root
//
// The package reads neither the environment nor flags. Its results and errors may contain names that somebody else
// chose: escape them before they reach a terminal.
package rootdir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/teams/git"
)

// FormatFile makes a directory a root. It contains 2 if the root is bridged to other hosts, else 1.
const FormatFile = "FORMAT"

// Name is the name that the search looks for.
const Name = ".atm"

// The values of Found.Source, as they are shown to people.
const (
	FromFlag         = "--root"
	FromEnv          = "ATM_ROOT"
	FromAbove        = "found above"
	FromMainWorktree = "main worktree"
	FromHome         = "home"
)

// Place is the part of a command's environment that decides where its root is.
type Place struct {
	Flag, Env string // --root and ATM_ROOT; "": not given
	Dir       string // the working directory, absolute
	Home      string // "": none
	State     string // the user's state directory for atm; "": none
	UID       int    // -1 on a system without user ids: every owner is trusted
}

// Found is a root and how it was found.
type Found struct {
	Path     string // absolute, without symbolic links
	Source   string // FromFlag etc.
	Accepted bool   // named by flag or environment, or made or accepted by this user
}

// The errors of Find and InitDir that callers check for.
var (
	ErrNoRoot    = errors.New("no root found")
	ErrNotRoot   = errors.New("no root at") // the named directory is none
	ErrUntrusted = errors.New("is not trusted")
	ErrNoDir     = errors.New("there is no working directory")
	ErrFormat    = errors.New("but this atm knows only 1 and 2")
)

// hasFormat reports whether dir has a file FORMAT. ErrFormat if it contains neither 1 nor 2.
func hasFormat(dir string) (bool, error) {
	var data []byte
	d, err := durable.Open(dir, nil)
	if err == nil {
		defer d.Close()
		data, err = d.ReadFile(FormatFile, 1<<10)
	}
	if isAbsent(err) || errors.Is(err, durable.ErrNotRegular) {
		return false, nil
	}
	if format := strings.TrimSpace(string(data)); err == nil && format != "1" && format != "2" {
		err = fmt.Errorf("the root %s has format %.40q, %w", dir, format, ErrFormat)
	}
	return true, err
}

// Find finds the root: the named one, else the nearest .atm from the working directory upwards (at the top of a linked
// worktree also that of the main worktree), else ~/.atm.
//
// A named root is used as it is, or refused with ErrNotRoot. A root found by search must be trusted (see
// DistrustReason); skipped has a sentence for each that is not, and ErrNoRoot says that no other was found. An
// unreadable root of this user, or one of an unknown format, ends the search with an error: mail must not go to another
// root instead.
func Find(p Place) (f Found, skipped []string, err error) {
	dir, err := p.workDir()
	if err != nil {
		return Found{}, nil, err
	}
	path, source, err := p.named(dir)
	if err != nil {
		return Found{}, nil, err
	}
	if source == "" {
		return p.search(dir, false)
	}
	ok, err := hasFormat(path)
	if _, missing := os.Stat(path); isAbsent(missing) {
		err = notRoot(path, source, "it does not exist")
	} else if err == nil && !ok {
		err = notRoot(path, source, "it has no FORMAT file")
	}
	return Found{Path: path, Source: source, Accepted: true}, nil, err
}

func notRoot(path, source, why string) error {
	return fmt.Errorf("%w %s, named by %s: %s", ErrNotRoot, path, source, why)
}

// workDir returns the working directory without symbolic links; "": there is none.
func (p Place) workDir() (dir string, err error) {
	if p.Dir != "" {
		if dir, err = filepath.EvalSymlinks(p.Dir); err != nil {
			err = fmt.Errorf("find the working directory: %w", err)
		}
	}
	return dir, err
}

// named returns the path that the flag or the environment names, perhaps relative to dir; source is "" if neither does.
// The existing part of the path is free of symbolic links.
func (p Place) named(dir string) (path, source string, err error) {
	name, source := p.Flag, FromFlag
	if name == "" {
		name, source = p.Env, FromEnv
	}
	if name == "" {
		return "", "", nil
	}
	if !filepath.IsAbs(name) {
		if dir == "" {
			return "", source, fmt.Errorf("%s is relative, but %w", name, ErrNoDir)
		}
		name = dir + string(filepath.Separator) + name // not filepath.Join, which removes ".." before links are resolved
	}
	path, err = filepath.EvalSymlinks(name)
	if isAbsent(err) {
		parent, base := filepath.Split(strings.TrimRight(name, string(filepath.Separator)))
		if real, err := filepath.EvalSymlinks(parent); err == nil {
			parent = real
		}
		return filepath.Join(parent, base), source, nil
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w", source, name, err)
	} else if info, e := os.Stat(path); e == nil && !info.IsDir() {
		err = notRoot(path, source, "it is not a directory")
	}
	return path, source, err
}

// home returns the home directory without symbolic links, "" if there is none.
func (p Place) home() string {
	home, err := filepath.EvalSymlinks(p.Home)
	if p.Home == "" || err != nil {
		return ""
	}
	return home
}

// candidates lists the paths to look for a root at, with their sources, from dir upwards. dir has no symbolic links.
func (p Place) candidates(dir string) (out []Found) {
	home := p.home()
	seen := map[string]bool{"": true}
	add := func(dir, source string) {
		if dir == home {
			source = FromHome
		}
		if !seen[dir] {
			out = append(out, Found{Path: filepath.Join(dir, Name), Source: source})
		}
		seen[dir] = true
	}
	for up, at := dir, ""; at != up; up = filepath.Dir(at) {
		at = up
		c, _ := git.At(at)
		add(at, FromAbove)
		add(c.Main, FromMainWorktree)
	}
	add(home, FromHome)
	return out
}

// search looks for a root from dir upwards, and at home. With forInit it ignores home, and accepts a root that its
// group may write: init accepts it anyway.
func (p Place) search(dir string, forInit bool) (_ Found, skipped []string, _ error) {
	for _, f := range p.candidates(dir) {
		if forInit && f.Source == FromHome {
			continue
		}
		info, err := os.Lstat(f.Path)
		if err != nil || !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		f.Accepted = accepted(p, f.Path)
		isRoot, err := hasFormat(f.Path)
		why, failed := distrustReason(f.Path, p.UID, !f.Accepted && !forInit)
		if failed != nil {
			return f, skipped, failed
		}
		if why == "" && err == nil && !isRoot {
			why = "it has no FORMAT file, so it is not a root"
		}
		if why == "" {
			return f, skipped, err
		}
		skipped = append(skipped, "passed over "+f.Path+": "+why)
	}
	if dir == "" {
		return Found{}, skipped, ErrNoRoot
	}
	return Found{}, skipped, fmt.Errorf("%w in %s or above", ErrNoRoot, dir)
}

// InitDir returns where `atm init` makes or finds the root, and in words why there: where it is named; with here in the
// working directory, whatever the environment names; else a root found above, not at home, even if this user has not
// accepted it yet; else the top of the git repository's main worktree; else the working directory. ErrUntrusted if an
// untrusted directory is there.
func InitDir(p Place, here bool) (dir, why string, err error) {
	if here {
		p.Env = ""
	}
	wd, err := p.workDir()
	if err != nil {
		return "", "", err
	}
	dir, source, err := p.named(wd)
	if err == nil && source != "" {
		_, err = hasFormat(dir)
	}
	if err != nil || source != "" {
		return dir, "named by " + source, err
	}
	if wd == "" {
		return "", "", fmt.Errorf("make a root: %w", ErrNoDir)
	}
	top, why := wd, "in this directory"
	if !here {
		f, _, err := p.search(wd, true)
		if err == nil {
			return f.Path, strings.Replace(f.Source, FromMainWorktree, "found in the main worktree", 1), nil
		}
		if !errors.Is(err, ErrNoRoot) {
			return "", "", err
		}
		if c, ok := git.Nearest(wd); ok && c.Main != "" {
			top, why = c.Main, "at the top of the main worktree"
		} else if ok {
			top, why = c.Top, "at the top of this worktree: no main worktree was found"
		}
	}
	dir = filepath.Join(top, Name)
	return dir, why, p.mayMake(dir)
}

// mayMake returns an error if init must not put a root at dir: it is a link, a file, or not trusted.
func (p Place) mayMake(dir string) error {
	info, err := os.Stat(dir)
	if isAbsent(err) {
		return nil
	}
	if err != nil || !info.IsDir() {
		return fmt.Errorf("make a root: %s is not a directory", dir)
	}
	if why := DistrustReason(dir, p.UID, false); why != "" {
		return fmt.Errorf("%s %w: %s", dir, ErrUntrusted, why)
	}
	_, err = hasFormat(dir)
	return err
}

// Make makes a root at path unless there is one, and reports whether it did. It builds the root under another name and
// renames it, so that nobody sees half of one. To an existing directory it adds FORMAT.
func Make(path string) (made bool, err error) {
	_, absent := os.Lstat(path) // before hasFormat: a root that appears in between has its FORMAT
	if isRoot, err := hasFormat(path); isRoot || err != nil {
		return false, err
	}
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	d, err := durable.Open(dir, nil)
	if err != nil {
		return false, err
	}
	defer d.Close()
	build := name
	if absent != nil {
		build = "." + name + "." + rand.Text() + ".making" // unique: several processes may make one
		defer os.RemoveAll(d.Join(build))                  // if another process was quicker
		err = d.Mkdir(build)
	}
	if err == nil {
		err = os.Chmod(d.Join(build), 0o700) // d.Mkdir would give it the group rights of the directory above
	}
	if err == nil {
		err = d.Replace(build+"/"+FormatFile, []byte("1\n"), true)
	}
	if err == nil && build != name {
		err = d.Move(build, name)
	}
	if err == nil {
		return true, d.Sync(".")
	}
	if isRoot, _ := hasFormat(path); isRoot {
		return false, nil
	}
	return false, err
}

func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Nearby lists the other trusted roots above and below the directory that holds root, and at home: mail for somebody in
// root may have been sent there by mistake.
func Nearby(p Place, root string) []Found {
	const maxDepth, maxDirs = 4, 5000
	top, dirs := filepath.Dir(root), 0
	roots, isHome := p.candidates(top), top == p.home()
	filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || path == top {
			return nil
		}
		if dirs++; isHome || dirs > maxDirs { // projects below home have their own roots
			return fs.SkipAll
		}
		if e.Name() == Name && filepath.Dir(path) != top { // the one in top is among the candidates
			roots = append(roots, Found{Path: path})
		}
		depth := strings.Count(path[len(top):], string(filepath.Separator))
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || depth > maxDepth {
			return fs.SkipDir
		}
		return nil
	})
	return slices.DeleteFunc(roots, func(f Found) bool {
		isRoot, err := hasFormat(f.Path)
		return f.Path == root || !isRoot || err != nil || DistrustReason(f.Path, p.UID, !accepted(p, f.Path)) != ""
	})
}
