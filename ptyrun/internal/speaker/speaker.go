// Package speaker is an agent that speaks the Agent Client Protocol, for a run: package acp speaks it, and this tells the run
// what the agent does and asks, and shows people a transcript of that.
package speaker

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/ptyrun/internal/acp"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/ptyrun/internal/viewers"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// Name is the name that such an agent has instead of a driver's.
const Name = "acp"

// Options say what to start, and who is told of what.
type Options struct {
	ACP     acp.Options
	Viewers *viewers.Viewers     // what people see of it goes there
	Began   func(session string) // is called when it has opened a session
}

// A Speaker is an agent that speaks the Agent Client Protocol: it has no terminal, and what it does and asks it tells.
// People see that as a transcript.
type Speaker struct {
	r *run.Run
	o Options
	*acp.Agent
	told    *loop.Feed[acp.Event]
	program *driver.Driver // of the program, for what a text contains
	isReady bool           // it has opened a session
	session string
	shown   string // the last question that people were shown
	heard   string // the last turn of which it has the prompt
	before  string // likewise, when it was given a text
}

// maxTold is how many events may wait for the loop, which takes them all in before it does anything else.
const maxTold = 64

// Start starts an agent.
func Start(r *run.Run, o Options) (*Speaker, error) {
	a, err := acp.Start(o.ACP)
	if err != nil {
		return nil, err
	}
	s := &Speaker{r: r, o: o, Agent: a, told: loop.NewFeed[acp.Event](maxTold), program: driver.ForCommand(o.ACP.Command)}
	if s.program.Plain || s.program.Unknown {
		s.program, _ = driver.Named(Name)
	}
	r.Go(s.listen)
	return s, nil
}

func (s *Speaker) listen() {
	for e := range s.Events() {
		s.told.Send(e)
	}
	s.told.End()
}

// Woken receives when the agent has told something, which Refresh takes in.
func (s *Speaker) Woken() <-chan struct{} { return s.told.Woken() }
func (s *Speaker) Refresh()               { s.told.Take(s.handle) }

func (s *Speaker) handle(e acp.Event) {
	r := s.r
	switch {
	case e.Log != nil:
		s.session = e.Log.Session
		if e.Log.Kind == wire.SessionStart {
			s.isReady = true
			s.o.Began(s.session)
		}
		r.Append(*e.Log)
		s.showEvent(e.Log)
	case e.Asked != nil:
		event := wire.Event{Source: wire.SourceACP, Session: s.session, TurnID: r.State.Session().Turn.ID}
		if e.Asked.Call != "" {
			event = event.With("tool_call_id", e.Asked.Call)
		}
		r.Questions.Open(e.Asked.Question, event, e.Asked.Rule, func(a ask.Answer, o ask.Option) error { return s.giveAnswer(e.Asked, a, o) })
		s.showAsked()
	case e.Closed != nil:
		r.Questions.Close(e.Closed.ID, e.Closed.Then)
		s.showAsked()
	case e.Heard != "":
		s.heard = e.Heard
	case e.Said != "":
		s.o.Viewers.Say(e.Said)
	case e.Note != "":
		s.o.Viewers.Print(viewers.MarkNote, e.Note)
	}
}

// showEvent shows people what an event says of a turn.
func (s *Speaker) showEvent(e *wire.Event) {
	vs := s.o.Viewers
	switch e.Kind {
	case wire.TurnStarted:
		vs.Print(viewers.MarkPrompt, e.Text("prompt"))
	case wire.MessageDelta:
		vs.Say(e.Text("delta"))
	case wire.ToolCallStart:
		vs.Print(viewers.MarkTool, e.Text("tool")+": "+e.Text("title"))
	case wire.ToolCallEnd:
		if e.Text(wire.FieldError) != "" {
			vs.Print(viewers.MarkTool, "failed: "+e.Text("tool"))
		}
	case wire.TurnCompleted:
		end := e.Text("status")
		for _, name := range []string{"stop_reason", "error"} {
			if why := e.Text(name); why != "" && why != "end_turn" && why != end {
				end += ": " + why
			}
		}
		vs.Print(viewers.MarkNote, end)
	}
}

