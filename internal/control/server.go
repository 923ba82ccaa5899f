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
	"strings"
	"sync"
	"time"

	"github.com/tailscale/peercred"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
)

const (
	version     = 3      // of the protocol
	maxPath     = 100    // of a socket: macOS takes 103 bytes
	shortPrefix = "atm-" // of the name of a directory that has a socket instead

	maxClients  = 128              // at once; more wait for their greeting
	sendTimeout = 10 * time.Second // for a client to read an answer
	maxAnswer   = 64 << 20         // bytes of one: a screen of a million cells with its colours
)

// Tests shorten these.
var (
	idleTimeout        = time.Minute     // for a client to say nothing between two requests
	closeTimeout       = 2 * time.Second // for it to read an answer, or a viewer the rest of the output, when the server ends
	maxRequest   int64 = 4 << 20         // bytes of a request
)

type request struct {
	Op   string          `json:"op"`
	With json.RawMessage `json:"with,omitempty"`

	pid int // the client's process; 0: unknown
}

type answer struct {
	OK        bool   `json:"ok,omitempty"`
	Result    any    `json:"result,omitempty"`
	Error     *Error `json:"error,omitempty"`
	Directory string `json:"directory,omitempty"` // with the version: the durable.ID of the run directory
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
	dir, id  string
	listener *net.UnixListener
	file     fs.FileInfo // the socket

	closeTimeout time.Duration // a copy: a goroutine of context.AfterFunc may outlast Serve
}

// Listen makes the socket in a run directory, replacing a dead runner's. The caller holds the runner lock.
func Listen(dir string) (*Server, error) {
	id, err := identify(dir)
	if err != nil {
		return nil, err
	}
	removeSocket(dir, false)
	path := filepath.Join(dir, socketName)
	if len(path) > maxPath {
		var short string
		var err error
		// The first may be another user's, as after su, or gone; the first two may be too long themselves.
		for _, parent := range []string{os.Getenv("XDG_RUNTIME_DIR"), "", "/tmp"} {
			short, err = os.MkdirTemp(parent, shortPrefix)
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
	if path, err = socketPath(dir); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	file, err := os.Lstat(path)
	return &Server{dir, id, listener, file, closeTimeout}, errors.Join(err, os.Chmod(path, 0o600))
}

// identify returns the durable.ID of a run directory, which must not be a link.
func identify(dir string) (string, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", &fs.PathError{Op: "open", Path: dir, Err: durable.ErrNotDirectory}
	}
	return durable.ID(info), nil
}

// socketPath returns the path of the socket. A link that no runner makes is ErrNoRunner.
func socketPath(dir string) (string, error) {
	path := filepath.Join(dir, socketName)
	target, err := os.Readlink(path)
	if err != nil {
		return path, nil
	}
	in, name := filepath.Split(target)
	if !filepath.IsAbs(target) || name != socketName || !strings.HasPrefix(filepath.Base(in), shortPrefix) {
		return target, ErrNoRunner
	}
	return target, nil
}

func connect(dir string) (*net.UnixConn, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	lockfile.Waits("dial " + path)
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
}

// removeSocket removes the socket, and if it is elsewhere its directory and the link. Elsewhere it may be another
// runner's: unless it isOurs, one that somebody listens on stays there.
func removeSocket(dir string, isOurs bool) {
	link := filepath.Join(dir, socketName)
	path, err := socketPath(dir)
	if info, gone := os.Lstat(path); err == nil && gone == nil && info.Mode()&fs.ModeSocket != 0 {
		if path == link || isOurs || !isServed(dir) {
			os.Remove(path)
		}
	}
	if path != link {
		os.Remove(filepath.Dir(path)) // unless there is something in it
		os.Remove(link)
	}
}

func isServed(dir string) bool {
	conn, err := connect(dir)
	if err == nil {
		conn.Close()
	}
	return err == nil
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
			s.serve(ctx, conn, h)
			<-free
		})
	}
}

// Close removes the socket, if it is not yet another runner's, and ends every connection.
func (s *Server) Close() error {
	path, err := socketPath(s.dir)
	if now, gone := os.Lstat(path); err == nil && gone == nil && os.SameFile(now, s.file) {
		removeSocket(s.dir, true)
	}
	err = s.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil // closed when Serve's context ended
	}
	return err
}

