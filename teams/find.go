package teams

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/agentteammail/atm/internal/durable"
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

// Place is what cmd knows of its surroundings.
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

// NoRootError is about a root that was named and is none. It is an ErrNoRoot.
type NoRootError struct {
	Path   string
	Source string // FromFlag or FromEnv
	why    string
}

func (e *NoRootError) Error() string {
	return "no root at " + shown(e.Path) + ", named by " + e.Source + ": " + e.why
}

func (e *NoRootError) Unwrap() error { return ErrNoRoot }

// FormatError is about a root of a format that this program does not know.
type FormatError struct {
	Path   string // the root
	Format string // what FORMAT says
}

func (e *FormatError) Error() string {
	if e.Newer() {
		return "the root " + shown(e.Path) + " has format " + e.Format + ", newer than this atm knows (1): upgrade atm"
	}
	return "the root " + shown(e.Path) + " has a FORMAT that says " + strconv.Quote(e.Format) + ", not 1"
}

// Newer reports whether an upgrade would help.
func (e *FormatError) Newer() bool {
	return len(e.Format) <= 9 && e.Format > "1" && strings.Trim(e.Format, "0123456789") == ""
}

// hasFormat reports whether dir has a file FORMAT, which makes it a root. One
// that does not say 1 is a *FormatError.
func hasFormat(dir string) (ok bool, err error) {
	d, err := durable.Open(dir, nil)
	if err != nil {
		return false, unlessAbsent(err)
	}
	defer d.Close()
	return formatIn(d)
}

func unlessAbsent(err error) error {
	if absent(err) {
		return nil
	}
	return err
}

// formatIn is hasFormat of an opened directory.
func formatIn(d *durable.Root) (ok bool, err error) {
	dir := d.Path()
	data, err := d.ReadFile(formatFile, maxSmall)
	format := strings.TrimSpace(string(data))
	switch {
	case absent(err) || errors.Is(err, errNotRegular):
		return false, nil
	case errors.Is(err, errTooLarge) || err == nil && len(format) > 20:
		return true, &FormatError{Path: dir, Format: format[:min(20, len(format))] + "…"}
	case err == nil && format != "1":
		return true, &FormatError{Path: dir, Format: format}
	}
	return err == nil, err
}

// Find finds the root: the named one, else the nearest .atm from the working
// directory upwards, looking at the top of the main worktree as well where a
// linked worktree begins, else ~/.atm.
//
// A root that is named is taken or refused (*NoRootError). One found by search
// must also be ours alone; passed says, a sentence each, which were passed
// over and why. Without any the error is ErrNoRoot. A format that this program
// does not know is a *FormatError: going on to the next root would put mail
// where nobody looks for it.
func Find(p Place) (f Found, passed []string, err error) {
	if name, source := p.named(); name != "" {
		path, why, err := p.resolveNamed(name)
		if err != nil {
			return Found{}, nil, fmt.Errorf("look at the root named by %s: %w", source, err)
		}
		if why == "" {
			why, err = lookAtNamed(path)
		}
		if err != nil {
			return Found{}, nil, err
		}
		if why != "" {
			return Found{}, nil, &NoRootError{Path: path, Source: source, why: why}
		}
		return Found{Path: path, Source: source, Accepted: true}, nil, nil
	}
	dir, err := physicalDir(p.Dir)
	if err != nil {
		return Found{}, nil, err
	}
	return p.search(dir, false)
}

// named gives what the flag or the environment calls the root.
func (p Place) named() (name, source string) {
	if p.Flag != "" {
		return p.Flag, FromFlag
	}
	return p.Env, FromEnv
}

// resolveNamed gives the named root's path without symbolic links; of one that
// is not there yet, its directory's. Links and .. mean what they mean to the
// kernel, so the two parts are joined without cleaning. why says what keeps
// the name from leading anywhere.
func (p Place) resolveNamed(name string) (path, why string, err error) {
	if !filepath.IsAbs(name) {
		dir, err := physicalDir(p.Dir)
		if err != nil {
			return "", "", err
		}
		if dir == "" {
			return "", "", fmt.Errorf("%s is relative, and there is no working directory", shown(name))
		}
		name = dir + string(filepath.Separator) + name
	}
	path, err = filepath.EvalSymlinks(name)
	if err == nil || !absent(err) {
		return path, "", err
	}
	name = strings.TrimRight(name, string(filepath.Separator))
	if fi, err := os.Lstat(name); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		return filepath.Clean(name), "a symbolic link that leads nowhere", nil
	}
	parent, base := filepath.Split(name)
	if parent, err = filepath.EvalSymlinks(parent); err != nil || base == ".." {
		return filepath.Clean(name), "it does not exist", nil
	}
	return filepath.Join(parent, base), "it does not exist", nil
}

// lookAtNamed says why there is no root at path.
func lookAtNamed(path string) (why string, err error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !fi.IsDir() {
		return "it is no directory", nil
	}
	ok, err := hasFormat(path)
	if err == nil && !ok {
		why = "it has no file FORMAT"
	}
	return why, err
}

