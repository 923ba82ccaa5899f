//go:build linux || darwin

// Package acp is the front of an agent that speaks the Agent Client Protocol: a program on the runner's
// terminal that starts the agent on pipes, is its client, and draws what it says and does line by line, with
// a prompt to type into. So an agent without a screen of its own is run, typed into, looked at and answered
// as any other; package driver reads the screen.
//
// What may be relied on:
//
//   - What is drawn of the agent's words begins no row as the front's own rows do, and control
//     characters are escaped. While a dialog stands, nothing stands below it but its foot.
//   - Beside the screen, turns, tool calls, questions and what is said become events of the agent's
//     log. A turn is over when the answer to session/prompt has come; its end is logged before the
//     prompt is drawn. What session/load replays is no event.
//   - Files are read and written, and commands begun, in the member's directory only, links followed.
//     (A command may go anywhere, as the agent itself may.)
//   - The agent and its commands end with the front. When the agent ends by itself, the front ends as
//     it did, and in a restart within a run its session is loaded again, if it can do that.
//
// One loop owns all state. What the protocol brings is posted to it in order and never waits for the disk or
// the terminal; what waits for the agent is a goroutine, which posts what has come of it.
package acp

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coder/acp-go-sdk"
	"golang.org/x/term"

	"github.com/agentteammail/atm/wire"
)

// front is all state. The loop alone touches what stands below the first gap.
type front struct {
	Options
	calls  chan func() // for the loop
	conn   *acp.ClientSideConnection
	files  *os.Root
	realIn string // Dir, links followed
	shells shells

	screen   transcript
	keys     keys
	draft    string
	can      acp.AgentCapabilities
	session  acp.SessionId // "": none is open
	turn     *turn         // nil: the agent is idle
	tools    map[acp.ToolCallId]*toolCall
	requests []*request // the first is shown
	unsaid   []wire.Event
	end      *int // the code to end with
}

// maxCalls is how much of what the agent sends may wait for the loop.
const maxCalls = 1 << 16

// Run is the front: it returns the code that the process is to end with.
func Run(o Options) int {
	f := &front{Options: o, calls: make(chan func(), maxCalls), tools: map[acp.ToolCallId]*toolCall{}}
	err := errors.Join(f.open(), f.loop())
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s%v\r\n", note, err)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return 127
		}
		return 1
	}
	return *f.end
}

func (f *front) open() (err error) {
	if f.realIn, err = filepath.EvalSymlinks(f.Dir); err != nil {
		return err
	}
	if f.files, err = os.OpenRoot(f.Dir); err != nil {
		return err
	}
	_, err = term.MakeRaw(int(os.Stdin.Fd()))
	f.screen = transcript{out: os.Stdout}
	f.screen.resize()
	return err
}

const (
	escapeWait = 50 * time.Millisecond  // an escape that nothing follows is the key
	tellEvery  = 500 * time.Millisecond // what the agent says becomes an event
	endGrace   = time.Second            // for the agent, when the front ends
)

func (f *front) loop() error {
	agent, err := f.startAgent()
	if err != nil {
		return err
	}
	defer f.shells.end()
	defer endProcess(agent, f.ended(agent))
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	typed := readKeys(os.Stdin)
	fmt.Fprint(os.Stdout, "\x1b[?2004h")
	go f.begin()
	for f.end == nil {
		if len(f.calls) == 0 {
			f.draw()
		}
		var tell, escape <-chan time.Time
		if f.turn != nil && f.turn.delta != "" || f.unsaid != nil {
			tell = time.After(tellEvery)
		}
		if f.keys.isEscape() {
			escape = time.After(escapeWait)
		}
		select {
		case call := <-f.calls:
			call()
		case p, ok := <-typed:
			if !ok {
				return f.leave(128 + int(syscall.SIGHUP)) // the terminal is gone
			}
			f.press(f.keys.feed(p))
		case <-escape:
			f.press(f.keys.flush())
		case <-tell:
			f.tellDelta()
			f.say(wire.Event{})
		case s := <-signals:
			if s != syscall.SIGWINCH {
				return f.leave(128 + int(s.(syscall.Signal)))
			}
			f.screen.resize()
		}
	}
	f.draw()
	return nil
}

// leave ends the front with a code. What becomes of the turn is the runner's to say, who ended it.
func (f *front) leave(code int) error {
	f.end = &code
	return nil
}

// post has the loop call f.
func (f *front) post(call func()) { f.calls <- call }

// startAgent starts the agent in a group of its own: a signal of the terminal is the front's, which says
// what becomes of it.
func (f *front) startAgent() (*exec.Cmd, error) {
	cmd := exec.Command(f.Command[0], f.Command[1:]...)
	cmd.Dir, cmd.SysProcAttr = f.Dir, &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Files, not StdoutPipe: what the agent leaves behind may keep them open when it has ended.
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errs, stderr, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	f.screen.say(note, "starting "+f.Command[0])
	err = cmd.Start()
	stdout.Close()
	stderr.Close()
	if err != nil {
		return nil, err
	}
	go func() {
		for lines := bufio.NewReader(errs); ; {
			line, _, err := lines.ReadLine()
			if err != nil {
				return
			}
			said := string(line)
			f.post(func() { f.screen.say(note, said) })
		}
	}()
	f.conn = acp.NewClientSideConnection(f, stdin, out)
	f.conn.SetLogger(slog.New(slog.DiscardHandler))
	return cmd, nil
}

