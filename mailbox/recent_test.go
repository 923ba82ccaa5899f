package mailbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// An id is found wherever in the last MiB it stands, also across the pieces in
// which that is read, and nowhere else.
func TestMentions(t *testing.T) {
	t.Parallel()
	const id, window = "hook/0123456789abcdef", 300 << 10
	quiet := strings.Repeat("-", 400<<10)
	name := filepath.Join(t.TempDir(), "log")
	for _, back := range []int{0, 1, 30, 64 << 10, 64<<10 + 5, 128<<10 + 20, 192<<10 - 3, window - len(id), window, window + 64<<10} {
		at := len(quiet) - back - len(id)
		text := quiet[:at] + id + quiet[at+len(id):]
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			events []wire.Event
			want   bool
		}{
			{[]wire.Event{{EventID: id}}, back <= window-len(id)},
			{[]wire.Event{{EventID: "other/" + id}, {}, {EventID: "hook/f123456789abcdef"}}, false},
			{[]wire.Event{{EventID: "other"}, {EventID: id}}, back <= window-len(id)},
			{nil, false},
		} {
			if got, err := mentions(f, int64(len(text)), window, c.events); got != c.want || err != nil {
				t.Errorf("%d bytes back, %v: %v, %v", back, c.events, got, err)
			}
		}
		f.Close()
	}
}

// What is in a long log already is not appended again.
func TestEventIDInALongLog(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	const n = 3000
	var batch []wire.Event
	for i := range n {
		batch = append(batch, wire.Event{Kind: "k", Source: "hook", EventID: fmt.Sprintf("hook/%024x", i)}.With("text", strings.Repeat("x", 80)))
	}
	if err := bob.Append(ctx, AppendOptions{}, batch...); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{n - 1, n - 2, n / 2, 10} {
		again := wire.Event{Kind: "again", Source: "hook", EventID: fmt.Sprintf("hook/%024x", i)}
		if err := bob.Append(ctx, AppendOptions{}, again, wire.Event{Kind: "new", Source: "hook"}); err != nil {
			t.Fatal(err)
		}
	}
	all := eventsOf(t, bob)
	if len(all) != n+4 || all[n].Kind != "new" {
		t.Errorf("%d events, and %s", len(all), all[n].Kind)
	}
}
