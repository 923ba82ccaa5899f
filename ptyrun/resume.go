package ptyrun

import (
	"errors"
	"fmt"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
)

// A resumption says which conversation a program continues. At most one is set; none if there was nothing to continue.
type resumption struct {
	id    string // of the conversation; driver.Newest: the newest one in the directory
	fresh string // why a new one begins although one was to be continued
}

// resume returns the command line of the next program, and which conversation it continues.
func (r *runner) resume() (argv []string, how resumption) {
	if r.Fork != "" && r.pid == 0 {
		argv, err := driver.Fork(r.Command, r.isScript, r.Fork)
		if err != nil {
			how.fresh = err.Error()
		}
		return argv, how
	}
	run := r.State.Run
	if run == nil || run.Conversation == "" {
		return r.Command, how
	}
	limit := r.State.Limit
	isCutOff := r.GoesOn && !r.Anew && limit != nil && limit.CutOff
	isWanted := r.Resume || isCutOff || !r.hasTerminal() && r.pid != 0 // a restarted agent loads its session
	switch {
	case !isWanted:
		return r.Command, how
	case r.notResumed != "":
		return r.Command, resumption{fresh: r.notResumed}
	case !r.hasTerminal() && run.Conversation == reducer.Newest:
		return r.Command, how
	case !r.hasTerminal():
		return r.Command, resumption{id: run.Conversation} // it is loaded, if the agent can
	}
	id := run.Conversation
	argv, err := driver.Resume(r.Command, r.isScript, id, r.lastDriver)
	if errors.Is(err, driver.ErrNoID) {
		id = driver.Newest
		argv, err = driver.Resume(r.Command, r.isScript, id, r.lastDriver)
	}
	if err == nil && id == driver.Newest {
		err = r.checkNewest()
	}
	switch {
	case errors.Is(err, driver.ErrChosen):
		return r.Command, how
	case err != nil:
		return r.Command, resumption{fresh: err.Error()}
	}
	return argv, resumption{id: id}
}

// checkNewest returns why the newest conversation in the directory may be another agent's.
func (r *runner) checkNewest() error {
	if r.SharesDir == nil {
		return nil
	}
	other, err := r.SharesDir()
	switch {
	case err != nil:
		return fmt.Errorf("whether others work in its directory cannot be told: %w", err)
	case other != "":
		return fmt.Errorf("the newest conversation in its directory may be that of %s", other)
	}
	return nil
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
