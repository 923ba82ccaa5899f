// Package rootdir finds or makes the root, the directory that holds the teams, and knows whether this user has made it,
// named it, or accepted what is in it: that may also have come with a clone, a checkout, an archive or a backup.
//
//	<root>/FORMAT                            "3": makes the directory a root
//	<root>/.gitignore                        "*": hides it from whatever reads such files
//	<root>/.restored                         a backup was restored into it
//	<state>/roots/<sha256 of path>.json      this user made or accepted the root
//
// The package reads neither the environment nor flags. Its results and errors may contain names that somebody else
// chose: escape them before they reach a terminal.
package rootdir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/teamdir/git"
)

// FormatFile makes a directory a root. It contains Format, or what earlier ones had: 1, and 2 with mail to other hosts.
const (
	FormatFile = "FORMAT"
	Format     = "3"
)

// IsOlder reports whether the root has an older format than this one.
func (f *Found) IsOlder() bool { return f.format == "1" || f.format == "2" }

// Name is the name that the search looks for.
const Name = ".atm"

// The values of Found.Source, as they are shown to people.
const (
	FromFlag         = "--root"
	FromProgram      = "root" // Own: a program named it
	FromEnv          = "ATM_ROOT"
	FromAbove        = "found above"
	FromMainWorktree = "main worktree"
	FromWorktree     = "another worktree" // of a bare repository
	FromHome         = "home"
)

// Place is the part of a command's environment that decides where its root is.
type Place struct {
	Flag, Env string   // --root and ATM_ROOT; "": not given
	Dir       string   // the working directory, absolute
	Home      string   // "": none
	State     string   // the user's state directory for atm; "": none
	UID       int      // -1 on a system without user ids: every owner is trusted
	Environ   []string // for git

	program string // see Own; "": not given
}

// Found is a root and how it was found. One that a program makes itself, with a path and nothing else, or gets from Own,
// needs nobody's yes: it is the program that says which root it means.
type Found struct {
	Path    string        // absolute, without symbolic links
	Source  string        // FromFlag etc.
	Shadows string        // a root further up that this user made or accepted, unlike this one; "": none
	Fault   durable.Fault // lets a test fail the operations in the root

	place     Place
	format    string // what its file FORMAT has; "": not known
	isNoted   bool   // see WasNoted
	needsNote bool   // Find or InitDir returned it: it may have come with a clone or an archive, also if it is named
	strange   error  // instead of a path: why that of a repository is no candidate
}

// GoneError is the ErrNoRoot for a root that this user made or accepted and that is not there any more.
type GoneError struct {
	Path string
	Note string // the file that says so
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("the root %s is gone: git clean -fdx and git stash -a remove one, like rm -rf", e.Path)
}
func (e *GoneError) Is(target error) bool { return target == ErrNoRoot }

// The errors of Find and InitDir that callers check for.
var (
	ErrNoRoot    = errors.New("no root found")
	ErrNotRoot   = errors.New("no root at") // the named directory is none
	ErrUntrusted = errors.New("is not trusted")
	ErrNoDir     = errors.New("there is no working directory")
	ErrNoState   = errors.New("there is no state directory")
	ErrFormat    = errors.New("but this atm knows only 1 to 3")
	ErrNewer     = fmt.Errorf("%w", ErrFormat)
)

// formatOf returns what dir's file FORMAT has, "" without one, and CheckFormat's error.
func formatOf(dir string) (string, error) {
	var data []byte
	d, err := durable.Open(dir)
	if err == nil {
		defer d.Close()
		data, err = d.ReadFile(FormatFile, 1<<10)
	}
	if durable.IsAbsent(err) || errors.Is(err, durable.ErrNotRegular) {
		return "", nil
	}
	if err == nil {
		if err = CheckFormat(data); err != nil {
			err = fmt.Errorf("the root %s has %w", dir, err)
		}
	}
	return cmp.Or(strings.TrimSpace(string(data)), "?"), err
}

// CheckFormat returns nil for the content of a file FORMAT with 1, 2 or 3, ErrNewer for one with a larger number, else
// ErrFormat.
func CheckFormat(data []byte) (err error) {
	format := strings.TrimSpace(string(data))
	switch n, _ := strconv.Atoi(format); {
	case format == "1" || format == "2" || format == Format:
		return nil
	case n > 3:
		err = ErrNewer
	default:
		err = ErrFormat
	}
	return fmt.Errorf("format %.40q, %w", format, err)
}

// Find finds the root: the named one, else the nearest .atm from the working directory upwards (at the top of a linked
// worktree also that of the main worktree), else ~/.atm.
//
// A named root is used as it is, or refused with ErrNotRoot; like one that was found it acts only if this user made or
// accepted it (see CheckNoted). A root found by search must be trusted (see
// Distrusted); skipped has a sentence for each that is not, and ErrNoRoot says that no other was found. An
// unreadable root of this user, or one of an unknown format, ends the search with an error: mail must not go to another
// root instead.
func Find(p Place) (f Found, skipped []string, err error) {
	dir, err := p.workDir()
	if err != nil {
		return Found{}, nil, err
	}
	f, err = p.named(dir)
	if err != nil {
		return Found{}, nil, err
	}
	if f.Source == "" {
		return p.search(dir, false)
	}
	f.isNoted = p.noted(f.Path)
	f.format, err = formatOf(f.Path)
	if _, missing := os.Stat(f.Path); durable.IsAbsent(missing) {
		err = notRoot(f.Path, f.Source, "it does not exist")
		if gone := p.gone(f.Path); gone != nil {
			err = gone
		}
	} else if err == nil && f.format == "" {
		err = notRoot(f.Path, f.Source, "it has no FORMAT file")
	}
	return f, nil, err
}

