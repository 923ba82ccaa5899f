package run

import (
	"time"

	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/reducer"
)

// Timing is how long the gates and the steps of typing take.
type Timing struct {
	FirstIdle    time.Duration // how long a program that just started must be idle before anything is typed
	Idle         time.Duration // how long any program must be idle
	PersonQuiet  time.Duration // since a person's last key
	Render       time.Duration // for the text to appear in the draft
	Quiet        time.Duration // without output before the return key
	BeforeReturn time.Duration // from the last byte to the return key, beside driver.SubmitDelay
	Accept       time.Duration // for the draft to disappear
	Unstarted    time.Duration // until a turn of ours without a sign of work counts as over
	Settle       time.Duration // until a state on the screen is reported
	Stale        time.Duration // after which a source is stale: reducer.StaleAfter
	Backoff      time.Duration // the first pause before a restart
	Leftovers    time.Duration // for what a program that exited has left running to end
	Remind       time.Duration // between two looks at overdue answers
	Retry        time.Duration // after a text that the program did not accept; doubles up to RetryLast
	Check        time.Duration // between two looks at the runner lock, and at whether there is room for more mail
	Logged       time.Duration // for the last events of a program to be logged: see Run.LogPatience
}

// RetryLast is the longest pause before a text is given again.
const RetryLast = 5 * time.Minute

// StandardTiming fits real programs: it was measured with four.
var StandardTiming = Timing{
	FirstIdle: driver.FirstSettle, Idle: driver.Settle, PersonQuiet: 3 * time.Second, Render: 2 * time.Second,
	Quiet: 100 * time.Millisecond, Accept: 3 * time.Second,
	Unstarted: 10 * time.Second, Settle: driver.DialogSettle, Stale: reducer.StaleAfter, Backoff: 500 * time.Millisecond,
	Leftovers: 250 * time.Millisecond, Logged: 15 * time.Second, Remind: time.Minute,
	Retry: 5 * time.Second, Check: 3 * time.Second,
}
