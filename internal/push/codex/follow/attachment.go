package follow

import (
	"slices"
	"time"

	"github.com/agentteammail/atm/ptyrun/process"
)

// unloadAfter is how long the server keeps a thread that nobody listens to, and a little more.
const unloadAfter = 75 * time.Second

// noTerminal is how soon to look for a terminal again.
const noTerminal = 5 * time.Second

// An attachment says whether a person's terminal shows the thread. The server does not tell: it keeps the thread for a
// minute when the terminal has gone. So nothing is given
//
//   - while no process codex has a terminal;
//   - for as long as the server may keep the thread after one of these has ended, unless the person has been seen since:
//     typed something, or a terminal has shown the end of a turn.
//
// With several terminals, the end of any of them holds the mail of all for that time.
type attachment struct {
	seen   []process.Info // terminals, when they were looked for last
	goneAt time.Time      // when one was found to have ended
	proved time.Time      // when the person was seen last
}

// terminals is replaced in tests.
var terminals = func() ([]process.Info, error) { return process.InTerminals("codex") }

// prove notes that a terminal shows the thread.
func (a *attachment) prove(now time.Time) {
	a.look(now)
	a.proved = now
}

func (a *attachment) look(now time.Time) {
	there, err := terminals()
	if err != nil {
		return
	}
	for _, before := range a.seen {
		if !slices.ContainsFunc(there, func(p process.Info) bool { return p.PID == before.PID && p.Start == before.Start }) {
			a.goneAt = now
		}
	}
	a.seen = there
}

// wait says how long to wait before mail may be given; 0: now.
func (a *attachment) wait(now time.Time) time.Duration {
	a.look(now)
	if len(a.seen) == 0 {
		return noTerminal
	}
	if !a.proved.Before(a.goneAt) {
		return 0
	}
	return max(0, a.goneAt.Add(unloadAfter).Sub(now))
}
