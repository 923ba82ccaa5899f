package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/tailscale/peercred"
)

const (
	version      = 2               // of the protocol
	closeTimeout = 2 * time.Second // for a viewer to read the rest of the output
	maxPath      = 100             // of a socket: macOS takes 103 bytes

	maxClients  = 128              // at once; more wait for their greeting
	sendTimeout = 10 * time.Second // for a client to read an answer
	maxAnswer   = 64 << 20         // bytes of one: a screen of a million cells with its colours
)

// Tests shorten these.
var (
	idleTimeout       = time.Minute // for a client to say nothing between two requests
	maxRequest  int64 = 4 << 20     // bytes of one
)

type request struct {
	Op   string          `json:"op"`
	With json.RawMessage `json:"with,omitempty"`
}

type answer struct {
	OK     bool   `json:"ok,omitempty"`
	Result any    `json:"result,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// A connection carries lines of JSON in both directions.
type connection struct {
	*net.UnixConn
	*json.Encoder
	uid string // of the process at the other end, when it connected or listened
	pid int

	lines   *json.Decoder
	unread  io.LimitedReader // the bytes that a line may still have
	maxLine int64
}

// newConnection makes a connection whose lines from the other end have at most maxLine bytes.
func newConnection(conn *net.UnixConn, maxLine int64) *connection {
	c := &connection{UnixConn: conn, Encoder: json.NewEncoder(conn), maxLine: maxLine}
	c.unread.R = conn
	c.lines = json.NewDecoder(&c.unread)
	if creds, err := peercred.Get(conn); err == nil {
		c.uid, _ = creds.UserID()
		c.pid, _ = creds.PID()
	}
	return c
}

// Decode reads a line.
func (c *connection) Decode(line any) error {
	c.unread.N = c.maxLine
	return c.lines.Decode(line)
}

// isTrusted reports whether the process at the other end is this user's, or root's.
func (c *connection) isTrusted() bool { return c.uid == "0" || c.uid == strconv.Itoa(os.Geteuid()) }

// A Server listens on an agent's control socket.
type Server struct {
	dir      string
	listener *net.UnixListener
	file     fs.FileInfo // the socket
}

// Listen makes the socket in a run directory, replacing a dead runner's. The caller holds the runner lock.
func Listen(dir string) (*Server, error) {
	removeSocket(dir)
	path := filepath.Join(dir, socketName)
	if len(path) > maxPath {
		var short string
		var err error
		// The first may be another user's, as after su, or gone; the first two may be too long themselves.
		for _, parent := range []string{os.Getenv("XDG_RUNTIME_DIR"), "", "/tmp"} {
			short, err = os.MkdirTemp(parent, "atm-")
			if err == nil && len(filepath.Join(short, socketName)) <= maxPath {
				break
			}
			os.Remove(short)
		}
		if err != nil {
			return nil, fmt.Errorf("the path of %s is too long for a socket: %w", path, err)
		}
		if err := os.Symlink(filepath.Join(short, socketName), path); err != nil {
			return nil, err
		}
	}
	path = socketPath(dir)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	file, err := os.Lstat(path)
	return &Server{dir, listener, file}, errors.Join(err, os.Chmod(path, 0o600))
}

func socketPath(dir string) string {
	path := filepath.Join(dir, socketName)
	if target, err := os.Readlink(path); err == nil {
		return target
	}
	return path
}

func connect(dir string) (*net.UnixConn, error) {
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: socketPath(dir), Net: "unix"})
}

// removeSocket removes the socket, and if it is elsewhere its directory and the link.
func removeSocket(dir string) {
	path, link := socketPath(dir), filepath.Join(dir, socketName)
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		os.Remove(path)
	}
	if path != link {
		os.Remove(filepath.Dir(path))
		os.Remove(link)
	}
}

// Serve answers clients until ctx ends or Close is called, and then waits for its goroutines: one for each client,
// three for each viewer.
func (s *Server) Serve(ctx context.Context, h Handler) error {
	var clients sync.WaitGroup
	defer clients.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { s.listener.Close() })()
	free := make(chan struct{}, maxClients)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			time.Sleep(50 * time.Millisecond) // temporarily out of file descriptors
			<-free
			continue
		}
		clients.Go(func() {
			serve(ctx, conn, h)
			<-free
		})
	}
}

// Close removes the socket, if it is not yet another runner's, and ends every connection.
func (s *Server) Close() error {
	if now, err := os.Lstat(socketPath(s.dir)); err == nil && os.SameFile(now, s.file) {
		removeSocket(s.dir)
	}
	err := s.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil // closed when Serve's context ended
	}
	return err
}

func serve(ctx context.Context, conn *net.UnixConn, h Handler) {
	c := newConnection(conn, maxRequest)
	defer c.Close()
	c.SetWriteDeadline(time.Now().Add(sendTimeout))
	if !c.isTrusted() {
		c.Encode(newAnswer(nil, &Error{Code: "refused", Message: "this runner belongs to another user"}))
		return
	}
	// When ctx ends, stop waiting for requests, and for a client that does not read its answer.
	defer context.AfterFunc(ctx, func() {
		c.SetReadDeadline(time.Unix(1, 0))
		c.SetWriteDeadline(time.Now().Add(closeTimeout))
	})()
	err := c.Encode(newAnswer(version, nil))
	for err == nil {
		r := request{With: json.RawMessage("null")}
		c.SetReadDeadline(time.Now().Add(idleTimeout))
		if ctx.Err() != nil {
			return
		}
		if bad := c.Decode(&r); bad != nil || ctx.Err() != nil {
			if c.unread.N <= 0 {
				c.Encode(newAnswer(nil, usage(fmt.Sprintf("a request has at most %d bytes", maxRequest))))
			}
			return
		}
		if r.Op == "attach" {
			c.attach(ctx, h, r)
			return
		}
		reply := newAnswer(c.handle(ctx, h, r))
		if ctx.Err() == nil {
			c.SetWriteDeadline(time.Now().Add(sendTimeout))
		}
		err = c.Encode(reply)
	}
}

// handle calls the Handler for any operation but attach.
func (c *connection) handle(ctx context.Context, h Handler, r request) (any, error) {
	switch r.Op {
	case "status":
		return h.Status(ctx)
	case "screen":
		return handleWith(ctx, r, h.Screen)
	case "type":
		return handleWith(ctx, r, func(ctx context.Context, t TypeRequest) (Outcome, error) {
			t.PID = c.pid
			return h.Type(ctx, t)
		})
	case "interrupt":
		return h.Interrupt(ctx)
	case "answer":
		return handleWith(ctx, r, func(ctx context.Context, a AnswerRequest) (Outcome, error) {
			a.PID = c.pid
			return h.Answer(ctx, a)
		})
	case "stop":
		return h.Stop(ctx)
	case "restart":
		return h.Restart(ctx)
	}
	return nil, usage("no operation " + strconv.Quote(r.Op))
}

func usage(message string) error { return &Error{Code: "usage", Message: message} }

func handleWith[R, A any](ctx context.Context, r request, method func(context.Context, R) (A, error)) (any, error) {
	var with R
	if err := json.Unmarshal(r.With, &with); err != nil {
		return nil, usage(err.Error())
	}
	return method(ctx, with)
}

func (c *connection) attach(ctx context.Context, h Handler, r request) {
	// A viewer may be suspended for hours.
	c.SetReadDeadline(time.Time{})
	c.SetWriteDeadline(time.Time{})
	if ctx.Err() != nil {
		return
	}
	var with AttachRequest
	err := json.Unmarshal(r.With, &with)
	if c.Encode(newAnswer(nil, err)) != nil || err != nil {
		return
	}
	viewing, cancel := context.WithCancel(ctx) // cancelled below, after the last output
	v := &Viewer{input: make(chan Input, 16), lines: make(chan output, maxQueued)}
	var reading, writing sync.WaitGroup
	reading.Go(func() { v.read(viewing, c, with.ReadOnly) })
	writing.Go(func() { v.write(c) })
	err = h.Attach(viewing, with, v)
	last := output{Exit: v.exit, Detached: "detached"}
	if ctx.Err() != nil {
		last.Detached = "the runner is stopping"
	} else if err != nil {
		last.Detached = err.Error()
	}
	close(v.lines)
	c.SetWriteDeadline(time.Now().Add(closeTimeout))
	writing.Wait()
	c.Encode(last)
	cancel()
	c.Close() // ends the reading
	reading.Wait()
}

func newAnswer(result any, err error) answer {
	if err == nil {
		return answer{OK: true, Result: result}
	}
	failure, ok := errors.AsType[*Error](err)
	if !ok {
		failure = &Error{Code: "failed", Message: err.Error()}
	}
	return answer{Error: failure}
}
