package mailbox

import (
	"io"
	"time"
)

// SeqBefore is the number of the last event that was appended before a moment,
// 0 when there is none: where a cursor begins for what happened since. It is
// found by bisection, so where the clock was set back it is one of the places.
func (b *Box) SeqBefore(t time.Time) (uint64, error) {
	last, err := b.LastSeq()
	if err != nil {
		return 0, err
	}
	// The event wanted is low, or one up to high.
	low, high := uint64(0), last
	for low < high {
		mid := low + (high-low+1)/2
		c := b.Events(mid - 1)
		e, _, err := c.Next()
		c.Close()
		switch {
		case err == io.EOF, err == nil && !e.At.Before(t):
			high = mid - 1
		case err != nil:
			return 0, err
		default:
			low = max(mid, min(e.Seq, high)) // a gap: e may be behind mid
		}
	}
	return low, nil
}
