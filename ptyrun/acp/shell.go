//go:build linux || darwin

package acp

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/wire"
)

// shell is a command that the agent has begun here, which the protocol calls a terminal.
type shell struct {
	cmd  *exec.Cmd
	over chan struct{} // closed when it has ended

	lock        sync.Mutex
	output      []byte
	limit       int
	isTruncated bool
}

// shells are those by their ids.
type shells struct {
	lock sync.Mutex
	all  map[string]*shell
}

// maxOutput is how much of a command's output is kept, unless less is wanted.
const maxOutput = 1 << 20

// Write keeps the end of the output.
func (s *shell) Write(p []byte) (int, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.output = append(s.output, p...)
	if cut := len(s.output) - s.limit; cut > 0 {
		s.output, s.isTruncated = append([]byte(nil), s.output[cut:]...), true
	}
	return len(p), nil
}

func (s *shell) kill() { syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) }

// status is how it has ended, nil while it runs.
func (s *shell) status() *acp.TerminalExitStatus {
	select {
	case <-s.over:
	default:
		return nil
	}
	if w, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return &acp.TerminalExitStatus{Signal: acp.Ptr(w.Signal().String())}
	}
	return &acp.TerminalExitStatus{ExitCode: acp.Ptr(s.cmd.ProcessState.ExitCode())}
}

// CreateTerminal begins a command: as it is where it has arguments, else by the shell.
func (f *front) CreateTerminal(_ context.Context, p acp.CreateTerminalRequest) (r acp.CreateTerminalResponse, err error) {
	dir, err := filepath.EvalSymlinks(value(p.Cwd))
	if p.Cwd == nil {
		dir, err = f.realIn, nil
	}
	if err == nil {
		_, err = f.local(dir)
	}
	if err != nil {
		return r, refusal("run "+p.Command, err)
	}
	s := &shell{cmd: exec.Command(p.Command, p.Args...), over: make(chan struct{}), limit: maxOutput}
	if len(p.Args) == 0 {
		s.cmd = exec.Command("sh", "-c", p.Command)
	}
	if p.OutputByteLimit != nil {
		s.limit = min(max(*p.OutputByteLimit, 0), maxOutput)
	}
	s.cmd.Dir, s.cmd.Env = dir, os.Environ()
	for _, v := range p.Env {
		s.cmd.Env = append(s.cmd.Env, v.Name+"="+v.Value)
	}
	s.cmd.Stdout, s.cmd.Stderr = s, s
	s.cmd.SysProcAttr, s.cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, time.Second
	f.shells.lock.Lock()
	defer f.shells.lock.Unlock()
	if err := s.cmd.Start(); err != nil {
		return r, refusal("run "+p.Command, err)
	}
	go func() {
		s.cmd.Wait()
		close(s.over)
	}()
	r.TerminalId = string(wire.NewID())
	if f.shells.all == nil {
		f.shells.all = map[string]*shell{}
	}
	f.shells.all[r.TerminalId] = s
	return r, nil
}

// end ends them all.
func (s *shells) end() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, one := range s.all {
		one.kill()
	}
}

func (s *shells) find(id string) (*shell, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.all[id] == nil {
		return nil, refusal("terminal "+id, errors.New("there is none"))
	}
	return s.all[id], nil
}

// TerminalOutput is what a command has written so far.
func (f *front) TerminalOutput(_ context.Context, p acp.TerminalOutputRequest) (r acp.TerminalOutputResponse, err error) {
	s, err := f.shells.find(p.TerminalId)
	if err != nil {
		return r, err
	}
	r.ExitStatus = s.status()
	s.lock.Lock()
	defer s.lock.Unlock()
	r.Output, r.Truncated = strings.ToValidUTF8(string(s.output), ""), s.isTruncated
	return r, nil
}

// WaitForTerminalExit waits for a command's end.
func (f *front) WaitForTerminalExit(ctx context.Context, p acp.WaitForTerminalExitRequest) (r acp.WaitForTerminalExitResponse, err error) {
	s, err := f.shells.find(p.TerminalId)
	if err != nil {
		return r, err
	}
	select {
	case <-s.over:
		r.ExitCode, r.Signal = s.status().ExitCode, s.status().Signal
	case <-ctx.Done():
		return r, acp.NewRequestCancelled(nil)
	}
	return r, nil
}

// KillTerminal ends a command; its output stays.
func (f *front) KillTerminal(_ context.Context, p acp.KillTerminalRequest) (r acp.KillTerminalResponse, err error) {
	s, err := f.shells.find(p.TerminalId)
	if err == nil {
		s.kill()
	}
	return r, err
}

// ReleaseTerminal ends a command, and forgets it.
func (f *front) ReleaseTerminal(_ context.Context, p acp.ReleaseTerminalRequest) (r acp.ReleaseTerminalResponse, err error) {
	s, err := f.shells.find(p.TerminalId)
	if err == nil {
		s.kill()
		f.shells.lock.Lock()
		delete(f.shells.all, p.TerminalId)
		f.shells.lock.Unlock()
	}
	return r, err
}
