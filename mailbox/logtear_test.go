//go:build unix

package mailbox

import (
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// A torn line is cut off and written anew while somebody reads there: what they
// got may be half of each, and is no gap.
func TestFollowWhileMended(t *testing.T) {
	bob := openStore(t, t.TempDir(), nil, "bob").Box("bob")
	appendEvents(t, bob, "first")
	stop := make(chan struct{})
	seen := make(chan *followed, 2)
	for range 2 {
		go func() { seen <- follow(bob, 0, stop) }()
	}
	r := random()
	path := logPath(bob, 1)
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		scribble(t, path, []byte(`{"seq":99,"at":"2026-11-20T09:46:47Z","team":"main"`+strings.Repeat("x", r.IntN(300))))
		var events []wire.Event
		for range 1 + r.IntN(4) {
			events = append(events, wire.Event{Kind: "test", Source: "cli"}.With("pad", strings.Repeat("y", r.IntN(200))))
		}
		if err := bob.Append(ctx, AppendOptions{}, events...); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	last, _ := bob.LastSeq()
	for range 2 {
		f := <-seen
		for _, w := range f.wrong {
			t.Error(w)
		}
		if f.last != last {
			t.Errorf("a follower ended at %d, the log at %d", f.last, last)
		}
	}
	t.Logf("%d events", last)
}
