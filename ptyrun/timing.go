package ptyrun

import (
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
)

// timing is how long the gates and the steps of typing take.
type timing struct {
	firstIdle    time.Duration // how long a program that just started must be idle before anything is typed
	idle         time.Duration // how long any program must be idle
	personQuiet  time.Duration // since a person's last key
	render       time.Duration // for the text to appear in the draft
	quiet        time.Duration // without output before the return key
	beforeReturn time.Duration // from the last byte to the return key, beside driver.SubmitDelay
	accept       time.Duration // for the draft to disappear
	retryReturn  time.Duration // before the return key is pressed again
	unanswered   time.Duration // how long it must be idle behind a text of ours without an answer
	unstarted    time.Duration // the same, without a sign of work either
	settle       time.Duration // until a state on the screen is reported
	stale        time.Duration // after which a source is stale: reducer.StaleAfter
	backoff      time.Duration // the first pause before a restart
	leftovers    time.Duration // for what a program that exited has left running to end
	logged       time.Duration // for the last events of a program to be logged, before anything goes on without them
}

// standardTiming fits real programs: it was measured with four.
var standardTiming = timing{
	firstIdle: driver.FirstSettle, idle: driver.Settle, personQuiet: 3 * time.Second, render: 2 * time.Second,
	quiet: 100 * time.Millisecond, accept: 3 * time.Second, retryReturn: 500 * time.Millisecond,
	unanswered: 1500 * time.Millisecond, unstarted: 10 * time.Second, settle: driver.DialogSettle, stale: reducer.StaleAfter, backoff: 500 * time.Millisecond,
	leftovers: 250 * time.Millisecond, logged: 15 * time.Second,
}
