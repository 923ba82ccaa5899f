package teams

import (
	"cmp"
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

// ErrUntrusted is wrapped for a place that is not safe to make a root in.
var ErrUntrusted = errors.New("is not to be trusted")

// FormatError is for a root whose FORMAT this program does not know.
type FormatError struct{ error }

func formatError(dir, format string) error {
	if n, err := strconv.Atoi(format); err == nil && n > 1 {
		return FormatError{fmt.Errorf("the root %s has format %s, newer than this atm knows (1): upgrade atm", dir, format)}
	}
	return FormatError{fmt.Errorf("the root %s has a FORMAT that says %q, not 1", dir, format)}
}

// hasFormat reports whether dir has a file FORMAT, which makes it a root. A
// FORMAT that does not say 1 is a *FormatError.
func hasFormat(dir string) (bool, error) {
	d, err := durable.Open(dir, nil)
	if err != nil {
		if isAbsent(err) {
			err = nil
		}
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
		err = formatError(printable(dir), format)
	}
	return true, err
}

// Find finds the root: the named one, else the nearest .atm from the working
// directory upwards, where a linked worktree begins also at the top of the main
// worktree, else ~/.atm.
//
// A named root is taken or refused (*NoRootError). One found by search must also
// be ours alone; passed says, in a sentence each, which were passed over and
// why. Without any the error is ErrNoRoot. A FormatError ends the search: going
// on to the next root would put mail where nobody looks for it.
func Find(p Place) (f Found, passed []string, err error) {
	dir, err := physical(p.Dir)
	if err != nil {
		return Found{}, nil, err
	}
	path, source, err := p.named(dir)
	if source == "" {
		return p.search(dir, false)
	}
	if err != nil {
		return Found{}, nil, err
	}
	ok, err := hasFormat(path)
	if _, missing := os.Stat(path); isAbsent(missing) {
		err = &NoRootError{path, source, "it does not exist"}
	} else if err == nil && !ok {
		err = &NoRootError{path, source, "it has no file FORMAT"}
	}
	return Found{Path: path, Source: source, Accepted: true}, nil, err
}

// named is the root that the flag or the environment names, without symbolic links as
// far as there is something; source is "" where neither does.
func (p Place) named(dir string) (path, source string, err error) {
	name := cmp.Or(p.Flag, p.Env)
	if name == "" {
		return "", "", nil
	}
	if source = FromEnv; p.Flag != "" {
		source = FromFlag
	}
	if !filepath.IsAbs(name) {
		if dir == "" {
			return "", source, fmt.Errorf("%s is relative, and there is no working directory", printable(name))
		}
		name = dir + string(filepath.Separator) + name // not cleaned: links are resolved before ".."
	}
	path, err = filepath.EvalSymlinks(name)
	if isAbsent(err) {
		parent, base := filepath.Split(strings.TrimRight(name, string(filepath.Separator)))
		if real, err := filepath.EvalSymlinks(parent); err == nil && base != ".." {
			parent = real
		}
		return filepath.Join(parent, base), source, nil
	}
	if info, e := os.Stat(path); e == nil && !info.IsDir() {
		err = &NoRootError{path, source, "it is no directory"}
	}
	return path, source, err
}

// search looks for a root from dir, a physical path, upwards, and at home. For
// init, home does not count, and neither does what only acceptance can mend: to
// init is to accept.
func (p Place) search(dir string, forInit bool) (f Found, passed []string, err error) {
	home, _ := filepath.EvalSymlinks(p.Home)
	seen := map[string]bool{"": true}
	look := func(at, source string) bool {
		if at == home {
			source = FromHome
		}
		if seen[at] || forInit && source == FromHome {
			return false
		}
		seen[at] = true
		path := filepath.Join(at, rootName)
		info, e := os.Lstat(path)
		if e != nil || !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
			return false
		}
		f = Found{Path: path, Source: source, Accepted: Accepted(p, path)}
		why, isRoot, e := inspect(path, p.UID, !f.Accepted && !forInit)
		if why == "" && !isRoot && e == nil {
			why = "it has no file FORMAT, so it is no root"
		}
		if why != "" {
			passed = append(passed, "passed over "+printable(path)+": "+why)
			return false
		}
		err = e
		return true
	}
	up := dir
	for at := ""; at != up; up = filepath.Dir(at) {
		at = up
		c, _ := git.At(at)
		if look(at, FromAbove) || look(c.Main, FromMainWorktree) {
			return f, passed, err
		}
	}
	if look(home, FromHome) {
		return f, passed, err
	}
	if dir == "" {
		return Found{}, passed, ErrNoRoot
	}
	return Found{}, passed, fmt.Errorf("%w from %s upwards", ErrNoRoot, printable(dir))
}

// inspect says why a directory is not to be trusted, else whether it is a root. group:
// a group that may write is a reason too.
func inspect(path string, uid int, group bool) (why string, isRoot bool, err error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "it is a symbolic link, and those count only when named", false, nil
	}
	isRoot, err = hasFormat(path)
	if err == nil && !isRoot {
		return "", false, nil
	}
	return shared(path, uid, group), isRoot, err
}

// InitDir says where `atm init` makes the root, or finds it. A named one is
// where it is named; here asks for one in the working directory; else it is the
// root found above, not at home, even if this user has not accepted it yet; else
// the top of the main worktree of the git repository; else the working
// directory. why says which of these it was. A place taken by what cannot be
// trusted is ErrUntrusted.
func InitDir(p Place, here bool) (dir, why string, err error) {
	wd, err := physical(p.Dir)
	if err != nil {
		return "", "", err
	}
	dir, source, err := p.named(wd)
	if source != "" {
		if err == nil {
			_, err = hasFormat(dir)
		}
		return dir, "named by " + source, err
	}
	if wd == "" {
		return "", "", errors.New("make a root: there is no working directory")
	}
	if here {
		return p.mayMake(filepath.Join(wd, rootName), "in this directory")
	}
	f, _, err := p.search(wd, true)
	if err == nil {
		return f.Path, strings.Replace(f.Source, FromMainWorktree, "found in the main worktree", 1), nil
	}
	if !errors.Is(err, ErrNoRoot) {
		return "", "", err
	}
	c, ok := git.Nearest(wd)
	switch {
	case ok && c.Main != "":
		return p.mayMake(filepath.Join(c.Main, rootName), "at the top of the main worktree")
	case ok:
		return p.mayMake(filepath.Join(c.Top, rootName), "at the top of this worktree: no main worktree is to be found")
	}
	return p.mayMake(filepath.Join(wd, rootName), "in this directory")
}

// mayMake refuses what init must not put a root into: a link, a file, a
// directory of somebody else's.
func (p Place) mayMake(dir, why string) (string, string, error) {
	info, err := os.Stat(dir)
	if isAbsent(err) {
		return dir, why, nil
	}
	if err != nil || !info.IsDir() {
		return dir, why, fmt.Errorf("make a root: %s is no directory", printable(dir))
	}
	distrust, _, err := inspect(dir, p.UID, false)
	if distrust = cmp.Or(distrust, Shared(dir, p.UID)); distrust != "" {
		err = fmt.Errorf("%s %w: %s", printable(dir), ErrUntrusted, distrust)
	}
	return dir, why, err
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
