package mailbox

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// What happened since a moment is found across segments and gaps.
func TestSeqBefore(t *testing.T) {
	s := openStore(t, t.TempDir(), nil, "bob")
	bob := s.Box("bob")
	if n, err := bob.SeqBefore(time.Now()); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	dir := filepath.Join(bob.Path(), "events")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	var text []byte
	write := func(first uint64) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, segmentName(first)), text, 0o600); err != nil {
			t.Fatal(err)
		}
		text = nil
	}
	for seq := uint64(1); seq <= 5000; seq++ {
		e := wire.Event{Seq: seq, At: begin.Add(time.Duration(seq) * time.Minute), Team: "main", Agent: "bob", Kind: "k"}
		if seq < 2000 || seq >= 2100 { // lines that somebody took away
			text = append(e.Append(text), '\n')
		}
		if seq == 3000 {
			write(1)
		}
	}
	write(3001)
	for minutes, want := range map[int]uint64{0: 0, 1: 0, 2: 1, 1999: 1998, 2000: 1999, 2050: 1999, 2101: 2100, 3000: 2999, 3001: 3000, 3002: 3001, 5000: 4999, 5001: 5000, 9000: 5000} {
		got, err := bob.SeqBefore(begin.Add(time.Duration(minutes) * time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		// Within a gap any number up to its end is as good.
		if got != want && !(want == 1999 && got >= 1999 && got < 2100) {
			t.Errorf("before minute %d: %d, not %d", minutes, got, want)
		}
	}
	if err := bob.Append(context.Background(), AppendOptions{}, wire.Event{Kind: "k", Source: "cli"}); err != nil {
		t.Fatal(err)
	}
	if n, err := bob.SeqBefore(time.Now().Add(time.Hour)); n != 5001 || err != nil {
		t.Error(n, err)
	}
}
