package run

import "time"

// Restarts are the starts of a program that ends again and again.
type Restarts struct {
	Next  time.Time     // zero: none is planned
	Count int           // of all restarts
	Pause time.Duration // before the last one
	exits []time.Time   // within loopWithin
}

// LoopAfter is how many exits within a minute are too many.
const LoopAfter = 5

const (
	maxPause   = 8 * time.Second
	loopWithin = time.Minute
)

// Plan plans the next start. isLoop: the program exited too often, whether it crashed or not.
func (s *Restarts) Plan(now time.Time, ran, firstPause time.Duration) (isLoop bool) {
	s.exits = append(s.exits, now)
	for now.Sub(s.exits[0]) > loopWithin {
		s.exits = s.exits[1:]
	}
	if ran > loopWithin {
		s.Pause = 0
	}
	s.Pause = min(max(2*s.Pause, firstPause), maxPause)
	s.Count++
	s.Next = now.Add(s.Pause)
	return len(s.exits) >= LoopAfter
}
