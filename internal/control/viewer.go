package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// maxQueue is how much output may wait for a viewer. Its terminal has stopped
// reading when it is more: the agent does not wait for it.
const maxQueue = 1 << 20

// ErrViewerGone: the viewer has left, or was dropped because it was too slow.
var ErrViewerGone = errors.New("the viewer has gone")

// Input is something that a viewer did. Just one of its fields is set.
type Input struct {
	Bytes []byte // typed, or the terminal's answer to a query; the receiver's to keep
	Size  Size   // the terminal has this size now
}

// A Viewer is a terminal that has joined. Its methods may be called by several
// goroutines at once.
type Viewer struct {
	file  *os.File
	input chan Input
	wake  chan struct{} // something is queued; of one place

	mu      sync.Mutex
	queue   []byte // output that waits
	started bool   // the answer to the request goes first
	end     []byte // the last frame
	gone    bool
	cancel  context.CancelFunc

	dropped atomic.Bool
}

func newViewer(f *os.File) *Viewer {
	return &Viewer{file: f, input: make(chan Input, 16), wake: make(chan struct{}, 1)}
}

// Input gives what the viewer does. It is closed when the viewer has detached
// or gone; what it did before comes first.
func (v *Viewer) Input() <-chan Input { return v.input }

// Send queues output, which it copies, and never blocks. A viewer for which over
// 1 MiB waits already is dropped: its context ends, and this and every further
// call returns ErrViewerGone. What is sent to a viewer of whom nothing waits,
// as the picture of the whole screen at the start, may be of any length.
func (v *Viewer) Send(p []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.gone || v.end != nil:
		return ErrViewerGone
	case len(v.queue) > 0 && len(v.queue)+len(p) > maxQueue:
		v.queue, v.end = nil, detached("too slow")
		v.dropped.Store(true)
		// The frame that is being written may still be read to its end.
		v.file.SetWriteDeadline(time.Now().Add(farewell))
		v.cancel()
		v.signal()
		return ErrViewerGone
	}
	v.started = true
	v.queue = append(v.queue, p...)
	v.signal()
	return nil
}

// Exit says, after all output, that the child has ended.
func (v *Viewer) Exit(code int, signal string) {
	payload, _ := json.Marshal(Exit{code, signal})
	v.finish(appendFrame(nil, frameExit, payload))
}

// detached is the last frame for a viewer whose agent goes on.
func detached(reason string) []byte {
	payload, _ := json.Marshal(farewellNote{reason})
	return appendFrame(nil, frameDetach, payload)
}

type farewellNote struct {
	Reason string `json:"reason"`
}

// finish sets the last frame, unless there is one.
func (v *Viewer) finish(frame []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.end == nil {
		v.end = frame
		v.started = true
		v.signal()
	}
}

// signal wakes the writer; the caller holds mu.
func (v *Viewer) signal() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// serve runs the Handler's Attach and says how it ended.
func (v *Viewer) serve(ctx context.Context, h Handler, r request) {
	mine, cancel := context.WithCancel(ctx)
	defer cancel()
	v.mu.Lock()
	v.cancel = cancel
	v.mu.Unlock()
	v.file.SetWriteDeadline(time.Time{})
	written := make(chan struct{})
	go func() {
		defer close(written)
		v.write()
		cancel() // nothing can be sent any more
	}()
	err := h.Attach(mine, AttachRequest{Cols: r.Cols, Rows: r.Rows, ReadOnly: r.ReadOnly}, v)
	v.mu.Lock()
	if err != nil && !v.started && v.end == nil {
		v.end = encodeAnswer(nil, err) // in place of the stream
		v.signal()
	}
	v.mu.Unlock()
	switch {
	case err == nil:
		v.finish(detached("detached"))
	case ctx.Err() != nil:
		v.finish(detached("the runner ends"))
	default:
		v.finish(detached(errorOf(err).Message))
	}
	v.file.SetWriteDeadline(time.Now().Add(farewell))
	<-written
}

// write sends what is queued until the last frame or the first error.
func (v *Viewer) write() {
	defer v.leave()
	head := encodeAnswer(nil, nil)
	var spare, frames []byte
	for range v.wake {
		v.mu.Lock()
		output, end := v.queue, v.end
		v.queue = spare[:0]
		frames = frames[:0]
		if v.started {
			frames, head = append(frames, head...), nil
		}
		v.mu.Unlock()
		for rest := output; len(rest) > 0 && !v.dropped.Load(); {
			n := min(len(rest), chunk)
			frames = appendFrame(frames, frameOutput, rest[:n])
			if _, err := v.file.Write(frames); err != nil {
				return
			}
			rest, frames = rest[n:], frames[:0]
		}
		if end != nil {
			v.file.Write(append(frames, end...))
			return
		}
		if spare = output; cap(spare) > maxQueue {
			spare = nil
		}
	}
}

func (v *Viewer) leave() {
	v.mu.Lock()
	v.gone, v.queue = true, nil
	v.mu.Unlock()
}

// read hands over what the viewer sends, and closes the input at its end. It
// reports whether the viewer detached, and did not merely go.
func (v *Viewer) read(ctx context.Context, r *bufio.Reader, readOnly bool) bool {
	defer close(v.input)
	var buf []byte
	for {
		kind, payload, grown, err := readFrame(r, buf)
		if err != nil {
			return false
		}
		buf = grown
		var in Input
		switch kind {
		case frameInput:
			if readOnly || len(payload) == 0 {
				continue
			}
			in.Bytes = append([]byte(nil), payload...)
		case frameResize:
			if json.Unmarshal(payload, &in.Size) != nil || !in.Size.valid() {
				continue
			}
		case frameDetach:
			return true
		default:
			continue
		}
		select {
		case v.input <- in:
		case <-ctx.Done():
			return false
		}
	}
}
