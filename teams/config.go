package teams

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/wire"
)

// Config is what team.toml says now; the defaults if there is no such file. A
// *config.Error reports every mistake in it. What could be understood is
// returned in any case, never nil: it may be shown, but only a file without
// mistakes is acted upon.
func (t *Team) Config() (*config.Config, error) {
	data, err := t.Dir().ReadFile(config.File, config.MaxSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
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
	add := func(n wire.Name, key, text string) {
		mistakes = append(mistakes, config.Mistake{Line: lines.Of(fmt.Sprintf("members.%s.%s", n, key)), Text: text})
	}
	for n, m := range c.Members {
		_, _, noRepository := t.repositoryOf(m.Cwd)
		info, err := os.Stat(t.WorkDir(m.Cwd))
		if m.Worktree && !m.Person && noRepository != nil {
			add(n, "worktree", fmt.Sprintf("%s has worktree = true, but %v", n, noRepository))
		} else if !m.Worktree && m.Cwd != "" && (err != nil || !info.IsDir()) {
			add(n, "cwd", fmt.Sprintf("cwd of %s: %s is not there", n, printable(t.WorkDir(m.Cwd))))
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
	return c.Lead, nil
}