// giveAnswer gives the agent an answer. What it tells after that comes behind the event that closes the question.
func (s *Speaker) giveAnswer(q *acp.Question, a ask.Answer, o ask.Option) error {
	err := s.Answer(q.ID, o.ID)
	if err == nil {
		s.o.Viewers.Print(viewers.MarkNote, fmt.Sprintf("%s, by %s", o.Label, cmp.Or(a.By, "a person")))
		s.r.Questions.Close(q.ID, q.Then)
		s.showAsked()
	}
	return err
}

// showAsked shows people the open question, once.
func (s *Speaker) showAsked() {
	if q := s.r.Questions.Asked(); q != nil && q.ID != s.shown {
		s.shown = q.ID
		s.o.Viewers.Print(viewers.MarkAsked, s.askedText(q))
	}
}

const maxAsked = 4 << 10 // bytes of a question that are shown; the log has it whole

// askedText shows people a question, and how to answer it.
func (s *Speaker) askedText(d *ask.Question) string {
	lines, name := []string{d.Dialog, wire.Clip(d.Text(), maxAsked)}, s.r.Box.Agent()
	how := fmt.Sprintf("atm approve %s, or atm reject %[1]s", name)
	if _, err := d.Pick(ask.Answer{}); err != nil {
		how = fmt.Sprintf("atm approve %s N", name)
	}
	for _, o := range d.Options {
		lines = append(lines, o.ID+" "+o.Label)
	}
	return strings.Join(append(lines, how), "\n")
}

// Step ends a usage limit whose time is over, too: the agent says nothing about that.
func (s *Speaker) Step(now time.Time) {
	s.Refresh()
	if ses := s.r.State.Session(); ses.Activity == reducer.Limited && !ses.Until.IsZero() && !s.r.MustWait(ses.Until, now) {
		e := wire.Event{Kind: wire.StateChange, Source: wire.SourceACP, Session: s.session}
		s.r.Append(e, "previous", string(reducer.Limited), "new", string(reducer.Idle))
	}
}

// State returns what the agent has told of itself.
func (s *Speaker) State() run.AgentState {
	is := run.AgentState{
		Driver: Name, Reader: s.program, Activity: s.Activity(), Detail: s.r.State.Session().Detail, TakesText: true, IsReady: s.isReady,
		Ways: control.Ways{Prompt: "protocol", Interrupt: "protocol", Answer: "protocol"},
	}
	if q := s.r.Questions.Asked(); q != nil {
		is.Detail, is.IsAsking, is.IsDialog, is.Cancels = q.Dialog, true, true, q.Dialog == "permission"
	}
	return is
}

// Gate says why no turn may begin now.
func (s *Speaker) Gate(time.Time) control.Gate {
	switch {
	case !s.isReady:
		return control.GateStarting
	case !s.IsIdle():
		return control.GateBusy
	}
	return control.GateOpen
}

// Put begins a turn with the text and the attachments of its messages, which are read beside the loop.
func (s *Speaker) Put(g *run.Text, report func(error)) (e delivery.Event, why string) {
	var attached []wire.Attachment
	for _, it := range g.Items {
		if !g.IsPointer {
			attached = append(attached, it.Attachments...)
		}
	}
	s.before = s.heard
	text := g.Words
	s.r.Go(func() { report(s.Prompt(text, attached...)) })
	return delivery.In, ""
}

// Has reports whether the agent has said a word in the turn.
func (s *Speaker) Has(g *run.Text, _ time.Time) (e delivery.Event, why string) {
	if s.Refresh(); g.State != delivery.Sent || s.heard == s.before {
		return "", ""
	}
	g.Turn = s.heard
	return delivery.Receipt, ""
}

// TakeBack waits for what becomes of a prompt: nothing recalls it.
func (s *Speaker) TakeBack(g *run.Text) delivery.Event {
	if g.Cause == delivery.NotIn {
		return delivery.Gone
	}
	return ""
}

// Interrupt cancels the turn.
func (s *Speaker) Interrupt(int) (isMore bool) {
	s.Agent.Interrupt()
	return false
}
