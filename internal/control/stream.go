package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// A Terminal is what joins an agent's.
type Terminal struct {
	In    <-chan []byte // what is typed; closed when the terminal has gone
	Out   io.Writer     // an error of it ends the attachment
	Sizes <-chan Size   // the terminal's size, whenever it changes
}

// An Ending is how an attachment ended.
type Ending struct {
	Detached bool   // by the key, by the context, or because the terminal has gone:
	Gone     bool   // that is why
	Exit     *Exit  // the child has ended
	Reason   string // the runner's, when neither: "the runner ends"
}

const (
	// settle is how long the beginning of a sequence may wait for its rest: an
	// Escape key alone is one.
	settle = 25 * time.Millisecond
	// parting is how long the runner may take to confirm a detachment.
	parting = 300 * time.Millisecond
	// maxTyped is how much may wait for a runner that does not take it.
	maxTyped = 4 << 20
)

// errNotTaken: the runner has not read what was typed.
var errNotTaken = errors.New("the agent's runner does not take what is typed")

// Attach joins the agent's terminal until the child ends, the detach key is
// typed (DetachKey), or ctx ends, which detaches as well. It filters nothing but
// that key. All its goroutines have ended when it returns, unless Out blocks.
// The client is of no more use then.
func (c *Client) Attach(ctx context.Context, r AttachRequest, t Terminal) (Ending, error) {
	start, cancel := context.WithTimeout(ctx, lookLimit)
	err := c.call(start, request{Op: opAttach, Cols: r.Cols, Rows: r.Rows, ReadOnly: r.ReadOnly}, nil)
	cancel()
	if err != nil {
		return Ending{}, err
	}
	s := &stream{client: c, wake: make(chan struct{}, 1), shown: make(chan shown, 1), readOnly: r.ReadOnly}
	var writing sync.WaitGroup
	writing.Go(s.write)
	go func() { s.shown <- s.show(t.Out) }()
	detached, err := s.follow(ctx, t)
	var end shown
	if s.ended != nil {
		end = *s.ended
	} else {
		end = s.part(detached)
	}
	s.stop()
	c.file.SetDeadline(time.Unix(1, 0)) // ends what still reads or writes
	writing.Wait()
	switch {
	case end.panic != nil:
		panic(end.panic) // where the caller's defer restores the terminal
	case err != nil:
		return Ending{}, err
	case detached:
		end.Detached, end.Gone = true, s.gone
	default:
		err = end.err
	}
	return end.Ending, err
}

// stream is an attachment as its client sees it.
type stream struct {
	client   *Client
	keys     keys
	readOnly bool
	ended    *shown
	gone     bool

	mu      sync.Mutex
	queue   []byte // frames for the server
	stopped bool
	wake    chan struct{}
	shown   chan shown
}

// shown is how the output ended.
type shown struct {
	Ending
	err   error
	panic any
}

// follow passes on what is typed and how large the terminal is. It reports
// whether it was left by detaching; else s.ended says how the output ended.
func (s *stream) follow(ctx context.Context, t Terminal) (detached bool, err error) {
	settled := time.NewTimer(settle)
	settled.Stop()
	sizes := t.Sizes
	for {
		select {
		case p, ok := <-t.In:
			if !ok {
				s.gone = true
				return true, nil
			}
			out, detach := s.keys.feed(p)
			if err := s.typed(out); err != nil {
				return false, err
			}
			if detach {
				return true, nil
			}
			if s.keys.unsettled() {
				settled.Reset(settle)
			}
		case <-settled.C:
			if err := s.typed(s.keys.settle()); err != nil {
				return false, err
			}
		case size, ok := <-sizes:
			if !ok {
				sizes = nil
				continue
			}
			payload, _ := json.Marshal(size)
			if err := s.send(frameResize, payload); err != nil {
				return false, err
			}
		case end := <-s.shown:
			s.ended = &end
			return false, nil
		case <-ctx.Done():
			return true, nil
		}
	}
}

// typed sends what was typed.
func (s *stream) typed(p []byte) error {
	if s.readOnly {
		return nil
	}
	for len(p) > 0 {
		n := min(len(p), chunk)
		if err := s.send(frameInput, p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// send queues a frame: the detach key works also while the runner takes nothing.
func (s *stream) send(kind byte, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > maxTyped {
		return errNotTaken
	}
	s.queue = appendFrame(s.queue, kind, payload)
	s.signal()
	return nil
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stream) stop() {
	s.mu.Lock()
	s.stopped = true
	s.signal()
	s.mu.Unlock()
}

// write sends what is queued. An error means that the runner has gone, which
// the output tells better.
func (s *stream) write() {
	s.client.file.SetWriteDeadline(time.Time{})
	for range s.wake {
		s.mu.Lock()
		frames, stopped := s.queue, s.stopped
		s.queue = nil
		s.mu.Unlock()
		if stopped {
			return
		}
		if _, err := s.client.file.Write(frames); err != nil {
			return
		}
	}
}

// show writes the output until its end.
func (s *stream) show(out io.Writer) (end shown) {
	defer func() {
		if p := recover(); p != nil {
			end.panic = p
		}
	}()
	s.client.file.SetReadDeadline(time.Time{})
	var buf []byte
	for {
		kind, payload, grown, err := readFrame(s.client.r, buf)
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || reset(err) {
				err = ErrGone
			}
			return shown{err: err}
		}
		buf = grown
		switch kind {
		case frameOutput:
			if _, err := out.Write(payload); err != nil {
				return shown{err: fmt.Errorf("writing to the terminal: %w", err)}
			}
		case frameExit:
			var e Exit
			if err := json.Unmarshal(payload, &e); err != nil {
				return shown{err: fmt.Errorf("the runner's last word cannot be read: %w", err)}
			}
			return shown{Ending: Ending{Exit: &e}}
		case frameDetach:
			var n farewellNote
			if err := json.Unmarshal(payload, &n); err != nil {
				return shown{err: fmt.Errorf("the runner's last word cannot be read: %w", err)}
			}
			return shown{Ending: Ending{Reason: n.Reason}}
		}
	}
}

// part tells the runner that the viewer leaves, after all that it typed, and
// waits a moment for the confirmation.
func (s *stream) part(detached bool) shown {
	if detached {
		s.typed(s.keys.settle())
		s.send(frameDetach, nil)
	}
	s.client.file.SetDeadline(time.Now().Add(parting))
	select {
	case end := <-s.shown:
		if errors.Is(end.err, os.ErrDeadlineExceeded) || errors.Is(end.err, ErrGone) {
			end.err = nil
		}
		return end
	case <-time.After(2 * parting): // the terminal does not take the output
		return shown{}
	}
}
