//go:build linux || darwin

// Package acpfront is the front end of an agent that speaks the Agent Client Protocol. It is a program on the runner's
// terminal that starts the agent on pipes, acts as its client, and draws a transcript with a prompt below it. So the
// runner treats it like any other agent; package driver reads its screen.
//
// Guarantees:
//
//   - The front draws its own prompt or dialog below the transcript, and the driver believes only that; it gets the whole
//     dialog in an OSC string. The agent's words are above it, with control characters escaped.
//   - Turns, tool calls, requests, the agent's words and each change of state become events in the agent's log. The end
//     of a turn is logged before the next prompt is drawn. The runner logs who answered a request, and the agent gets
//     the answer after that. Updates that session/load replays are not logged.
//   - Files are read and written, and commands started, in the member's directory only, symbolic links followed. (A
//     running command may go anywhere, as the agent itself may.) Nothing is written into git's own directory or the
//     root, and a command that names one asks.
//   - The protocol leaves it to the agent to ask before it does something. What it has its client do without asking meets
//     the rules, and what was rejected in the same turn is refused: see permit.
//   - The agent and its commands end with the front, and the front ends with the agent and its exit code. When the agent
//     restarts within a run, its session is loaded if it supports that.
//
// One mutex guards all state: a message of the protocol, a key or a signal changes it and draws it. Nothing waits for
// the agent, a lock or a disk meanwhile.
package acpfront

import (
	"context"
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

// front is the whole state. mu guards the fields below it.
type front struct {
	Options
	running   context.Context // ends with the front
	end       context.CancelFunc
	conn      *acp.Connection
	files     *os.Root
	realDir   string         // Dir with symbolic links resolved
	terminals sync.Map       // by ID
	commands  sync.WaitGroup // the agent, and the commands in terminals
	asking    sync.Mutex     // held while a request is open; the others wait for it

	mu           sync.Mutex
	screen       screen
	keys         keys
	draft        string
	capabilities acp.PromptCapabilities
	session      acp.SessionId // "" if none is open
	turn         *turn         // nil while the agent is idle
	activity     reducer.Activity
	tools        map[acp.ToolCallId]*toolCall
	request      *request // the open one, or nil
	unlogged     []wire.Event
	awaited      int           // of the unlogged events: before they are logged no prompt or request is drawn
	logging      chan struct{} // closed when unlogged is empty, or appending has failed; nil: nothing is being appended
	code         int           // exit code
}

const endGrace = time.Second // for the agent to end with the front

// Run runs the front and returns its exit code.
func Run(o Options) (code int, err error) {
	f := &front{Options: o, tools: map[acp.ToolCallId]*toolCall{}, screen: screen{out: os.Stdout}, activity: reducer.Starting}
	f.running, f.end = context.WithCancel(context.Background())
	defer f.finishLog()
	defer f.commands.Wait()
	defer f.end()
	if f.realDir, err = filepath.EvalSymlinks(f.Dir); err != nil {
		return 1, err
	}
	if f.files, err = os.OpenRoot(f.Dir); err != nil {
		return 1, err
	}
	if _, err = term.MakeRaw(int(os.Stdin.Fd())); err != nil {
		return 1, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	if err := f.startAgent(); err != nil {
		return 1, err
	}
	fmt.Fprint(os.Stdout, "\x1b[?2004h")
	go f.readKeys(os.Stdin)
	go f.connect()
	for {
		select {
		case s := <-signals:
			if s != syscall.SIGWINCH { // the runner ends us, and logs the end of the turn
				return 128 + int(s.(syscall.Signal)), nil
			}
			f.do(func() {})
		case <-f.running.Done():
			return f.code, nil
		}
	}
}

// do changes the state and draws it.
func (f *front) do(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.draw()
}

// exit ends the front and prints why. Only the first call counts.
func (f *front) exit(code int, why string) {
	if f.running.Err() == nil {
		f.screen.print(note, why)
		f.draw()
		f.code = code
		f.end()
	}
}

// startAgent starts the agent in a process group of its own, since the terminal's signals are for the front. The agent
// ends with f.running.
func (f *front) startAgent() error {
	ctx, stop := context.WithCancel(f.running)
	cmd := command(ctx, syscall.SIGTERM, f.Command[0], f.Command[1:]...)
	in, out := io.Pipe()
	cmd.Dir, cmd.Stdout, cmd.Stderr = f.Dir, output{out, f}, stderr{f}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		f.conn = acp.NewConnection(f.handle, stdin, in) // ready before the agent can write
		f.conn.SetLogger(slog.New(slog.DiscardHandler))
		err = cmd.Start()
	}
	if err != nil {
		stop()
		return err
	}
	go func() {
		<-f.conn.Done() // it ended, closed its output or wrote what the SDK refuses
		in.Close()
		time.AfterFunc(endGrace, stop)
	}()
	f.commands.Go(func() {
		cmd.Wait()
		<-f.conn.Done() // the last of its output is read
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		f.do(func() {
			why := fmt.Sprintf("the agent exited with %d", exitCode(cmd))
			if ctx.Err() != nil && f.running.Err() == nil {
				why += ": it closed its output, or wrote a line of over 10 MiB, and atm ended it"
			}
			if f.turn != nil {
				f.endTurn("failed", "", why)
			}
			f.exit(exitCode(cmd), why)
		})
	})
	return nil
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

// stderr prints the agent's stderr to the transcript.
type stderr struct{ *front }

func (s stderr) Write(p []byte) (int, error) {
	s.do(func() { s.screen.print(note, string(p)) })
	return len(p), nil
}
