package ptyrun

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/screen"
)

// viewer is an attached terminal. All but the first two are the loop's until it has ended.
type viewer struct {
	to         *control.Viewer
	isReadOnly bool

	hasJoined  bool
	input      userInput
	cols, rows int // its size; 0: not told
}

const (
	repaintLines = 500             // of the scrollback for a terminal that joins
	maxHold      = 3 * time.Second // a person's keys are held so long at most
	maxHeldKeys  = 1 << 20
)

// Attach lets a terminal join.
func (h handler) Attach(ctx context.Context, req control.AttachRequest, to *control.Viewer) error {
	r := h.r
	v := &viewer{to: to, isReadOnly: req.ReadOnly}
	r.post(func() { r.join(v, req) })
	for {
		select {
		case in, ok := <-to.Input():
			if !ok {
				r.post(func() { r.leave(v) })
				return nil
			}
			r.post(func() { r.viewerSent(v, in) })
		case <-r.over:
			v.end(r)
			return nil
		case <-ctx.Done():
			if !r.post(func() { r.leave(v) }) {
				v.end(r)
			}
			return nil
		}
	}
}

// viewerSent takes in what a terminal has sent.
func (r *runner) viewerSent(v *viewer, in control.Input) {
	r.viewerResized(v, in.Size.Cols, in.Size.Rows)
	if in.Repaint {
		r.showAll(v)
	}
	if len(in.Bytes) > 0 {
		r.viewerTyped(v, in.Bytes)
	}
}

// join repaints a terminal that joins; from then on it gets what the program writes.
func (r *runner) join(v *viewer, req control.AttachRequest) {
	r.viewers[v], v.hasJoined = true, true
	r.viewerResized(v, req.Cols, req.Rows)
	if r.prog == nil {
		v.to.Send([]byte("\r\n[atm: " + string(r.Box.Agent()) + " is about to be started again]\r\n"))
		return
	}
	r.showAll(v)
}

// showAll shows a terminal the whole screen: one that joins, or that was behind.
func (r *runner) showAll(v *viewer) {
	if r.prog != nil {
		r.takeOutput()
		v.to.Repaint(r.prog.screen.Repaint(repaintLines))
	}
}

// leave lets a terminal go. What it made small is as large again as those that are left,
// or as it was begun: an agent in too little room shows no prompt, and gets no mail.
func (r *runner) leave(v *viewer) {
	delete(r.viewers, v)
	if v.isReadOnly || v.cols != r.Cols || v.rows != r.Rows {
		return
	}
	cols, rows := 0, 0
	for o := range r.viewers {
		if !o.isReadOnly && o.cols*o.rows > cols*rows {
			cols, rows = o.cols, o.rows
		}
	}
	if cols == 0 {
		cols, rows = r.cols, r.rows
	}
	r.resize(cols, rows)
}

// viewerResized makes the agent's terminal as large as the one that was resized last.
func (r *runner) viewerResized(v *viewer, cols, rows int) {
	if !v.isReadOnly && cols > 0 && rows > 0 {
		v.cols, v.rows = cols, rows
		r.resize(cols, rows)
	}
}

func (r *runner) resize(cols, rows int) {
	if cols == r.Cols && rows == r.Rows {
		return
	}
	r.Cols, r.Rows = cols, rows
	r.recording.Resize(cols, rows)
	if r.prog == nil {
		return
	}
	r.takeOutput()
	r.prog.screen.Resize(cols, rows)
	if err := r.prog.child.Resize(cols, rows); err != nil {
		r.Log.Error("resizing", "err", err)
	}
	r.prog.outputCame(r.Now())
}

// keepLastScreen keeps what a terminal is shown at the end.
func (r *runner) keepLastScreen(s *screen.Screen) {
	r.last, r.below = s.Repaint(repaintLines), nil
	if s.Modes().Alt {
		return
	}
	_, rows := s.Size()
	if last := lastWithText(s) + 1; last < rows {
		r.below = fmt.Appendf(nil, "\x1b[%d;1H\x1b[0J", last+1)
	} else {
		r.below = fmt.Appendf(nil, "\x1b[%d;1H\r\n\x1b[0J", rows)
	}
}

// end tells a terminal that the agent has ended for good, below what the program showed
// last: all of that, if the terminal joined too late or was behind.
func (v *viewer) end(r *runner) {
	if !v.hasJoined || v.to.Send(nil) == control.ErrViewerBehind {
		v.to.Repaint(r.last)
	}
	v.to.Send(r.below)
	v.to.Exit(r.exit.Code, r.exit.Signal)
}

// viewerTyped takes in what comes from a terminal.
func (r *runner) viewerTyped(v *viewer, p []byte) {
	if !v.isReadOnly && r.prog != nil {
		keys, isPerson := v.input.filter(p, r.Now())
		r.passKeys(keys, isPerson)
	}
}

// stepKeys passes on the beginnings of sequences whose ends do not come.
func (r *runner) stepKeys(now time.Time) (next time.Time) {
	for v := range r.viewers {
		at := v.input.until
		if !at.IsZero() && !now.Before(at) {
			r.passKeys(v.input.release(), true)
			continue
		}
		next = earliest(next, at)
	}
	return next
}

