package notices

import (
	"context"
	"time"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/push"
)

// lookEvery is how often KeepLooking looks.
const lookEvery = 3 * time.Second

// KeepLooking does what no process does at its moment, until the context ends: it tells of killed runners (TellKilled), and
// gives programs the mail that has become due (push.Waited).
func KeepLooking(ctx context.Context, t *teamdir.Team) {
	for given := map[string]bool{}; ctx.Err() == nil; {
		TellKilled(ctx, t)
		push.Waited(ctx, t, given)
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}
