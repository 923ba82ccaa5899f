package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// prepare returns what carries out a request of the agent, beside all others. The SDK's own client would make floats of the
// numbers in a tool's input, and refuse to write an empty file.
func (a *Agent) prepare(ctx context.Context, method string, params json.RawMessage) func() (any, error) {
	t := a.turn
	if method == acp.ClientMethodSessionRequestPermission {
		var p permissionRequest
		if err := json.Unmarshal(params, &p); err != nil {
			return func() (any, error) { return nil, err }
		}
		return a.askPermission(ctx, p)
	}
	return func() (any, error) {
		switch method {
		case acp.ClientMethodFsReadTextFile:
			return with(params, a.readFile)
		case acp.ClientMethodFsWriteTextFile:
			return with(params, func(p writeRequest) (any, error) { return a.writeFile(ctx, t, p) })
		case acp.ClientMethodTerminalCreate:
			return with(params, func(p acp.CreateTerminalRequest) (any, error) { return a.createTerminal(ctx, t, p) })
		case acp.ClientMethodTerminalOutput, acp.ClientMethodTerminalWaitForExit, acp.ClientMethodTerminalKill, acp.ClientMethodTerminalRelease:
			return with(params, func(p struct{ TerminalID string }) (any, error) { return a.useTerminal(ctx, method, p.TerminalID) })
		}
		return nil, acp.NewMethodNotFound(method)
	}
}

