// Package acp runs an agent that speaks the Agent Client Protocol. It starts the agent on pipes and acts as its client. What
// happens is told as a stream of [Event]s: what the agent's log gets, what is for people alone, what the agent asks.
//
// Guarantees:
//
//   - Events come in order. The answer to a question reaches the agent when the owner calls Answer, so the owner can log
//     first who gave it. A turn has ended for Prompt when its end was told.
//   - No call waits for the agent, a person, a lock or the receiver of the events; Prompt reads attachments, Stop waits for
//     the end. While too much is not received, nothing is read from the agent, so that it waits.
//   - A question is told whole, or, if it is larger than a megabyte, not asked: then it gets no answer.
//   - Updates that session/load replays are not logged. What the agent writes to stderr is told, and a flood of that only
//     counted. It is told as it came: whoever shows it to people escapes it.
//   - It is offered no files and no terminals: an agent uses its own tools, as it could in any case, and the protocol
//     leaves it to the agent to ask before. What it asks meets the rules.
//   - An agent that closes its output, or writes a line of over 64 MiB, is ended.
//
// One mutex guards all state. Six goroutines run for an agent, and one for each question of its. They end with it, if its
// events are received.
//
// Begin with Start. Mail, the log and a person's answers are the owner's (package ptyrun).
package acp

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/questions"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Options say which agent to run, for which member.
type Options struct {
	Command []string
	Dir     string         // the member's directory
	Env     []string       // ATM_RUN marks what it starts: see process.Command
	Run     string         // the ID of the run, for session_start
	Version string         // of atm
	Session map[string]any // parameters of a new session: metadata, workspace, model_preferences
	Load    string         // a session to continue, if the agent can; "": a new one
	Rules   policy.Rules   // for what the agent asks
	Team    string         // the absolute path of the team's directory, which has the attachments of prompts

	Edited func(path string) // is told of each file that the agent has edited, and returns at once; nil: nobody is told
}

// Agent is a running agent. Its methods may be called at any time, from any goroutine.
type Agent struct {
	Options
	child   *process.Child
	running context.Context // ends with the agent
	end     context.CancelFunc
	realDir string // Dir with symbolic links resolved
	events  chan Event

	mu           sync.Mutex
	changed      *sync.Cond // what is below has changed
	peer         peer
	capabilities acp.PromptCapabilities
	session      acp.SessionId // "" if none is open
	turn         *turn         // nil while the agent is idle
	isConnecting bool          // connect is about to go on with a response: nothing is received until then
	activity     reducer.Activity
	tools        map[acp.ToolCallId]*toolCall
	open         []*question // that it asks, the oldest first
	queue        []Event
	unreceived   int           // bytes of the events that are not received yet
	fault        string        // why atm ended the agent; "": it did not
	exit         *process.Exit // the agent's exit, unless it is its program's
	hasExited    bool          // the program
	isOver       bool          // and all is told
}

// The errors of Prompt and Answer.
var (
	ErrNotReady = errors.New("the agent has no session")
	ErrBusy     = errors.New("the agent is busy")
	ErrGone     = error(questions.ErrGone)
)

const endGrace = time.Second // for an agent that is of no use any more, to end

// Start starts an agent. Receive its Events until they are closed, and Stop it then: its program may have left processes.
func Start(o Options) (*Agent, error) {
	a := &Agent{
		Options: o, events: make(chan Event), activity: reducer.Starting,
		tools: map[acp.ToolCallId]*toolCall{}, peer: newPeer(),
	}
	a.changed = sync.NewCond(&a.mu)
	var err error
	if a.realDir, err = filepath.EvalSymlinks(o.Dir); err != nil {
		return nil, err
	}
	if a.child, err = process.Start(process.Command{Argv: o.Command, Dir: o.Dir, Env: o.Env, Pipes: true}); err != nil {
		return nil, err
	}
	a.running, a.end = context.WithCancel(context.Background())
	var readers sync.WaitGroup
	readers.Go(a.readOutput)
	readers.Go(a.readNotes)
	go a.write()
	go a.connect()
	go a.deliver()
	go a.awaitEnd(&readers)
	return a, nil
}

// do changes the state.
func (a *Agent) do(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	a.changed.Broadcast()
}

