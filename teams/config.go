package teams

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/git"
	"github.com/agentteammail/atm/wire"
)

// Config is what team.toml says now; the defaults if there is no such file. A
// *config.Error reports every mistake in it. What could be understood is
// returned in any case, never nil: it may be shown, but only a file without
// mistakes is acted upon.
func (t *Team) Config() (*config.Config, error) {
	data, err := t.Dir().ReadFile(config.File, config.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return config.Default(), nil
	}
	if err != nil {
		return config.Default(), err
	}
	agents, err := t.Agents()
	if err != nil {
		return config.Default(), err
	}
	c, mistakes := config.Parse(data, agents)
	if len(mistakes) > 0 {
		return c, &config.Error{Path: t.Dir().Join(config.File), Mistakes: mistakes}
	}
	return c, nil
}

// missingPlaces reports members whose directory or repository is not there. That
// keeps only these members from being started.
func (t *Team) missingPlaces(c *config.Config) (mistakes []config.Mistake) {
	data, _ := t.Dir().ReadFile(config.File, config.MaxSize)
	lines := config.FindLines(data)
	for n, m := range c.Members {
		path := fmt.Sprintf("members.%s.", n)
		_, _, noRepository := t.repositoryOf(m.Cwd)
		info, err := os.Stat(t.WorkDir(m.Cwd))
		if m.Worktree && !m.Person && noRepository != nil {
			mistakes = append(mistakes, config.Mistake{Line: lines.Of(path + "worktree"), Text: fmt.Sprintf("%s has worktree = true, but %v", n, noRepository)})
		} else if !m.Worktree && m.Cwd != "" && (err != nil || !info.IsDir()) {
			mistakes = append(mistakes, config.Mistake{Line: lines.Of(path + "cwd"), Text: fmt.Sprintf("cwd of %s: %s is not there", n, printable(t.WorkDir(m.Cwd)))})
		}
	}
	slices.SortFunc(mistakes, func(a, b config.Mistake) int { return a.Line - b.Line })
	return mistakes
}

// WriteConfig writes a team.toml unless there is one, whole or not at all. It
// reports whether it did, and where the file lies.
func (t *Team) WriteConfig(text string) (path string, made bool, err error) {
	path = t.Dir().Join(config.File)
	temp := "." + config.File + "." + string(wire.NewID()) + ".tmp"
	if err := t.Dir().Create(temp, []byte(text)); err != nil {
		return path, false, err
	}
	defer t.Dir().Remove(temp)
	err = t.Dir().Link(temp, config.File)
	if errors.Is(err, fs.ErrExist) {
		return path, false, nil
	}
	return path, err == nil, err
}

// Lead is the team's lead: the member that team.toml names, else the one called
// lead; "" when there is neither. With mistakes in team.toml nobody is known to
// be the lead.
func (t *Team) Lead() (wire.Name, error) {
	c, err := t.Config()
	if err != nil {
		return "", err
	}
	return t.leadIn(c), nil
}

func (t *Team) leadIn(c *config.Config) wire.Name {
	if c.Lead == "" && t.Box("lead").Exists() {
		return "lead"
	}
	return c.Lead
}

// WorkDir is the directory that a member's cwd means.
func (t *Team) WorkDir(cwd string) string {
	if filepath.IsAbs(cwd) {
		return cwd
	}
	return filepath.Join(filepath.Dir(t.root.Path), cwd)
}

// HasWorktrees reports whether a member without a cwd could have a git worktree.
func (t *Team) HasWorktrees() bool {
	_, _, err := t.repositoryOf("")
	return err == nil
}

// repositoryOf is the checkout that a member's cwd lies in, and where in it.
func (t *Team) repositoryOf(cwd string) (c git.Checkout, rel string, err error) {
	dir, err := filepath.EvalSymlinks(t.WorkDir(cwd))
	if err != nil {
		return c, "", fmt.Errorf("its directory %s is not there", printable(t.WorkDir(cwd)))
	}
	c, ok := git.Nearest(dir)
	if !ok || !c.HasRepository() {
		return c, "", fmt.Errorf("%s is in no git repository", printable(dir))
	}
	rel, err = filepath.Rel(c.Top, dir)
	return c, rel, err
}
