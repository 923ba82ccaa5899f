package run

import (
	"testing"
	"time"
)

// The pauses grow up to a limit, however often the program crashes.
func TestPauseBeforeRestart(t *testing.T) {
	s, first := Restarts{}, 500*time.Millisecond
	now := time.Now()
	want := first
	for n := range 200 {
		now = now.Add(30 * time.Second)
		if s.Plan(now, 30*time.Second, first) || s.Pause != want || !s.Next.Equal(now.Add(want)) {
			t.Fatalf("crash %d: %s, not %s", n, s.Pause, want)
		}
		want = min(2*want, maxPause)
	}
	if s.Plan(now.Add(time.Hour), time.Hour, first); s.Pause != first {
		t.Errorf("after an hour: %s", s.Pause)
	}
}
