package bridge

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
)

// link is the transport to one other host: a stream each way, with a frame on each line. Nothing is stored between the
// hosts, so an envelope is acknowledged once it is delivered there, and until then its mail stays in the outbox.
type link struct {
	*Bridge
	dial       func(ctx context.Context) (*session, error) // connects and greets
	isServed   bool                                        // the other side has connected, and is not called back
	hasBeen    bool                                        // connected before
	session    *session                                    // the last one
	since      time.Time                                   // when it began
	isAskedFor bool                                        // the other side was asked for all that it has, under Once

	mu    sync.Mutex
	tries map[[sha256.Size]byte]uint64 // how often an envelope has come that was not accepted yet
}

const (
	window      = batchSize       // envelopes that are not answered yet, in each direction
	maxServes   = 2 * maxFetches  // objects that are read for the other side at a time
	chunkSize   = 128 << 10       // bytes of an object in a frame
	linkInline  = 64 << 10        // bytes of content in an envelope
	maxLine     = 2 * maxEnvelope // bytes of a frame: in base64 an envelope is longer
	pingEvery   = 5 * time.Second
	silentAfter = 20 * time.Second
	maxTried    = 1000
)

// lostError says that a session has ended, and how long it had lasted.
type lostError struct {
	error
	after time.Duration
}

func (e lostError) Unwrap() error { return e.error }

// finalError is one that trying again does not mend.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// errEnded is the end of the other side.
var errEnded = errors.New("it has ended")

func (l *link) String() string                 { return string(l.peer) }
func (l *link) maxInline() int                 { return linkInline }
func (l *link) beginPass()                     {}
func (l *link) keep(ctx context.Context) error { return nil }

func (l *link) connect(ctx context.Context) error {
	if l.session != nil && l.session.ctx.Err() == nil {
		return nil
	}
	s, err := l.dial(ctx)
	if err != nil {
		return err
	}
	l.session, l.since, l.hasBeen, l.isAskedFor = s, time.Now(), true, false
	s.link = l
	s.start()
	if l.isContinuous && !l.isServed {
		l.warn("connected to %s", l.peer)
	}
	return nil
}

func (l *link) close() {
	if l.session != nil {
		l.session.close()
	}
}

// lost is the error of a session that has ended. Under Run only receive returns it, which ends the others: they wait
// for that.
func (s *session) lost(ctx context.Context) error {
	if s.link.isContinuous {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.lostError()
}

func (s *session) lostError() error {
	why := fmt.Errorf("lost the connection to %s: %w; mail waits in the outbox", s.link.peer, context.Cause(s.ctx))
	return lostError{why, time.Since(s.link.since)}
}

// publish hands over an envelope. acked waits until the other side has delivered it.
func (l *link) publish(ctx context.Context, e *Envelope, data []byte) (acked func() error) {
	s := l.session
	select {
	case s.slots <- struct{}{}:
	case <-s.ctx.Done():
		return func() error { return s.lost(ctx) }
	}
	answer := make(chan string, 1)
	s.mu.Lock()
	s.last++
	n := s.last
	s.sent[n] = sent{answer, e}
	if e.Object {
		s.contents[e.SHA256] = e.Content
	}
	s.mu.Unlock()
	s.write(frame{Type: "envelope", N: n, Data: data})
	return func() error {
		select {
		case why := <-answer:
			if why != "" {
				return fmt.Errorf("%s has not taken it: %s", l.peer, why)
			}
			return nil
		case <-s.ctx.Done():
			return s.lost(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *link) offer(_ context.Context, sha256 string, open func() (io.ReadCloser, error)) error {
	content, err := open()
	if err != nil {
		return err
	}
	content.Close()
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	l.session.offers[sha256] = open
	return nil
}

// object asks for an object, and returns what comes of it.
func (l *link) object(ctx context.Context, sha256 string) (io.ReadCloser, error) {
	s := l.session
	r, w := io.Pipe()
	s.mu.Lock()
	s.last++
	n := s.last
	s.fetches[n] = w
	s.mu.Unlock()
	s.write(frame{Type: "get", N: n, SHA256: sha256})
	end := context.AfterFunc(ctx, func() { r.CloseWithError(ctx.Err()) })
	endToo := context.AfterFunc(s.ctx, func() { r.CloseWithError(context.Cause(s.ctx)) })
	return closer{r, func() error {
		end()
		endToo()
		r.Close()
		if s.forgetFetch(n) != nil { // there is more to come
			s.write(frame{Type: "stop", N: n})
		}
		return nil
	}}, nil
}

type closer struct {
	io.Reader
	close func() error
}

func (c closer) Close() error { return c.close() }

func (l *link) publishRows(ctx context.Context, data []byte) error {
	s := l.session
	s.write(frame{Type: "rows", Data: data})
	if l.isContinuous {
		return nil
	}
	s.write(frame{Type: "ping", N: 1})
	select {
	case <-s.ponged:
		return nil
	case <-s.ctx.Done():
		return s.lost(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// receiveRows has nothing to do: rows are saved when they come.
func (l *link) receiveRows(ctx context.Context) error {
	if l.isContinuous {
		<-ctx.Done()
	}
	return nil
}

// receive hands over what has come. Under Once it asks for all that there is, and returns 0 after that.
func (l *link) receive(ctx context.Context, handle func([]delivery)) (n int, err error) {
	s := l.session
	var all chan struct{}
	if !l.isContinuous {
		all = s.allSent
		if !l.isAskedFor {
			l.isAskedFor = true
			s.write(frame{Type: "all"})
		}
	}
	select {
	case first := <-s.deliveries:
		group := []delivery{first}
		for range len(s.deliveries) {
			group = append(group, <-s.deliveries)
		}
		handle(group)
		return len(group), nil
	case <-all:
		return 0, nil
	case <-s.ctx.Done():
		app.Sleep(ctx, 200*time.Millisecond) // Ctrl-C ends ssh as well: then nobody is told that it was lost
		if err = s.lostError(); l.isServed {
			err = finalError{err}
		}
		return 0, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