// search looks for a root from dir, a physical path, upwards, and at home. For
// init, home does not count, and neither does what only acceptance can mend:
// to init is to accept.
func (p Place) search(dir string, forInit bool) (f Found, passed []string, err error) {
	home := ""
	if p.Home != "" {
		home, _ = filepath.EvalSymlinks(p.Home)
	}
	for at, source := range spots(dir, home) {
		if forInit && source == FromHome {
			continue
		}
		path := filepath.Join(at, rootName)
		found, accepted, why, err := p.look(path, forInit)
		if err != nil {
			return Found{}, passed, err
		}
		if why != "" {
			passed = append(passed, "passed over "+shown(path)+": "+why)
		}
		if found {
			return Found{Path: path, Source: source, Accepted: accepted}, passed, nil
		}
	}
	if dir == "" {
		return Found{}, passed, ErrNoRoot
	}
	return Found{}, passed, fmt.Errorf("%w from %s upwards", ErrNoRoot, shown(dir))
}

// spots gives the directories whose .atm may be the root, nearest first, each
// once, and the source to name for it. It reads no further than it is asked.
func spots(dir, home string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		var seen []string
		once := func(at, source string) bool {
			if at == "" || slices.Contains(seen, at) {
				return true
			}
			seen = append(seen, at)
			if at == home {
				source = FromHome
			}
			return yield(at, source)
		}
		for at := dir; at != ""; at = above(at) {
			if !once(at, FromAbove) {
				return
			}
			if wt, ok := worktreeAt(at); ok && !once(wt.main, FromMainWorktree) {
				return
			}
		}
		once(home, FromHome)
	}
}

// above gives the directory that dir is in, "" for the topmost.
func above(dir string) string {
	if up := filepath.Dir(dir); up != dir {
		return up
	}
	return ""
}

// look judges one path of the search. why says why something that is there is
// passed over; nothing there, or nothing that can be seen, is no reason to
// say anything.
func (p Place) look(path string, forInit bool) (found, accepted bool, why string, err error) {
	fi, err := os.Lstat(path)
	switch {
	case err != nil:
		return false, false, "", nil
	case fi.Mode()&fs.ModeSymlink != 0:
		return false, false, "it is a symbolic link, and those count only when named", nil
	case !fi.IsDir():
		return false, false, "", nil
	}
	ok, err := hasFormat(path)
	if err == nil && !ok {
		return false, false, "it has no file FORMAT, so it is no root", nil
	}
	accepted = Accepted(p, path)
	if why := shared(path, p.UID, !accepted && !forInit); why != "" {
		return false, false, why, nil
	}
	return err == nil, accepted, "", err
}

// InitDir says where `atm init` makes the root, or finds it. A named one is
// where it is named; here asks for one in the working directory; else it is
// the root found above, not at home, even if this user has not accepted it
// yet; else, in a git repository, at the top of the main worktree; else in the
// working directory. why says which of these it was. A place taken by what
// cannot be trusted is an *UntrustedError.
func InitDir(p Place, here bool) (dir string, existing bool, why string, err error) {
	if name, source := p.named(); name != "" {
		dir, existing, err = p.initNamed(name, source)
		return dir, existing, "named by " + source, err
	}
	wd, err := physicalDir(p.Dir)
	if err != nil {
		return "", false, "", err
	}
	if wd == "" {
		return "", false, "", errors.New("make a root: there is no working directory")
	}
	if here {
		dir, why = filepath.Join(wd, rootName), "in this directory"
	} else {
		f, _, err := p.search(wd, true)
		switch {
		case err == nil && f.Source == FromMainWorktree:
			return f.Path, true, "found in the main worktree", nil
		case err == nil:
			return f.Path, true, f.Source, nil
		case !errors.Is(err, ErrNoRoot):
			return "", false, "", err
		}
		dir, why = newRootAt(wd)
	}
	existing, err = p.checkVacant(dir)
	return dir, existing, why, err
}

// initNamed is InitDir for a name. What is not there yet is no error.
func (p Place) initNamed(name, source string) (dir string, existing bool, err error) {
	dir, why, err := p.resolveNamed(name)
	if err != nil {
		return "", false, fmt.Errorf("look at the root named by %s: %w", source, err)
	}
	fi, err := os.Lstat(dir)
	switch {
	case absent(err):
		return dir, false, nil
	case err != nil:
		return dir, false, err
	case !fi.IsDir():
		if why == "" {
			why = "it is no directory"
		}
		return dir, false, &NoRootError{Path: dir, Source: source, why: why}
	}
	existing, err = hasFormat(dir)
	return dir, existing, err
}

// checkVacant refuses what init must not put its own into: a link, a file, a
// directory of somebody else's. existing: there is a root already.
func (p Place) checkVacant(dir string) (existing bool, err error) {
	fi, err := os.Lstat(dir)
	switch {
	case absent(err):
		return false, nil
	case err != nil:
		return false, err
	case fi.Mode()&fs.ModeSymlink != 0:
		return false, &UntrustedError{Path: dir, Why: "it is a symbolic link, and those count only when named"}
	case !fi.IsDir():
		return false, fmt.Errorf("make a root: %s is no directory", shown(dir))
	}
	if why := shared(dir, p.UID, false); why != "" {
		return false, &UntrustedError{Path: dir, Why: why}
	}
	return hasFormat(dir)
}

// physicalDir resolves the working directory; "" stays "".
func physicalDir(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("look at the working directory: %w", err)
	}
	return real, nil
}

// absent reports whether err says that there is no such file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// shown is a path or name for a person: quoted if it could upset a terminal.
func shown(s string) string {
	odd := func(r rune) bool { return r == '\uFFFD' || !strconv.IsPrint(r) }
	if strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}
