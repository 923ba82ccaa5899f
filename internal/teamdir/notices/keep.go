package notices

import (
	"context"
	"time"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
)

// laterEvery is how often KeepDelivering looks at least, since clocks jump.
const laterEvery = 3 * time.Second

// KeepDelivering delivers what is due to be sent, and tells of killed runners (TellKilled), until the context ends. While
// nothing is due, it costs a look into two directories every three seconds.
func KeepDelivering(ctx context.Context, t *teamdir.Team) {
	for ctx.Err() == nil {
		TellKilled(ctx, t)
		next, err := post.DeliverLater(ctx, t)
		pause := laterEvery
		if until := time.Until(next); err == nil && !next.IsZero() && until < pause {
			pause = max(until, time.Millisecond)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
