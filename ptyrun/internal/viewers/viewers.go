// Package viewers has the terminals of people at which an agent is looked at and typed to, and what they see: its terminal, or
// the transcript of an agent that has none. It reads no screen and types nothing itself.
package viewers

import (
	"cmp"
	"context"
	"strings"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/screen"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/ptyrun/internal/terminal"
)

// Viewers are the terminals of people, and what an agent shows there.
type Viewers struct {
	r           *run.Run
	hasTerminal bool                 // the agent has a terminal, else a transcript
	Size        control.Size         // of that terminal
	exit        func() (int, string) // how the last program exited: its code and signal

	sizes       map[*control.Viewer]control.Size // of those that are attached; zero: read-only or unknown
	initialSize control.Size
	filter      screen.OutputFilter // of what they are sent

	transcript             transcript // of an agent without a terminal
	finalScreen, finalText []byte     // shown to viewers when the agent has ended
}

// New returns the viewers of a run whose terminal has that size. None is attached.
func New(r *run.Run, hasTerminal bool, size control.Size, exit func() (int, string)) *Viewers {
	return &Viewers{
		r: r, hasTerminal: hasTerminal, Size: size, initialSize: size, exit: exit,
		sizes: map[*control.Viewer]control.Size{},
	}
}

// Attach tells the loop what the viewer does until it leaves. Where there is no terminal it only looks.
func (vs *Viewers) Attach(ctx context.Context, req control.AttachRequest, v *control.Viewer) error {
	if !vs.hasTerminal {
		req = control.AttachRequest{ReadOnly: true}
	}
	vs.r.Post(func() { vs.join(v, req) })
	for {
		select {
		case in, ok := <-v.Input():
			if ok {
				if req.ReadOnly {
					in = control.Input{Repaint: in.Repaint}
				}
				vs.r.Post(func() { vs.viewerSent(v, in) })
				continue
			}
		case <-vs.r.Context().Done():
		case <-ctx.Done():
		}
		if !vs.r.Call(func() { vs.leave(v) }) { // not post: what it is sent must be sent before this returns
			vs.showEnd(v)
		}
		return nil
	}
}

// join repaints a viewer that joins; from then on it gets the program's output.
func (vs *Viewers) join(v *control.Viewer, req control.AttachRequest) {
	vs.sizes[v] = control.Size{}
	if !req.ReadOnly {
		vs.viewerResized(v, control.Size{Cols: req.Cols, Rows: req.Rows})
	}
	vs.repaintViewer(v)
}

func (vs *Viewers) viewerSent(v *control.Viewer, in control.Input) {
	vs.viewerResized(v, in.Size)
	if in.Repaint {
		vs.repaintViewer(v)
	}
	if t := terminal.Of(vs.r); t != nil {
		t.PassKeys(in.Bytes, len(in.Bytes) > 0 && !in.IsReport)
	}
}

// Drawn returns what draws the agent's screen, and that many lines above it, or the end of its transcript.
func (vs *Viewers) Drawn(lines int) []byte {
	switch t := terminal.Of(vs.r); {
	case !vs.hasTerminal:
		return vs.transcript.drawn(max(lines, vs.Size.Rows))
	case t != nil:
		return t.Repaint(lines)
	}
	return vs.finalScreen
}

// Tail returns the last lines of that as text.
func (vs *Viewers) Tail(lines int) []string {
	if t := terminal.Of(vs.r); t != nil {
		return t.Tail(lines)
	}
	return vs.transcript.tail(lines)
}

// repaintViewer shows the whole screen to a viewer that joined or was behind.
func (vs *Viewers) repaintViewer(v *control.Viewer) {
	if t := terminal.Of(vs.r); t != nil {
		t.Take()
	}
	if drawn := vs.Drawn(screen.Scrollback); drawn != nil {
		v.Repaint(drawn)
	}
}

// show shows people what is new in the transcript.
func (vs *Viewers) show(text string) {
	if text == "" {
		return
	}
	vs.r.Recording.Output([]byte(text))
	vs.Output([]byte(text))
}

