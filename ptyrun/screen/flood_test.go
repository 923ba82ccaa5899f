package screen

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// BenchmarkFlood compares a flood of lines with one of the same text without an end of a line, by the best of all rounds:
// `go test ./ptyrun/screen -run XXX -bench Flood -benchtime 20x`.
func BenchmarkFlood(b *testing.B) {
	line := bytes.Repeat([]byte("1 2 3 compiling the parser \x1b[32mok\x1b[m "), 2)
	lines := bytes.Repeat(append(slices.Clone(line), "\r\n"...), 100_000)
	endless := bytes.Repeat(line, len(lines)/len(line))
	best := map[string]time.Duration{}
	for b.Loop() {
		for name, flood := range map[string][]byte{"lines": lines, "endless": endless} {
			s, began := New(100, 30, 500), time.Now()
			for p := range slices.Chunk(flood, 32<<10) {
				s.Write(p)
			}
			s.Lines()
			if took := time.Since(began); best[name] == 0 || took < best[name] {
				best[name] = took
			}
		}
	}
	for name, took := range best {
		b.ReportMetric(float64(len(lines))/1e6/took.Seconds(), name+"-MB/s")
	}
	b.ReportMetric(best["lines"].Seconds()/best["endless"].Seconds(), "ratio")
}
