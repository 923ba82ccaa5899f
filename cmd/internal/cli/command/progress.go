package command

import (
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
)

const (
	quickTime     = time.Second            // work that takes no longer shows no progress
	progressEvery = 200 * time.Millisecond // how often it is shown
)

// Progress returns a function that long work calls with how much of it is done: "sent %d messages". If stderr is a
// terminal that shows it, in one line, which whatever is printed next removes.
func Progress(c *cli.Context, format string) func(n int) {
	if failure.Width(os.Stderr) == 0 || isDumb() || c.Bool("json") || c.Bool("quiet") || Given(c).Via != "" {
		return func(int) {}
	}
	next := time.Now().Add(quickTime)
	return func(n int) {
		if now := time.Now(); now.After(next) {
			next = now.Add(progressEvery)
			failure.ShowStatus(fmt.Sprintf(format, n))
		}
	}
}
