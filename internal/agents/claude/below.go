package claude

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/ptyrun/process"
)

// FindBelow is Find for a process or, if it has no session, those below it, the nearest of which counts: a program may be
// started by a script.
func FindBelow(configDir string, pid int) (found *Session, err error) {
	if found, err = Find(configDir, pid); !errors.Is(err, ErrNoSession) {
		return found, err
	}
	root, err := openSessions(configDir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	names, err := root.Names(".")
	if err != nil {
		return nil, ErrNoSession
	}
	nearest := 0
	for _, name := range names[:min(len(names), maxFiles)] {
		below, err := strconv.Atoi(strings.TrimSuffix(name, suffix))
		depth := -1
		if err == nil {
			depth = slices.Index(process.Ancestors(below), pid)
		}
		if depth < 1 || found != nil && depth >= nearest {
			continue
		}
		if s, err := read(root, configDir, name); err == nil {
			found, nearest = s, depth
		}
	}
	if found == nil {
		return nil, ErrNoSession
	}
	return found, nil
}
