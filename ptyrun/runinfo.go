package ptyrun

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/ptyrun/runinfo"
)

const runDir = "run"

// openRunDir opens an agent's run directory; nil: there is none.
func openRunDir(box *mailbox.Box, create bool) (*durable.Root, error) {
	team, name := box.Store().Dir(), string(box.Agent())+"/"+runDir
	if create {
		if err := team.Mkdir(name); err != nil {
			return nil, err
		}
	}
	dir, err := team.Sub(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}

// writeRunInfo writes run.json.
func (r *runner) writeRunInfo() error {
	p := runinfo.Info{Run: r.Run, Kept: r.Kept, Runner: os.Getpid(), Started: r.Now().UTC(), Command: r.Command, Inject: string(r.Inject)}
	if r.prog != nil {
		p.PID = r.prog.child.PID()
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return r.dir.Replace(runinfo.File, append(data, '\n'), false)
}

// Left is what a runner that was killed has left running.
type Left struct {
	Runs      []string // whose they are
	Command   []string // what the last of them ran
	Processes []process.Info
}

// Leftovers finds what the last runner of an agent has left running. Call it while
// holding the runner lock.
func Leftovers(box *mailbox.Box) (Left, error) {
	dir, err := openRunDir(box, false)
	if dir == nil || err != nil {
		return Left{}, err
	}
	defer dir.Close()
	data, err := dir.ReadFile(runinfo.File, runinfo.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return Left{}, nil
	}
	if err != nil {
		return Left{}, err
	}
	p, ok := runinfo.Parse(data)
	if !ok {
		return Left{}, nil // not ours
	}
	left := Left{Command: p.Command}
	for _, run := range append(p.Kept, p.Run) {
		ps, err := process.Leftovers(run)
		if err != nil {
			return left, err
		}
		if len(ps) > 0 {
			left.Runs = append(left.Runs, run)
			left.Processes = append(left.Processes, ps...)
		}
	}
	return left, nil
}

// End ends what was left: asked first, killed after grace.
func (l *Left) End(grace time.Duration) error { return process.End(l.Processes, grace) }

// endKept ends what earlier runs had left and was let go on.
func (r *runner) endKept() {
	for _, run := range r.Kept {
		ps, err := process.Leftovers(run)
		if err == nil && len(ps) > 0 {
			r.exit.Ended = append(r.exit.Ended, processNames(ps)...)
			err = process.End(ps, time.Second)
		}
		if err != nil {
			r.log.Error("ending what was kept", "run", run, "err", err)
		}
	}
}
