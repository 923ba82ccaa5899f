package ptyrun

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
	"github.com/agentteammail/atm/ptyrun/process"
)

// An ownServer is a server that a program would share with other agents, of whose environment it would then have a part,
// and that this program has for itself: see driver.WithServer. It ends with the program. One that ends before is started
// again, because the program waits for it.
type ownServer struct {
	helper  *process.Helper
	program []string // the command line that uses it
	started time.Time
}

// serverWithin is how long a server may take until it listens; a test shortens it. Codex takes 0.3 s.
var serverWithin = 10 * time.Second

// serverSocket is the name of the socket in a directory of its own, which begins with serverPrefix.
const serverSocket, serverPrefix = "sock", "atm-server-"

// makeServerDir makes the directory for the socket of the program's own server, if it has one: private, and with a short
// path.
func (r *runner) makeServerDir() {
	if _, _, ok := driver.WithServer(r.Command, r.isScript, ""); !ok || !r.hasTerminal() {
		return
	}
	for _, parent := range []string{os.Getenv("XDG_RUNTIME_DIR"), "", "/tmp"} { // the first may be another user's
		dir, err := os.MkdirTemp(parent, serverPrefix)
		if err == nil && len(dir) < 90 { // macOS takes 103 bytes
			r.serverDir = dir
			return
		}
		os.Remove(dir)
	}
}

// removeServerDir removes such a directory, perhaps that of a killed runner.
func removeServerDir(dir string) {
	if strings.HasPrefix(filepath.Base(dir), serverPrefix) {
		os.Remove(filepath.Join(dir, serverSocket))
		os.Remove(dir)
	}
}

// startServer starts the server for a program with that command line, and returns when it listens. It returns nil if the
// program has none for itself. It may be called beside the loop.
func (r *runner) startServer(ctx context.Context, command []string) (*ownServer, error) {
	if r.serverDir == "" {
		return nil, nil
	}
	socket := filepath.Join(r.serverDir, serverSocket)
	argv, program, ok := driver.WithServer(command, r.isScript, socket)
	if !ok {
		return nil, nil
	}
	os.Remove(socket)
	said := &lastLine{}
	h, err := process.StartHelper(process.Command{Argv: argv, Dir: r.Dir, Env: r.Env}, said)
	if err != nil {
		return nil, err
	}
	s := &ownServer{helper: h, program: program, started: r.now()}
	late := time.After(serverWithin)
	for {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			return s, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
			continue
		case <-h.Done():
			err = fmt.Errorf("it exited with %d%s", h.Exit().Code, said)
		case <-late:
			err = fmt.Errorf("it does not listen after %s", serverWithin)
		case <-ctx.Done():
			err = ctx.Err()
		}
		h.Kill()
		return nil, err
	}
}

// runsWithoutServer says that the program is started without a server of its own.
func (r *runner) runsWithoutServer(why error) {
	r.reportError("it runs without a server of its own: " + why.Error())
}

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

// withServer calls start in the loop with the program's server, which is started beside the loop.
func (r *runner) withServer(command []string, start func(*ownServer, error)) {
	if r.serverDir == "" {
		start(nil, nil)
		return
	}
	r.wg.Go(func() {
		s, err := r.startServer(r.ctx, command)
		if !r.post(func() { start(s, err) }) && s != nil {
			s.helper.Kill()
		}
	})
}

// join makes the server end with the program, and start again if it ends before.
func (p *terminal) join(s *ownServer) {
	p.Child.Join(s.helper)
	r := p.r
	serving, stop := context.WithCancel(r.ctx)
	if r.Serves != nil {
		r.wg.Go(func() { r.Serves(serving, Server{Socket: filepath.Join(r.serverDir, serverSocket), Program: p.PID()}) })
	}
	r.wg.Go(func() {
		defer stop()
		select {
		case <-s.helper.Done():
			r.post(func() { p.serverEnded(s) })
		case <-r.ctx.Done():
		}
	})
}

func (p *terminal) isCurrent() bool {
	r := p.r
	return r.prog != nil && r.prog.agent == agent(p) && r.stopping == nil && !isClosed(p.Done())
}

func (p *terminal) serverEnded(s *ownServer) {
	exit := s.helper.Exit()
	p.planServer("its server has ended: "+cmp.Or(exit.Signal, fmt.Sprintf("exit %d", exit.Code)), p.r.now().Sub(s.started))
}

// planServer plans the start of another server after the last one, which ran so long.
func (p *terminal) planServer(why string, ran time.Duration) {
	r := p.r
	switch {
	case !p.isCurrent():
		return
	case p.serverStarts.plan(r.now(), ran, r.timing.backoff):
		r.reportError(fmt.Sprintf("%s, %d times within a minute: only a restart of the agent starts it again", why, loopAfter))
		return
	}
	r.reportError(why + "; it is started again")
	time.AfterFunc(p.serverStarts.pause, func() {
		r.post(func() {
			if p.isCurrent() {
				r.withServer(r.Command, p.takeServer)
			}
		})
	})
}

func (p *terminal) takeServer(s *ownServer, err error) {
	switch {
	case err != nil:
		p.planServer("its server does not start: "+err.Error(), 0)
	case s == nil: // its driver has changed
	case p.isCurrent():
		p.join(s)
	default:
		s.helper.Kill()
	}
}
