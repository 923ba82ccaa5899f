// Package hook is what happens at `atm hook TOOL`, which coding agents call with JSON on stdin and whose JSON they read from
// stdout. A call becomes events in the agent's log. Unread mail goes into the answer where the tool shows that to its
// model:
//
//		tool       mail goes out at                            and keeps the turn going at
//		claude     UserPromptSubmit SessionStart PostToolBatch Stop TeammateIdle
//		codex      UserPromptSubmit SessionStart PostToolUse   Stop
//		gemini     BeforeAgent AfterTool                       AfterAgent
//		opencode   atm.mail, for the plugin to push it
//
//	  - It fails open: if Handle returns an error, which is for stderr, nothing was written to stdout.
//	  - Unknown events and fields are ignored; a value of the wrong type counts as absent.
//	  - An event_id is made of what identifies the event (session, turn, tool call): told once more it counts once. Where a
//	    tool gives too little for that, each call is an event of its own.
//	  - Under atm run --driver acp only mail goes out: the program reports the rest over ACP, under other ids.
//	  - Of a sub-agent's calls only a permission dialog counts: it blocks the agent.
//	  - Mail that waits when a program starts goes in beside the hook, if it takes mail so: what is in the answer to
//	    SessionStart comes to the model with the first prompt only.
//	  - At a compaction no mail goes out, and it proves nothing: the session may end before the model sees it.
//	  - Expired mail goes out, marked, only where a turn begins. It keeps no turn going.
//	  - A program that has the name of an agent that atm runs is warned when its session begins, and gets no mail.
//	  - What a plugin pushes is received when the plugin reports it shown to the model, and at no other call.
//	  - Mail keeps no turn going whose output a script reads: it would stand behind the answer.
//	  - What an agent edits is noted, and where its person wants that, an edit of what another has claimed is refused.
//	  - Each message goes out once, and once more, marked, if no later call showed that it was received.
//
// Its files, in the order of a call:
//
//	hook.go        a call from its input to its answer
//	input.go       the input is read
//	whose.go       which member, and which of its programs, it is for
//	session.go     a session or a turn begins, or a session ends
//	edit.go        an edit is refused
//	mail.go        mail goes out
//	answer.go      the answer is written
//	permission.go  a permission request waits for its answer; wait.go is such a wait
package hook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir/edits"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// How long a hook may keep its tool waiting: for a lock, also before it records what nothing else tells; and for more of
// the input.
const (
	shortLock = 200 * time.Millisecond
	longLock  = 5 * time.Second
	inputTime = 2 * time.Second
)

// Options are what the command line says of a call.
type Options struct {
	Word      string      // what is called, as "claude" or "claude-status"
	Verbs     [][2]string // what the primer explains
	IsBrought bool        // it is called by a hook that atm run brings
	IsVoid    bool        // it is called for what is not done any more
	IsPatient bool        // how long it waits for a lock is its own choice
}

// A call is one call of a program's hook, for the agent that it is for.
type call struct {
	Options
	agents.Call
	scope     *app.Scope
	run       runinfo.Info            // the agent's last one
	isRunning bool                    // atm runs the agent
	program   func() programs.Program // whose hook this is
	ended     func() []string         // see programs.EndedSessions
	err       error                   // what went wrong and changes no answer
	isGiven   bool                    // the program has the answer to its request
}

// Handle handles one call and answers it. The process exits with exit: 2 if that is how the tool expects an answer,
// else 0. It prints err on stderr, and err does not change the code.
func Handle(ctx context.Context, g *app.Given, o Options) (exit int, err error) {
	defer func() {
		if p := recover(); p != nil { // Go's exit code 2 would block the tool
			exit, err = 0, fmt.Errorf("hook: %v", p)
		}
	}()
	signal.Ignore(syscall.SIGPIPE) // cheaper than catching it; no child process inherits it
	read := sync.OnceValues(func() ([]byte, error) { return readInput(g.In, inputTime) })
	defer read() // to some tools a closed pipe is a failure
	if o.IsPatient {
		g.LockTimeout = shortLock
	}
	if o.IsVoid || !o.IsBrought && all.IsBrought(o.Word, os.Getenv, arguments) {
		return 0, nil
	}
	c, err := open(g, o, read)
	if c == nil {
		return 0, err
	}
	in, err := read()
	if err != nil {
		return 0, err
	}
	if c.scope.IsPersons() {
		return 0, errors.Join(c.err, c.tellPerson(in))
	}
	if file := os.Getenv(c.Vendor.EnvFile); file != "" && !c.IsSecond { // when a session begins
		c.err = errors.Join(c.err, c.markShell(file))
	}
	exit, err = c.handle(ctx, in)
	return exit, errors.Join(c.err, err)
}

