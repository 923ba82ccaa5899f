package teams

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/wire"
)

// Config is what team.toml says now; the defaults if there is no such file. A *config.Error reports every mistake in
// it. What could be understood is returned in any case, never nil: it may be shown, but only a file without mistakes is
// acted upon.
func (t *Team) Config() (*config.Config, error) {
	data, err := t.Dir().ReadFile(config.File, config.MaxSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return config.Default(), err
	}
	c, mistakes := config.Parse(data, t.IsAgent)
	if len(mistakes) > 0 {
		return c, &config.Error{Path: t.Dir().Join(config.File), Mistakes: mistakes}
	}
	return c, nil
}

// WriteConfig writes a team.toml unless there is one, whole or not at all. It
// reports whether it did, and where the file lies.
func (t *Team) WriteConfig(text string) (path string, made bool, err error) {
	path = t.Dir().Join(config.File)
	temp := "." + config.File + "." + string(wire.NewID()) + ".tmp"
	err = t.Dir().Publish(temp, config.File, strings.NewReader(text))
	if errors.Is(err, fs.ErrExist) {
		return path, false, nil
	}
	return path, err == nil, err
}
