package eventlog

import (
	"fmt"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// An append of an event with an id, which is looked for in the last MiB. One without
// is compared with a raw append by internal/bench.
func BenchmarkAppendWithID(b *testing.B) {
	l := openLog(b, scratch(b), nil)
	for n := 0; b.Loop(); n++ {
		appendEvents(b, l, wire.Event{Kind: "state_change", Source: "pty", EventID: fmt.Sprint("claude/0b1c/", n)})
	}
}
