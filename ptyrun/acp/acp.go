//go:build linux || darwin

// Package acp is the front of an agent that speaks the Agent Client Protocol: a program on the runner's terminal that
// starts the agent on pipes, is its client, and draws what it says and does line by line, with a prompt to type into.
// So it is run, typed into, looked at and answered as any other agent; package driver reads the screen.
//
// What may be relied on:
//
//   - Below the transcript stands the front's own prompt or dialog, and that alone is believed. What the
//     agent says stands above it, its control characters escaped.
//   - Beside the screen, turns, tool calls, requests, what is said and each change of state become events of the
//     agent's log, the end of a turn before its prompt is drawn. Who answered a request is for the runner to say, and
//     the agent hears the answer behind that. What session/load replays is no event.
//   - Files are read and written, and commands begun, in the member's directory only, links followed.
//     (A command may go anywhere then, as the agent itself may.)
//   - The agent and its commands end with the front, and the front with the agent, as that did. Started again
//     within a run, the session is loaded if the agent can do that.
//
// One loop owns all state. What the protocol brings is posted to it in order and waits for no disk and no
// terminal; what waits for the agent is a goroutine, which posts what came of it.
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

// front is all state. The loop alone touches what stands below the gap.
type front struct {
	Options
	running  context.Context // until the front ends
	calls    chan func()     // for the loop
	conn     *acp.ClientSideConnection
	files    *os.Root
	realIn   string         // Dir, links followed
	shells   sync.Map       // by their ids
	commands sync.WaitGroup // that run in them

	screen   screen
	keys     keys
	draft    string
	can      acp.PromptCapabilities
	session  acp.SessionId // "": none is open
	turn     *turn         // nil: the agent is idle
	activity reducer.Activity
	tools    map[acp.ToolCallId]*toolCall
	requests []*request // the first is shown, until it is answered
	unsaid   []wire.Event
	tellAt   time.Time // when what was said becomes an event, and these are tried again; zero: never
	hasLeft  bool      // the front is to end,
	code     int       // with this code
}

const (
	maxCalls   = 1 << 16                // of what the agent sends wait for the loop
	maxUndrawn = 64 << 10               // bytes of the transcript
	tellEvery  = 500 * time.Millisecond // what the agent says becomes an event
	endGrace   = time.Second            // for the agent, when the front ends
)

// Run is the front: it returns the code that its process is to end with. An error is said on the screen.
func Run(o Options) (code int, err error) {
	ctx, stop := context.WithCancel(context.Background())
	f := &front{
		Options: o, running: ctx, calls: make(chan func(), maxCalls), tools: map[acp.ToolCallId]*toolCall{},
		screen: screen{out: os.Stdout}, activity: reducer.Starting,
	}
	defer f.commands.Wait()
	defer stop()
	if f.realIn, err = filepath.EvalSymlinks(f.Dir); err != nil {
		return 1, err
	}
	if f.files, err = os.OpenRoot(f.Dir); err != nil {
		return 1, err
	}
	if _, err = term.MakeRaw(int(os.Stdin.Fd())); err != nil {
		return 1, err
	}
	over, err := f.startAgent()
	if err == nil {
		f.loop()
		stop()
		<-over
	}
	return f.code, err
}

func (f *front) loop() {
	signals, typed := make(chan os.Signal, 8), make(chan []byte)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	go readKeys(os.Stdin, typed)
	go f.begin(context.Background())
	fmt.Fprint(os.Stdout, "\x1b[?2004h")
	for {
		if len(f.calls) == 0 || f.screen.said.Len() > maxUndrawn {
			f.draw()
		}
		var tell <-chan time.Time
		if !f.tellAt.IsZero() {
			tell = time.After(time.Until(f.tellAt))
		}
		select {
		case call := <-f.calls:
			call()
		case p, ok := <-typed:
			if !ok { // the terminal is gone
				return
			}
			f.press(f.keys.feed(p))
		case <-tell:
			f.tellAt = time.Time{}
			f.tellDelta()
			f.say()
		case s := <-signals:
			if s != syscall.SIGWINCH { // what becomes of the turn is the runner's to say, who ends us
				f.code = 128 + int(s.(syscall.Signal))
				return
			}
		}
		if f.hasLeft {
			f.draw()
			return
		}
	}
}

func (f *front) post(call func()) { f.calls <- call }

// leave ends the front, and says why; the first one counts.
func (f *front) leave(code int, why string) {
	if !f.hasLeft {
		f.screen.say(note, why)
		f.hasLeft, f.code = true, code
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// startAgent starts the agent, which ends with running, in a group of its own: a signal of the terminal is the
// front's. over is closed when the agent has ended.
func (f *front) startAgent() (over chan struct{}, err error) {
	ctx, stop := context.WithCancel(f.running)
	cmd := command(ctx, syscall.SIGTERM, f.Command[0], f.Command[1:]...)
	out, stdout := io.Pipe()
	cmd.Dir, cmd.Stdout, cmd.Stderr = f.Dir, stdout, stderr{f}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		f.conn = acp.NewClientSideConnection(f, stdin, f.exact(out)) // whole before the agent can say anything
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
	over = make(chan struct{})
	go func() {
		defer close(over)
		cmd.Wait()
		isBroken := isClosed(f.conn.Done()) // before its output has ended
		stdout.Close()
		<-f.conn.Done() // what it said last was read
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		f.post(func() { f.agentEnded(exitCode(cmd), isBroken) })
	}()
	go func() {
		<-f.conn.Done() // also where it says what nobody can read
		stop()
		out.Close()
	}()
	return over, nil
}

// command is a command in a group of its own, which gets a signal at the end of ctx and SIGKILL a moment later.
func command(ctx context.Context, s syscall.Signal, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, endGrace
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, s) }
	return cmd
}

func exitCode(cmd *exec.Cmd) int {
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

func (f *front) agentEnded(code int, isBroken bool) {
	why := fmt.Sprintf("the agent has ended with %d", code)
	if isBroken {
		why = "it has written a line of more than 10 MiB, or too many messages at once: it was ended"
		f.say(wire.Event{Kind: "error"}.With("code", "0").With("message", why))
	}
	if f.turn != nil {
		f.endTurn("failed", "", why)
	}
	f.leave(code, why)
}

// stderr is what the agent says beside the protocol.
type stderr struct{ *front }

func (s stderr) Write(p []byte) (int, error) {
	text := string(p)
	s.post(func() { s.screen.say(note, text) })
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
