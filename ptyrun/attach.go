package ptyrun

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/screen"
)

const maxKeyHold = 3 * time.Second // for a person's keys while a text is being typed

// attached is what the loop knows of the terminals of people.
type attached struct {
	viewers    map[*control.Viewer]control.Size // zero size: read-only or unknown
	withStatus map[*control.Viewer]bool         // those that are sent what the program declares
	drawn      map[*control.Viewer]uint64       // the last output that their repaint had

	rewriting, removing screen.OutputFilter // of the output to viewers with and without that

	lastKey     time.Time // a person's
	heldKeys    []byte    // keys held back while a text is being typed
	initialSize control.Size

	finalScreen, finalText []byte // shown to viewers when the agent has ended
}

// Attach tells the loop what the viewer does until it leaves.
func (r *runner) Attach(ctx context.Context, req control.AttachRequest, v *control.Viewer) error {
	r.post(func() { r.join(v, req) })
	for {
		select {
		case in, ok := <-v.Input():
			if ok {
				r.post(func() { r.viewerSent(v, in) })
				continue
			}
		case <-r.ctx.Done():
		case <-ctx.Done():
		}
		if !r.call(func() { r.leave(v) }) { // not post: what it is sent must be sent before this returns
			r.showEnd(v)
		}
		return nil
	}
}

// join repaints a viewer that joins; from then on it gets the program's output.
func (r *runner) join(v *control.Viewer, req control.AttachRequest) {
	r.viewers[v], r.withStatus[v] = control.Size{}, req.Status
	if !req.ReadOnly {
		r.viewerResized(v, control.Size{Cols: req.Cols, Rows: req.Rows})
	}
	r.repaintViewer(v)
}

func (r *runner) viewerSent(v *control.Viewer, in control.Input) {
	r.viewerResized(v, in.Size)
	if in.Repaint {
		r.repaintViewer(v)
	}
	r.passKeys(in.Bytes, len(in.Bytes) > 0 && !in.IsReport)
}

// repaintViewer shows the whole screen to a viewer that joined or was behind.
func (r *runner) repaintViewer(v *control.Viewer) {
	if r.prog != nil {
		r.prog.take()
		drawn, upTo := r.prog.repaint(screen.Scrollback)
		r.drawn[v] = upTo
		v.Repaint(drawn)
		if r.withStatus[v] {
			v.Send([]byte(screen.ClearStatus)) // it may have missed changes
			r.sendStatus(v, nil, r.prog.declared())
		}
	} else if r.finalScreen != nil {
		v.Repaint(r.finalScreen)
	}
}

// sendOutput sends what the agent shows, numbered, to the viewers that do not have it from a repaint. What it declares is
// written anew, or left out.
func (r *runner) sendOutput(written []byte, number uint64) {
	r.rewriting.Rewrites = true
	with, without := r.rewriting.Filter(written), r.removing.Filter(written)
	for v := range r.viewers {
		switch {
		case number <= r.drawn[v]:
		case r.withStatus[v]:
			v.Send(with)
		default:
			v.Send(without)
		}
	}
}

// sendStatus changes what a viewer was told of what the program declares.
func (r *runner) sendStatus(v *control.Viewer, from, to screen.Status) {
	if changes := from.Changes(to); len(changes) > 0 && r.withStatus[v] {
		v.Send(slices.Concat([]byte("\x18"), changes)) // CAN ends a sequence that the program left open
	}
}

// leave removes a viewer. If the terminal had its size, it grows to the largest remaining viewer's or back to the
// initial size: an agent with too little room shows no prompt and gets no mail.
func (r *runner) leave(v *control.Viewer) {
	if r.prog != nil {
		v.Send(r.prog.clear())
	}
	size := r.viewers[v]
	delete(r.viewers, v)
	delete(r.withStatus, v)
	delete(r.drawn, v)
	if size != r.size() {
		return
	}
	largest := control.Size{}
	for _, o := range r.viewers {
		if o.Cols*o.Rows > largest.Cols*largest.Rows {
			largest = o
		}
	}
	r.resize(cmp.Or(largest, r.initialSize))
}

func (r *runner) size() control.Size { return control.Size{Cols: r.Cols, Rows: r.Rows} }

// maxSide is the most columns or rows of a terminal, as for config.ParseSize: the screen keeps every cell.
const maxSide = 1000

// viewerResized gives the agent's terminal the size of the viewer that was resized last.
func (r *runner) viewerResized(v *control.Viewer, size control.Size) {
	if size.Cols > 0 && size.Rows > 0 {
		size.Cols, size.Rows = min(size.Cols, maxSide), min(size.Rows, maxSide)
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
	r.prog.resize(to)
}

// showEnd shows a viewer the end, repainting the last screen if the viewer was late or behind. Only after the loop.
func (r *runner) showEnd(v *control.Viewer) {
	if _, hasJoined := r.viewers[v]; !hasJoined || v.IsBehind() {
		v.Repaint(r.finalScreen)
	}
	v.Send(r.finalText)
	v.Exit(r.exit.Code, r.exit.Signal)
}

// passKeys types a viewer's keys. While a text of ours is being typed they are held, so that the two do not mix.
func (r *runner) passKeys(keys []byte, isPerson bool) {
	if r.prog == nil {
		return
	}
	now := r.now()
	if isPerson {
		r.lastKey = now
	}
	r.heldKeys = append(r.heldKeys, keys...)
	if t := r.mail.typing; !t.holdsKeys() || now.Sub(t.startedAt) >= maxKeyHold {
		r.releaseKeys()
	}
}

// releaseKeys types the keys that were held. If a text of ours is still being typed, it is mixed with them from now on.
func (r *runner) releaseKeys() {
	keys := r.heldKeys
	r.heldKeys = nil
	if len(keys) == 0 || r.prog == nil {
		return
	}
	if t := r.mail.typing; t.holdsKeys() && !r.lastKey.Before(t.startedAt) { // a person's, not only terminal reports
		t.isMixed = true
	}
	r.prog.keys(keys)
}
