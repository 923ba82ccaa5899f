package ptyrun

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/screen"
)

const maxHold = 3 * time.Second // a person's keys are held so long at most

func (r *runner) Attach(ctx context.Context, req control.AttachRequest, v *control.Viewer) error {
	r.post(func() { r.join(v, req) })
	var typed userInput
	for {
		var isLate <-chan time.Time
		if len(typed.held) > 0 {
			isLate = time.After(time.Until(typed.until))
		}
		select {
		case in, ok := <-v.Input():
			if ok {
				keys, isPerson := typed.filter(in.Bytes, time.Now())
				r.post(func() { r.viewerSent(v, in, keys, isPerson) })
				continue
			}
		case <-isLate:
			keys := typed.release()
			r.post(func() { r.passKeys(keys, true) })
			continue
		case <-r.over:
		case <-ctx.Done():
		}
		if !r.post(func() { r.leave(v) }) {
			r.showEnd(v)
		}
		return nil
	}
}

// join repaints a terminal that joins; from then on it gets what the program writes.
func (r *runner) join(v *control.Viewer, req control.AttachRequest) {
	r.viewers[v] = control.Size{}
	if !req.ReadOnly {
		r.viewerResized(v, control.Size{Cols: req.Cols, Rows: req.Rows})
	}
	if r.prog == nil {
		v.Send([]byte("\r\n[atm: " + string(r.Box.Agent()) + " is about to be started again]\r\n"))
	}
	r.showAll(v)
}

func (r *runner) viewerSent(v *control.Viewer, in control.Input, keys []byte, isPerson bool) {
	r.viewerResized(v, in.Size)
	if in.Repaint {
		r.showAll(v)
	}
	r.passKeys(keys, isPerson)
}

// showAll shows a terminal the whole screen: one that joins, or that was behind.
func (r *runner) showAll(v *control.Viewer) {
	if r.prog != nil {
		r.takeOutput()
		v.Repaint(r.prog.screen.Repaint(scrollback))
	}
}

// leave lets a terminal go. What it made small is as large again as those that are left, or as it was
// begun: an agent in too little room shows no prompt, and gets no mail.
func (r *runner) leave(v *control.Viewer) {
	size := r.viewers[v]
	delete(r.viewers, v)
	if size != r.size() {
		return
	}
	largest := control.Size{}
	for _, o := range r.viewers {
		if o.Cols*o.Rows > largest.Cols*largest.Rows {
			largest = o
		}
	}
	r.resize(cmp.Or(largest, r.begunSize))
}

func (r *runner) size() control.Size { return control.Size{Cols: r.Cols, Rows: r.Rows} }

// viewerResized makes the agent's terminal as large as the one that was resized last.
func (r *runner) viewerResized(v *control.Viewer, size control.Size) {
	if size.Cols > 0 && size.Rows > 0 {
		r.viewers[v] = size
		r.resize(size)
	}
}

func (r *runner) resize(to control.Size) {
	if to == r.size() {
		return
	}
	r.Cols, r.Rows = to.Cols, to.Rows
	r.recording.Resize(to.Cols, to.Rows)
	if r.prog == nil {
		return
	}
	r.takeOutput()
	r.prog.screen.Resize(to.Cols, to.Rows)
	if err := r.prog.child.Resize(to.Cols, to.Rows); err != nil {
		r.Log.Error("resizing", "err", err)
	}
	r.prog.outputCame(r.Now())
}

// keepLastScreen keeps what a terminal is shown at the end: the screen, and a cursor below its text.
func (r *runner) keepLastScreen(s *screen.Screen) {
	r.last, r.below = s.Repaint(scrollback), nil
	if !s.Modes().Alt {
		r.below = fmt.Appendf(nil, "\x1b[%d;1H\r\n\x1b[0J", lastWithText(s)+1)
	}
}

// showEnd tells a terminal that the agent has ended for good, below what the program showed last: all of
// that, if the terminal joined too late or was behind. It is called when the loop has ended.
func (r *runner) showEnd(v *control.Viewer) {
	if _, hasJoined := r.viewers[v]; !hasJoined || v.Send(nil) == control.ErrViewerBehind {
		v.Repaint(r.last)
	}
	v.Send(r.below)
	v.Exit(r.exit.Code, r.exit.Signal)
}

// passKeys passes keys on to the program. While a text of ours is on its way in they are held: nothing mixes.
func (r *runner) passKeys(keys []byte, isPerson bool) {
	if r.prog == nil {
		return
	}
	now := r.Now()
	if isPerson {
		r.lastKey = now
	}
	r.heldKeys = append(r.heldKeys, keys...)
	if t := r.mail.typing; !t.isUnderWay() || now.Sub(t.began) >= maxHold {
		r.releaseKeys()
	}
}

func (r *runner) releaseKeys() {
	keys := r.heldKeys
	r.heldKeys = nil
	if len(keys) == 0 {
		return
	}
	if t := r.mail.typing; t.isUnderWay() && !r.lastKey.Before(t.began) { // not a report of the terminal's alone
		t.isMixed = true
	}
	r.typeKeys(keys)
}

func (r *runner) typeKeys(keys []byte) {
	if r.prog != nil {
		r.recordInput(keys)
		r.prog.put(keys)
	}
}

// userInput says which of the bytes that come from an attached terminal a person typed. A terminal also
// answers questions and tells of focus and the mouse; none of these is a person at a draft. Answers are
// taken out, since the runner has answered the program already. A sequence may come in pieces.
type userInput struct {
	held  []byte // the beginning of a sequence whose end has not come
	until time.Time
}

// A sequence that is not finished is no terminal's when it gets too long, or its end does not come soon:
// somebody has pressed Alt and [ or P, or Escape alone.
const (
	maxSequence  = 256
	sequenceWait = 200 * time.Millisecond
	escapeWait   = 50 * time.Millisecond
)

// inputPattern is the first part of what a terminal sends.
var inputPattern = regexp.MustCompile(`(?s)^(?:(` + control.Report + `)|(` + control.Answer + `)` + // 1 and 2
	`|(\x1b(?:\[[ -?]*|\[M.{0,2}|[]P_^X][^\a\x1b]*\x1b?)?$)` + // 3: not finished
	`|\x1b\[[ -?]*[@-~]|\x1bO.|\x1b.|[^\x1b]+|.)`) // keys

// filter returns what the program is to get, and whether a person typed any of it.
func (u *userInput) filter(p []byte, now time.Time) (keys []byte, isPerson bool) {
	if len(u.held) > 0 && !now.Before(u.until) {
		keys, isPerson = u.release(), true
	}
	for p = append(u.release(), p...); len(p) > 0; {
		found := inputPattern.FindSubmatch(p)
		part := found[0]
		p = p[len(part):]
		switch {
		case found[3] != nil && len(part) <= maxSequence:
			u.held, u.until = bytes.Clone(part), now.Add(sequenceWait)
			if len(part) == 1 {
				u.until = now.Add(escapeWait)
			}
		case found[2] == nil:
			keys, isPerson = append(keys, part...), isPerson || found[1] == nil
		}
	}
	return keys, isPerson
}

func (u *userInput) release() []byte {
	held := u.held
	u.held, u.until = nil, time.Time{}
	return held
}