// newCall makes a call for the identity of a scope. isSecond says that atm runs the agent, and this is another program.
func newCall(s *app.Scope, v *agents.Vendor, o Options, isSecond bool) *call {
	team, name := s.Team, s.Me.Agent()
	c := &call{Options: o, scope: s, ended: sync.OnceValue(func() []string { return programs.EndedSessions(team, name) })}
	c.run, _ = runinfo.Read(team.Dir(), name)
	c.isRunning, _ = team.Running(name)
	dir, _ := os.Getwd() // see agents.Vendor.ProjectDir
	c.Call = agents.Call{
		Vendor: v, Now: time.Now(), Box: s.Me, Dir: dir, Arguments: arguments, IsSecond: isSecond,
		State:              func() (*reducer.State, error) { return team.State(name) },
		TakesContextAtStop: func() bool { return c.program().TakesContextAtStop() },
	}
	c.MayAsk = !isSecond && c.mayAsk()
	return c
}

// arguments are the words that the program was started with, which runs this hook.
func arguments() []string {
	p, _ := process.Program()
	return process.Arguments(p.PID)
}

// flags are what a command needs to act as the agent: " --as bob".
func (c *call) flags() string { return c.scope.Given.Flags("", "root", "team", "as") }

func (c *call) handle(ctx context.Context, in []byte) (exit int, err error) {
	if err = c.parse(in); err != nil {
		return 0, fmt.Errorf("hook for %s: %w", c.Word, err)
	}
	return c.carryOut(ctx)
}

// parse turns the tool's JSON into the events and the way to answer.
func (c *call) parse(in []byte) (err error) {
	if c.In, c.Raw, err = readObject(in); err == nil {
		c.Vendor.Parsers[c.Word](&c.Call)
	}
	if strings.ContainsRune(c.Kind, utf8.RuneError) {
		err = errors.New("the event's name is not UTF-8")
	}
	return err
}

// carryOut appends the events, answers, and records the mail in the answer as handed over.
func (c *call) carryOut(ctx context.Context) (exit int, err error) {
	if c.run.Driver == "acp" && c.isRunning {
		c.Events, c.EndEvents, c.Turn = nil, nil, c.LastSession().Turn.ID
	}
	if (c.BeginsSession || c.BeginsTurn || c.IsPush) && c.Subagent == "" {
		c.begin()
	}
	if c.EndsSession {
		c.end()
	}
	if c.IsSecond {
		return c.answer()
	}
	if c.IsPatient && c.tellsAlone() {
		c.scope.Team.Store.LockTimeout = longLock
	}
	if os.Getenv(agents.Claims) == agents.Refuse {
		c.refuseEdit()
	}
	for _, path := range c.HasEdited { // what this tells is in the answer, if that has mail
		c.err = errors.Join(c.err, edits.NoteEdit(ctx, c.scope.Team, c.Box, path, c.scope.Origin()))
	}
	if c.WantsPrimer {
		c.Text.WriteString(c.primer())
	}
	h, received := &claim.Claim{}, []wire.Event(nil)
	if c.ProvesReceipt || c.IsNewProgram || c.EndsSession || c.IsPush || c.Forgets != "" || len(c.Shown) > 0 {
		h, received, err = c.handOver(ctx)
	}
	if c.IsPeek {
		err = errors.Join(err, h.Release(ctx))
		h = &claim.Claim{}
	}
	log := c.Box.Log()
	goesOn := c.keepsGoing() && (len(h.Items) > 0 || h.IsRepeated)
	events := append(c.inTurn(received), c.Events...)
	if !goesOn {
		events = append(events, c.EndEvents...)
	}
	if err = errors.Join(err, log.Append(ctx, events...)); err == nil {
		exit, err = c.answer()
	}
	if err != nil {
		err = errors.Join(err, h.Release(ctx))
		if goesOn && !h.IsRepeated { // without the answer the turn ends after all
			err = errors.Join(err, log.Append(ctx, c.EndEvents...))
		}
		return 0, err
	}
	announced, err := h.Sent(ctx)
	err = errors.Join(err, log.Append(ctx, c.inTurn(announced)...))
	if c.Permission != nil {
		err = errors.Join(err, c.waitForVerdict(ctx))
	}
	return exit, err
}

// tellsAlone reports whether nothing but this call tells of what it reports: a turn that ends, or a question that opens.
// Of other events a later one makes up.
func (c *call) tellsAlone() bool {
	return c.Permission != nil || len(c.EndEvents) > 0 || slices.ContainsFunc(c.Events, func(e wire.Event) bool {
		return slices.Contains([]string{wire.TurnCompleted, wire.TurnIdle, wire.SessionEnd, wire.ConfirmRequired, wire.WaitingForInput}, e.Kind)
	})
}

func (c *call) inTurn(events []wire.Event) []wire.Event {
	for i := range events {
		events[i].TurnID = c.Turn
	}
	return events
}