// Output sends what the agent shows to the viewers.
func (vs *Viewers) Output(written []byte) {
	sent := vs.filter.Filter(written)
	for v := range vs.sizes {
		v.Send(sent)
	}
}

// leave removes a viewer. If the terminal had its size, it grows to the largest remaining viewer's or back to the
// initial size: an agent with too little room shows no prompt and gets no mail.
func (vs *Viewers) leave(v *control.Viewer) {
	if t := terminal.Of(vs.r); t != nil {
		v.Send(t.Clear())
	}
	size := vs.sizes[v]
	delete(vs.sizes, v)
	if size != vs.Size {
		return
	}
	largest := control.Size{}
	for _, o := range vs.sizes {
		if o.Cols*o.Rows > largest.Cols*largest.Rows {
			largest = o
		}
	}
	vs.resize(cmp.Or(largest, vs.initialSize))
}

// maxSide is the most columns or rows of a terminal, as for config.ParseSize: the screen keeps every cell.
const maxSide = 1000

// viewerResized gives the agent's terminal the size of the viewer that was resized last.
func (vs *Viewers) viewerResized(v *control.Viewer, size control.Size) {
	if size.Cols > 0 && size.Rows > 0 {
		size.Cols, size.Rows = min(size.Cols, maxSide), min(size.Rows, maxSide)
		vs.sizes[v] = size
		vs.resize(size)
	}
}

func (vs *Viewers) resize(to control.Size) {
	if to == vs.Size {
		return
	}
	vs.Size = to
	vs.r.Recording.Resize(to.Cols, to.Rows)
	if t := terminal.Of(vs.r); t != nil {
		t.Resize(to)
	}
}

// showEnd shows a viewer the end, repainting the last screen if the viewer was late or behind. Only after the loop.
func (vs *Viewers) showEnd(v *control.Viewer) {
	if _, hasJoined := vs.sizes[v]; !hasJoined || v.IsBehind() {
		v.Repaint(vs.finalScreen)
	}
	v.Send(vs.finalText)
	v.Exit(vs.exit())
}

// Notify shows a line of atm's own.
func (vs *Viewers) Notify(line string) {
	vs.r.Recording.Marker(line)
	for v := range vs.sizes {
		v.Send([]byte("\r\n[atm: " + letter.Escape(line) + "]\r\n"))
	}
}

// Started shows the screen of another program: the previous one left modes behind, perhaps the alternate screen.
func (vs *Viewers) Started() {
	t := terminal.Of(vs.r)
	if t == nil || vs.finalScreen == nil {
		return
	}
	fresh := t.Repaint(0)
	vs.r.Recording.Output(fresh)
	for v := range vs.sizes {
		v.Send(fresh) // one that is behind is repainted when it has read its gap
	}
}

// Ended keeps what the program has shown last.
func (vs *Viewers) Ended() {
	if t := terminal.Of(vs.r); t != nil {
		vs.finalText = t.Leave()
	}
	vs.finalScreen = vs.Drawn(screen.Scrollback)
	vs.filter = screen.OutputFilter{}
}

// Screen returns what the agent's terminal shows, or the end of its transcript.
func (vs *Viewers) Screen(req control.ScreenRequest) control.Screen {
	if t := terminal.Of(vs.r); t != nil {
		return t.Show(req)
	}
	is := vs.r.Agent.State()
	out := control.Screen{Lines: vs.transcript.tail(cmp.Or(req.Last, vs.Size.Rows)), State: string(is.Activity), Detail: is.Detail}
	if req.ANSI {
		out.ANSI = strings.Join(append(out.Lines[:len(out.Lines):len(out.Lines)], ""), "\r\n")
	}
	return out
}

// Print adds a text to the transcript, behind a mark, and shows it.
func (vs *Viewers) Print(mark, text string) { vs.show(vs.transcript.print(mark, text)) }

// Say adds words of the agent to the transcript, and shows them.
func (vs *Viewers) Say(words string) { vs.show(vs.transcript.say(words)) }
