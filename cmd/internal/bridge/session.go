package bridge

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/letter"
)

// frame is a line of a link.
//
//	envelope n, data    ack n, or with the error for which it was not taken
//	get n, sha256       chunk n, data; its last one with end or error     stop n: no more of them
//	rows data           the envelope of the members' states
//	all                 all-sent, once all that there is has been taken by the other side
//	ping                I am here
//	ping n              pong n: all that came before it was read
type frame struct {
	Type   string `json:"type"`
	N      uint64 `json:"n,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	Data   []byte `json:"data,omitempty"`
	End    bool   `json:"end,omitempty"`
	Error  string `json:"error,omitempty"`
}

// A session is one connection of a link. It has a goroutine that reads, one that writes, one that pings, and one for
// each object that it reads for the other side. None waits for another side that has gone silent.
type session struct {
	link   *link
	in     *bufio.Reader
	end    func() // ends the connection, after which reads and writes return, or the process ends soon
	ctx    context.Context
	cancel context.CancelCauseFunc // ends the session

	out        chan written
	slots      chan struct{} // one for each envelope without an answer
	deliveries chan delivery
	allSent    chan struct{}
	pings      chan uint64 // to be answered
	ponged     chan struct{}

	mu         sync.Mutex
	last       uint64 // n of the last frame
	sent       map[uint64]sent
	offers     map[string]func() (io.ReadCloser, error) // attachments, by their SHA-256
	contents   map[string][]byte                        // of envelopes without an answer
	fetches    map[uint64]*io.PipeWriter
	serves     map[uint64]context.CancelFunc
	unanswered int  // envelopes of the other side
	isAllAsked bool // for all that there is here

	hasWritten, hasRead chan struct{} // closed once that goroutine has ended
}

// written is a line to be written; nil: the end.
type written struct {
	line   []byte
	before func() // is called just before
}

type sent struct {
	answer chan string // why it was not taken; "": it was
	*Envelope
}

// newSession begins a session over two streams.
func newSession(in *bufio.Reader, out io.Writer, end func()) *session {
	s := &session{
		in: in, end: end, out: make(chan written, 4), slots: make(chan struct{}, window), deliveries: make(chan delivery, window),
		allSent: make(chan struct{}, 1), pings: make(chan uint64, 8), ponged: make(chan struct{}, 1), sent: map[uint64]sent{},
		offers: map[string]func() (io.ReadCloser, error){}, contents: map[string][]byte{}, fetches: map[uint64]*io.PipeWriter{},
		serves: map[uint64]context.CancelFunc{}, hasWritten: make(chan struct{}), hasRead: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	go func() {
		defer close(s.hasWritten)
		for {
			select {
			case w := <-s.out:
				if w.line == nil {
					return
				}
				w.before()
				if _, err := out.Write(w.line); err != nil {
					if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) { // noticed before the end of what it wrote
						err = errEnded
					}
					s.cancel(err)
					return
				}
			case <-s.ctx.Done():
				return
			}
		}
	}()
	return s
}

// start begins to read.
func (s *session) start() {
	context.AfterFunc(s.ctx, s.end)
	go func() {
		defer close(s.hasRead)
		s.cancel(s.read())
	}()
	go func() {
		for s.ctx.Err() == nil {
			select {
			case n := <-s.pings:
				s.write(frame{Type: "pong", N: n})
			case <-time.After(pingEvery):
				s.write(frame{Type: "ping"})
			case <-s.ctx.Done():
			}
		}
	}()
}

// close ends the session once what it has to say is written, or half a second later.
func (s *session) close() {
	writing, stop := context.WithTimeout(s.ctx, 500*time.Millisecond)
	defer stop()
	select {
	case s.out <- written{}:
	case <-writing.Done():
	}
	select {
	case <-s.hasWritten:
	case <-writing.Done():
	}
	s.cancel(errors.New("closed"))
	s.end()
	select {
	case <-s.hasRead:
	case <-time.After(time.Second): // stdin may go on; this process ends then
	}
}

// write has a frame written. It does nothing once the session has ended.
func (s *session) write(f frame) { s.writeAfter(func() {}, f) }

func (s *session) writeAfter(before func(), f frame) {
	line, _ := json.Marshal(f)
	select {
	case s.out <- written{append(line, '\n'), before}:
	case <-s.ctx.Done():
	}
}

// read handles what the other side writes until that ends, is silent for too long, or breaks the rules. It never waits
// for something to be written: both sides would wait for each other.
func (s *session) read() error {
	silence := time.AfterFunc(silentAfter, func() {
		s.cancel(fmt.Errorf("nothing was heard of it for %s", letter.Span(silentAfter)))
	})
	defer silence.Stop()
	for {
		silence.Reset(silentAfter)
		line, err := readLine(s.in, maxLine)
		silence.Stop() // the disk may be slow
		if err == io.EOF || errors.Is(err, fs.ErrClosed) {
			return errEnded // closed: see link.call
		}
		if err != nil {
			return err
		}
		var f frame
		if err := json.Unmarshal(line, &f); err != nil {
			return fmt.Errorf("it wrote %.80q", line)
		}
		if err := s.handle(f); err != nil {
			return err
		}
	}
}

// readLine reads a line of at most limit bytes, without its end.
func readLine(in *bufio.Reader, limit int) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > limit {
			return nil, fmt.Errorf("it wrote a line of more than %d bytes", limit)
		}
		if err == nil {
			return line[:len(line)-1], nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// handle handles a frame. Of a kind that is not known there is nothing to do.
func (s *session) handle(f frame) error {
	switch f.Type {
	case "envelope":
		return s.take(f)
	case "ack":
		s.mu.Lock()
		answered, isOurs := s.sent[f.N]
		delete(s.sent, f.N)
		if isOurs {
			delete(s.contents, answered.SHA256)
		}
		s.mu.Unlock()
		if isOurs {
			answered.answer <- letter.Clip(f.Error, 300)
			<-s.slots
		}
	case "get":
		return s.serve(f)
	case "stop":
		s.mu.Lock()
		defer s.mu.Unlock()
		if stop := s.serves[f.N]; stop != nil {
			stop()
		}
	case "chunk":
		s.takeChunk(f)
	case "rows":
		s.link.saveRows(rowsKey(s.link.peer), f.Data, time.Now())
	case "all":
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.isAllAsked {
			s.isAllAsked = true
			go s.sendAll()
		}
	case "all-sent":
		notify(s.allSent)
	case "ping":
		if f.N == 0 { // it only says that the other side is there
			break
		}
		select {
		case s.pings <- f.N:
		default:
			return errors.New("it pings too often")
		}
	case "pong":
		if f.N > 0 {
			notify(s.ponged)
		}
	}
	return nil
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// fromHost is an envelope that the other side has handed over.
type fromHost struct {
	session *session
	n       uint64
	data    []byte
	sum     [sha256.Size]byte
	tries   uint64
}

func (s *session) take(f frame) error {
	s.mu.Lock()
	s.unanswered++
	isTooMuch := s.unanswered > window
	s.mu.Unlock()
	if isTooMuch {
		return fmt.Errorf("it sent more than %d envelopes at once", window)
	}
	l, d := s.link, &fromHost{session: s, n: f.N, data: f.Data, sum: sha256.Sum256(f.Data)}
	l.mu.Lock()
	if len(l.tries) > maxTried || l.tries == nil {
		l.tries = map[[sha256.Size]byte]uint64{}
	}
	l.tries[d.sum]++
	d.tries = l.tries[d.sum]
	l.mu.Unlock()
	s.deliveries <- d // which has room for all without an answer
	return nil
}

func (d *fromHost) Data() []byte              { return d.data }
func (d *fromHost) meta() (uint64, time.Time) { return d.tries, time.Time{} }
func (d *fromHost) InProgress() error         { return nil }

func (d *fromHost) accept() error {
	d.session.link.mu.Lock()
	delete(d.session.link.tries, d.sum)
	d.session.link.mu.Unlock()
	return d.answer("")
}

func (d *fromHost) refuse(err error, _ time.Duration) error {
	return d.answer(letter.Clip(err.Error(), 300))
}

func (d *fromHost) answer(why string) error {
	d.session.mu.Lock()
	d.session.unanswered--
	d.session.mu.Unlock()
	d.session.write(frame{Type: "ack", N: d.n, Error: why})
	return nil
}

func (s *session) forgetFetch(n uint64) *io.PipeWriter {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.fetches[n]
	delete(s.fetches, n)
	return w
}

// takeChunk passes a part of an object to who fetches it.
func (s *session) takeChunk(f frame) {
	s.mu.Lock()
	w := s.fetches[f.N]
	s.mu.Unlock()
	if w == nil {
		return
	}
	w.Write(f.Data) // an error says that nobody wants it any more
	if f.End || f.Error != "" {
		s.forgetFetch(f.N)
		if f.Error != "" {
			w.CloseWithError(errors.New(letter.Clip(f.Error, 300)))
		}
		w.Close()
	}
}

// serve sends an object that was offered to the other side.
func (s *session) serve(f frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.serves) >= maxServes || s.serves[f.N] != nil {
		return fmt.Errorf("it asked for more than %d objects at once", maxServes)
	}
	open := s.offers[f.SHA256]
	if content, ok := s.contents[f.SHA256]; ok {
		open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	}
	ctx, stop := context.WithCancel(s.ctx)
	s.serves[f.N] = stop
	go func() {
		err := errors.New("it was not offered")
		if open != nil {
			err = s.sendObject(ctx, f.N, open)
		}
		last := frame{Type: "chunk", N: f.N, End: true}
		if err != nil {
			last.Error = letter.Clip(err.Error(), 300)
		}
		s.writeAfter(func() { // the other side may ask for another once it has read this
			s.mu.Lock()
			delete(s.serves, f.N)
			s.mu.Unlock()
		}, last)
		stop()
	}()
	return nil
}

func (s *session) sendObject(ctx context.Context, n uint64, open func() (io.ReadCloser, error)) error {
	content, err := open()
	if err != nil {
		return err
	}
	defer content.Close()
	for buf := make([]byte, chunkSize); ctx.Err() == nil; {
		k, err := io.ReadFull(content, buf)
		if k > 0 {
			s.write(frame{Type: "chunk", N: n, Data: buf[:k]})
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// sendAll sends all that there is, and says so.
func (s *session) sendAll() {
	for _, step := range []func(context.Context) error{s.link.send, s.link.sendStages, s.link.send, s.link.sendRows} {
		if err := step(s.ctx); err != nil && s.ctx.Err() == nil {
			s.link.warn("%s", line(err))
		}
	}
	s.mu.Lock()
	s.isAllAsked = false
	s.mu.Unlock()
	s.write(frame{Type: "all-sent"})
}
