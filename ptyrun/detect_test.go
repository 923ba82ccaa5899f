//go:build unix

package ptyrun

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/wire"
)

// titled makes the program a script that draws a box like Claude Code's; only its title shows its state. It waits for
// files whose names begin with steps.
func (r *rig) titled(script, steps string) *rig {
	return r.program("claude", "sh", "-c", `STEP='`+steps+`'
await() { until [ -e "$STEP$1" ]; do sleep 0.01; done; }
title() { printf '\033]0;%s Claude Code\007' "$1"; }
rule() { i=0; while [ $i -lt 100 ]; do printf '─'; i=$((i+1)); done; }
printf '\033[2J\033[H'; rule; printf '\r\n❯ \r\n'; rule; printf '\r\n  ? for shortcuts\033[2;3H'
`+script)
}

// What the program drew while the runner was not scheduled is read before an older screen is reported: here, that it
// worked in between.
func TestLateRunnerSeesWhatWasDrawn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	step := func(n string) string { return filepath.Join(r.opt.Dir, "step"+n) }
	script := `title ✳; await 1; title ⠂; await 2; title ✳; await 3; title ⠂; touch "$STEP"4; await 5; title ✳; sleep 60`
	goOn := func(n string) {
		t.Helper()
		must(t, os.WriteFile(step(n), nil, 0o600))
	}
	w := quick
	w.Idle = 2 * time.Second
	r.opt.timing = &w
	var clock sync.Mutex // held: the runner is stopped
	r.opt.now = func() time.Time {
		clock.Lock()
		defer clock.Unlock()
		return time.Now()
	}
	r.titled(script, step("")).run().idle()
	goOn("1")
	r.Wait("work", func() bool { return len(r.states()) == 2 })
	goOn("2")
	r.Wait("the idle screen", func() bool {
		s, err := r.status()
		return err == nil && s.State == "idle"
	})
	clock.Lock()
	goOn("3")
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Lstat(step("4")); err == nil {
			break
		}
		if time.Now().After(end) {
			clock.Unlock()
			t.Fatal("the program does not go on")
		}
	}
	time.Sleep(w.Idle)
	clock.Unlock()
	time.Sleep(4 * w.Settle) // long enough to report work again
	last := time.Now()
	goOn("5")
	want := []string{`state_change new="idle"`, `state_change new="thinking"`, `state_change new="idle"`}
	r.Wait("the end", func() bool {
		all, err := r.Bob.Log().Newest(1 << 20)
		return err == nil && len(all) > 0 && all[len(all)-1].Text("new") == "idle" && all[len(all)-1].At.After(last)
	})
	r.Stop()
	<-r.Done
	if diff := cmp.Diff(want, r.states()); diff != "" {
		t.Error(diff)
	}
}

// A program that is stopped, and shows its prompt before it exits, has not ended its turn.
func TestStoppedTurnIsNotCompleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	step := filepath.Join(r.opt.Dir, "step")
	r.titled(`trap 'title ✳; i=0; while [ $i -lt 8 ]; do sleep 0.05; i=$((i+1)); done; touch "$STEP"2; exit 0' TERM
title ✳; await 1; title ⠂; while :; do sleep 0.01; done`, step).run().idle()
	r.Wait("that it is ready", func() bool {
		s, err := r.status()
		return err == nil && s.Ready
	})
	must(t, os.WriteFile(step+"1", nil, 0o600))
	r.Wait("work", func() bool { return len(r.states()) == 2 })
	r.Stop()
	<-r.Done
	if _, err := os.Lstat(step + "2"); err != nil {
		t.Error("it was ended before it could show its prompt for long")
	}
	want := []string{
		"spawned", `state_change new="idle"`, `state_change new="thinking"`, `exited reason="interrupted" code=0`,
	}
	if diff := cmp.Diff(want, r.Events()); diff != "" {
		t.Error(diff)
	}
}

// A turn whose end no hook reports, like that of a prompt refused by another hook, ends at a prompt that stays idle.
func TestLostEnd(t *testing.T) {
	t.Parallel()
	r, w := newRig(t).fake(testagent.Options{}), quick
	w.Stale = 100 * time.Millisecond
	r.opt.timing = &w
	r.run().idle()
	begun := wire.Event{Source: "hook", Session: "s", Kind: wire.TurnStarted, TurnID: "t"}
	for _, e := range []wire.Event{{Source: "hook", Session: "s", Kind: "session_start"}, begun} {
		must(t, r.Bob.Log().Append(t.Context(), e))
	}
	r.Wait("the turn", func() bool {
		s, err := r.status()
		return err == nil && s.Gate == control.GateBusy
	})
	r.Wait("the message to be read", r.Read(r.Send("hello")))
}

// So does one of ours of which the screen shows no work, when a hook reports its start after it was accepted.
func TestLostEndOfOurs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := quick
	w.Stale = 100 * time.Millisecond
	r.opt.timing = &w
	got := filepath.Join(r.opt.Dir, "got")
	r.program("claude", "bash", "-c", box+`while paste; do head -c 1 >/dev/null; echo x >>`+got+`
printf '\033[2J\033[H❯ hello\n\n%s\n❯ \n%s\033[4;3H' "$bar" "$bar"; done`)
	r.run().idle()
	must(t, r.Bob.Log().Append(t.Context(), wire.Event{Source: "hook", Session: "s", Kind: "session_start"}))
	r.Wait("the hook to be heard", func() bool {
		s, err := r.status()
		return err == nil && s.Ways.Steer == "hooks"
	})
	r.Wait("the message to be read", r.Read(r.Send("hello")))
	must(t, r.Bob.Log().Append(t.Context(), wire.Event{Source: "hook", Session: "s", Kind: wire.TurnStarted, TurnID: "t"}))
	r.Wait("the next message to be read", r.Read(r.Send("hello")))
}

// What only a hook has told that it asks, as Gemini CLI does, is over when the screen shows for a while that it works or is at
// its prompt: no hook tells of the answer.
func TestQuestionOfAHookIsOver(t *testing.T) {
	t.Parallel()
	for now, script := range map[string]string{"idle": "title ✳; sleep 60", "thinking": "title ✳; await 1; title ⠂; sleep 60"} {
		t.Run(now, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			step := filepath.Join(r.opt.Dir, "step")
			r.titled(script, step).run().idle()
			for _, e := range []wire.Event{
				{Source: "hook", Session: "s", Kind: "session_start"}, {Source: "hook", Session: "s", Kind: wire.TurnStarted, TurnID: "t"},
				wire.Event{Source: "hook", Session: "s", Kind: wire.ConfirmRequired, TurnID: "t"}.With("prompt", "make"),
			} {
				must(t, r.Bob.Log().Append(t.Context(), e))
			}
			must(t, os.WriteFile(step+"1", nil, 0o600))
			r.Wait("that it asks no more", func() bool { // and nothing is told over and over
				return cmp.Equal(r.states(), []string{`state_change new="idle"`, `state_change new="` + now + `"`})
			})
		})
	}
}