func (s *Server) serve(ctx context.Context, conn *net.UnixConn, h Handler) {
	c := newConnection(conn, maxRequest)
	defer c.Close()
	c.SetWriteDeadline(time.Now().Add(sendTimeout))
	if !c.isTrusted() {
		c.Encode(newAnswer(nil, Refused("this runner belongs to another user")))
		return
	}
	// When ctx ends, stop waiting for requests, and for a client that does not read its answer.
	defer context.AfterFunc(ctx, func() {
		c.SetReadDeadline(time.Unix(1, 0))
		c.SetWriteDeadline(time.Now().Add(s.closeTimeout))
	})()
	greeting := newAnswer(version, nil)
	greeting.Directory = s.id
	err := c.Encode(greeting)
	for err == nil {
		r := request{With: json.RawMessage("null"), pid: c.pid}
		c.SetReadDeadline(time.Now().Add(idleTimeout))
		if ctx.Err() != nil {
			return
		}
		if bad := c.Decode(&r); bad != nil || ctx.Err() != nil {
			if c.unread.N <= 0 {
				c.Encode(newAnswer(nil, Usage(fmt.Sprintf("a request has at most %d bytes", maxRequest))))
			}
			return
		}
		op, isKnown := operations[r.Op]
		var reply answer
		switch {
		case !isKnown:
			reply = newAnswer(nil, Usage("no operation "+strconv.Quote(r.Op)))
		case op.handle == nil:
			c.attach(ctx, h, r)
			return
		default:
			reply = newAnswer(op.run(ctx, h, r))
		}
		c.SetWriteDeadline(time.Now().Add(sendTimeout))
		if ctx.Err() != nil { // it may have ended long ago; if it ends only now, that sets the same
			c.SetWriteDeadline(time.Now().Add(s.closeTimeout))
		}
		err = c.Encode(reply)
	}
}

// operations has every operation, the right that a client needs for it, and what carries it out.
var operations = map[string]operation{
	"status":    {Look, handle(Runner.Status)},
	"screen":    {Look, handleWith(Runner.Screen)},
	"attach":    {Keys, nil}, // Look if it is read-only
	"type":      {Type, typeFor},
	"answer":    {Answer, handleWith(Handler.Answer)},
	"interrupt": {Act, handle(Runner.Interrupt)},
	"stop":      {Act, handle(Runner.Stop)},
	"restart":   {Act, handleWith(Runner.Restart)},
}

type operation struct {
	right  Right
	handle func(context.Context, Handler, request) (any, error) // nil: attach
}

func (op operation) run(ctx context.Context, h Handler, r request) (any, error) {
	var with requestBy
	json.Unmarshal(r.With, &with) // else it names nobody
	if err := h.CheckRight(op.right, r.pid, with.By); err != nil {
		return nil, err
	}
	return op.handle(ctx, h, r)
}

// errNotRun is the answer to all else that is asked of who only takes answers.
var errNotRun = Refused("atm does not run this program: it can only be answered")

// handle and handleWith have a method of H, Handler or Runner, carry out a request.
func handle[H, A any](method func(H, context.Context) (A, error)) func(context.Context, Handler, request) (any, error) {
	return handleWith(func(h H, ctx context.Context, _ any) (A, error) { return method(h, ctx) })
}

func handleWith[H, R, A any](method func(H, context.Context, R) (A, error)) func(context.Context, Handler, request) (any, error) {
	return func(ctx context.Context, h Handler, r request) (any, error) {
		var with R
		if err := json.Unmarshal(r.With, &with); err != nil {
			return nil, Usage(err.Error())
		}
		able, isAble := h.(H)
		if !isAble {
			return nil, errNotRun
		}
		return method(able, ctx, with)
	}
}

func typeFor(ctx context.Context, h Handler, r request) (any, error) {
	return handleWith(func(h Runner, ctx context.Context, t TypeRequest) (Outcome, error) {
		t.PID = r.pid
		return h.Type(ctx, t)
	})(ctx, h, r)
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
	right := operations["attach"].right
	if with.ReadOnly {
		right = Look
	}
	if err == nil {
		err = h.CheckRight(right, c.pid, with.By)
	}
	runner, isRunner := h.(Runner)
	if err == nil && !isRunner {
		err = errNotRun
	}
	if c.Encode(newAnswer(nil, err)) != nil || err != nil {
		return
	}
	viewing, cancel := context.WithCancel(ctx) // cancelled below, after the last output
	v := &Viewer{input: make(chan Input, 16), lines: make(chan output, maxQueued)}
	var reading, writing sync.WaitGroup
	reading.Go(func() { v.read(viewing, c, with.ReadOnly) })
	writing.Go(func() { v.write(c) })
	err = runner.Attach(viewing, with, v)
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