// passKeys passes keys on to the program. While a text of ours is on its way in they are
// held: nothing mixes.
func (r *runner) passKeys(keys []byte, isPerson bool) {
	now := r.Now()
	if isPerson {
		r.lastKey = now
	}
	if len(keys) == 0 {
		return
	}
	if t := r.mail.typing; t.isUnderWay() {
		if len(r.heldKeys) < maxHeldKeys && now.Sub(t.began) < maxHold {
			r.heldKeys = append(r.heldKeys, keys...)
			return
		}
		t.isMixed = t.isMixed || isPerson
	}
	r.releaseKeys()
	r.typeKeys(keys)
}

// releaseKeys lets the keys go that were held.
func (r *runner) releaseKeys() {
	if len(r.heldKeys) == 0 {
		return
	}
	keys := r.heldKeys
	r.heldKeys = nil
	if r.mail.typing != nil {
		r.mail.typing.isMixed = true
	}
	r.typeKeys(keys)
}

func (r *runner) typeKeys(keys []byte) {
	if r.prog != nil {
		r.recordInput(keys)
		r.prog.put(keys)
	}
}

// userInput says which of the bytes that come from an attached terminal a person typed. A
// terminal also answers questions and tells of focus and the mouse; none of these is a
// person at a draft. Answers are taken out, since the runner has answered the program
// already. A sequence may come in pieces.
type userInput struct {
	held  []byte // the beginning of a sequence whose end has not come
	until time.Time
}

// A sequence that is not finished is no terminal's when it gets too long, or its end does
// not come soon: somebody has pressed Alt and [ or P, or Escape alone.
const (
	maxSequence  = 256
	sequenceWait = 200 * time.Millisecond
	escapeWait   = 50 * time.Millisecond
)

// filter returns what the program is to get, and whether a person typed any of it.
func (u *userInput) filter(p []byte, now time.Time) (keys []byte, isPerson bool) {
	if len(u.held) > 0 && !now.Before(u.until) {
		keys, isPerson = u.release(), true
	}
	p = append(u.release(), p...)
	for len(p) > 0 {
		if n := bytes.IndexByte(p, ansi.ESC); n != 0 {
			if n < 0 {
				n = len(p)
			}
			keys, isPerson = append(keys, p[:n]...), true
			p = p[n:]
			continue
		}
		n, what := sequence(p)
		switch {
		case n == 0 && len(p) <= maxSequence:
			u.held, u.until = bytes.Clone(p), now.Add(sequenceWait)
			if len(p) == 1 {
				u.until = now.Add(escapeWait)
			}
			return keys, isPerson
		case n == 0: // nothing that a terminal sends
			return append(keys, p...), true
		case what == typedKey:
			keys, isPerson = append(keys, p[:n]...), true
		case what == terminalReport:
			keys = append(keys, p[:n]...)
		}
		p = p[n:]
	}
	return keys, isPerson
}

// release gives up what was held.
func (u *userInput) release() []byte {
	held := u.held
	u.held, u.until = nil, time.Time{}
	return held
}

// origin is where a sequence comes from.
type origin int

const (
	typedKey       origin = iota
	terminalAnswer        // to a question of the program's
	terminalReport        // of focus or the mouse
)

// sequence is how long the escape sequence at the beginning of p is (0: its end has not
// come), and where it comes from.
func sequence(p []byte) (n int, from origin) {
	parser := ansi.NewParser()
	seq, _, n, state := ansi.DecodeSequence(p, ansi.NormalState, parser)
	isString := ansi.HasOscPrefix(seq) || ansi.HasDcsPrefix(seq) || ansi.HasApcPrefix(seq) || ansi.HasPmPrefix(seq)
	isTorn := isString && string(p[n:]) == "\x1b" // before the last byte of its end
	if state != ansi.NormalState || isTorn {
		return 0, typedKey
	}
	if isString {
		if bytes.HasSuffix(seq, []byte("\a")) || bytes.HasSuffix(seq, []byte("\x1b\\")) {
			return n, terminalAnswer
		}
		return n, typedKey
	}
	if !ansi.HasCsiPrefix(seq) {
		return n, typedKey
	}
	command, params := ansi.Cmd(parser.Command()), len(parser.Params())
	private := command.Prefix()
	switch command.Final() {
	case 'I', 'O':
		if params == 0 {
			return n, terminalReport
		}
	case 'M', 'm':
		if private == '<' {
			return n, terminalReport
		}
		if params == 0 && command.Final() == 'M' { // X10 mouse: three bytes follow
			if len(p) < n+3 {
				return 0, terminalReport
			}
			return n + 3, terminalReport
		}
	case 'R':
		// (A shifted F3 looks like the place of a cursor in the first row.)
		if private != 0 || params > 1 {
			return n, terminalAnswer
		}
	case 'c', 'n', 'y', 't':
		return n, terminalAnswer
	case 'u':
		if private != 0 {
			return n, terminalAnswer
		}
	}
	return n, typedKey
}
