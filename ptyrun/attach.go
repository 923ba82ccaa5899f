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

	rewriting, removing screen.OutputFilter // of the output to viewers with and without that

	lastKey     time.Time // a person's
	heldKeys    []byte    // keys held back while a text is being typed
	initialSize control.Size

	transcript             transcript // of an agent without a terminal
	finalScreen, finalText []byte     // shown to viewers when the agent has ended
}

// Attach tells the loop what the viewer does until it leaves. Where there is no terminal it only looks.
func (r *runner) Attach(ctx context.Context, req control.AttachRequest, v *control.Viewer) error {
	if !r.hasTerminal() {
		req = control.AttachRequest{ReadOnly: true}
	}
	r.post(func() { r.join(v, req) })
	for {
		select {
		case in, ok := <-v.Input():
			if ok {
				if req.ReadOnly {
					in = control.Input{Repaint: in.Repaint}
				}
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

// drawn returns what draws the agent's screen, and that many lines above it, or the end of its transcript.
func (r *runner) drawn(lines int) []byte {
	switch t := r.onTerminal(); {
	case !r.hasTerminal():
		return r.transcript.drawn(max(lines, r.Rows))
	case t != nil:
		return t.repaint(lines)
	}
	return r.finalScreen
}

// tail returns the last lines of that as text.
func (r *runner) tail(lines int) []string {
	if t := r.onTerminal(); t != nil {
		return t.tail(lines)
	}
	return r.transcript.tail(lines)
}

// repaintViewer shows the whole screen to a viewer that joined or was behind.
func (r *runner) repaintViewer(v *control.Viewer) {
	t := r.onTerminal()
	if t != nil {
		t.take()
	}
	if drawn := r.drawn(screen.Scrollback); drawn != nil {
		v.Repaint(drawn)
	}
	if t != nil && r.withStatus[v] {
		v.Send([]byte(screen.ClearStatus)) // it may have missed changes
		r.sendStatus(v, nil, t.declared())
	}
}

// show shows people what is new in the transcript.
func (r *runner) show(text string) {
	r.recording.Output([]byte(text))
	r.sendOutput([]byte(text))
}

// sendOutput sends what the agent shows to the viewers. What it declares is written anew, or left out.
func (r *runner) sendOutput(written []byte) {
	r.rewriting.Rewrites = true
	with, without := r.rewriting.Filter(written), r.removing.Filter(written)
	for v := range r.viewers {
		if r.withStatus[v] {
			v.Send(with)
		} else {
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
	if t := r.onTerminal(); t != nil {
		v.Send(t.clear())
	}
	size := r.viewers[v]
	delete(r.viewers, v)
	delete(r.withStatus, v)
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
	if t := r.onTerminal(); t != nil {
		t.resize(to)
	}
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
	if r.onTerminal() == nil {
		return
	}
	now := r.now()
	if isPerson {
		r.lastKey = now
	}
	r.heldKeys = append(r.heldKeys, keys...)
	if t := r.mail.giving.typed(); t == nil || now.Sub(t.startedAt) >= maxKeyHold {
		r.releaseKeys()
	}
}

// releaseKeys types the keys that were held. If a text of ours is still being typed, it is mixed with them from now on.
func (r *runner) releaseKeys() {
	keys, terminal := r.heldKeys, r.onTerminal()
	r.heldKeys = nil
	if len(keys) == 0 || terminal == nil {
		return
	}
	if t := r.mail.giving.typed(); t != nil && !r.lastKey.Before(t.startedAt) { // a person's, not only terminal reports
		t.isMixed = true
	}
	terminal.keys(keys)
}
