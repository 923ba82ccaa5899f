// Package rootdir finds the directory that holds the teams, makes one, and tells one that this user named, made or
// accepted from one that merely lies there, as in a cloned repository.
//
//	<root>/FORMAT                          "1" or "2": this makes a directory a root
//	<state>/roots/<sha256 of path>.json    that this user made or accepted the root
//
// Nothing here reads the environment or flags. What is returned, errors too, may hold
// names that somebody else chose: escape them before a terminal shows them.
package rootdir

import (
	"cmp"
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

// FormatFile makes a directory a root. It says 2 where that is bridged to other machines, else 1.
const FormatFile = "FORMAT"

const rootName = ".atm" // of a root that is found by search

// The sources of a root, as people read them.
const (
	FromFlag         = "--root"
	FromEnv          = "ATM_ROOT"
	FromAbove        = "found above"
	FromMainWorktree = "main worktree"
	FromHome         = "home"
)

// Place is what a command knows of its surroundings.
type Place struct {
	Flag, Env string // --root and ATM_ROOT; "" is not given
	Dir       string // the working directory, absolute
	Home      string // "" is none
	State     string // the user's state directory for atm; "" is none
	UID       int    // -1 where the system has none: then nobody is distrusted
}

// Found is a root and how it was found.
type Found struct {
	Path     string // absolute, without symbolic links
	Source   string // FromFlag and its like
	Accepted bool   // named by flag or environment, or made or accepted by this user
}

// The ways in which there is no root to be had.
var (
	ErrNoRoot    = errors.New("no root found")
	ErrNotRoot   = errors.New("no root at") // one that was named
	ErrUntrusted = errors.New("is not to be trusted")
	ErrFormat    = errors.New("and this atm knows 1 and 2")
)

// hasFormat reports whether dir has a file FORMAT, which makes it a root. One that says neither 1 nor 2 is an ErrFormat.
func hasFormat(dir string) (bool, error) {
	var data []byte
	d, err := durable.Open(dir, nil)
	if err == nil {
		defer d.Close()
		data, err = d.ReadFile(FormatFile, 20)
	}
	if isAbsent(err) || errors.Is(err, durable.ErrNotRegular) {
		return false, nil
	}
	if format := strings.TrimSpace(string(data)); err == nil && format != "1" && format != "2" {
		err = fmt.Errorf("the root %s has format %q, %w", dir, format, ErrFormat)
	}
	return true, err
}

// Find finds the root: the named one, else the nearest .atm from the working directory upwards, where a linked worktree
// begins also at the top of the main worktree, else ~/.atm.
//
// A named root is taken or refused (ErrNotRoot). One found by search must also be ours alone; passed says, in a
// sentence each, which were passed over and why. Without any the error is ErrNoRoot. One of ours that cannot be read
// ends the search, as does a FORMAT that is not known: going on would put mail where nobody looks for it.
func Find(p Place) (f Found, passed []string, err error) {
	dir, path, source, err := p.named()
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
		err = notRoot(path, source, "it has no file FORMAT")
	}
	return Found{Path: path, Source: source, Accepted: true}, nil, err
}

func notRoot(path, source, why string) error {
	return fmt.Errorf("%w %s, named by %s: %s", ErrNotRoot, path, source, why)
}

// named is the working directory, and the root that the flag or the environment names; source is "" where
// neither does. Both are without symbolic links, as far as there is something.
func (p Place) named() (dir, path, source string, err error) {
	if p.Dir != "" {
		if dir, err = filepath.EvalSymlinks(p.Dir); err != nil {
			return "", "", "", fmt.Errorf("look at the working directory: %w", err)
		}
	}
	name := cmp.Or(p.Flag, p.Env)
	if name == "" {
		return dir, "", "", nil
	}
	source = FromEnv
	if p.Flag != "" {
		source = FromFlag
	}
	if !filepath.IsAbs(name) {
		if dir == "" {
			return "", "", source, fmt.Errorf("%s is relative, and there is no working directory", name)
		}
		name = dir + string(filepath.Separator) + name // not cleaned: links are resolved before ".."
	}
	path, err = filepath.EvalSymlinks(name)
	if isAbsent(err) {
		parent, base := filepath.Split(strings.TrimRight(name, string(filepath.Separator)))
		if real, err := filepath.EvalSymlinks(parent); err == nil && base != ".." {
			parent = real
		}
		return dir, filepath.Join(parent, base), source, nil
	}
	if info, e := os.Stat(path); e == nil && !info.IsDir() {
		err = notRoot(path, source, "it is no directory")
	}
	return dir, path, source, err
}

// home is the home directory without symbolic links; "": none.
func (p Place) home() string {
	home, err := filepath.EvalSymlinks(p.Home)
	if p.Home == "" || err != nil {
		return ""
	}
	return home
}

