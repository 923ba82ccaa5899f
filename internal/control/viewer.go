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

// maxQueue is how much output may wait for a viewer. Of more it is spared what
// it cannot take in, and gets a picture: the agent does not wait for it.
const maxQueue = 1 << 20

var (
	// ErrViewerGone: the viewer has left.
	ErrViewerGone = errors.New("the viewer has gone")
	// ErrViewerBehind: the viewer gets nothing more until a Picture.
	ErrViewerBehind = errors.New("the viewer is behind")
)

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
	ready chan struct{} // it was behind and has taken everything; of one place

	mu      sync.Mutex
	queue   []byte // output that waits
	started bool   // the answer to the request goes first
	end     []byte // the last frame
	gone    bool

	behind atomic.Bool
}

func newViewer(f *os.File) *Viewer {
	return &Viewer{file: f, input: make(chan Input, 16), wake: make(chan struct{}, 1), ready: make(chan struct{}, 1)}
}

// Input gives what the viewer does. It is closed when the viewer has detached
// or gone; what it did before comes first.
func (v *Viewer) Input() <-chan Input { return v.input }

// Send queues output, which it copies, and never blocks. A viewer for which over
// 1 MiB waits is behind: what waits is left out, and this and every further call
// returns ErrViewerBehind until it has got a Picture, for which Ready says when.
// What is sent to a viewer of whom nothing waits may be of any length.
func (v *Viewer) Send(p []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.gone || v.end != nil:
		return ErrViewerGone
	case v.behind.Load():
		return ErrViewerBehind
	case len(v.queue) > 0 && len(v.queue)+len(p) > maxQueue:
		v.queue = nil
		v.behind.Store(true)
		v.signal()
		return ErrViewerBehind
	}
	v.put(p)
	return nil
}

// Ready tells when a viewer that is behind can take more in.
func (v *Viewer) Ready() <-chan struct{} { return v.ready }

// Picture is Send of everything that a terminal has to show, whatever it shows:
// what waits is left out, and a viewer that was behind no longer is.
func (v *Viewer) Picture(p []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.gone || v.end != nil {
		return ErrViewerGone
	}
	if v.behind.Swap(false) || len(v.queue) > 0 {
		// What was left out may have been the end of a sequence: it is cancelled.
		v.queue = append(v.queue[:0], "\x18"...)
	}
	v.put(p)
	return nil
}

// put queues output; the caller holds mu.
func (v *Viewer) put(p []byte) {
	v.started = true
	v.queue = append(v.queue, p...)
	v.signal()
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
		for rest := output; len(rest) > 0 && !v.behind.Load(); {
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
		if v.behind.Load() {
			select {
			case v.ready <- struct{}{}:
			default:
			}
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
