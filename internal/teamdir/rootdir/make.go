package rootdir

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/teamdir/git"
)

// InitDir returns where `atm init` makes or finds the root, and as its source in words why there: where it is named;
// with here in the working directory, whatever the environment names; else a root found above, not at home, even if
// this user has not accepted it yet; else the top of the git repository's main worktree; else the working directory.
// ErrUntrusted if an untrusted directory is there.
func InitDir(p Place, here bool) (Found, error) {
	if here {
		p.Env = ""
	}
	wd, err := p.workDir()
	if err != nil {
		return Found{}, err
	}
	named, err := p.named(wd)
	if err == nil && named.Source != "" {
		named.Source = "named by " + named.Source
		_, err = formatOf(named.Path)
	}
	if err != nil || named.Source != "" {
		return named, err
	}
	if wd == "" {
		return Found{}, fmt.Errorf("make a root: %w", ErrNoDir)
	}
	top, why := wd, "in this directory"
	if !here {
		f, _, err := p.search(wd, true)
		if err == nil {
			f.Source = strings.NewReplacer(FromMainWorktree, "found in the main worktree", FromWorktree, "found in another worktree").Replace(f.Source)
			return f, nil
		}
		if !errors.Is(err, ErrNoRoot) {
			return Found{}, err
		}
		if c, ok := git.Nearest(wd); ok && c.Main != "" {
			top, why = c.Main, "at the top of the main worktree"
		} else if ok {
			top, why = c.Top, "at the top of this worktree, and goes with it: there is no main worktree"
		}
	}
	f := Found{Path: filepath.Join(top, Name), Source: why, place: p, needsNote: true}
	return f, p.mayMake(f.Path)
}

// mayMake returns an error if init must not put a root at dir: it is a link, a file, or not trusted.
func (p Place) mayMake(dir string) error {
	info, err := os.Stat(dir)
	if durable.IsAbsent(err) {
		return nil
	}
	if err != nil || !info.IsDir() {
		return fmt.Errorf("make a root: %s is not a directory", dir)
	}
	if why := Distrusted(dir, p.UID, false).Reason; why != "" {
		return fmt.Errorf("%s %w: %s", dir, ErrUntrusted, why)
	}
	_, err = formatOf(dir)
	return err
}

// Make makes a root at path unless there is one, and reports whether it did. It builds the root under another name and
// renames it, so that nobody sees half of one. To an existing directory it adds FORMAT.
func Make(path string) (made bool, err error) {
	_, statErr := os.Lstat(path) // before formatOf: a root that appears in between has its FORMAT
	if format, err := formatOf(path); format != "" || err != nil {
		return false, err
	}
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	d, err := durable.Open(dir)
	if err != nil {
		return false, err
	}
	defer d.Close()
	build := name
	if statErr != nil {
		build = "." + name + "." + rand.Text() + ".making" // unique: several processes may make one
		defer os.RemoveAll(d.Join(build))                  // if another process was quicker
		err = d.Mkdir(build)
	}
	if err == nil {
		err = os.Chmod(d.Join(build), 0o700) // d.Mkdir would give it the group rights of the directory above
	}
	if err == nil {
		err = cmp.Or(Hide(d.Join(build)), d.Replace(build+"/"+FormatFile, []byte(Format+"\n"), true))
	}
	if err == nil && build != name {
		err = d.Move(build, name)
	}
	if err == nil {
		return true, d.Sync(".")
	}
	if format, _ := formatOf(path); format != "" {
		return false, nil
	}
	return false, err
}
