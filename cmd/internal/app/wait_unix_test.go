//go:build unix

package app

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/testprogram"
	"github.com/agentteammail/atm/wire"
)

// Runners that hang hold up only the wait for their own agents: the others' is over before one of them is given up.
func TestWaitAmongHungRunners(t *testing.T) {
	hung := []wire.Name{"h1", "h2", "h3", "h4"}
	s := newScope(t, append(hung, "carol")...)
	for _, name := range hung {
		hold, err := claim.HoldRunner(t.Context(), s.Team.Store, name)
		must(t, err)
		t.Cleanup(func() { hold.Release() })
		testprogram.Hang(t, filepath.Join(s.Team.Box(name).Path(), "run"), nil)
	}
	s.happen(t, "carol", wire.TurnIdle)
	for end := time.Now().Add(time.Minute); ; { // a busy machine may do it in time now and then
		began := time.Now()
		met, err := s.Wait(t.Context(), Wait{Conditions: s.conditions(t, "blocked", "h1,h2,h3,h4", "idle", "carol"), Timeout: time.Minute})
		took := time.Since(began)
		must(t, err)
		if met[0].Agent != "carol" || took > control.DialTimeout && time.Now().After(end) {
			t.Fatalf("%v after %v", kindsOf(met), took)
		}
		if took <= control.DialTimeout {
			break
		}
	}
	_, err := s.Wait(t.Context(), Wait{Conditions: s.conditions(t, "blocked", "h1", "idle", "carol"), Every: true, Timeout: time.Millisecond})
	if err == nil {
		t.Error("h1 is blocked")
	}
}
