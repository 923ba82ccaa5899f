package ptyrun

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

// After a usage limit that has ended its turn, an agent whose person wants that is told to go on, once, and before its
// mail. Until then nothing is typed, and by default nothing but mail is.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	for _, goesOn := range []bool{true, false} {
		r := newRig(t).fake(testagent.Options{})
		r.opt.GoesOn = goesOn
		r.run().idle()
		end := time.Now().Add(4 * time.Second)
		r.send(fmt.Sprintf("LIMIT [limit reached|%d]", end.Unix()+1))
		r.wait("the limit", r.has(`state_change new="limited"`))
		events, err := r.bob.Log().Newest(20)
		must(t, err)
		at := slices.IndexFunc(events, func(e wire.Event) bool { return e.Field("new") == "limited" })
		if until := events[at].Field("until"); until != time.Unix(end.Unix()+1, 0).UTC().Format(time.RFC3339) {
			t.Errorf("it lasts until %q", until)
		}
		waits := r.send("SAY [one]")
		if s, err := r.status(); err == nil && time.Now().Before(end) && s.Gate != control.GateLimit {
			t.Errorf("the gate is %q at the limit", s.Gate)
		}
		r.wait("the mail", r.read(waits))
		r.wait("the end of its turn", func() bool { return strings.HasPrefix(r.events()[len(r.events())-1], `state_change new="idle"`) })
		told := 0
		for _, text := range r.fakes(testagent.Submitted) {
			if strings.Contains(text, goOn) {
				told++
			}
		}
		if want := map[bool]int{true: 1}[goesOn]; told != want {
			t.Errorf("goes on: %v, and it was told so %d times: %q", goesOn, told, r.fakes(testagent.Submitted))
		}
	}
}