// requestError makes the protocol's error of an error.
func requestError(ctx context.Context, err error) *acp.RequestError {
	if e, ok := errors.AsType[*acp.RequestError](err); ok {
		return e
	}
	if ctx.Err() != nil {
		return acp.NewRequestCancelled(nil)
	}
	e := acp.NewInvalidParams(map[string]any{"error": err.Error()})
	if errors.Is(err, fs.ErrNotExist) {
		e.Code, e.Message = -32002, "Resource not found"
	}
	return e
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
func (a *Agent) local(path string) (rel string, err error) {
	for _, dir := range []string{a.Dir, a.realDir} {
		if rel, _ = filepath.Rel(dir, path); filepath.IsLocal(rel) { // "" for a relative path is not
			if info, statErr := a.files.Stat(rel); statErr == nil && info.Mode().Type()&^fs.ModeDir != 0 {
				err = errors.New("it is not a regular file")
			}
			return rel, err
		}
	}
	return "", fmt.Errorf("it is outside %s", a.Dir)
}

// maxRead is the largest file that an agent is read: it gets all of it, as JSON.
const maxRead = 64 << 20

// readFile reads a file or some of its lines.
func (a *Agent) readFile(p acp.ReadTextFileRequest) (any, error) {
	rel, err := a.local(p.Path)
	var data []byte
	if err == nil {
		data, err = durable.ReadIn(a.files, rel, maxRead)
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
func (a *Agent) writeFile(ctx context.Context, t *turn, p writeRequest) (any, error) {
	rel, err := a.local(p.Path)
	if err == nil && p.Content == nil {
		err = errors.New("there is no content")
	}
	if err == nil && a.isGuarded(rel) {
		err = errGuarded
	}
	if err == nil {
		err = a.permit(ctx, t, policy.Request{Tool: string(acp.ToolKindEdit), Alias: "Write", Input: p.Path}, false, p.Path)
	}
	if err == nil {
		err = a.files.MkdirAll(filepath.Dir(rel), 0o755)
	}
	if err == nil {
		err = a.writeContent(rel, *p.Content)
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", p.Path, err)
	}
	a.tellEdited(p.Path)
	return acp.WriteTextFileResponse{}, nil
}

// writeContent writes a file that has one name. Another one may be in .git, which a look at the path does not tell.
func (a *Agent) writeContent(rel, content string) error {
	file, err := durable.OpenIn(a.files, rel, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && durable.Names(info) > 1 {
		err = errors.New("the file has another name, perhaps outside of the directory")
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.WriteString(content)
	}
	return cmp.Or(err, file.Close())
}

// terminal is the protocol's word for a command that the agent runs here.
type terminal struct {
	kill  context.CancelFunc
	ended chan struct{} // closed when the command has ended
	exit  process.Exit  // written before

	mu          sync.Mutex
	output      []byte // of a long output the end
	limit       int    // bytes of output
	isTruncated bool
}

const (
	maxOutput    = 1 << 20 // the limit in bytes for the output, unless the agent wants less
	maxTerminals = 100     // that are not released
)

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
func (a *Agent) createTerminal(requested context.Context, in *turn, p acp.CreateTerminalRequest) (any, error) {
	words, line := append([]string{p.Command}, p.Args...), p.Command
	for _, word := range p.Args {
		line += " " + policy.Quote(word)
	}
	unquoted := strings.Join(words, " ")
	if len(p.Args) == 0 {
		words = []string{"sh", "-c", p.Command}
	}
	isGuarded := namesGuarded.MatchString(line) || a.Root != "" && strings.Contains(line, a.Root)
	q := policy.Request{Tool: string(acp.ToolKindExecute), Alias: "Bash", Command: true, Input: line}
	err := a.permit(requested, in, q, isGuarded, unquoted)
	var id string
	if err == nil {
		id, err = a.startCommand(words, p)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", p.Command, err)
	}
	return acp.CreateTerminalResponse{TerminalId: id}, nil
}

func (a *Agent) startCommand(words []string, p acp.CreateTerminalRequest) (id string, err error) {
	env := a.Env
	if env == nil {
		env = os.Environ()
	}
	for _, v := range p.Env {
		env = append(slices.Clip(env), v.Name+"="+v.Value)
	}
	dir, err := filepath.EvalSymlinks(cmp.Or(value(p.Cwd), a.realDir))
	if err == nil {
		_, err = a.local(dir)
	}
	var program string
	if err == nil {
		program, err = process.LookUp(words[0], dir, env)
	}
	if err != nil {
		return "", err
	}
	ctx, kill := context.WithCancel(a.running)
	t := &terminal{kill: kill, ended: make(chan struct{}), limit: maxOutput}
	if p.OutputByteLimit != nil {
		t.limit = min(max(*p.OutputByteLimit, 0), maxOutput)
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Args, cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = words, dir, env, t, t, endGrace
	id = string(wire.NewID())
	a.do(func() {
		if err = cmp.Or(a.running.Err(), a.makeRoom()); err != nil {
			return
		}
		if err = a.child.StartBeside(cmd); err == nil {
			a.terminals[id] = t
			a.commands.Add(1)
		}
	})
	if err != nil {
		kill()
		return "", err
	}
	go func() {
		t.exit = a.child.Wait(cmd)
		close(t.ended)
		kill()
		a.commands.Done()
	}()
	return id, nil
}

// makeRoom forgets the oldest ended command if there are too many that the agent has not released.
func (a *Agent) makeRoom() error {
	if len(a.terminals) < maxTerminals {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(a.terminals)) {
		if a.terminals[id].status() != nil {
			delete(a.terminals, id)
			return nil
		}
	}
	return errors.New("too many commands run")
}

// useTerminal carries out the other requests for a terminal.
func (a *Agent) useTerminal(ctx context.Context, method, id string) (any, error) {
	var t *terminal
	a.do(func() {
		if t = a.terminals[id]; method == acp.ClientMethodTerminalRelease {
			delete(a.terminals, id)
		}
	})
	if t == nil {
		return nil, fmt.Errorf("there is no terminal %q", id)
	}
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
	}
	t.kill()
	return struct{}{}, nil
}

// status returns how the command ended; nil: it has not.
func (t *terminal) status() *acp.TerminalExitStatus {
	select {
	case <-t.ended:
	default:
		return nil
	}
	if t.exit.Signal != "" {
		return &acp.TerminalExitStatus{Signal: &t.exit.Signal}
	}
	return &acp.TerminalExitStatus{ExitCode: &t.exit.Code}
}

func (t *terminal) outputSoFar() acp.TerminalOutputResponse {
	status := t.status()
	t.mu.Lock()
	defer t.mu.Unlock()
	return acp.TerminalOutputResponse{Output: strings.ToValidUTF8(string(t.output), ""), Truncated: t.isTruncated, ExitStatus: status}
}
