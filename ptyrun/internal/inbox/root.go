package inbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// rootState is what the runner knows of the root in which its agent is. Somebody else may have written there, as with a
// git checkout: see ptyrun.Mail.
type rootState struct {
	refusal  string // why nothing in it may act, since it was last asked; "": it may
	reported string // the last refusal that was reported; "": none since it may act again
	isAsking bool
	isMoved  bool // the team was, when that was last looked at
}

// ErrTakenOver means that the runner lock was removed or belongs to another runner, ErrRootGone that the directory with the
// agent's mail was removed.
var (
	ErrTakenOver = errors.New("its runner lock was removed, or another runner has it")
	ErrRootGone  = errors.New("its root is gone")
)

// Watch looks beside the loop at what may happen to the root.
func (in *Inbox) Watch() {
	for isOver := false; !isOver; {
		select {
		case <-time.After(in.checkEvery):
		case <-in.Context().Done():
			return
		}
		isMoved, isHeld := in.IsMoved(), in.hold.StillHeld()
		var gone error
		if !isHeld {
			if gone = in.goneError(); gone == nil {
				gone = ErrTakenOver
			}
		} else {
			in.Box.Complete() // else nobody finds the agent, and each look at its mail fails
		}
		isOver = !in.Post(func() { in.looked(isMoved, gone) })
	}
}

// looked goes on after a look at the root, which is gone unless that is nil.
func (in *Inbox) looked(isMoved bool, gone error) {
	if in.root.isMoved = isMoved; gone != nil {
		in.o.Gone(gone)
	}
	if in.root.refusal != "" {
		in.AskMayAct()
	}
	in.readMoreMail()
	in.carrying.mayOpen = true
}

// noteMayAct notes the answer of MayAct. It reports one that lasts: git may have been at work for a moment.
func (in *Inbox) noteMayAct(err error) {
	now, before := "", in.root.refusal
	if err != nil {
		now = err.Error()
	}
	in.root.refusal = now
	if now != "" && before != "" && now != in.root.reported {
		in.ReportError("no mail is typed in, and no rule answers: " + now)
		in.root.reported = now
	} else if now == "" && in.root.reported != "" {
		in.Notify("mail is typed in again, and rules answer")
		in.root.reported = ""
	}
}

// AskMayAct asks beside the loop whether what is in the root may act again.
func (in *Inbox) AskMayAct() {
	if in.root.isAsking {
		return
	}
	in.root.isAsking = true
	in.Go(func() {
		err := in.Box.Store().MayAct(in.Context())
		in.Post(func() {
			in.root.isAsking = false
			in.noteMayAct(err)
		})
	})
}

// IsMoved reports whether the team is not at its path any more: clients would look elsewhere for the mail that the runner
// sees. It is asked beside the loop.
func (in *Inbox) IsMoved() bool {
	team := in.Box.Store().Dir()
	opened, err := team.Lstat(".")
	now, gone := os.Stat(team.Path())
	return err != nil || gone != nil || !os.SameFile(opened, now)
}

// goneError says that the root, or the team in it, was removed; nil: it was not.
func (in *Inbox) goneError() error {
	team := in.Box.Store().Dir().Path()
	for _, path := range []string{filepath.Dir(team), team} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s; git clean -fdx and git stash -a remove one, like rm -rf", ErrRootGone, path)
		}
	}
	return nil
}
