package claude

import (
	"context"
	"time"

	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/reducer"
)

// activity returns a function that says what the program is seen to do, by the file of its session. That has said
// that it waits for its person before it counts that it does not, unless ctx has ended: it follows within a second.
func activity(ctx context.Context, pid int) func() reducer.Activity {
	dir, hasWaited := ConfigDir(process.Environment(pid)), false
	look := func() reducer.Activity {
		session, err := Find(dir, pid)
		switch {
		case err != nil:
			return reducer.Unknown
		case session.Status == Waiting:
			hasWaited = true
			return reducer.Confirming
		case !hasWaited && ctx.Err() == nil:
			return reducer.Unknown
		case session.Status == Busy:
			return reducer.Thinking
		case session.IsIdle():
			return reducer.Idle
		}
		return reducer.Unknown
	}
	return func() (a reducer.Activity) {
		for range 10 { // between the dialogs of two sub-agents it is at work for a moment
			if a = look(); a != reducer.Thinking || ctx.Err() != nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		return a
	}
}
