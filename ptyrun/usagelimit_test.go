package ptyrun

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/wire"
)

const goOn = "Your usage limit is over: go on with what you were doing."

// After a usage limit that has ended its turn, an agent whose person wants that is told to go on, once, and before its
// mail. Until then nothing is typed, and by default nothing but mail is.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	for _, goesOn := range []bool{true, false} {
		t.Run(fmt.Sprint(goesOn), func(t *testing.T) { testGoesOn(t, goesOn) })
	}
}

func testGoesOn(t *testing.T, goesOn bool) {
	r := newRig(t).fake(testagent.Options{})
	opencode := filepath.Join(t.TempDir(), "opencode") // which acts on nothing in a text
	must(t, os.Symlink(r.opt.Command[0], opencode))
	r.opt.GoesOn, r.opt.Command, r.opt.Driver, r.opt.ACP = goesOn, []string{opencode, "acp"}, nil, &ACP{}
	var isOver atomic.Bool
	r.opt.now = func() time.Time {
		if isOver.Load() {
			return time.Now().Add(time.Hour)
		}
		return time.Now()
	}
	r.run().idle()
	end := time.Unix(time.Now().Unix()+3600, 0)
	r.Send(fmt.Sprintf("FAIL [limit reached|%d]", end.Unix()))
	r.Wait("the limit", r.Has(`state_change new="limited"`))
	events, err := r.Bob.Log().Newest(20)
	must(t, err)
	at := slices.IndexFunc(events, func(e wire.Event) bool { return e.Field("new") == "limited" })
	if until := events[at].Field("until"); until != end.UTC().Format(time.RFC3339) {
		t.Errorf("it lasts until %q", until)
	}
	waits := r.Send("SAY [one]")
	if s, err := r.status(); err != nil || s.Gate != control.GateLimit || !r.Unread(waits) {
		t.Errorf("at the limit the gate is %q, %v; unread: %v", s.Gate, err, r.Unread(waits))
	}
	isOver.Store(true)
	r.Wait("the mail", r.Read(waits))
	told := 0
	for _, e := range r.Events() {
		if strings.HasPrefix(e, "turn_started") && strings.Contains(e, goOn) {
			told++
		}
	}
	if want := map[bool]int{true: 1}[goesOn]; told != want {
		t.Errorf("it was told to go on %d times, not %d", told, want)
	}
}

// A runner that is started after another was killed at the limit has the conversation go on when that is due, also if
// programs begin anew otherwise.
func TestGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	for _, resumes := range []bool{true, false} {
		t.Run(fmt.Sprint(resumes), func(t *testing.T) { testGoesOnAfterAKill(t, resumes) })
	}
}

func testGoesOnAfterAKill(t *testing.T, resumes bool) {
	r := newRig(t).fake(testagent.Options{})
	claude := filepath.Join(t.TempDir(), "claude") // a program whose conversations are known
	must(t, os.Symlink(r.opt.Command[0], claude))
	r.opt.Command, r.opt.GoesOn, r.opt.Resume = []string{claude}, true, resumes
	now := time.Now().UTC()
	for i, e := range []wire.Event{
		wire.Event{Kind: "spawned"}.With("pid", 1).With("resumed", "s1"),
		{Kind: wire.TurnStarted, TurnID: "t1"},
		wire.Event{Kind: wire.TurnCompleted, TurnID: "t1"}.With("status", "failed"),
		wire.Event{Kind: "state_change"}.With("new", "limited").With("detail", "resets 3pm").With("until", now.Add(2*time.Second).Format(time.RFC3339)),
	} {
		e.Seq, e.Source, e.Team, e.Agent, e.At = uint64(i+1), "pty", "main", "bob", now
		must(t, r.Bob.Log().Append(t.Context(), e))
	}
	r.run()
	r.Wait("the prompt to go on", func() bool {
		return slices.ContainsFunc(r.Events(), func(e string) bool { return strings.HasPrefix(e, "turn_started") && strings.Contains(e, goOn) })
	})
	if time.Now().Before(r.state.Limit.Until) {
		t.Error("it was told to go on before the limit was over")
	}
}
