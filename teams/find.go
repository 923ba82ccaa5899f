package teams

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/teams/git"
)

// rootName is what a root is called where it is found by search.
const rootName = ".atm"

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

// ErrNoRoot says that there is no root.
var ErrNoRoot = errors.New("no root found")

// NoRootError is for a root that was named and is none. It is an ErrNoRoot.
type NoRootError struct{ Path, Source, why string }

func (e *NoRootError) Error() string {
	return fmt.Sprintf("no root at %s, named by %s: %s", printable(e.Path), e.Source, e.why)
}

func (e *NoRootError) Unwrap() error { return ErrNoRoot }

// UntrustedError is for a place that is not safe to make a root in.
type UntrustedError struct{ Path, Why string }

func (e *UntrustedError) Error() string {
	return printable(e.Path) + " is not to be trusted: " + e.Why
}

// FormatError is for a root whose FORMAT this program does not know.
type FormatError struct{ Path, Format string }

func (e *FormatError) Error() string {
	if e.Newer() {
		return fmt.Sprintf("the root %s has format %s, newer than this atm knows (1): upgrade atm", printable(e.Path), e.Format)
	}
	return fmt.Sprintf("the root %s has a FORMAT that says %q, not 1", printable(e.Path), e.Format)
}

// Newer reports whether an upgrade would help.
func (e *FormatError) Newer() bool {
	n, err := strconv.Atoi(e.Format)
	return err == nil && n > 1
}

