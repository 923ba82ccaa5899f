package session

import (
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

func TestRules(t *testing.T) {
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	s := &Session{}
	s.State, s.CreatedAt = wire.SessionActive, now
	idle := Rules{WhenIdle: 300 * time.Second}
	for _, test := range []struct {
		after time.Duration
		busy  bool
		want  string
	}{
		{299 * time.Second, false, ""}, {300 * time.Second, false, "idle_timeout: 300s"}, {300 * time.Second, true, ""},
	} {
		if got := idle.Ends(s, test.busy, now.Add(test.after)); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
	s.AddMessage(SenderHuman, "x", now.Add(200*time.Second))
	if got := idle.Ends(s, false, now.Add(400*time.Second)); got != "" {
		t.Errorf("somebody spoke: %q", got)
	}
	s.State = wire.SessionPaused
	if got := idle.Ends(s, false, now.Add(time.Hour)); got != "" {
		t.Errorf("paused: %q", got)
	}
}
