package control

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
)

const (
	maxQueued = 256      // lines of output that wait for a viewer
	maxPiece  = 32 << 10 // bytes of output in a line
)

// ErrViewerBehind: the viewer gets nothing more until a Repaint.
var ErrViewerBehind = errors.New("the viewer is behind")

// Input is what a viewer did.
type Input struct {
	Bytes    []byte `json:"in,omitempty"`     // typed, or a report of the terminal's; the receiver's to keep
	IsReport bool   `json:"report,omitempty"` // nobody typed it: the terminal tells of focus or the mouse
	Size     Size   `json:"size,omitzero"`
	Repaint  bool   `json:"repaint,omitempty"` // it asks for a Repaint, for one after it was behind
}

type output struct {
	Out      []byte `json:"out,omitempty"`
	Gap      bool   `json:"gap,omitempty"`
	Exit     *Exit  `json:"exit,omitempty"`
	Detached string `json:"detached,omitempty"`
}

// A Viewer is a terminal that has joined. Its methods do not block. They may be called by several
// goroutines, one at a time, until the Handler's Attach returns.
type Viewer struct {
	input    chan Input
	lines    chan output
	isBehind bool
	isGapDue atomic.Bool // the viewer is to be told that it is behind
	exit     *Exit
}

// Input gives what the viewer does, and is closed when it has left.
func (v *Viewer) Input() <-chan Input { return v.input }

// Send queues a copy of output. A viewer for which too much waits is behind: this and every further call
// returns ErrViewerBehind until a Repaint, for which it will ask.
func (v *Viewer) Send(p []byte) error {
	for piece := range slices.Chunk(p, maxPiece) {
		if v.isBehind {
			break
		}
		select {
		case v.lines <- output{Out: bytes.Clone(piece)}:
		default:
			v.isBehind = true
			v.isGapDue.Store(true)
		}
	}
	if v.isBehind {
		return ErrViewerBehind
	}
	return nil
}

// Repaint sends what makes a terminal show the screen, in place of all that waits.
func (v *Viewer) Repaint(p []byte) {
	for range len(v.lines) {
		select {
		case <-v.lines:
		default:
		}
	}
	v.isBehind = false
	v.Send(slices.Concat([]byte("\x18"), p)) // what was left out may be the end of a sequence
}

// Exit says that the child has ended, after all output.
func (v *Viewer) Exit(code int, signal string) { v.exit = &Exit{Code: code, Signal: signal} }

// write sends the output. Where that fails the viewer has gone, and the input ends.
func (v *Viewer) write(c *connection) {
	for line := range v.lines {
		c.Encode(line)
		if len(v.lines) == 0 && v.isGapDue.Swap(false) {
			c.Encode(output{Gap: true})
		}
	}
}

// read hands over what the viewer does, and closes the input when it has left.
func (v *Viewer) read(ctx context.Context, c *connection, readOnly bool) {
	defer close(v.input)
	for {
		var in Input
		if c.Decode(&in) != nil {
			return
		}
		if readOnly {
			in.Bytes, in.Size = nil, Size{}
		}
		select {
		case v.input <- in:
		case <-ctx.Done():
			return
		}
	}
}