// hasFormat reports whether dir has a file FORMAT, which makes it a root. A
// FORMAT that does not say 1 is a *FormatError.
func hasFormat(dir string) (bool, error) {
	d, err := durable.Open(dir, nil)
	if isAbsent(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer d.Close()
	data, err := d.ReadFile(formatFile, 20)
	if isAbsent(err) || errors.Is(err, durable.ErrNotRegular) {
		return false, nil
	}
	format := strings.TrimSpace(string(data))
	if errors.Is(err, durable.ErrTooLarge) {
		format, err = "…", nil
	}
	if err == nil && format != "1" {
		err = &FormatError{Path: dir, Format: format}
	}
	return true, err
}

// Find finds the root: the named one, else the nearest .atm from the working
// directory upwards, where a linked worktree begins also at the top of the main
// worktree, else ~/.atm.
//
// A named root is taken or refused (*NoRootError). One found by search must also
// be ours alone; passed says, in a sentence each, which were passed over and
// why. Without any the error is ErrNoRoot. A *FormatError ends the search: going
// on to the next root would put mail where nobody looks for it.
func Find(p Place) (f Found, passed []string, err error) {
	dir, err := physical(p.Dir)
	if err != nil {
		return Found{}, nil, err
	}
	name, source := p.named()
	if name == "" {
		return p.search(dir, false)
	}
	path, err := resolveNamed(dir, name)
	if err != nil {
		return Found{}, nil, fmt.Errorf("look at the root named by %s: %w", source, err)
	}
	why := "it has no file FORMAT"
	if info, err := os.Stat(path); isAbsent(err) {
		why = "it does not exist"
	} else if err == nil && !info.IsDir() {
		why = "it is no directory"
	} else if ok, err := hasFormat(path); ok || err != nil {
		return Found{Path: path, Source: source, Accepted: true}, nil, err
	}
	return Found{}, nil, &NoRootError{path, source, why}
}

// named is the name that the flag or the environment gives the root.
func (p Place) named() (name, source string) {
	if p.Flag != "" {
		return p.Flag, FromFlag
	}
	return p.Env, FromEnv
}

// resolveNamed returns the named root's path without symbolic links, as far as
// there is something.
func resolveNamed(dir, name string) (string, error) {
	if !filepath.IsAbs(name) {
		if dir == "" {
			return "", fmt.Errorf("%s is relative, and there is no working directory", printable(name))
		}
		name = dir + string(filepath.Separator) + name // not cleaned: links are resolved before ".."
	}
	path, err := filepath.EvalSymlinks(name)
	if err == nil || !isAbsent(err) {
		return path, err
	}
	parent, base := filepath.Split(strings.TrimRight(name, string(filepath.Separator)))
	if real, err := filepath.EvalSymlinks(parent); err == nil && base != ".." {
		parent = real
	}
	return filepath.Join(parent, base), nil
}

// candidate is a directory whose .atm may be the root.
type candidate struct{ dir, source string }

// candidates are the places to look, nearest first.
func candidates(dir, home string) (out []candidate) {
	for dir != "" {
		out = append(out, candidate{dir, FromAbove})
		if c, ok := git.At(dir); ok && c.Main != "" {
			out = append(out, candidate{c.Main, FromMainWorktree})
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return append(out, candidate{home, FromHome})
}

// search looks for a root from dir, a physical path, upwards, and at home. For
// init, home does not count, and neither does what only acceptance can mend: to
// init is to accept.
func (p Place) search(dir string, forInit bool) (f Found, passed []string, err error) {
	home, _ := filepath.EvalSymlinks(p.Home)
	seen := map[string]bool{"": true}
	for _, c := range candidates(dir, home) {
		if c.dir == home {
			c.source = FromHome
		}
		if seen[c.dir] || forInit && c.source == FromHome {
			continue
		}
		seen[c.dir] = true
		path := filepath.Join(c.dir, rootName)
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		accepted := Accepted(p, path)
		why, err := p.whyPassedOver(path, info, !accepted && !forInit)
		if err != nil {
			return Found{}, passed, err
		}
		if why == "" {
			return Found{Path: path, Source: c.source, Accepted: accepted}, passed, nil
		}
		passed = append(passed, "passed over "+printable(path)+": "+why)
	}
	if dir == "" {
		return Found{}, passed, ErrNoRoot
	}
	return Found{}, passed, fmt.Errorf("%w from %s upwards", ErrNoRoot, printable(dir))
}

const whyNoLinks = "it is a symbolic link, and those count only when named"

// whyPassedOver says why a .atm is not taken for the root.
func (p Place) whyPassedOver(path string, info fs.FileInfo, group bool) (why string, err error) {
	if info.Mode()&fs.ModeSymlink != 0 {
		return whyNoLinks, nil
	}
	ok, err := hasFormat(path)
	if err == nil && !ok {
		return "it has no file FORMAT, so it is no root", nil
	}
	if why := shared(path, p.UID, group); why != "" {
		return why, nil
	}
	return "", err
}

// InitDir says where `atm init` makes the root, or finds it. A named one is
// where it is named; here asks for one in the working directory; else it is the
// root found above, not at home, even if this user has not accepted it yet; else
// the top of the main worktree of the git repository; else the working
// directory. why says which of these it was. A place taken by what cannot be
// trusted is an *UntrustedError.
func InitDir(p Place, here bool) (dir string, existing bool, why string, err error) {
	wd, err := physical(p.Dir)
	if err != nil {
		return "", false, "", err
	}
	name, source := p.named()
	if name != "" {
		dir, err = resolveNamed(wd, name)
		if info, missing := os.Stat(dir); err == nil && missing == nil && !info.IsDir() {
			err = &NoRootError{dir, source, "it is no directory"}
		}
		if err == nil {
			existing, err = hasFormat(dir)
		}
		return dir, existing, "named by " + source, err
	}
	if wd == "" {
		return "", false, "", errors.New("make a root: there is no working directory")
	}
	dir, why = filepath.Join(wd, rootName), "in this directory"
	if !here {
		f, _, err := p.search(wd, true)
		if err == nil {
			return f.Path, true, strings.Replace(f.Source, "main worktree", "found in the main worktree", 1), nil
		}
		if !errors.Is(err, ErrNoRoot) {
			return "", false, "", err
		}
		if c, ok := git.Nearest(wd); ok && c.Main != "" {
			dir, why = filepath.Join(c.Main, rootName), "at the top of the main worktree"
		} else if ok {
			dir, why = filepath.Join(c.Top, rootName), "at the top of this worktree: no main worktree is to be found"
		}
	}
	existing, err = p.mayMake(dir)
	return dir, existing, why, err
}

// mayMake refuses what init must not put a root into: a link, a file, a
// directory of somebody else's. existing: there is a root already.
func (p Place) mayMake(dir string) (existing bool, err error) {
	info, err := os.Lstat(dir)
	switch {
	case isAbsent(err):
		return false, nil
	case err != nil:
		return false, err
	case info.Mode()&fs.ModeSymlink != 0:
		return false, &UntrustedError{dir, whyNoLinks}
	case !info.IsDir():
		return false, fmt.Errorf("make a root: %s is no directory", printable(dir))
	}
	if why := Shared(dir, p.UID); why != "" {
		return false, &UntrustedError{dir, why}
	}
	return hasFormat(dir)
}

// physical resolves the working directory; "" stays "".
func physical(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("look at the working directory: %w", err)
	}
	return real, nil
}

// isAbsent reports whether err says that there is no such file.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// printable is a path or name for a person, quoted if it could upset a terminal.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r == '\uFFFD' || !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
