package hook

import (
	"context"
	"fmt"
	"time"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
)

// Claude Code watches an idle agent's inbox, and calls its hook FileChanged there; and one when its session starts, for mail
// that waits by then. An answer with exit code 2 begins a turn (asyncRewake), whose UserPromptSubmit then takes the mail
// along. While a turn runs, its other hooks take the mail.
const (
	wakePoll     = 200 * time.Millisecond
	wakePollBusy = time.Second // while a turn goes on for long

	wakeOnce = 4 * time.Second // two wakes within that time are one

	// A program that has just started may first be noted by its other hook, may have a prompt to begin with, and one that does
	// not know such hooks waits for this one.
	startTime, startIdle = 20 * time.Second, 2 * time.Second
)

// wake wakes the program once it is idle, if mail still waits then that nobody has claimed: whoever gives it to the program
// just now may be killed before that. What it writes has nothing of a sender's. It ends with the program, and while another process waits so.
func (c *call) wake(ctx context.Context) (exit int, err error) {
	if c.o.Wakes == nil {
		return 0, nil
	}
	unlock, err := claim.LockWake(ctx, c.Box)
	if err != nil {
		return 0, nil
	}
	defer unlock()
	look := func() (isWaiting, isBeingGiven bool, err error) {
		return claim.Waiting(ctx, c.Box, inbox.ReadOptions{Match: c.mayDeliver(), Current: true})
	}
	isStart, began := c.Kind == "SessionStart", time.Now()
	for i := 0; ; i++ {
		isWaiting, isBeingGiven, err := look()
		if !isWaiting && !isBeingGiven || err != nil {
			return 0, err
		}
		may, isIdle := c.o.Wakes()
		if !may && !isStart || isStart && time.Since(began) >= startTime {
			return 0, nil
		}
		isIdle = isIdle && may && !(isStart && time.Since(began) < startIdle)
		if isIdle { // perhaps after a turn that has taken the mail
			if isWaiting, _, err = look(); err != nil {
				return 0, err
			}
		}
		if isIdle && isWaiting {
			if isFirst, err := claim.NoteWake(ctx, c.Box, wakeOnce); isFirst || err != nil {
				_, err = fmt.Fprintf(c.o.Stderr, "New mail for %s. Below this note is what it says; if not, run: atm read%s\n", c.Box.Agent(), c.o.Flags)
				return 2, err
			}
		}
		pause := wakePoll
		if i > 20 {
			pause = wakePollBusy
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(pause):
		}
	}
}