// ended waits for the agent's end beside the loop, and has that take it in.
func (f *front) ended(agent *exec.Cmd) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		<-f.conn.Done() // or it says what nobody can read
		select {
		case <-over:
		case <-time.After(endGrace):
			syscall.Kill(-agent.Process.Pid, syscall.SIGKILL)
		}
	}()
	go func() {
		agent.Wait()
		close(over)
		select {
		case <-f.conn.Done(): // what it said last was read
		case <-time.After(endGrace):
		}
		f.post(func() {
			code := exitCode(agent.ProcessState)
			why := fmt.Sprintf("the agent ended with %d", code)
			if f.turn != nil {
				f.endTurn("failed", "", why)
			}
			f.screen.say(note, why)
			f.leave(code)
		})
	}()
	return over
}

// endProcess ends a process and its group, kindly at first.
func endProcess(cmd *exec.Cmd, over <-chan struct{}) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		syscall.Kill(-cmd.Process.Pid, s)
		select {
		case <-over:
		case <-time.After(endGrace):
		}
	}
}

func exitCode(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}

// begin opens a session, beside the loop.
func (f *front) begin() {
	ctx := context.Background()
	hello, err := f.conn.Initialize(ctx, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber,
		ClientInfo:      &acp.Implementation{Name: "atm", Version: f.Version},
		ClientCapabilities: acp.ClientCapabilities{
			Fs: acp.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}, Terminal: true,
		},
	})
	if err == nil && hello.ProtocolVersion != acp.ProtocolVersionNumber {
		err = fmt.Errorf("it speaks version %d of the protocol, and atm version %d", hello.ProtocolVersion, acp.ProtocolVersionNumber)
	}
	var opened opened
	if err == nil {
		opened, err = f.openSession(ctx, hello)
		if e, ok := errors.AsType[*acp.RequestError](err); ok && e.Code == acp.NewAuthRequired(nil).Code {
			if err = f.authenticate(ctx, hello.AuthMethods); err == nil {
				opened, err = f.openSession(ctx, hello)
			}
		}
	}
	f.post(func() {
		if err != nil {
			f.screen.say(note, fmt.Sprintf("no session with %s: %v", f.Command[0], err))
			f.leave(1)
			return
		}
		f.can, f.session = hello.AgentCapabilities, opened.id
		f.screen.say(note, fmt.Sprintf("%s, session %s", cmp.Or(nameOf(hello.AgentInfo), f.Command[0]), opened.id))
		e := wire.Event{Kind: "session_start", Wire: []byte(`{"kind":"session_start","source":"` + opened.source + `"}`)}
		if f.Session.Metadata != nil {
			e = e.With("metadata", f.Session.Metadata)
		}
		f.say(e.With("run", f.Run))
	})
}

func nameOf(i *acp.Implementation) string {
	if i == nil {
		return ""
	}
	return strings.TrimSpace(cmp.Or(value(i.Title), i.Name) + " " + i.Version)
}

// authenticate signs in: where there are several ways to, a person chooses.
func (f *front) authenticate(ctx context.Context, methods []acp.AuthMethod) error {
	r := &request{kind: "question", prompt: f.Command[0] + " wants you to sign in. How?", answer: make(chan int, 1)}
	var ids []string
	for _, m := range methods {
		if m.Agent != nil {
			ids = append(ids, m.Agent.Id)
			r.options = append(r.options, option{cmp.Or(m.Agent.Name, m.Agent.Id), "choice"})
		}
	}
	chosen := 0
	switch {
	case len(ids) == 0:
		return errors.New("it wants you to sign in, and names no way that works from here: start it by itself once")
	case len(ids) > 1:
		f.post(func() { f.ask(r) })
		var ok bool
		if chosen, ok = <-r.answer; !ok {
			return errors.New("nobody has signed in")
		}
	}
	_, err := f.conn.Authenticate(ctx, acp.AuthenticateRequest{MethodId: ids[chosen]})
	return err
}

// lastSession is the session of an earlier start in this run, "" for none.
func (f *front) lastSession() string {
	isStart := func(e *wire.Event) bool { return e.Kind == "session_start" && e.Source == source }
	events, _ := f.Box.Log().Tail(isStart)
	if len(events) == 0 || !isStart(&events[0]) || events[0].Field("run") != f.Run {
		return ""
	}
	return events[0].Session
}

// readKeys reads what is typed, beside the loop.
func readKeys(in io.Reader) <-chan []byte {
	typed := make(chan []byte)
	go func() {
		defer close(typed)
		for {
			p := make([]byte, 32<<10)
			n, err := in.Read(p)
			if err != nil {
				return
			}
			typed <- p[:n]
		}
	}()
	return typed
}

var _ acp.Client = (*front)(nil)
