package main

import (
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// A guard ends a command when its lease is about to run out and nobody renews it,
// and not because the machine slept or the clock was set.
func TestWatchman(t *testing.T) {
	begin := time.Now()
	key := wire.NewID()
	for name, c := range map[string]struct {
		lease  time.Duration
		renews time.Duration // the taker stops renewing then; 0: at once
		jump   time.Duration // of the clock, halfway through the first lease
		after  bool          // the taker renews right after the jump
		want   time.Duration // when the command is ended; 0: never, within three leases
	}{
		"renewed":                           {lease: time.Minute, renews: time.Hour},
		"stopped":                           {lease: time.Minute, want: 58 * time.Second},
		"stopped, a short lease":            {lease: 3 * time.Second, want: 2500 * time.Millisecond},
		"stopped later":                     {lease: time.Minute, renews: 2 * time.Minute, want: 158 * time.Second},
		"slept, and renewed":                {lease: time.Minute, renews: time.Hour, jump: time.Hour, after: true},
		"slept, and the taker did not wake": {lease: time.Minute, jump: time.Hour, want: 32 * time.Second},
		"the clock was set back":            {lease: time.Minute, renews: time.Hour, jump: -time.Hour, after: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watchman{lease: c.lease}
			wall, ended := begin.Round(0), time.Duration(0)
			tell := func() { w.hears(guarded{Until: wall.Add(c.lease)}) }
			w.hears(guarded{Key: key, Until: wall.Add(c.lease)})
			told := time.Duration(0)
			jumped := false
			for now := time.Duration(0); now < 3*c.lease; now += guardTick {
				if c.jump != 0 && now >= c.lease/2 && !jumped {
					jumped = true
					wall = wall.Add(c.jump)
					if c.after {
						told = now - c.lease // due at once
					}
				}
				if w.at(begin.Add(now), wall) && ended == 0 {
					ended = now
				}
				if now-told >= c.lease/3 && now < c.renews {
					told = now
					tell()
				}
				wall = wall.Add(guardTick)
			}
			if d := ended - c.want; d < 0 || d > 2*guardTick || (c.want == 0) != (ended == 0) {
				t.Errorf("the command is ended after %s, want %s", ended, c.want)
			}
			if w.told.Key != key {
				t.Error("it forgot whose command it guards")
			}
		})
	}
}
