package ptyrun

import (
	"context"
	"fmt"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/screen"
)

// viewer is an attached terminal.
type viewer struct {
	to       *control.Viewer
	readOnly bool
	joined   bool // the loop's until it has ended
	human    human

	cols, rows int // its size; 0: not told
}

// repaintLines is how much scrollback a terminal that joins gets.
const repaintLines = 500

// Attach lets a terminal join.
func (h handler) Attach(ctx context.Context, req control.AttachRequest, to *control.Viewer) error {
	r := h.r
	v := &viewer{to: to, readOnly: req.ReadOnly}
	r.post(func() { r.join(v, req) })
	for {
		select {
		case in, ok := <-to.Input():
			if !ok {
				r.post(func() { r.leave(v) })
				return nil
			}
			r.post(func() { r.did(v, in) })
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

// did takes in what a terminal has sent.
func (r *runner) did(v *viewer, in control.Input) {
	if in.Size.Cols > 0 {
		r.resized(v, in.Size.Cols, in.Size.Rows)
	}
	if in.Repaint {
		r.picture(v)
	}
	if len(in.Bytes) > 0 {
		r.typedBy(v, in.Bytes)
	}
}

// end tells a terminal that the agent has ended for good, below what the program
// showed last: all of that, if it came too late to be repainted.
func (v *viewer) end(r *runner) {
	if !v.joined || v.send(nil) == control.ErrViewerBehind {
		v.to.Repaint(r.last)
	}
	v.send(r.below)
	v.to.Exit(r.exit.Code, r.exit.Signal)
}

// ending keeps what a terminal is shown at the end.
func (r *runner) ending(s *screen.Screen) {
	r.last, r.below = s.Repaint(repaintLines), nil
	if s.Modes().Alt {
		return
	}
	_, rows := s.Size()
	last := 0
	for y, line := range s.Lines() {
		if line != "" {
			last = y + 1
		}
	}
	if last < rows {
		r.below = fmt.Appendf(nil, "\x1b[%d;1H\x1b[0J", last+1)
	} else {
		r.below = fmt.Appendf(nil, "\x1b[%d;1H\r\n\x1b[0J", rows)
	}
}

// join repaints a terminal that joins; from then on it gets what the program
// writes.
func (r *runner) join(v *viewer, req control.AttachRequest) {
	r.viewers[v], v.joined = true, true
	r.resized(v, req.Cols, req.Rows)
	if r.prog == nil {
		v.send([]byte("\r\n[atm: " + string(r.Box.Agent()) + " is about to be started again]\r\n"))
		return
	}
	r.picture(v)
}

// picture shows a terminal the whole screen: one that joins, or that was behind.
func (r *runner) picture(v *viewer) {
	if r.prog == nil {
		return
	}
	r.output()
	v.to.Repaint(r.prog.screen.Repaint(repaintLines))
}

// leave lets a terminal go. What it made small is as large again as those that
// are left, or as it was begun: an agent in too little room shows no prompt, and
// gets no mail.
func (r *runner) leave(v *viewer) {
	delete(r.viewers, v)
	if v.readOnly || v.cols != r.Cols || v.rows != r.Rows {
		return
	}
	var next *viewer
	for o := range r.viewers {
		if !o.readOnly && o.cols > 0 && (next == nil || o.cols*o.rows > next.cols*next.rows) {
			next = o
		}
	}
	if next != nil {
		r.resize(next.cols, next.rows)
	} else {
		r.resize(r.cols, r.rows)
	}
}

func (v *viewer) send(p []byte) error { return v.to.Send(p) }

// resized makes the agent's terminal as large as the one that was resized last.
func (r *runner) resized(v *viewer, cols, rows int) {
	if v.readOnly || cols <= 0 || rows <= 0 {
		return
	}
	v.cols, v.rows = cols, rows
	r.resize(cols, rows)
}

func (r *runner) resize(cols, rows int) {
	if cols == r.Cols && rows == r.Rows {
		return
	}
	r.Cols, r.Rows = cols, rows
	r.record.Resize(cols, rows)
	if r.prog != nil {
		r.output()
		r.prog.screen.Resize(cols, rows)
		if err := r.prog.child.Resize(cols, rows); err != nil {
			r.log.Error("resizing", "err", err)
		}
		r.prog.wrote(r.Now())
	}
}

// typedBy takes in what comes from a terminal. While a text of ours is on its
// way in it is held: nothing mixes.
func (r *runner) typedBy(v *viewer, p []byte) {
	if v.readOnly || r.prog == nil {
		return
	}
	out, person := v.human.sort(p, r.Now())
	if person {
		r.lastHuman = r.Now()
	}
	if len(out) == 0 {
		return
	}
	if t := r.typing; t != nil && t.step >= writing {
		if len(r.held) < maxQueued && r.Now().Sub(t.began) < longHold {
			r.held = append(r.held, out...)
			return
		}
		t.mixed = t.mixed || person
	}
	r.flush()
	r.key(out)
}

// longHold is how long a person's keys are held at most.
const longHold = 3 * time.Second

// flush lets the keys go that were held.
func (r *runner) flush() {
	if len(r.held) > 0 {
		p := r.held
		r.held = nil
		if r.typing != nil {
			r.typing.mixed = true
		}
		r.key(p)
	}
}

func (r *runner) key(p []byte) {
	if r.prog != nil {
		r.recordInput(p)
		r.prog.out.put(p)
	}
}

// tell shows the attached terminals a line of ours.
func (r *runner) tell(line string) {
	r.record.Marker(line)
	for v := range r.viewers {
		v.send(fmt.Appendf(nil, "\r\n[atm: %s]\r\n", line))
	}
}
