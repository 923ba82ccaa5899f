package ptyrun

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/agentteammail/atm/internal/driver"
)

// A resumption says which conversation a program continues. At most one is set; none if there was nothing to continue.
type resumption struct {
	id    string // of the conversation
	fresh string // why a new one begins although one was to be continued
}

// resume returns the command line of the next program, and which conversation it continues.
func (r *runner) resume() (argv []string, how resumption) {
	if r.Fork != "" && r.pid == 0 {
		argv, err := r.Driver.Fork(r.Command, r.Fork)
		if err != nil {
			how.fresh = err.Error()
		}
		return argv, how
	}
	run := r.State.Run
	if run == nil {
		return r.Command, how
	}
	id := cmp.Or(run.Conversation, r.shownConversation(run.ID))
	limit := r.State.Limit
	isCutOff := r.GoesOn && !r.Anew && limit != nil && limit.CutOff
	isWanted := r.Resume || isCutOff || !r.hasTerminal() && r.pid != 0 // a restarted agent loads its session
	switch {
	case !isWanted:
		return r.Command, how
	case r.notResumed != "":
		return r.Command, resumption{fresh: r.notResumed}
	case !r.hasTerminal():
		return r.Command, resumption{id: id} // it is loaded, if the agent can
	}
	argv, err := r.Driver.Resume(r.Command, id, r.lastDriver)
	switch {
	case errors.Is(err, driver.ErrChosen):
		return r.Command, how
	case err != nil:
		return r.Command, resumption{fresh: err.Error()}
	}
	return argv, resumption{id: id}
}

// shownConversation returns the conversation that a run's program showed last, as far as that is noted.
func (r *runner) shownConversation(run string) string {
	if r.Conversation == nil {
		return ""
	}
	return r.Conversation(run)
}

// resumeFailed reports whether a program has ended before it was ready because of the conversation that it was to
// continue, which it perhaps no longer has. The next one begins a new conversation, with the first prompt.
func (r *runner) resumeFailed(p *program) bool {
	if p.resumed.id == "" || p.State().IsReady || r.exit.Code == 0 || r.exit.Signal != "" {
		return false
	}
	r.notResumed = fmt.Sprintf("it exited with %d when it was to continue %s", r.exit.Code, p.resumed.id)
	r.inbox.PutPrompts(p.prompts)
	return true
}

// notLoaded notes that the program, which told of its session, did not load the one that it was to continue: it has begun
// a new conversation, with the first prompt.
func (r *runner) notLoaded() {
	p := r.prog
	p.resumed = resumption{fresh: "it did not load " + p.resumed.id}
	r.inbox.PutPrompts(p.prompts)
}
