package teamdir

import (
	"context"
	"time"
)

// laterEvery is how often KeepDelivering looks at least, since clocks jump.
const laterEvery = 3 * time.Second

// KeepDelivering delivers what is due to be sent, and tells of killed runners (TellKilled), until the context ends. While
// nothing is due, it costs a look into two directories every three seconds.
func (t *Team) KeepDelivering(ctx context.Context) {
	for ctx.Err() == nil {
		t.TellKilled(ctx)
		next, err := t.DeliverLater(ctx)
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
