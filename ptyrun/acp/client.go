//go:build linux || darwin

package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/wire"
)

// local makes a path relative to the member's directory. The error says that it is outside. os.Root checks the links.
func (f *front) local(path string) (string, error) {
	for _, dir := range []string{f.Dir, f.realDir} {
		if rel, _ := filepath.Rel(dir, path); filepath.IsLocal(rel) { // "" for a relative path is not
			return rel, nil
		}
	}
	return "", fmt.Errorf("it is outside %s", f.Dir)
}

// invalidParams is the error response for a file or terminal request.
func invalidParams(operation string, err error) error {
	if err == nil {
		return nil
	}
	e := acp.NewInvalidParams(map[string]any{"error": fmt.Sprintf("%s: %v", operation, err)})
	if errors.Is(err, fs.ErrNotExist) {
		e.Code, e.Message = -32002, "Resource not found"
	}
	return e
}

// ReadTextFile reads a file or some of its lines.
func (f *front) ReadTextFile(_ context.Context, p acp.ReadTextFileRequest) (r acp.ReadTextFileResponse, err error) {
	rel, err := f.local(p.Path)
	var data []byte
	if err == nil {
		data, err = f.files.ReadFile(rel)
	}
	if err == nil && !utf8.Valid(data) {
		err = errors.New("it is not UTF-8 text")
	}
	lines := strings.SplitAfter(string(data), "\n")
	lines = lines[min(max(value(p.Line)-1, 0), len(lines)):]
	if p.Limit != nil {
		lines = lines[:min(max(*p.Limit, 0), len(lines))]
	}
	r.Content = strings.Join(lines, "")
	return r, invalidParams("read "+p.Path, err)
}

// WriteTextFile writes a file and makes its directories.
func (f *front) WriteTextFile(_ context.Context, p acp.WriteTextFileRequest) (r acp.WriteTextFileResponse, err error) {
	rel, err := f.local(p.Path)
	if err == nil {
		err = f.files.MkdirAll(filepath.Dir(rel), 0o755)
	}
	if err == nil {
		err = f.files.WriteFile(rel, []byte(p.Content), 0o644)
	}
	return r, invalidParams("write "+p.Path, err)
}

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

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
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
func (f *front) ReleaseTerminal(_ context.Context, p acp.ReleaseTerminalRequest) (r acp.ReleaseTerminalResponse, err error) {
	if t, ok := f.terminals.LoadAndDelete(p.TerminalId); ok {
		t.(*terminal).kill()
	}
	return r, nil
}
