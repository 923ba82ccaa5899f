// Package hook implements `atm hook TOOL`, which coding agents call with JSON on stdin and whose JSON they read from
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
package hook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// A Session is a conversation in a program, as the program's hook tells of it.
type Session struct {
	ID   string
	Mode string // of its permissions, in the program's words; "": it does not say

	HasPlugin bool // its plugin takes mail from the inbox
}

// Options are what a call needs from its caller.
type Options struct {
	Box      *maildir.Box
	Now      time.Time
	State    func() (*reducer.State, error) // folds the agent's events, called at most once; nil: nothing is known
	Primer   func() string                  // the text for the agent when its session begins; nil: none
	HasEnded func(session string) bool      // reports whether the program of another session has ended; nil: unknown

	// MayDeliver returns what reports whether a message may go out unasked, by what is on disk now; nil: all may.
	MayDeliver func() func(*wire.Item) bool

	// Begins is told that a session begins (isNew) or goes on with a turn, and returns what to say about that; nil: nothing.
	Begins func(s Session, isNew bool) (warning string)
	// Ends is told that a session ends, and returns the one of another program of the agent that runs; nil: nobody.
	Ends func() (other string)
	// Patient is called before an event is recorded that nothing else tells: the end of a turn or session, or a question. Locks
	// may be waited for longer from then on. nil: they are not.
	Patient func()

	// TakesContextAtStop reports whether Claude Code goes on with additional context in the answer to Stop; nil: it does not.
	TakesContextAtStop func() bool

	IsSecond bool   // another program is the agent: this one only begins and ends
	IsACP    bool   // the agent was last run over ACP
	IsScript bool   // a script reads what the program prints
	IsTyped  bool   // its runner types pointers to its mail, or none
	Flags    string // what a command needs to act as this agent: " --as bob"

	Arguments func() []string // what the program was started with; nil: unknown

	// Edited is told of each file that the agent has edited, and RefuseEdit returns why it may not edit one. Paths are
	// absolute; Dir is where a tool that does not say is. nil: nobody is told, and nothing is refused.
	Edited     func(ctx context.Context, path string)
	RefuseEdit func(path string) (why string)
	Dir        string

	// Push gives the unread mail to a program that begins, and reports whether it took it; nil: nothing does.
	Push func(ctx context.Context) bool

	// Ask appends a request's event, waits for the answer and calls give with it, which gives it to the program. It returns
	// without an error if the person has answered. nil: only the person can answer, at the program's own dialog.
	Ask func(ctx context.Context, p *agents.Permission, give func(agents.Verdict) error) error

	// Work has the agent take work from a shared inbox as its turn ends (isFree), and else keep what it has taken; nil: it takes
	// none by itself.
	Work func(ctx context.Context, isFree bool) error

	Stdout, Stderr io.Writer // of the process
}

// A call is one call of a hook, and what carries it out.
type call struct {
	agents.Call
	o Options
}

// Handle handles one call and answers it. The process exits with exit: 2 if that is how the tool expects an answer,
// else 0. It prints err on stderr, and err does not change the code.
func Handle(ctx context.Context, tool string, in []byte, o Options) (exit int, err error) {
	c, err := parse(tool, in, o)
	if err != nil {
		return 0, fmt.Errorf("hook for %s: %w", tool, err)
	}
	return c.carryOut(ctx)
}

// ReadObject reads the input of a hook, and returns it as it was read. A byte that is not UTF-8, as a command's output may
// have, costs no event.
func ReadObject(in []byte) (object wire.Object, read []byte, err error) {
	read = bytes.TrimPrefix(bytes.ToValidUTF8(in, []byte("\ufffd")), []byte("\ufeff"))
	object, err = wire.ReadObject(read)
	return object, read, err
}

// parse turns a tool's JSON into the events and the way to answer.
func parse(tool string, in []byte, o Options) (*call, error) {
	object, in, err := ReadObject(in)
	v := all.OfHook(tool)
	if v == nil {
		return nil, fmt.Errorf("there is none for %q", wire.Clip(tool, 40))
	}
	c := &call{o: o, Call: agents.Call{
		Vendor: v, Raw: in, In: object, Now: o.Now, Box: o.Box, State: o.State, Dir: o.Dir, Arguments: o.Arguments,
		IsSecond: o.IsSecond, MayAsk: o.Ask != nil && !o.IsSecond, TakesContextAtStop: o.TakesContextAtStop,
	}}
	if err == nil {
		v.Parsers[tool](&c.Call)
	}
	if strings.ContainsRune(c.Kind, utf8.RuneError) {
		err = errors.New("the event's name is not UTF-8")
	}
	return c, err
}

