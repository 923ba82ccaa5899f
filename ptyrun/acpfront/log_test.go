//go:build linux || darwin

package acpfront

import (
	"io"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// While somebody holds the log's lock, keys are taken and the screen is drawn, but for what the log must have first: the
// prompt behind a turn, and a request.
func TestLogIsLocked(t *testing.T) {
	dir, err := durable.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := dir.Mkdir(".locks"); err != nil {
		t.Fatal(err)
	}
	store := mailbox.NewStore(dir, "main")
	store.LockTimeout = time.Minute
	if err := store.Create(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	lock, err := store.Locks().Lock(t.Context(), "bob.events", lockfile.Exclusive, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := frontOf(nil)
	f.Box, f.screen.out, f.turn = store.Box("bob"), io.Discard, &turn{id: "1"}
	f.do(func() {
		f.endTurn("completed", acp.StopReasonEndTurn, "")
		f.press([]string{"x"})
	})
	read := func() (draft string, isPrompt, isDialog bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.screen = screen{} // the frame is drawn whole
		_, r := drawn(t, f, 80, 24)
		f.screen = screen{out: io.Discard}
		return f.draft, r.Activity == reducer.Idle, r.Dialog != nil
	}
	if draft, isPrompt, _ := read(); draft != "x" || isPrompt {
		t.Errorf("locked: the draft is %q, the prompt is drawn: %v", draft, isPrompt)
	}
	answer := make(chan int)
	go func() {
		r := &request{kind: "permission", input: "ls", options: []acp.PermissionOption{{Name: "Yes", Kind: "allow_once"}}}
		answer <- f.ask(t.Context(), r)
	}()
	wait(f, func() bool { return f.request != nil })
	if _, _, isDialog := read(); isDialog {
		t.Error("locked: the request is drawn")
	}
	lock.Unlock()
	wait(f, func() bool { return f.shown() != nil })
	f.do(f.cancel)
	<-answer
	f.finishLog()
	if _, isPrompt, _ := read(); !isPrompt {
		t.Error("all is logged, and no prompt is drawn")
	}
	events, err := f.Box.Log().Newest(10)
	if err != nil || len(events) < 3 || events[0].Kind != wire.TurnCompleted {
		t.Errorf("logged: %v, %v", events, err)
	}
}

func wait(f *front, holds func() bool) {
	for isSo := false; !isSo; time.Sleep(time.Millisecond) {
		f.mu.Lock()
		isSo = holds()
		f.mu.Unlock()
	}
}
