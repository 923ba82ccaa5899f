// Package ownserver has the server that a program would share with other agents, of whose environment it would then have a
// part, and that this program has for itself: see driver.WithServer. It starts and ends with the program.
package ownserver

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/ptyrun/internal/terminal"
	"github.com/agentteammail/atm/ptyrun/process"
)

// Servers start the server of each program of a run.
type Servers struct {
	r   *run.Run
	o   Options
	dir string // for the socket; "": the program has no server for itself
}

// Options say what the program is, and who is told of its server.
type Options struct {
	Command []string
	Driver  *driver.Driver
	Dir     string
	Env     []string
	Serves  func(ctx context.Context, socket string, pid int) // is called beside the loop for a program's server, until ctx ends; may be nil
}

// A Server is the server of one program. It ends with the program. One that ends before is started again, because the
// program waits for it.
type Server struct {
	Program []string // the command line that uses it

	helper  *process.Helper
	started time.Time
}

// socketName is the name of the socket in a directory of its own, which begins with dirPrefix.
const socketName, dirPrefix = "sock", "atm-server-"

// New makes the directory for the socket of the program's own server, if it has one: private, and with a short path. Close
// removes it.
func New(r *run.Run, o Options) *Servers {
	s := &Servers{r: r, o: o}
	if _, _, ok := o.Driver.WithServer(o.Command, ""); !ok {
		return s
	}
	for _, parent := range []string{os.Getenv("XDG_RUNTIME_DIR"), "", "/tmp"} { // the first may be another user's
		dir, err := os.MkdirTemp(parent, dirPrefix)
		if err == nil && len(dir) < 90 { // macOS takes 103 bytes
			s.dir = dir
			return s
		}
		os.Remove(dir)
	}
	return s
}

// Dir returns that directory; "": there is none.
func (s *Servers) Dir() string { return s.dir }

// Close removes it.
func (s *Servers) Close() error {
	Remove(s.dir)
	return nil
}

// Remove removes such a directory, perhaps that of a killed runner.
func Remove(dir string) {
	if strings.HasPrefix(filepath.Base(dir), dirPrefix) {
		os.Remove(filepath.Join(dir, socketName))
		os.Remove(dir)
	}
}

func (s *Servers) socket() string { return filepath.Join(s.dir, socketName) }

// Start starts the server for a program with that command line, and returns when it listens. It returns nil if the program
// has none for itself. It may be called beside the loop.
func (s *Servers) Start(ctx context.Context, command []string) (*Server, error) {
	if s.dir == "" {
		return nil, nil
	}
	socket := s.socket()
	argv, program, ok := s.o.Driver.WithServer(command, socket)
	if !ok {
		return nil, nil
	}
	os.Remove(socket)
	said := &lastLine{}
	h, err := process.StartHelper(process.Command{Argv: argv, Dir: s.o.Dir, Env: s.o.Env}, said)
	if err != nil {
		return nil, err
	}
	server := &Server{helper: h, Program: program, started: s.r.Now()}
	late := time.After(s.r.Timing.Serving)
	for {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			return server, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
			continue
		case <-h.Done():
			err = fmt.Errorf("it exited with %d%s", h.Exit().Code, said)
		case <-late:
			err = fmt.Errorf("it does not listen after %s", s.r.Timing.Serving)
		case <-ctx.Done():
			err = ctx.Err()
		}
		h.Kill()
		return nil, err
	}
}

// Kill ends a server that no program uses.
func (s *Server) Kill() { s.helper.Kill() }

// lastLine keeps the last line of what is written.
type lastLine struct{ line []byte }

func (l *lastLine) Write(p []byte) (int, error) {
	all := append(l.line, p...)
	all = all[max(0, len(all)-4096):]
	if i := strings.LastIndexByte(strings.TrimRight(string(all), "\n"), '\n'); i >= 0 {
		all = all[i+1:]
	}
	l.line = slices.Clone(all)
	return len(p), nil
}

// String returns ": LINE", or "" without one. Only when all was written.
func (l *lastLine) String() string {
	if line := strings.TrimSpace(string(l.line)); line != "" {
		return ": " + letter.Escape(line)
	}
	return ""
}

// With calls start in the loop with the server for a program with that command line, which is started beside the loop.
func (s *Servers) With(command []string, start func(*Server, error)) {
	if s.dir == "" {
		start(nil, nil)
		return
	}
	s.r.Go(func() {
		server, err := s.Start(s.r.Context(), command)
		if !s.r.Post(func() { start(server, err) }) && server != nil {
			server.Kill()
		}
	})
}

// Join makes a server end with the program on a terminal, and start again if it ends before.
func (s *Servers) Join(t *terminal.Terminal, server *Server) {
	(&joined{s: s, t: t}).join(server)
}

// joined are the servers of one program, one after another.
type joined struct {
	s      *Servers
	t      *terminal.Terminal
	starts run.Restarts
}

func (j *joined) join(server *Server) {
	j.t.Join(server.helper)
	r, s := j.s.r, j.s
	serving, stop := context.WithCancel(r.Context())
	if s.o.Serves != nil {
		r.Go(func() { s.o.Serves(serving, s.socket(), j.t.PID()) })
	}
	r.Go(func() {
		defer stop()
		select {
		case <-server.helper.Done():
			r.Post(func() {
				exit := server.helper.Exit()
				j.plan("its server has ended: "+cmp.Or(exit.Signal, fmt.Sprintf("exit %d", exit.Code)), r.Now().Sub(server.started))
			})
		case <-r.Context().Done():
		}
	})
}

func (j *joined) isCurrent() bool {
	select {
	case <-j.t.Done():
		return false
	default:
		return terminal.Of(j.s.r) == j.t && !j.s.r.IsStopping
	}
}

// plan plans the start of another server after the last one, which ran so long.
func (j *joined) plan(why string, ran time.Duration) {
	r := j.s.r
	switch {
	case !j.isCurrent():
		return
	case j.starts.Plan(r.Now(), ran, r.Timing.Backoff):
		r.ReportError(fmt.Sprintf("%s, %d times within a minute: only a restart of the agent starts it again", why, run.LoopAfter))
		return
	}
	r.ReportError(why + "; it is started again")
	time.AfterFunc(j.starts.Pause, func() {
		r.Post(func() {
			if j.isCurrent() {
				j.s.With(j.s.o.Command, j.take)
			}
		})
	})
}

func (j *joined) take(server *Server, err error) {
	switch {
	case err != nil:
		j.plan("its server does not start: "+err.Error(), 0)
	case server == nil: // its driver has changed
	case j.isCurrent():
		j.join(server)
	default:
		server.Kill()
	}
}
