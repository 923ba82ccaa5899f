package loop

import (
	"testing"
)

// A feed that ends is taken to its end, however much of it there was when the loop looked.
func TestFeedEnds(t *testing.T) {
	for n := range 4 {
		f, taken := NewFeed[int](3), 0
		for range n {
			f.Send(1)
		}
		f.End()
		for f.Woken() != nil {
			select {
			case <-f.Woken():
				f.Take(func(int) { taken++ })
			default:
				t.Fatalf("with %d things in it, the loop is not woken for its end", n)
			}
		}
		if taken != n {
			t.Errorf("%d of %d were taken", taken, n)
		}
	}
}
