package ptyrun

import "time"

// restarts decides whether a program that ended is started again, and when.
type restarts struct {
	policy  Restart
	first   time.Duration
	at      time.Time   // of the next start; zero: none is planned
	count   int         // of all restarts
	row     int         // of crashes without a good while between
	crashes []time.Time // the newest
}

const (
	maxPause   = 8 * time.Second
	loopWithin = time.Minute
	loopAfter  = 5 // crashes
)

// ended takes in an end, and reports whether a start is planned, or given up
// because of a loop.
func (s *restarts) ended(now time.Time, crash bool, ran time.Duration) (pause time.Duration, again, loop bool) {
	s.at = time.Time{}
	if s.policy == Always || s.policy == OnCrash && crash {
		// An end at once is as bad as a crash: it would be started for ever.
		s.crashes = append(s.crashes, now)
		for len(s.crashes) > 0 && now.Sub(s.crashes[0]) > loopWithin {
			s.crashes = s.crashes[1:]
		}
		if len(s.crashes) >= loopAfter {
			return 0, false, true
		}
		if ran > loopWithin {
			s.row = 0
		}
		pause = min(s.first<<s.row, maxPause)
		s.row++
		s.count++
		s.at = now.Add(pause)
		return pause, true, false
	}
	return 0, false, false
}
