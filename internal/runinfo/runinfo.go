// Package runinfo reads and writes run.json in an agent's run directory, which says what the runner runs. The next
// runner uses it to find what a killed one left running; others, to tell whose a process is and how mail reaches the
// agent. It is no evidence that the runner runs; only the runner lock is.
package runinfo

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

const (
	File    = "run.json"
	maxSize = 1 << 20
)

// Info is the content of the file.
type Info struct {
	Run     string    `json:"run"`
	Dir     string    `json:"dir,omitempty"`     // the run directory, to tell the file from a copy of it
	Version string    `json:"version,omitempty"` // of atm, as the runner was built
	Runner  int       `json:"runner"`
	Start   uint64    `json:"runner_start,omitempty"` // of the runner, as in process.Info: it tells it from a later process with that id
	PID     int       `json:"pid,omitempty"`          // the program's
	Started time.Time `json:"started"`
	Cwd     string    `json:"cwd,omitempty"` // where it runs
	Command []string  `json:"command"`       // null until it has started
	Inject  string    `json:"inject,omitempty"`
	Driver  string    `json:"driver,omitempty"` // the program's, as far as known

	Serves []wire.Name `json:"serves,omitempty"` // the shared inboxes from which the agent gets jobs by itself
}

// Read reads an agent's file below its team's directory. Info is zero if there is none, and with an error, which is a
// *durable.FormatError for a file that no runner has written so. A copy, as in a copy of the project, names no run and no
// process: they are the original's.
func Read(team *durable.Root, agent wire.Name) (info Info, err error) {
	err = team.ReadJSON(string(agent)+"/run/"+File, maxSize, &info)
	if errors.Is(err, fs.ErrNotExist) {
		return Info{}, nil
	}
	if err != nil {
		return Info{}, err
	}
	here, err := team.Lstat(string(agent) + "/run")
	if original, originalErr := os.Stat(info.Dir); err == nil && originalErr == nil && !os.SameFile(here, original) {
		info.Run, info.Runner, info.Start, info.PID = "", 0, 0, 0
	}
	return info, err
}

// Write writes the file into a run directory.
func (i Info) Write(dir *durable.Root) error {
	i.Dir = dir.Path()
	data, _ := json.Marshal(i) // numbers, strings and a time: cannot fail
	return dir.Replace(File, append(data, '\n'), false)
}
