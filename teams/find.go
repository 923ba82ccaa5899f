package teams

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
type NoRootError struct {
	Path   string
	Source string // FromFlag or FromEnv
	why    string
}

func (e *NoRootError) Error() string {
	return fmt.Sprintf("no root at %s, named by %s: %s", printable(e.Path), e.Source, e.why)
}

func (e *NoRootError) Unwrap() error { return ErrNoRoot }

// UntrustedError is for a place that is not safe to make a root in.
type UntrustedError struct {
	Path string
	Why  string
}

func (e *UntrustedError) Error() string {
	return printable(e.Path) + " is not to be trusted: " + e.Why
}

// FormatError is for a root of a format that this program does not know.
type FormatError struct {
	Path   string // the root
	Format string // what FORMAT says
}

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
	data, err := d.ReadFile(formatFile, maxSmall)
	format := strings.TrimSpace(string(data))
	switch {
	case isAbsent(err) || errors.Is(err, durable.ErrNotRegular):
		return false, nil
	case errors.Is(err, durable.ErrTooLarge) || len(format) > 20:
		return true, &FormatError{Path: dir, Format: "…"}
	case err == nil && format != "1":
		return true, &FormatError{Path: dir, Format: format}
	}
	return err == nil, err
}

// Find finds the root: the named one, else the nearest .atm from the working
// directory upwards, where a linked worktree begins also at the top of the main
// worktree, else ~/.atm.
//
// A named root is taken or refused (*NoRootError). One found by search must also
// be ours alone; passed says, in a sentence each, which were passed over and
// why. Without any the error is ErrNoRoot. A format that this program does not
// know is a *FormatError: going on to the next root would put mail where nobody
// looks for it.
func Find(p Place) (f Found, passed []string, err error) {
	if name, source := p.named(); name != "" {
		path, why, err := p.resolveNamed(name)
		if err != nil {
			return Found{}, nil, fmt.Errorf("look at the root named by %s: %w", source, err)
		}
		if why == "" {
			if why, err = whyNoRoot(path); err != nil {
				return Found{}, nil, err
			}
		}
		if why != "" {
			return Found{}, nil, &NoRootError{Path: path, Source: source, why: why}
		}
		return Found{Path: path, Source: source, Accepted: true}, nil, nil
	}
	dir, err := physical(p.Dir)
	if err != nil {
		return Found{}, nil, err
	}
	return p.search(dir, false)
}

// named is the name that the flag or the environment gives the root.
func (p Place) named() (name, source string) {
	if p.Flag != "" {
		return p.Flag, FromFlag
	}
	return p.Env, FromEnv
}

// resolveNamed returns the named root's path without symbolic links; if it is
// not there, only those of its directory are resolved and why says so.
func (p Place) resolveNamed(name string) (path, why string, err error) {
	if !filepath.IsAbs(name) {
		dir, err := physical(p.Dir)
		if err != nil {
			return "", "", err
		}
		if dir == "" {
			return "", "", fmt.Errorf("%s is relative, and there is no working directory", printable(name))
		}
		name = dir + string(filepath.Separator) + name // not cleaned: links are resolved before ".."
	}
	path, err = filepath.EvalSymlinks(name)
	if err == nil || !isAbsent(err) {
		return path, "", err
	}
	name = strings.TrimRight(name, string(filepath.Separator))
	if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return filepath.Clean(name), "a symbolic link that leads nowhere", nil
	}
	parent, base := filepath.Split(name)
	if parent, err = filepath.EvalSymlinks(parent); err != nil || base == ".." {
		return filepath.Clean(name), "it does not exist", nil
	}
	return filepath.Join(parent, base), "it does not exist", nil
}

func whyNoRoot(path string) (why string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "it is no directory", nil
	}
	ok, err := hasFormat(path)
	if err != nil || ok {
		return "", err
	}
	return "it has no file FORMAT", nil
}

// candidate is a directory whose .atm may be the root.
type candidate struct{ dir, source string }

// candidates are the places to look, nearest first, each once.
func candidates(dir, home string) (out []candidate) {
	add := func(at, source string) {
		if at == "" || slices.ContainsFunc(out, func(c candidate) bool { return c.dir == at }) {
			return
		}
		if at == home {
			source = FromHome
		}
		out = append(out, candidate{at, source})
	}
	for dir != "" {
		add(dir, FromAbove)
		if c, ok := git.At(dir); ok {
			add(c.Main, FromMainWorktree)
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	add(home, FromHome)
	return out
}

// search looks for a root from dir, a physical path, upwards, and at home. For
// init, home does not count, and neither does what only acceptance can mend: to
// init is to accept.
func (p Place) search(dir string, forInit bool) (f Found, passed []string, err error) {
	home := ""
	if p.Home != "" {
		home, _ = filepath.EvalSymlinks(p.Home)
	}
	for _, c := range candidates(dir, home) {
		if forInit && c.source == FromHome {
			continue
		}
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
	if name, source := p.named(); name != "" {
		dir, existing, err = p.initNamed(name, source)
		return dir, existing, "named by " + source, err
	}
	wd, err := physical(p.Dir)
	if err != nil {
		return "", false, "", err
	}
	if wd == "" {
		return "", false, "", errors.New("make a root: there is no working directory")
	}
	dir, why = filepath.Join(wd, rootName), "in this directory"
	if !here {
		f, _, err := p.search(wd, true)
		if err == nil {
			if f.Source == FromMainWorktree {
				return f.Path, true, "found in the main worktree", nil
			}
			return f.Path, true, f.Source, nil
		}
		if !errors.Is(err, ErrNoRoot) {
			return "", false, "", err
		}
		if all := git.Above(wd); len(all) > 0 {
			dir, why = filepath.Join(all[0].Main, rootName), "at the top of the main worktree"
			if all[0].Main == "" {
				dir, why = filepath.Join(all[0].Top, rootName), "at the top of this worktree: no main worktree is to be found"
			}
		}
	}
	existing, err = p.mayMake(dir)
	return dir, existing, why, err
}

// initNamed is InitDir for a name. What is not there yet is no error.
func (p Place) initNamed(name, source string) (dir string, existing bool, err error) {
	dir, why, err := p.resolveNamed(name)
	if err != nil {
		return "", false, fmt.Errorf("look at the root named by %s: %w", source, err)
	}
	info, err := os.Lstat(dir)
	if isAbsent(err) {
		return dir, false, nil
	}
	if err != nil {
		return dir, false, err
	}
	if !info.IsDir() {
		if why == "" {
			why = "it is no directory"
		}
		return dir, false, &NoRootError{Path: dir, Source: source, why: why}
	}
	existing, err = hasFormat(dir)
	return dir, existing, err
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
		return false, &UntrustedError{Path: dir, Why: whyNoLinks}
	case !info.IsDir():
		return false, fmt.Errorf("make a root: %s is no directory", printable(dir))
	}
	if why := shared(dir, p.UID, false); why != "" {
		return false, &UntrustedError{Path: dir, Why: why}
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
