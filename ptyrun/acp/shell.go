//go:build linux || darwin

package acp

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/wire"
)

// shell is a command that the agent has begun here, which the protocol calls a terminal.
type shell struct {
	cmd  *exec.Cmd
	kill context.CancelFunc
	over chan struct{} // closed when it has ended

	lock   sync.Mutex
	output []byte // the end of it
	limit  int
	isCut  bool
}

// maxOutput is how much of a command's output is kept, unless less is wanted.
const maxOutput = 1 << 20

func (s *shell) Write(p []byte) (int, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.output = append(s.output, p...)
	if cut := len(s.output) - s.limit; cut > 0 {
		s.output, s.isCut = append([]byte(nil), s.output[cut:]...), true
	}
	return len(p), nil
}

func (f *front) shell(id string) (*shell, error) {
	if one, ok := f.shells.Load(id); ok {
		return one.(*shell), nil
	}
	return nil, refusal("terminal "+id, errors.New("there is none"))
}

// CreateTerminal begins a command: as it is where it has arguments, else by the shell.
func (f *front) CreateTerminal(_ context.Context, p acp.CreateTerminalRequest) (r acp.CreateTerminalResponse, err error) {
	words := append([]string{p.Command}, p.Args...)
	if len(p.Args) == 0 {
		words = []string{"sh", "-c", p.Command}
	}
	ctx, kill := context.WithCancel(f.running)
	s := &shell{cmd: command(ctx, syscall.SIGKILL, words[0], words[1:]...), kill: kill, over: make(chan struct{}), limit: maxOutput}
	if p.OutputByteLimit != nil {
		s.limit = min(max(*p.OutputByteLimit, 0), maxOutput)
	}
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = os.Environ(), s, s
	for _, v := range p.Env {
		s.cmd.Env = append(s.cmd.Env, v.Name+"="+v.Value)
	}
	if s.cmd.Dir, err = filepath.EvalSymlinks(cmp.Or(value(p.Cwd), f.realIn)); err == nil {
		_, err = f.local(s.cmd.Dir)
	}
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		kill()
		return r, refusal("run "+p.Command, err)
	}
	f.commands.Go(func() {
		s.cmd.Wait()
		close(s.over)
	})
	r.TerminalId = string(wire.NewID())
	f.shells.Store(r.TerminalId, s)
	return r, nil
}

func (s *shell) status() (e acp.TerminalExitStatus) {
	if w, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		e.Signal = acp.Ptr(w.Signal().String())
		return e
	}
	e.ExitCode = acp.Ptr(s.cmd.ProcessState.ExitCode())
	return e
}

// TerminalOutput is what a command has written so far.
func (f *front) TerminalOutput(_ context.Context, p acp.TerminalOutputRequest) (r acp.TerminalOutputResponse, err error) {
	s, err := f.shell(p.TerminalId)
	if err != nil {
		return r, err
	}
	if isClosed(s.over) {
		r.ExitStatus = acp.Ptr(s.status())
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	r.Output, r.Truncated = strings.ToValidUTF8(string(s.output), ""), s.isCut
	return r, nil
}

// WaitForTerminalExit waits for a command's end.
func (f *front) WaitForTerminalExit(ctx context.Context, p acp.WaitForTerminalExitRequest) (r acp.WaitForTerminalExitResponse, err error) {
	s, err := f.shell(p.TerminalId)
	if err != nil {
		return r, err
	}
	select {
	case <-s.over:
		r.ExitCode, r.Signal = s.status().ExitCode, s.status().Signal
		return r, nil
	case <-ctx.Done():
		return r, acp.NewRequestCancelled(nil)
	}
}

// KillTerminal ends a command; its output stays.
func (f *front) KillTerminal(_ context.Context, p acp.KillTerminalRequest) (r acp.KillTerminalResponse, err error) {
	s, err := f.shell(p.TerminalId)
	if err == nil {
		s.kill()
	}
	return r, err
}

// ReleaseTerminal ends a command, and forgets it.
func (f *front) ReleaseTerminal(ctx context.Context, p acp.ReleaseTerminalRequest) (r acp.ReleaseTerminalResponse, err error) {
	_, err = f.KillTerminal(ctx, acp.KillTerminalRequest{TerminalId: p.TerminalId})
	f.shells.Delete(p.TerminalId)
	return r, err
}
