package control

import (
	"bytes"
	"context"
	"slices"
)

const (
	maxQueued = 256      // lines of output for a viewer
	maxPiece  = 32 << 10 // bytes of output in a line
)

// Input is what a viewer sent.
type Input struct {
	Bytes    []byte `json:"in,omitempty"`     // the receiver may keep them
	IsReport bool   `json:"report,omitempty"` // Bytes are the terminal's reports of focus or the mouse; nobody typed
	Size     Size   `json:"size,omitzero"`
	Repaint  bool   `json:"repaint,omitempty"` // it wants a Repaint, for instance after a gap
}

type output struct {
	Out      []byte `json:"out,omitempty"`
	Gap      bool   `json:"gap,omitempty"`
	Exit     *Exit  `json:"exit,omitempty"`
	Detached string `json:"detached,omitempty"`
}

// A Viewer is an attached terminal. Its methods do not block. Several goroutines may call them, one at a time, until
// the Handler's Attach returns.
type Viewer struct {
	input    chan Input
	lines    chan output
	isBehind bool
	exit     *Exit
}

// Input returns what the viewer sends. It is closed when the viewer has left.
func (v *Viewer) Input() <-chan Input { return v.input }

// IsBehind reports whether output was dropped because the queue was full. Then the viewer gets nothing until a Repaint,
// which it will ask for.
func (v *Viewer) IsBehind() bool { return v.isBehind }

// Send queues a copy of output, unless the viewer is behind.
func (v *Viewer) Send(p []byte) {
	for piece := range slices.Chunk(p, maxPiece) {
		if v.isBehind {
			return
		}
		select {
		case v.lines <- output{Out: bytes.Clone(piece)}:
		default: // what is queued is of no use to a terminal that will be repainted
			v.isBehind = true
			v.drop()
			v.lines <- output{Gap: true}
		}
	}
}

// Repaint sends bytes that repaint the terminal, instead of all queued output.
func (v *Viewer) Repaint(p []byte) {
	v.drop()
	v.isBehind = false
	v.Send(slices.Concat([]byte("\x18"), p)) // CAN ends a sequence whose rest was dropped
}

func (v *Viewer) drop() {
	for range len(v.lines) {
		select {
		case <-v.lines:
		default:
		}
	}
}

// Exit records that the child has exited. The viewer is told after all output.
func (v *Viewer) Exit(code int, signal string) { v.exit = &Exit{Code: code, Signal: signal} }

// write sends the output. If that fails the viewer has left, and its input ends.
func (v *Viewer) write(c *connection) {
	for line := range v.lines {
		c.Encode(line)
	}
}

// read receives the viewer's input, and closes the channel when the viewer has left.
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
