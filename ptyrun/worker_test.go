package ptyrun

import "testing"

// A feed that ends is taken to its end, however much of it there was when the loop looked.
func TestFeedEnds(t *testing.T) {
	for n := range 4 {
		f, taken := newFeed[int](3), 0
		for range n {
			f.send(1)
		}
		f.end()
		for f.woken() != nil {
			select {
			case <-f.woken():
				f.take(func(int) { taken++ })
			default:
				t.Fatalf("with %d things in it, the loop is not woken for its end", n)
			}
		}
		if taken != n {
			t.Errorf("%d of %d were taken", taken, n)
		}
	}
}
