package ptyrun

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// rootState is what the runner knows of the root in which its agent is. Somebody else may have written there, as with a
// git checkout: see Mail.BeforeLook.
type rootState struct {
	refusal  string // why nothing in it may act, since it was last asked; "": it may
	reported string // the last refusal that was reported; "": none since it may act again
	isAsking bool
	isMoved  bool // the team was, when that was last looked at
}

// checkEvery is how often it is checked that the runner still has its lock, and whether there is room for more mail.
const checkEvery = 3 * time.Second

// watchRoot looks beside the loop at what may happen to the root.
func (r *runner) watchRoot() {
	for isOver := false; !isOver; {
		select {
		case <-time.After(checkEvery):
		case <-r.ctx.Done():
			return
		}
		isMoved, isHeld := !r.isInPlace(), r.Hold.StillHeld()
		var gone error
		if !isHeld {
			if gone = r.goneError(); gone == nil {
				gone = ErrTakenOver
			}
		} else {
			r.Box.Complete() // else nobody finds the agent, and each look at its mail fails
		}
		isOver = !r.post(func() { r.looked(isMoved, gone) })
	}
}

// looked goes on after a look at the root, which is gone unless that is nil.
func (r *runner) looked(isMoved bool, gone error) {
	if r.root.isMoved = isMoved; gone != nil && r.failed == nil {
		r.failed = gone
		r.reportError(gone.Error())
		r.stop(gone.Error())
	}
	if r.root.refusal != "" {
		r.askMayAct()
	}
	r.readMoreMail()
	if r.prog != nil && r.prog.state().isReady && r.beside.by == "" {
		r.lookBeside(r.now())
	}
}

// noteMayAct notes the answer of MayAct. It reports one that lasts: git may have been at work for a moment.
func (r *runner) noteMayAct(err error) {
	now, before := "", r.root.refusal
	if err != nil {
		now = err.Error()
	}
	r.root.refusal = now
	if now != "" && before != "" && now != r.root.reported {
		r.reportError("no mail is typed in, and no rule answers: " + now)
		r.root.reported = now
	} else if now == "" && r.root.reported != "" {
		r.notifyViewers("mail is typed in again, and rules answer")
		r.root.reported = ""
	}
}

// askMayAct asks beside the loop whether what is in the root may act again.
func (r *runner) askMayAct() {
	if r.root.isAsking {
		return
	}
	r.root.isAsking = true
	r.wg.Go(func() {
		err := r.Box.Store().MayAct(r.ctx)
		r.post(func() {
			r.root.isAsking = false
			r.noteMayAct(err)
		})
	})
}

// isInPlace reports whether the team is still at its path: after it was moved, clients would look elsewhere for the
// mail that the runner sees. It is asked beside the loop.
func (r *runner) isInPlace() bool {
	team := r.Box.Store().Dir()
	opened, err := team.Lstat(".")
	now, gone := os.Stat(team.Path())
	return err == nil && gone == nil && os.SameFile(opened, now)
}

// goneError says that the root, or the team in it, was removed; nil: it was not.
func (r *runner) goneError() error {
	team := r.Box.Store().Dir().Path()
	for _, path := range []string{filepath.Dir(team), team} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s; git clean -fdx and git stash -a remove one, like rm -rf", ErrRootGone, path)
		}
	}
	return nil
}
