package watcher

import "time"

// settle is how long after a change a directory's time may still stay the same
// at the next one: the coarsest clock of a file system in use has two seconds.
const settle = 2 * time.Second

// gate says when a directory is worth listing, from the time of its last
// change. No clock but ours is trusted: the directory's time is only compared
// with itself.
type gate struct {
	stamp   time.Time     // the directory's time when it was last looked at
	changed time.Time     // when that stamp was first seen
	settled bool          // it was listed so late after that nothing can hide behind the stamp
	ended   time.Time     // the last listing
	cost    time.Duration // of the last listing
}

// due reports whether the directory should be listed. One whose change the
// kernel explained is listed all the same, in case it did not tell all, but for
// at most a thousandth of the time; else for at most a tenth.
func (g *gate) due(stamp, now time.Time, explained bool) bool {
	if !stamp.Equal(g.stamp) {
		g.stamp, g.changed, g.settled = stamp, now, false
	}
	share := 10
	if explained {
		share = 1000
	}
	return !g.settled && now.Sub(g.ended) >= time.Duration(share)*g.cost
}

func (g *gate) listed(began, ended time.Time) {
	g.settled = began.Sub(g.changed) >= settle
	g.ended, g.cost = ended, ended.Sub(began)
}
