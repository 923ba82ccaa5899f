//go:build linux || darwin

// Package acp is the front end of an agent that speaks the Agent Client Protocol. It is a program on the runner's
// terminal that starts the agent on pipes, acts as its client, and draws a transcript with a prompt below it. So the
// runner treats it like any other agent; package driver reads its screen.
//
// Guarantees:
//
//   - The front draws its own prompt or dialog below the transcript, and the driver believes only that. The agent's words
//     are above it, with control characters escaped.
//   - Turns, tool calls, requests, the agent's words and each change of state become events in the agent's log. The end
//     of a turn is logged before the next prompt is drawn. The runner logs who answered a request, and the agent gets
//     the answer after that. Updates that session/load replays are not logged.
//   - Files are read and written, and commands started, in the member's directory only, symbolic links followed. (A
//     running command may go anywhere, as the agent itself may.)
//   - The agent and its commands end with the front, and the front ends with the agent and its exit code. When the agent
//     restarts within a run, its session is loaded if it supports that.
//
// One loop owns all state. Protocol messages are posted to it in order and wait for neither disk nor terminal; a
// goroutine that waits for the agent posts its result.
package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/coder/acp-go-sdk"
	"golang.org/x/term"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// front is the whole state. Only the loop touches the fields below the gap.
type front struct {
	Options
	running   context.Context // ends with the front
	posted    chan func()     // for the loop to run
	conn      *acp.ClientSideConnection
	files     *os.Root
	realDir   string         // Dir with symbolic links resolved
	terminals sync.Map       // by ID
	commands  sync.WaitGroup // that run in terminals

	screen       screen
	keys         keys
	draft        string
	capabilities acp.PromptCapabilities
	session      acp.SessionId // "" if none is open
	turn         *turn         // nil while the agent is idle
	activity     reducer.Activity
	tools        map[acp.ToolCallId]*toolCall
	requests     []*request // the first is shown until it is answered
	unlogged     []wire.Event
	flush        <-chan time.Time // when to log the agent's words and retry unlogged
	isEnding     bool
	code         int // exit code
}

const (
	maxPosted     = 1 << 16                // protocol messages that may wait for the loop
	maxUndrawn    = 64 << 10               // bytes of the transcript
	flushInterval = 500 * time.Millisecond // between events for the agent's words
	endGrace      = time.Second            // for the agent to end with the front
)

// Run runs the front and returns its exit code.
func Run(o Options) (code int, err error) {
	ctx, stop := context.WithCancel(context.Background())
	f := &front{
		Options: o, running: ctx, posted: make(chan func(), maxPosted), tools: map[acp.ToolCallId]*toolCall{},
		screen: screen{out: os.Stdout}, activity: reducer.Starting,
	}
	defer f.commands.Wait()
	defer stop()
	if f.realDir, err = filepath.EvalSymlinks(f.Dir); err != nil {
		return 1, err
	}
	if f.files, err = os.OpenRoot(f.Dir); err != nil {
		return 1, err
	}
	if _, err = term.MakeRaw(int(os.Stdin.Fd())); err != nil {
		return 1, err
	}
	ended, err := f.startAgent()
	if err == nil {
		f.loop()
		stop()
		<-ended
	}
	return f.code, err
}

func (f *front) loop() {
	signals, typed := make(chan os.Signal, 8), make(chan []byte)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	go readKeys(os.Stdin, typed)
	go f.connect(context.Background())
	fmt.Fprint(os.Stdout, "\x1b[?2004h")
	for {
		if len(f.posted) == 0 || f.screen.undrawn.Len() > maxUndrawn {
			f.draw()
		}
		select {
		case call := <-f.posted:
			call()
		case p, ok := <-typed:
			if !ok { // the terminal is gone
				return
			}
			f.press(f.keys.feed(p))
		case <-f.flush:
			f.logDelta()
			f.log()
		case s := <-signals:
			if s != syscall.SIGWINCH { // the runner ends us, and logs the end of the turn
				f.code = 128 + int(s.(syscall.Signal))
				return
			}
		}
		if f.isEnding {
			f.draw()
			return
		}
	}
}

func (f *front) post(call func()) {
	select {
	case f.posted <- call:
	case <-f.running.Done(): // nobody receives it
	}
}

// exit ends the front and prints why.
func (f *front) exit(code int, why string) {
	f.screen.print(note, why)
	f.isEnding, f.code = true, code
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// startAgent starts the agent in a process group of its own, since the terminal's signals are for the front. The agent
// ends with f.running. ended is closed when it has ended.
func (f *front) startAgent() (ended chan struct{}, err error) {
	ctx, stop := context.WithCancel(f.running)
	cmd := command(ctx, syscall.SIGTERM, f.Command[0], f.Command[1:]...)
	in, to := io.Pipe()
	out := &output{PipeWriter: to, front: f}
	cmd.Dir, cmd.Stdout, cmd.Stderr = f.Dir, out, stderr{f}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		f.conn = acp.NewClientSideConnection(f, stdin, in) // ready before the agent can write
		f.conn.SetLogger(slog.New(slog.DiscardHandler))
		err = cmd.Start()
	}
	if err != nil {
		stop()
		f.code = 1
		if errors.Is(err, exec.ErrNotFound) {
			f.code = 127
		}
		return nil, err
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
		<-f.conn.Done() // the last of its output is read
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		f.post(func() { f.agentEnded(exitCode(cmd), out.isBroken) })
	}()
	go func() {
		<-f.conn.Done()
		in.Close()
		select {
		case <-ended:
		case <-time.After(endGrace): // it closed its output and lives on, or wrote what cannot be read
		}
		stop()
	}()
	return ended, nil
}

// command makes a command in a process group of its own, which gets a signal when ctx ends, and SIGKILL after endGrace.
func command(ctx context.Context, s syscall.Signal, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, endGrace
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, s) }
	return cmd
}

func exitCode(cmd *exec.Cmd) int {
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

func (f *front) agentEnded(code int, isBroken bool) {
	why := fmt.Sprintf("the agent exited with %d", code)
	if isBroken {
		why = "atm stopped it: it wrote a line of more than 10 MiB, or too many messages at once"
		f.log(wire.Event{Kind: "error"}.With("code", "0").With("message", why))
	}
	if f.turn != nil {
		f.endTurn("failed", "", why)
	}
	f.exit(code, why)
}

// stderr prints the agent's stderr to the transcript.
type stderr struct{ *front }

func (s stderr) Write(p []byte) (int, error) {
	text := string(p)
	s.post(func() { s.screen.print(note, text) })
	return len(p), nil
}

func readKeys(in io.Reader, typed chan<- []byte) {
	defer close(typed)
	for {
		p := make([]byte, 32<<10)
		n, err := in.Read(p)
		if err != nil {
			return
		}
		typed <- p[:n]
	}
}
