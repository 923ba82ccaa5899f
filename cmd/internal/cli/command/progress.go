package command

import (
	"fmt"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
)

const (
	quickTime     = time.Second            // work that takes no longer shows no progress
	progressEvery = 200 * time.Millisecond // how often it is shown
)

// Progress returns a function that long work calls with how much of it is done: "sent %d messages". If stderr is a
// terminal that shows it, in one line, which whatever is printed next removes.
func (p *Printer) Progress(format string) func(n int) {
	if !output.IsTerminal(p.Err) || isDumb() || p.IsJSON || p.IsQuiet || p.Via != "" {
		return func(int) {}
	}
	next := time.Now().Add(quickTime)
	return func(n int) {
		if now := time.Now(); now.After(next) {
			next = now.Add(progressEvery)
			failure.ShowStatus(p.Err, fmt.Sprintf(format, n))
		}
	}
}