// Own is Find for a program that says itself which root it means, and not with its user's flags and environment.
func Own(path string) (Found, error) {
	f, _, err := Find(Place{program: path, Dir: ".", UID: os.Getuid()})
	f.needsNote = false
	return f, err
}

// Other is Find for another root, at an absolute path.
func (f Found) Other(path string) (Found, error) {
	p := f.place
	p.program, p.Flag, p.Env, p.Dir = "", path, "", ""
	other, _, err := Find(p)
	return other, err
}

// OfRunner is the root for a process that a runner of it has started: who has started that has made or accepted the root,
// whatever home, and so whatever notes, the agent has.
func (f Found) OfRunner() Found {
	f.needsNote = false
	return f
}

// gone returns the error about a path where this user made or accepted a root and nothing is now; nil: nobody did.
func (p Place) gone(path string) *GoneError {
	note := p.noteFile(path)
	if _, err := p.readOwn(note); err != nil {
		return nil
	}
	return &GoneError{path, note}
}

func notRoot(path, source, why string) error {
	if source == FromProgram {
		return fmt.Errorf("%w %s: %s", ErrNotRoot, path, why)
	}
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

// named returns the root that the program, the flag or the environment names, perhaps relative to dir; its Source is "" if
// none does. The existing part of its path is free of symbolic links.
func (p Place) named(dir string) (f Found, err error) {
	name, source := p.program, FromProgram
	if name == "" {
		name, source = p.Flag, FromFlag
	}
	if name == "" {
		name, source = p.Env, FromEnv
	}
	if name == "" {
		return Found{}, nil
	}
	if !filepath.IsAbs(name) {
		if dir == "" {
			return Found{}, fmt.Errorf("%s is relative, but %w", name, ErrNoDir)
		}
		name = dir + string(filepath.Separator) + name // not filepath.Join, which removes ".." before links are resolved
	}
	f = Found{Source: source, place: p, needsNote: true}
	f.Path, err = filepath.EvalSymlinks(name)
	if durable.IsAbsent(err) {
		parent, base := filepath.Split(strings.TrimRight(name, string(filepath.Separator)))
		if real, err := filepath.EvalSymlinks(parent); err == nil {
			parent = real
		}
		f.Path = filepath.Join(parent, base)
		return f, nil
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w", source, name, err)
	} else if info, e := os.Stat(f.Path); e == nil && !info.IsDir() {
		err = notRoot(f.Path, source, "it is not a directory")
	}
	return f, err
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
		if c.Strange != nil {
			out = append(out, Found{strange: c.Strange})
		}
		add(c.Main, FromMainWorktree)
		if c.Main == "" {
			for _, top := range c.Linked() {
				add(top, FromWorktree)
			}
		}
	}
	add(home, FromHome)
	return out
}

// search looks for a root from dir upwards, and at home. With forInit it ignores home, and accepts a root that its
// group may write: init accepts it anyway.
func (p Place) search(dir string, forInit bool) (_ Found, skipped []string, _ error) {
	var gone *GoneError
	var others error // the first root that is somebody else's
	candidates := p.candidates(dir)
	for i, f := range candidates {
		if f.strange != nil {
			skipped = append(skipped, "passed over "+f.strange.Error())
		}
		if f.strange != nil || forInit && f.Source == FromHome {
			continue
		}
		info, err := os.Lstat(f.Path)
		if durable.IsAbsent(err) && gone == nil && f.Source != FromHome {
			gone = p.gone(f.Path)
		}
		if err != nil || !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		f.isNoted = p.noted(f.Path)
		format, err := formatOf(f.Path)
		distrust, failed := distrusted(f.Path, p.UID, !f.isNoted && !forInit)
		if failed != nil {
			return f, skipped, failed
		}
		why := distrust.Reason
		if distrust.IsOthers && others == nil {
			others = fmt.Errorf("%w in %s or above but %s, which %w: %s", ErrNoRoot, dir, f.Path, ErrUntrusted, why)
		}
		if why == "" && err == nil && format == "" {
			why = "it has no FORMAT file, so it is not a root"
		}
		if why == "" {
			f.place, f.needsNote, f.format = p, true, format
			if gone != nil {
				skipped = append(skipped, fmt.Sprintf("%v; if it shall stay gone: rm %s", gone, gone.Note))
			}
			for _, up := range candidates[i+1:] {
				if f.isNoted || f.Shadows != "" {
					break
				}
				if p.noted(up.Path) {
					f.Shadows = up.Path
				}
			}
			return f, skipped, err
		}
		skipped = append(skipped, "passed over "+f.Path+": "+why)
	}
	switch {
	case gone != nil:
		return Found{}, skipped, gone
	case dir == "":
		return Found{}, skipped, ErrNoRoot
	case others != nil && !forInit:
		return Found{}, nil, others
	}
	return Found{}, skipped, fmt.Errorf("%w in %s or above", ErrNoRoot, dir)
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
		format, err := formatOf(f.Path)
		return f.Path == root || format == "" || err != nil || Distrusted(f.Path, p.UID, !p.noted(f.Path)).Reason != ""
	})
}
