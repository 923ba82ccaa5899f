// Package runinfo is run.json in an agent's run directory, where a runner writes what it runs. By it the
// next runner finds what one that was killed has left, and others learn whose process it is and how it
// brings mail. It is no evidence of life: the lock is.
package runinfo

import (
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/wire"
)

const (
	File    = "run.json"
	maxSize = 1 << 20
)

// Info is what the file says, as JSON.
type Info struct {
	Run     string    `json:"run"`
	Runner  int       `json:"runner"`
	PID     int       `json:"pid,omitempty"` // of the program
	Started time.Time `json:"started"`
	Command []string  `json:"command"`
	Inject  string    `json:"inject,omitempty"`
	Driver  string    `json:"driver,omitempty"` // of the program, as far as it is known
}

// Read reads an agent's file below its team's directory. Where there is none that a runner wrote the Info is zero.
func Read(team *durable.Root, agent wire.Name) (info Info, err error) {
	data, err := team.ReadFile(string(agent)+"/run/"+File, maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return info, nil
	}
	if err != nil || json.Unmarshal(data, &info) != nil {
		return Info{}, err
	}
	return info, nil
}

// Write writes the file into a run directory.
func (i Info) Write(dir *durable.Root) error {
	data, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return dir.Replace(File, append(data, '\n'), false)
}

// Leftovers are the processes of the run that still run. Call it while no runner does.
func (i Info) Leftovers() ([]process.Info, error) { return process.Leftovers(i.Run) }

// grace is how long what is left may take to end by itself.
const grace = 2 * time.Second

// EndLeftovers ends the processes of the run that still run, and names them. The caller holds the runner's lock.
func (i Info) EndLeftovers() (ended []string, err error) {
	found, err := process.EndLeftovers(i.Run, grace)
	return process.Names(found), err
}
