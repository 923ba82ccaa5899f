package presence

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// runnerAnswer is what a runner has said of itself, or why it has not.
type runnerAnswer struct {
	status control.Status
	err    error
}

// How long runners may take to say how they are. It is at once, unless one is drawing a flood, or the machine is busy.
const (
	askWithin    = 2 * time.Second        // those that the caller has named
	askAllWithin = 500 * time.Millisecond // all of a team
)

func askRunner(ctx context.Context, t *teamdir.Team, name wire.Name) (a runnerAnswer) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	c, err := t.DialRunner(ctx, name)
	if err != nil {
		return runnerAnswer{err: err}
	}
	defer c.Close()
	a.status, err = c.Status(ctx)
	if errors.Is(err, control.ErrNotAnswering) { // else it is just ending
		a.err = err
	}
	return a
}

// askRunners asks those of some members' runners that run, all at the same time: of those that do not answer, each takes
// as long as all.
func askRunners(ctx context.Context, t *teamdir.Team, names []wire.Name, limit time.Duration) map[wire.Name]runnerAnswer {
	var (
		asked   sync.WaitGroup
		mu      sync.Mutex // guards answers
		answers = map[wire.Name]runnerAnswer{}
	)
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, name := range names {
		if running, err := t.Running(name); err != nil || !running {
			continue
		}
		asked.Go(func() {
			a := askRunner(within, t, name)
			mu.Lock()
			defer mu.Unlock()
			answers[name] = a
		})
	}
	asked.Wait()
	return answers
}