// readOutput reads the agent's messages. An agent that writes no more of them is ended.
func (a *Agent) readOutput() {
	fault, grace := "it closed its output", endGrace
	for lines := bufio.NewReader(a.child.Stdout); ; {
		line, err := readLine(lines)
		a.receive(line)
		if errors.Is(err, bufio.ErrTooLong) {
			fault, grace = fmt.Sprintf("it wrote a message of over %d MiB", maxLine>>20), 0
			a.do(func() { a.logError(0, fault) })
		}
		if err != nil {
			break
		}
	}
	a.do(func() { a.giveUp(fault, grace) })
	io.Copy(io.Discard, a.child.Stdout) // the rest of a message that is too long, for whose end Stop waits
}

// readLine reads a message, or the beginning of one that is too long: wire.ReadLine would read to its end.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return nil, bufio.ErrTooLong
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// giveUp ends an agent that is of no use any more, unless it ends by itself.
func (a *Agent) giveUp(fault string, grace time.Duration) {
	go func() {
		select {
		case <-a.child.Done():
		case <-time.After(grace):
			a.do(func() { a.fault = cmp.Or(a.fault, fault) })
			a.child.Stop(context.Background(), endGrace)
		}
	}()
}

// readNotes tells what the agent writes to stderr, of a flood the beginning of each second.
func (a *Agent) readNotes() {
	const most, size = 100, 1 << 10 // lines a second, bytes of a line
	began, told, missed := time.Time{}, 0, 0
	tellMissed := func() {
		if missed > 0 {
			a.note(fmt.Sprintf("… %d more lines on stderr", missed))
			missed = 0
		}
	}
	for lines := bufio.NewReader(a.child.Stderr); ; {
		line, n, err := wire.ReadLine(lines, size)
		a.do(func() {
			if time.Since(began) > time.Second || err != nil {
				tellMissed()
				began, told = time.Now(), 0
			}
			switch told++; {
			case told > most:
				if missed++; missed == 1 {
					time.AfterFunc(time.Second, func() { a.do(tellMissed) })
				}
			case line == nil && n > 0:
				a.note(fmt.Sprintf("(a line of %d bytes)", n))
			default:
				a.note(string(line))
			}
		})
		if err != nil {
			return
		}
	}
}

// awaitEnd tells of the agent's end when the last of its output is read.
func (a *Agent) awaitEnd(readers *sync.WaitGroup) {
	<-a.child.Done()
	a.do(func() { a.hasExited = true })
	readers.Wait()
	a.do(func() {
		a.end()
		why := fmt.Sprintf("the agent exited with %d", a.child.Exit().Code)
		if a.fault != "" {
			why += ": " + a.fault + ", and atm ended it"
		}
		if a.turn != nil {
			a.endTurn("failed", "", why)
		}
		a.withdraw()
		if a.exit == nil {
			a.note(why)
		}
		a.hangUp()
		a.activity, a.isOver = reducer.Exited, true
	})
}

// leave ends an agent that opens no session.
func (a *Agent) leave(why string) {
	if a.exit == nil && !a.hasExited {
		a.note(why)
		a.exit = &process.Exit{Code: 1}
		go a.child.Stop(context.Background(), endGrace)
	}
}

// Stop ends the agent and whatever it has started: see process.Child.
func (a *Agent) Stop(ctx context.Context, grace time.Duration) (others []process.Info, err error) {
	return a.child.Stop(ctx, grace)
}

// PID is the agent's process, session and process group.
func (a *Agent) PID() int { return a.child.PID() }

// Done is closed when the agent's program has exited. Its last events may still come.
func (a *Agent) Done() <-chan struct{} { return a.child.Done() }

// Exit returns how the agent exited: with 1 if it opened no session, else as its program did. Only after Done.
func (a *Agent) Exit() process.Exit {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.exit != nil {
		return *a.exit
	}
	return a.child.Exit()
}

// Activity returns what the agent does.
func (a *Agent) Activity() reducer.Activity {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.activity
}

// IsIdle reports whether the agent takes a prompt.
func (a *Agent) IsIdle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mayPrompt() == nil
}

// value returns *p, or the zero value if p is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