// carryOut appends the events, answers, and records the mail in the answer as handed over.
func (c *call) carryOut(ctx context.Context) (exit int, err error) {
	if c.o.IsACP && c.HasRunner() {
		c.Events, c.EndEvents, c.Turn = nil, nil, c.LastSession().Turn.ID
	}
	if (c.BeginsSession || c.BeginsTurn || c.IsPush) && c.Subagent == "" && c.o.Begins != nil {
		session := Session{c.Session, c.Mode, c.HasPlugin}
		if warning := c.o.Begins(session, c.BeginsSession || c.IsNewProgram); warning != "" && c.WantsPrimer { // OpenCode would not show it
			c.Warning = agents.Prefix + " " + warning
			c.Text.WriteString(c.Warning + "\n")
		}
	}
	if c.EndsSession && c.o.Ends != nil {
		if other := c.o.Ends(); other != "" && len(c.Events) > 0 {
			last := &c.Events[len(c.Events)-1]
			*last = last.With(reducer.OtherSession, other)
		}
	}
	if c.o.IsSecond {
		return c.answer()
	}
	if c.o.Patient != nil && c.tellsAlone() {
		c.o.Patient()
	}
	c.refuseEdit()
	if c.o.Edited != nil { // what it is told is in the answer, if that has mail
		for _, path := range c.HasEdited {
			c.o.Edited(ctx, path)
		}
	}
	if c.WantsPrimer && c.o.Primer != nil {
		c.Text.WriteString(c.o.Primer())
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
	keepsGoing := (c.ReplyAs == agents.AsBlock || c.ReplyAs == agents.OnStderr) && (len(h.Items) > 0 || h.IsRepeated)
	events := append(c.inTurn(received), c.Events...)
	if !keepsGoing {
		events = append(events, c.EndEvents...)
	}
	if err = errors.Join(err, log.Append(ctx, events...)); err == nil {
		exit, err = c.answer()
	}
	if err != nil {
		err = errors.Join(err, h.Release(ctx))
		if keepsGoing && !h.IsRepeated { // without the answer the turn ends after all
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

// refuseEdit refuses a call that edits what another member has claimed. The tool does not run, so its start is no event.
func (c *call) refuseEdit() {
	if c.o.RefuseEdit == nil {
		return
	}
	for _, path := range c.WillEdit {
		if why := c.o.RefuseEdit(path); why != "" {
			c.Refusal = agents.Prefix + " " + why
			c.Events = slices.DeleteFunc(c.Events, func(e wire.Event) bool { return e.Kind == wire.ToolCallStart })
			return
		}
	}
}

// carriesMail reports whether mail may go out with the answer.
func (c *call) carriesMail() bool {
	switch {
	case c.ReplyAs == agents.NoReply, c.IsPush && c.o.IsTyped:
		return false
	case c.o.IsScript && (c.ReplyAs == agents.AsBlock || c.ReplyAs == agents.OnStderr) && !c.HasRunner():
		return false
	}
	return !(c.IsNewProgram && !c.IsPush && c.HasRunner()) // which gives it at once: in the answer it would wait for the first prompt
}

// handOver settles what earlier calls gave to the program, claims the mail for the answer, and renders it.
func (c *call) handOver(ctx context.Context) (*claim.Claim, []wire.Event, error) {
	box := c.Box
	c.Session = cmp.Or(c.Session, "unnamed")
	received, settleErr := c.Settle(ctx, c.o.HasEnded)
	carriesMail, endsTurn := c.carriesMail(), len(c.EndEvents) > 0
	if c.o.Work != nil && !c.IsPeek && c.Subagent == "" && (!endsTurn || carriesMail) {
		settleErr = errors.Join(settleErr, c.o.Work(ctx, endsTurn))
	}
	if !carriesMail || c.IsNewProgram && c.o.Push != nil && c.o.Push(ctx) {
		return &claim.Claim{}, received, settleErr
	}
	l := &letter.Renderer{Now: c.Now, Team: box.Address().Team, Digits: 6, Show: c.o.Flags}
	h, err := c.HandOver(ctx, inbox.ReadOptions{
		Limit: letter.MaxMessages, MaxBytes: 16 << 20, Fits: l.LimitToPage(),
		Match: c.mayDeliver(endsTurn || c.IsPush), Current: !c.BeginsTurn,
	})
	if len(h.Items) > 0 || h.GivenUp > 0 && c.BeginsTurn {
		if c.Text.Len() > 0 {
			c.Text.WriteByte('\n')
		}
		if c.IsPush {
			c.Text.WriteString(h.PushText(l))
		} else {
			c.Text.WriteString(Mail(h, l, box.Agent()))
		}
	}
	return h, received, errors.Join(settleErr, err)
}

// mayDeliver says which mail goes out with the answer; nil: all. startsTurn: the answer has the agent go on.
func (c *call) mayDeliver(startsTurn bool) func(*wire.Item) bool {
	may := func(*wire.Item) bool { return true }
	if c.o.MayDeliver != nil {
		may = c.o.MayDeliver()
	}
	return func(it *wire.Item) bool { return may(it) && !(startsTurn && it.StartsNoTurn()) }
}

func (c *call) inTurn(events []wire.Event) []wire.Event {
	for i := range events {
		events[i].TurnID = c.Turn
	}
	return events
}

// MaxInput is how many bytes of a tool's input are read at most.
const MaxInput = 16 << 20

// ReadInput reads all that a tool writes to the hook's stdin, and of what is longer than MaxInput the beginning. It gives
// up when nothing comes for that long, since a tool may keep stdin open until the hook ends. Its goroutine ends with the
// input, else with the process.
func ReadInput(r io.Reader, timeout time.Duration) ([]byte, error) {
	var data []byte
	pieces, done := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := r.Read(buf)
			data = append(data, buf[:min(n, MaxInput-len(data))]...)
			if err == io.EOF {
				done <- nil
				return
			} else if err != nil {
				done <- err
				return
			}
			select {
			case pieces <- struct{}{}:
			default:
			}
		}
	}()
	for {
		select {
		case <-pieces:
		case err := <-done:
			return data, err
		case <-time.After(timeout):
			return nil, fmt.Errorf("read stdin: it did not end within %s", timeout)
		}
	}
}
