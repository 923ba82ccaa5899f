package screen

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden screens anew")

// captures are what real programs wrote on a terminal of 100x30, by name.
func captures(t testing.TB) map[string][]byte {
	files, err := filepath.Glob("../../testdata/screens/*.bin")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	all := make(map[string][]byte)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".bin")] = data
	}
	return all
}

// text is a screen as the golden files have it: no blank lines at the end.
func text(s *Screen) string {
	return strings.TrimRight(strings.Join(s.Lines(), "\n"), "\n") + "\n"
}

// TestCaptures: screens of real agents come out as they were, however the bytes
// are torn.
func TestCaptures(t *testing.T) {
	for name, data := range captures(t) {
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join("../../testdata/screens", name+".txt")
			whole := New(100, 30, 1000)
			whole.Write(data)
			if *update {
				if err := os.WriteFile(golden, []byte(text(whole)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), text(whole)); d != "" {
				t.Fatalf("the screen (-want +got):\n%s", d)
			}

			torn := New(100, 30, 1000)
			for i := range data {
				torn.Write(data[i : i+1])
			}
			same(t, "byte by byte", stateOf(whole), stateOf(torn))
			rnd := rand.New(rand.NewPCG(1, 2))
			pieces := New(100, 30, 1000)
			for rest := data; len(rest) > 0; {
				n := min(1+rnd.IntN(97), len(rest))
				pieces.Write(rest[:n])
				rest = rest[n:]
			}
			same(t, "in pieces", stateOf(whole), stateOf(pieces))
		})
	}
}
