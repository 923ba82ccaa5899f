package teamdir

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/wire"
)

// Dial connects to a member's runner as control.Dial does. A refused connection to a runner that does not run is
// ErrNoRunner: its socket, which may belong to another user, has outlived it.
func (t *Team) Dial(ctx context.Context, name wire.Name) (*control.Client, error) {
	if t.Dir().IsDir(string(name)) != nil { // a link to another member
		return nil, control.ErrNoRunner
	}
	c, err := control.Dial(ctx, filepath.Join(t.Box(name).Path(), "run"))
	if _, isRefused := errors.AsType[*control.Error](err); isRefused {
		if running, bad := t.Running(name); bad == nil && !running {
			return nil, control.ErrNoRunner
		}
	}
	return c, err
}

// DialRunner connects to the runner of a member whose runner lock is held. Without a socket the runner is starting or
// ending: DialRunner waits for ctx, at most for control.DialTimeout, and returns ErrNoRunner if the lock becomes free, else a
// control.NotAnsweringError, with the process that run.json names.
func (t *Team) DialRunner(ctx context.Context, name wire.Name) (*control.Client, error) {
	for began := time.Now(); ; time.Sleep(control.DialTimeout / 50) {
		c, err := t.Dial(ctx, name)
		if !errors.Is(err, control.ErrNoRunner) {
			return c, err
		}
		if running, bad := t.Running(name); bad == nil && !running {
			return nil, err
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		if time.Since(began) > control.DialTimeout || ctx.Err() != nil {
			silent := &control.NotAnsweringError{}
			if t.SeesRunner(name) { // else it has not written its run.json yet
				silent.PID = t.RunInfo(name).Runner
			}
			return nil, silent
		}
	}
}

const stoppedFile = "stopped" // in <agent>/run: changes whenever the member is stopped

// MarkStopped records that a member is being stopped, so that a start in progress gives up.
func (t *Team) MarkStopped(name wire.Name) error {
	return t.writeRunFile(name, stoppedFile, []byte(wire.NewID()))
}

// LastStop identifies the last stop of a member, "" if there was none. A start gives up if it has changed since the
// start was requested.
func (t *Team) LastStop(name wire.Name) string {
	data, _ := t.ReadRunFile(name, stoppedFile)
	return strings.TrimSpace(string(data))
}

func (t *Team) writeRunFile(name wire.Name, file string, data []byte) error {
	if err := t.Dir().Mkdir(runFile(name, "")); err != nil {
		return err
	}
	return t.Dir().Replace(runFile(name, file), append(data, '\n'), false)
}

// runFile is the path of a file in a member's run directory.
func runFile(name wire.Name, file string) string { return path.Join(string(name), "run", file) }

const maxRunFile = 1 << 20

func (t *Team) ReadRunFile(name wire.Name, file string) ([]byte, error) {
	return t.Dir().ReadFile(runFile(name, file), maxRunFile)
}

func (t *Team) RunInfo(name wire.Name) (info runinfo.Info) {
	info, _ = runinfo.Read(t.Dir(), name)
	return info
}

// RunnerOf returns the member, of any team, whose runner is the first of these processes that is one: the one that its
// run.json names, while its runner lock is held.
func (r *Root) RunnerOf(pids []int) (a wire.Address) {
	teams, _ := r.Teams()
	for _, name := range teams {
		t, _ := r.Team(name) // Teams has opened it
		for _, member := range t.whoRan() {
			i := slices.Index(pids, t.RunInfo(member).Runner)
			if i < 0 {
				continue
			}
			if running, _ := t.Running(member); running {
				a, pids = t.Box(member).Address(), pids[:i]
			}
		}
	}
	return a
}

// whoRan returns the members that a runner has run at some time: they have a runner lock.
func (t *Team) whoRan() (names []wire.Name) {
	locks, _ := t.Dir().Names(".locks")
	for _, lock := range locks {
		if name, isRunner := strings.CutSuffix(lock, ".runner"); isRunner {
			names = append(names, wire.Name(name))
		}
	}
	return names
}

// SeesRunner reports whether this process sees the one that a member's run.json names as its runner.
func (t *Team) SeesRunner(name wire.Name) bool {
	info := t.RunInfo(name)
	return process.Info{PID: info.Runner, Start: info.Start}.IsRunning()
}
