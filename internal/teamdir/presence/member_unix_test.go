//go:build unix

package presence

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/internal/testprogram"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// suspend gives members runners that do not answer. It counts who waits for one, and ends the context when all of them have
// been asked at the same time: a caller that leaves is not kept waiting.
func suspend(t *testing.T, team *teamdir.Team, names []wire.Name) (ctx context.Context, waiting, atMost *atomic.Int64) {
	ctx, cancel := context.WithCancel(t.Context())
	waiting, atMost = &atomic.Int64{}, &atomic.Int64{}
	asked := func(isAsked bool) {
		if !isAsked {
			waiting.Add(-1)
		} else if n := waiting.Add(1); n > atMost.Load() {
			atMost.Store(n)
			if n == int64(len(names)) {
				cancel()
			}
		}
	}
	for _, name := range names {
		hold, err := claim.HoldRunner(t.Context(), team.Store, name)
		teamtest.Must(t, err)
		t.Cleanup(func() { hold.Release() })
		testprogram.Hang(t, filepath.Join(team.Box(name).Path(), "run"), asked)
	}
	return ctx, waiting, atMost
}

// Members reads team.toml once, and asks all runners at the same time: suspended ones take no longer than one.
func TestMembersAsksAllAtOnce(t *testing.T) {
	var reads atomic.Int64
	r := teamtest.NewFaultyRoot(t, nil, func(op, name string) error {
		if strings.HasSuffix(name, "team.toml") {
			reads.Add(1)
		}
		return nil
	})
	var names []wire.Name
	for i := range 2*runtime.NumCPU() + 3 {
		names = append(names, wire.Name(fmt.Sprintf("m%d", i)))
	}
	team := teamtest.NewTeam(t, r, names...)
	teamtest.Must(t, team.Dir().Replace("team.toml", []byte("[members.m0]\nrole = \"coder\"\n"), false))
	reads.Store(0)
	_, err := Members(t.Context(), team)
	teamtest.Must(t, err)
	once := reads.Load()

	ctx, waiting, atMost := suspend(t, team, names)
	end := time.Now().Add(time.Minute) // by which a busy machine does it in time, too
	for ctx.Err() == nil && time.Now().Before(end) {
		for waiting.Load() > 0 {
			time.Sleep(time.Millisecond)
		}
		reads.Store(0)
		_, err = Members(ctx, team)
		teamtest.Must(t, err)
	}
	if ctx.Err() == nil {
		t.Errorf("of %d runners at most %d were asked at the same time", len(names), atMost.Load())
	}
	n := reads.Load()
	var members []Member
	for took := time.Hour; took > control.DialTimeout; {
		began := time.Now()
		members, err = Members(t.Context(), team)
		teamtest.Must(t, err)
		if took = time.Since(began); took > control.DialTimeout && time.Now().After(end) {
			t.Fatalf("a team whose runners are suspended was shown after %v", took)
		}
	}
	for _, m := range members {
		if !strings.HasSuffix(m.Detail, reducer.NotAnswering) {
			t.Errorf("%s: %s", m.Name, m.Detail)
		}
	}
	if n != once {
		t.Errorf("team.toml was looked at %d times with runners, %d times without", n, once)
	}
	if once > 3 { // to open, look at and read it
		t.Errorf("team.toml was looked at %d times for %d members", once, len(names))
	}
}

// So do Summaries, for which a sender to many waits.
func TestSummariesAskAllAtOnce(t *testing.T) {
	r := teamtest.NewRoot(t, nil)
	var names []wire.Name
	var addresses []wire.Address
	for i := range 2*runtime.NumCPU() + 3 {
		names = append(names, wire.Name(fmt.Sprintf("m%d", i)))
		addresses = append(addresses, wire.Address{Team: "main", Agent: names[i]})
	}
	team := teamtest.NewTeam(t, r, names...)
	ctx, waiting, atMost := suspend(t, team, names)
	for end := time.Now().Add(time.Minute); ctx.Err() == nil && time.Now().Before(end); {
		for waiting.Load() > 0 {
			time.Sleep(time.Millisecond)
		}
		found := At(ctx, r, append(addresses, addresses[0], wire.Address{Team: "main", Agent: "nobody"})...)
		for _, a := range addresses {
			if found[a].Name != a.Agent {
				t.Errorf("%s: %+v", a, found[a])
			}
		}
		if m := found[wire.Address{Team: "main", Agent: "nobody"}]; m.State != "" {
			t.Errorf("nobody is %s", m.State)
		}
	}
	if ctx.Err() == nil {
		t.Errorf("of %d runners at most %d were asked at the same time", len(names), atMost.Load())
	}
}