// candidates are the places where a root is looked for from dir, a physical path, and what finding one there is called.
func (p Place) candidates(dir string) (out []Found) {
	home := p.home()
	seen := map[string]bool{"": true}
	add := func(dir, source string) {
		if dir == home {
			source = FromHome
		}
		if !seen[dir] {
			out = append(out, Found{Path: filepath.Join(dir, rootName), Source: source})
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

// search looks for a root from dir upwards, and at home. For init, home does not
// count, and neither does what only acceptance can mend: to init is to accept.
func (p Place) search(dir string, forInit bool) (_ Found, passed []string, _ error) {
	for _, f := range p.candidates(dir) {
		info, err := os.Lstat(f.Path)
		if err != nil || forInit && f.Source == FromHome {
			continue
		}
		if isLink := info.Mode()&fs.ModeSymlink != 0; !isLink && !info.IsDir() {
			continue
		}
		f.Accepted = Accepted(p, f.Path)
		isRoot, err := hasFormat(f.Path)
		if errors.Is(err, fs.ErrPermission) && distrust(info, p.UID, false) == "" {
			return f, passed, err
		}
		why := Distrust(f.Path, p.UID, !f.Accepted && !forInit)
		if why == "" && err == nil && !isRoot {
			why = "it has no file FORMAT, so it is no root"
		}
		if why == "" {
			return f, passed, err
		}
		passed = append(passed, "passed over "+f.Path+": "+why)
	}
	if dir == "" {
		return Found{}, passed, ErrNoRoot
	}
	return Found{}, passed, fmt.Errorf("%w from %s upwards", ErrNoRoot, dir)
}

// InitDir says where `atm init` makes the root, or finds it. A named one is where it is named; here asks for one in the
// working directory; else it is the root found above, not at home, even if this user has not accepted it yet; else the
// top of the main worktree of the git repository; else the working directory. why says which of these it was. A place
// taken by what cannot be trusted is ErrUntrusted.
func InitDir(p Place, here bool) (dir, why string, err error) {
	wd, dir, source, err := p.named()
	if err == nil && source != "" {
		_, err = hasFormat(dir)
	}
	if err != nil || source != "" {
		return dir, "named by " + source, err
	}
	if wd == "" {
		return "", "", errors.New("make a root: there is no working directory")
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
			top, why = c.Top, "at the top of this worktree: no main worktree is to be found"
		}
	}
	dir = filepath.Join(top, rootName)
	return dir, why, p.mayMake(dir)
}

// mayMake refuses what init must not put a root into: a link, a file, a directory of somebody else's.
func (p Place) mayMake(dir string) error {
	info, err := os.Stat(dir)
	if isAbsent(err) {
		return nil
	}
	if err != nil || !info.IsDir() {
		return fmt.Errorf("make a root: %s is no directory", dir)
	}
	if why := Distrust(dir, p.UID, false); why != "" {
		return fmt.Errorf("%s %w: %s", dir, ErrUntrusted, why)
	}
	_, err = hasFormat(dir)
	return err
}

// Make makes a root at path unless there is one, and reports whether it did: under another name, renamed into place, so
// that nobody sees half of one. A directory that is there becomes a root by its FORMAT.
func Make(path string) (made bool, err error) {
	_, absent := os.Lstat(path) // looked at first: who makes one now makes it with its FORMAT
	if has, err := hasFormat(path); has || err != nil {
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
		build = "." + name + "." + rand.Text() + ".making" // two at once make two
		defer os.RemoveAll(d.Join(build))                  // when somebody else was quicker
		err = d.Mkdir(build)
	}
	if err == nil {
		err = os.Chmod(d.Join(build), 0o700) // whatever the directory above is open to
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
	if has, _ := hasFormat(path); has {
		return false, nil
	}
	return false, err
}

func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Nearby are the other roots above the directory that holds a root, at home, and below it,
// as far as they are trusted: mail for somebody here may have been sent there.
func Nearby(p Place, root string) []Found {
	const maxDepth, maxDirs = 4, 5000 // below
	top := filepath.Dir(root)
	near, dirs := p.candidates(top), 0
	home := p.home()
	filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || path == top {
			return nil
		}
		if dirs++; top == home || dirs > maxDirs { // what lies below home has roots of its own
			return fs.SkipAll
		}
		if e.Name() == rootName {
			near = append(near, Found{Path: path})
		}
		depth := strings.Count(path[len(top):], string(filepath.Separator))
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || depth > maxDepth {
			return fs.SkipDir
		}
		return nil
	})
	return slices.DeleteFunc(near, func(f Found) bool {
		isRoot, err := hasFormat(f.Path)
		return f.Path == root || !isRoot || err != nil || Distrust(f.Path, p.UID, !Accepted(p, f.Path)) != ""
	})
}
