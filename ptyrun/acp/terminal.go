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

// terminal is the protocol's word for a command that the agent runs here.
type terminal struct {
	cmd   *exec.Cmd
	kill  context.CancelFunc
	ended chan struct{} // closed when the command has ended

	mu          sync.Mutex
	output      []byte // of a long output the end
	limit       int    // bytes of output
	isTruncated bool
}

// maxOutput is the limit in bytes for the output, unless the agent wants less.
const maxOutput = 1 << 20

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.output = append(t.output, p...)
	if excess := len(t.output) - t.limit; excess > 0 {
		t.output, t.isTruncated = append([]byte(nil), t.output[excess:]...), true
	}
	return len(p), nil
}

func (f *front) terminal(id string) (*terminal, error) {
	if t, ok := f.terminals.Load(id); ok {
		return t.(*terminal), nil
	}
	return nil, invalidParams("terminal "+id, errors.New("no such terminal"))
}

// CreateTerminal starts a command: directly if it has arguments, else in a shell.
func (f *front) CreateTerminal(_ context.Context, p acp.CreateTerminalRequest) (r acp.CreateTerminalResponse, err error) {
	words := append([]string{p.Command}, p.Args...)
	if len(p.Args) == 0 {
		words = []string{"sh", "-c", p.Command}
	}
	ctx, kill := context.WithCancel(f.running)
	t := &terminal{cmd: command(ctx, syscall.SIGKILL, words[0], words[1:]...), kill: kill, ended: make(chan struct{}), limit: maxOutput}
	if p.OutputByteLimit != nil {
		t.limit = min(max(*p.OutputByteLimit, 0), maxOutput)
	}
	t.cmd.Env, t.cmd.Stdout, t.cmd.Stderr = os.Environ(), t, t
	for _, v := range p.Env {
		t.cmd.Env = append(t.cmd.Env, v.Name+"="+v.Value)
	}
	if t.cmd.Dir, err = filepath.EvalSymlinks(cmp.Or(value(p.Cwd), f.realDir)); err == nil {
		_, err = f.local(t.cmd.Dir)
	}
	if err == nil {
		err = t.cmd.Start()
	}
	if err != nil {
		kill()
		return r, invalidParams("run "+p.Command, err)
	}
	f.commands.Go(func() {
		t.cmd.Wait()
		close(t.ended)
	})
	r.TerminalId = string(wire.NewID())
	f.terminals.Store(r.TerminalId, t)
	return r, nil
}

func (t *terminal) status() acp.TerminalExitStatus {
	if w := t.cmd.ProcessState.Sys().(syscall.WaitStatus); w.Signaled() {
		return acp.TerminalExitStatus{Signal: acp.Ptr(w.Signal().String())}
	}
	return acp.TerminalExitStatus{ExitCode: acp.Ptr(t.cmd.ProcessState.ExitCode())}
}

// TerminalOutput returns the output so far.
func (f *front) TerminalOutput(_ context.Context, p acp.TerminalOutputRequest) (r acp.TerminalOutputResponse, err error) {
	t, err := f.terminal(p.TerminalId)
	if err != nil {
		return r, err
	}
	if isClosed(t.ended) {
		r.ExitStatus = acp.Ptr(t.status())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Output, r.Truncated = strings.ToValidUTF8(string(t.output), ""), t.isTruncated
	return r, nil
}

// WaitForTerminalExit waits until the command has ended.
func (f *front) WaitForTerminalExit(ctx context.Context, p acp.WaitForTerminalExitRequest) (r acp.WaitForTerminalExitResponse, err error) {
	t, err := f.terminal(p.TerminalId)
	if err != nil {
		return r, err
	}
	select {
	case <-t.ended:
		return acp.WaitForTerminalExitResponse(t.status()), nil
	case <-ctx.Done():
		return r, acp.NewRequestCancelled(nil)
	}
}

// KillTerminal kills the command and keeps its output.
func (f *front) KillTerminal(_ context.Context, p acp.KillTerminalRequest) (r acp.KillTerminalResponse, err error) {
	t, err := f.terminal(p.TerminalId)
	if err == nil {
		t.kill()
	}
	return r, err
}

// ReleaseTerminal kills the command and forgets it.
func (f *front) ReleaseTerminal(ctx context.Context, p acp.ReleaseTerminalRequest) (r acp.ReleaseTerminalResponse, err error) {
	_, err = f.KillTerminal(ctx, acp.KillTerminalRequest{TerminalId: p.TerminalId})
	f.terminals.Delete(p.TerminalId)
	return r, err
}
