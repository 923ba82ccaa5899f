package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"
)

const (
	// maxClients is how many are served at once; the next is told so.
	maxClients = 64
	// idleLimit is how long a client may be silent between requests, lineLimit
	// how long it may take over one.
	idleLimit = time.Minute
	lineLimit = 10 * time.Second
	// answerLimit is how long an answer may take to be read.
	answerLimit = 5 * time.Second
	// farewell is how long a viewer may take to read the last of the output.
	farewell = 2 * time.Second
)

// A Server listens on an agent's control socket.
type Server struct {
	listener *listener
	me       int // the user whose processes are let in

	mu      sync.Mutex
	closed  bool
	stop    context.CancelFunc // of Serve
	serving sync.WaitGroup     // Serve and its connections
	clients int
	ended   error // of closing the listener
}

// Listen makes the socket in an existing run directory. The caller holds the
// runner's lock, so that a socket which nobody listens on is a dead runner's
// and is replaced; ErrInUse where somebody does listen.
func Listen(dir string) (*Server, error) {
	l, err := listen(dir)
	if err != nil {
		return nil, err
	}
	return &Server{listener: l, me: os.Geteuid()}, nil
}

// Serve answers clients until ctx ends or Close is called, and then waits for
// what it started: for each client two goroutines, for a viewer three. It is
// called once, and returns nil unless the socket broke.
func (s *Server) Serve(ctx context.Context, h Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.stop = cancel
	s.serving.Add(1)
	s.mu.Unlock()
	defer s.serving.Done()

	var clients sync.WaitGroup
	defer clients.Wait()
	defer cancel() // runs before the wait
	defer context.AfterFunc(ctx, s.shut)()
	for {
		f, err := s.listener.accept()
		switch {
		case err == nil:
		case s.isClosed():
			return nil
		case transient(err):
			// Out of descriptors or memory: that passes, and those who wait
			// are served then.
			select {
			case <-time.After(50 * time.Millisecond):
				continue
			case <-ctx.Done():
				return nil
			}
		default:
			s.shut()
			return err
		}
		clients.Go(func() { s.serve(ctx, f, h) })
	}
}

// shut ends listening.
func (s *Server) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.ended = s.listener.close()
	}
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close removes the socket, ends every connection and waits for that. What the
// Handler is doing at that moment is still answered.
func (s *Server) Close() error {
	s.shut()
	s.mu.Lock()
	if s.stop != nil {
		s.stop()
	}
	s.mu.Unlock()
	s.serving.Wait()
	return s.ended
}

// enter counts a client in; false where there are too many.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients++
	return s.clients <= maxClients
}

func (s *Server) leave() {
	s.mu.Lock()
	s.clients--
	s.mu.Unlock()
}

// serve talks to one client.
func (s *Server) serve(ctx context.Context, f *os.File, h Handler) {
	defer f.Close()
	ok := s.enter()
	defer s.leave()
	c := &conn{file: f}
	p, err := peer(f)
	switch {
	case err != nil:
		return
	case !admits(s.me, p.UID):
		c.answer(nil, &Error{Code: "refused", Message: "this runner is another user's"})
		return
	case !ok:
		c.answer(nil, &Error{Code: "failed", Message: "too many clients talk to this runner"})
		return
	}
	hello, _ := json.Marshal(greeting{"control", version, os.Getpid()})
	if c.write(append(hello, '\n')) != nil {
		return
	}
	ctx, c.cancel = context.WithCancel(context.WithValue(ctx, peerKey{}, p))
	c.requests = make(chan incoming)
	var reading sync.WaitGroup
	reading.Go(func() { c.read(ctx) })
	// A reader that waits for bytes ends with the connection.
	stop := context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })
	c.answerAll(ctx, h)
	c.cancel()
	stop()
	f.SetReadDeadline(time.Unix(1, 0))
	reading.Wait()
}

// A conn is a client's connection. One goroutine reads, another answers.
type conn struct {
	file     *os.File
	cancel   context.CancelFunc // the client has gone
	requests chan incoming
}

// incoming is what the reader hands over.
type incoming struct {
	request
	viewer *Viewer // of attach
	err    *Error
	last   bool // nothing can be read after this
}

// answerAll answers requests until the client has said its last.
func (c *conn) answerAll(ctx context.Context, h Handler) {
	for {
		var in incoming
		var ok bool
		select {
		case in, ok = <-c.requests:
		case <-ctx.Done():
		}
		switch {
		case !ok:
			return
		case in.err != nil:
			if c.answer(nil, in.err) != nil || in.last {
				return
			}
		case in.viewer != nil:
			in.viewer.serve(ctx, h, in.request)
			return
		default:
			result, err := dispatch(ctx, h, in.request)
			if c.answer(result, err) != nil {
				return
			}
		}
		c.file.SetReadDeadline(time.Now().Add(idleLimit))
		if ctx.Err() != nil {
			return
		}
	}
}

func (c *conn) answer(result any, err error) error { return c.write(encodeAnswer(result, err)) }

func (c *conn) write(line []byte) error {
	c.file.SetWriteDeadline(time.Now().Add(answerLimit))
	_, err := c.file.Write(line)
	return err
}

// read hands over a request at a time, and notices while it is worked on that
// the client has gone.
func (c *conn) read(ctx context.Context) {
	defer close(c.requests)
	r := bufio.NewReader(c.file)
	c.deadline(ctx, idleLimit)
	for ctx.Err() == nil {
		if _, err := r.Peek(1); err != nil {
			c.lost(err)
			return
		}
		c.deadline(ctx, lineLimit)
		line, err := readLine(r, maxLine)
		var in incoming
		switch {
		case errors.Is(err, errLong):
			in.err, in.last = bad("%v", err), true
		case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil:
			in.err, in.last = bad("the request did not come to its end"), true
		case err != nil:
			c.lost(err)
			return
		default:
			in.request, in.err = decodeRequest(line)
		}
		if in.err == nil && in.Op == opAttach {
			in.viewer = newViewer(c.file)
		}
		// No limit while it is worked on: whoever answers sets the next.
		c.deadline(ctx, 0)
		select {
		case c.requests <- in:
		case <-ctx.Done():
			return
		}
		if in.viewer != nil {
			if !in.viewer.read(ctx, r, in.ReadOnly) {
				c.cancel()
			}
			return
		}
		if in.last {
			return
		}
	}
}

// deadline bounds reading, but does not take back the end that the connection's
// context has brought.
func (c *conn) deadline(ctx context.Context, d time.Duration) {
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d)
	}
	c.file.SetReadDeadline(at)
	if ctx.Err() != nil {
		c.file.SetReadDeadline(time.Unix(1, 0))
	}
}

// lost is the end of what the client sends. One that has only finished sending
// still gets its answer.
func (c *conn) lost(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) || hungUp(c.file) {
		c.cancel()
	}
}
