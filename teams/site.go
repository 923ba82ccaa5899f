package teams

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agentteammail/atm/wire"
)

// site is what is to be known about a member's worktree: where it is to be, and
// of which repository.
type site struct {
	t    *Team
	git  Git
	name wire.Name
	from Checkout // whose repository, and whose HEAD a new branch begins at
	rel  string   // the member's directory, within a worktree
	top  string
}

// site finds out about a member's worktree without running git.
func (t *Team) site(git Git, name wire.Name, cwd string) (*site, error) {
	s := &site{t: t, git: git, name: name, top: filepath.Join(t.Dir().Path(), workplacesDir, string(name))}
	if _, err := wire.ParseName(string(name)); err != nil {
		return nil, err
	}
	var err error
	s.from, s.rel, err = t.repositoryOf(cwd)
	if err != nil {
		hint := "git init, or worktree = false in team.toml"
		if _, absent := os.Stat(t.WorkDir(cwd)); absent != nil {
			hint = "that is its cwd in team.toml: atm team check names the line"
		}
		return nil, s.no(hint, "%v", err)
	}
	return s, nil
}

func (s *site) no(hint, format string, args ...any) *WorkplaceError {
	return &WorkplaceError{Agent: s.name, Why: fmt.Sprintf(format, args...), Hint: hint}
}

// failed is no for an error of git's, or of a file.
func (s *site) failed(err error, hint string) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &WorkplaceError{Agent: s.name, Why: err.Error(), Hint: hint, cause: err}
}

// astray is about a worktree that git cannot mend either.
func (s *site) astray() error {
	return s.no("mv "+quote(s.top)+" .", "the .git in %s leads nowhere, or to another worktree's place", shown(s.top))
}

// branch is what a new worktree is on.
func (s *site) branch() string { return "atm/" + string(s.name) }

// How a member's worktree is found to be.
type found int

const (
	vacant   found = iota // nothing is there, or an empty directory
	standing              // it is there
	halfMade              // its making was cut off: nobody has had it yet
	lost                  // the repository knows it, and it is not there
	astray                // it is there, and it and the repository have lost each other
)

// look finds out how it is, without git. What must not be touched is an error.
func (s *site) look() (found, error) {
	info, err := os.Lstat(s.top)
	if making, e := s.making(); e != nil || making && (err != nil || info.IsDir()) {
		return halfMade, e
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if s.admin() != "" {
			return lost, nil
		}
		return vacant, nil
	case err != nil:
		return 0, s.failed(err, "")
	case !info.IsDir():
		return 0, s.no("mv "+quote(s.top)+" .", "%s is there, and is no directory", shown(s.top))
	}
	gitDir, has := gitDirAt(s.top)
	if !has {
		switch names, err := os.ReadDir(s.top); {
		case err != nil:
			return 0, s.failed(err, "")
		case s.admin() != "":
			return lost, nil
		case len(names) == 0:
			return vacant, nil
		}
		return 0, s.no("mv "+quote(s.top)+" .", "%s is there, and is no git worktree", shown(s.top))
	}
	wt, _ := worktreeAt(s.top)
	back := ""
	if gitDir != "" {
		back = backOf(gitDir)
	}
	switch {
	case gitDir == "", wt.common == "", back == "" && wt.common == s.from.Common:
		return astray, nil
	case wt.common != s.from.Common:
		return 0, s.no("mv "+quote(s.top)+" .", "%s is a worktree of another repository, %s", shown(s.top), shown(wt.common))
	case back != filepath.Join(s.top, ".git"):
		if _, err := os.Lstat(back); err == nil {
			return 0, s.no("mv "+quote(s.top)+" .", "%s is a copy of the worktree %s", shown(s.top), shown(filepath.Dir(back)))
		}
		return astray, nil
	}
	return standing, nil
}

// backOf is the path of the .git file that a worktree's own directory in the
// repository names; "": it names none.
func backOf(gitDir string) string {
	data, err := readSmall(filepath.Join(gitDir, "gitdir"))
	if err != nil {
		return ""
	}
	path, ok := parseCommonDir(data)
	if !ok {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(gitDir, path)
	}
	// The worktree itself may be gone.
	if real, err := filepath.EvalSymlinks(filepath.Dir(filepath.Dir(path))); err == nil {
		path = filepath.Join(real, filepath.Base(filepath.Dir(path)), filepath.Base(path))
	}
	return path
}

// admin is the directory in the repository that belongs to a worktree at top,
// whether that is there or not; "": there is none.
func (s *site) admin() string {
	dir := filepath.Join(s.from.Common, "worktrees")
	all, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range all {
		if at := filepath.Join(dir, e.Name()); backOf(at) == filepath.Join(s.top, ".git") {
			return at
		}
	}
	return ""
}

// making reports whether nobody has had the worktree yet.
func (s *site) making() (bool, error) {
	return s.t.Dir().Exists(makingFile(s.name))
}

func makingFile(name wire.Name) string { return workplacesDir + "/." + string(name) + ".making" }
