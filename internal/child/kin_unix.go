//go:build linux || darwin || freebsd

package child

import (
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// kin are the programs that this process has started here and not yet closed,
// by number. It is locked while one is being started, so that none is taken for
// an adopted process between its start and its entry.
var kin struct {
	sync.Mutex
	of map[int]*Child
}

// family is what runs of this program and of what it started. A zombie runs no
// more.
func (c *Child) family() ([]entry, error) {
	all, err := census()
	if err != nil {
		return nil, err
	}
	kin.Lock()
	defer kin.Unlock()
	alone := len(kin.of) == 1
	self, session, above := os.Getpid(), ownSession(), parents(all)

	ours := map[int]bool{c.pid: true}
	for _, e := range all {
		switch {
		case above[e.pid] || kin.of[e.pid] != nil:
		case e.sid == c.pid && !c.strangers(all):
			ours[e.pid] = true
		case alone && e.ppid == self && e.sid != session:
			// Adopted. With several programs it could be any one's: then the
			// mark decides.
			ours[e.pid] = true
		case c.mark != "" && carries(e.pid, markName+"="+c.mark):
			ours[e.pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, e := range all {
			if ours[e.ppid] && !ours[e.pid] && !above[e.pid] && kin.of[e.pid] == nil {
				ours[e.pid], grown = true, true
			}
		}
	}
	return slices.DeleteFunc(all, func(e entry) bool {
		return !ours[e.pid] || e.zombie || e.pid == c.pid && e.start != c.start
	}), nil
}

// strangers says whether the program's session number is by now another
// session's: its leader would be a process of that number with another start.
func (c *Child) strangers(all []entry) bool {
	i := slices.IndexFunc(all, func(e entry) bool { return e.pid == c.pid })
	return i >= 0 && all[i].start != c.start
}

func ownSession() int {
	sid, err := unix.Getsid(0)
	if err != nil {
		return -1
	}
	return sid
}
