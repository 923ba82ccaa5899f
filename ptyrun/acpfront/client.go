//go:build linux || darwin

package acpfront

import (
	"cmp"
	"context"
	"encoding/json"
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

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// handle carries out a request of the agent. The SDK's own client would make floats of the numbers in a tool's input,
// and refuse to write an empty file.
func (f *front) handle(ctx context.Context, method string, params json.RawMessage) (any, *acp.RequestError) {
	var result any
	var err error
	switch method {
	case acp.ClientMethodSessionRequestPermission:
		result, err = with(params, func(p permissionRequest) (any, error) { return f.requestPermission(ctx, p), nil })
	case acp.ClientMethodFsReadTextFile:
		result, err = with(params, f.readFile)
	case acp.ClientMethodFsWriteTextFile:
		result, err = with(params, func(p writeRequest) (any, error) { return f.writeFile(ctx, p) })
	case acp.ClientMethodTerminalCreate:
		result, err = with(params, func(p acp.CreateTerminalRequest) (any, error) { return f.createTerminal(ctx, p) })
	case acp.ClientMethodTerminalOutput, acp.ClientMethodTerminalWaitForExit, acp.ClientMethodTerminalKill, acp.ClientMethodTerminalRelease:
		result, err = with(params, func(p struct{ TerminalID string }) (any, error) { return f.useTerminal(ctx, method, p.TerminalID) })
	default:
		return nil, acp.NewMethodNotFound(method)
	}
	if err == nil {
		return result, nil
	}
	e := acp.NewInvalidParams(map[string]any{"error": err.Error()})
	if errors.Is(err, fs.ErrNotExist) {
		e.Code, e.Message = -32002, "Resource not found"
	} else if ctx.Err() != nil {
		e = acp.NewRequestCancelled(nil)
	}
	return nil, e
}

// with decodes the parameters of a request and carries it out.
func with[P any](params json.RawMessage, do func(P) (any, error)) (any, error) {
	var p P
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	return do(p)
}

// local makes a path relative to the member's directory. The error says that it is outside, or a pipe, which could block
// for ever. os.Root checks the links.
func (f *front) local(path string) (rel string, err error) {
	for _, dir := range []string{f.Dir, f.realDir} {
		if rel, _ = filepath.Rel(dir, path); filepath.IsLocal(rel) { // "" for a relative path is not
			if info, statErr := f.files.Stat(rel); statErr == nil && info.Mode().Type()&^fs.ModeDir != 0 {
				err = errors.New("it is not a regular file")
			}
			return rel, err
		}
	}
	return "", fmt.Errorf("it is outside %s", f.Dir)
}

// maxRead is the largest file that an agent is read: it gets all of it, as JSON.
const maxRead = 64 << 20

// readFile reads a file or some of its lines.
func (f *front) readFile(p acp.ReadTextFileRequest) (any, error) {
	rel, err := f.local(p.Path)
	var data []byte
	if err == nil {
		data, err = durable.ReadIn(f.files, rel, maxRead)
	}
	if err == nil && !utf8.Valid(data) {
		err = errors.New("it is not UTF-8 text")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.Path, err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	lines = lines[min(max(value(p.Line)-1, 0), len(lines)):]
	if p.Limit != nil {
		lines = lines[:min(max(*p.Limit, 0), len(lines))]
	}
	return acp.ReadTextFileResponse{Content: strings.Join(lines, "")}, nil
}

type writeRequest struct {
	Path    string
	Content *string
}

// writeFile writes a file and makes its directories.
func (f *front) writeFile(ctx context.Context, p writeRequest) (any, error) {
	rel, err := f.local(p.Path)
	if err == nil && p.Content == nil {
		err = errors.New("there is no content")
	}
	if err == nil && f.isGuarded(rel) {
		err = errGuarded
	}
	if err == nil {
		err = f.permit(ctx, policy.Request{Tool: string(acp.ToolKindEdit), Alias: "Write", Input: p.Path}, false, p.Path)
	}
	if err == nil {
		err = f.files.MkdirAll(filepath.Dir(rel), 0o755)
	}
	if err == nil {
		err = f.write(rel, *p.Content)
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", p.Path, err)
	}
	return acp.WriteTextFileResponse{}, nil
}

func (f *front) write(rel, content string) error {
	file, err := durable.OpenIn(f.files, rel, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	return cmp.Or(err, file.Close())
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

// createTerminal starts a command: directly if it has arguments, else in a shell.
func (f *front) createTerminal(requested context.Context, p acp.CreateTerminalRequest) (any, error) {
	words, line := append([]string{p.Command}, p.Args...), p.Command
	for _, word := range p.Args {
		line += " " + policy.Quote(word)
	}
	if len(p.Args) == 0 {
		words = []string{"sh", "-c", p.Command}
	}
	isGuarded := namesGuarded.MatchString(line) || f.Root != "" && strings.Contains(line, f.Root)
	q := policy.Request{Tool: string(acp.ToolKindExecute), Alias: "Bash", Command: true, Input: line}
	if err := f.permit(requested, q, isGuarded, line, strings.Join(append([]string{p.Command}, p.Args...), " ")); err != nil {
		return nil, fmt.Errorf("run %s: %w", p.Command, err)
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
	var err error
	if t.cmd.Dir, err = filepath.EvalSymlinks(cmp.Or(value(p.Cwd), f.realDir)); err == nil {
		_, err = f.local(t.cmd.Dir)
	}
	if err == nil {
		err = t.cmd.Start()
	}
	if err != nil {
		kill()
		return nil, fmt.Errorf("run %s: %w", p.Command, err)
	}
	f.commands.Go(func() {
		t.cmd.Wait()
		close(t.ended)
	})
	id := string(wire.NewID())
	f.terminals.Store(id, t)
	return acp.CreateTerminalResponse{TerminalId: id}, nil
}

// useTerminal carries out the other requests for a terminal.
func (f *front) useTerminal(ctx context.Context, method, id string) (any, error) {
	found, ok := f.terminals.Load(id)
	if !ok {
		return nil, fmt.Errorf("there is no terminal %q", id)
	}
	t := found.(*terminal)
	switch method {
	case acp.ClientMethodTerminalOutput:
		return t.outputSoFar(), nil
	case acp.ClientMethodTerminalWaitForExit:
		select {
		case <-t.ended:
			return t.status(), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case acp.ClientMethodTerminalRelease:
		f.terminals.Delete(id)
	}
	t.kill()
	return struct{}{}, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// status returns how the command ended.
func (t *terminal) status() *acp.TerminalExitStatus {
	if w := t.cmd.ProcessState.Sys().(syscall.WaitStatus); w.Signaled() {
		return &acp.TerminalExitStatus{Signal: acp.Ptr(w.Signal().String())}
	}
	return &acp.TerminalExitStatus{ExitCode: acp.Ptr(t.cmd.ProcessState.ExitCode())}
}

func (t *terminal) outputSoFar() (r acp.TerminalOutputResponse) {
	if isClosed(t.ended) {
		r.ExitStatus = t.status()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Output, r.Truncated = strings.ToValidUTF8(string(t.output), ""), t.isTruncated
	return r
}
