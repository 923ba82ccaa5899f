package ptyrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/ptyrun/acp"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// ACP is about an agent that speaks the Agent Client Protocol.
type ACP struct {
	Session map[string]any // parameters of a new session: metadata, workspace, model_preferences
	Root    string         // the directory that holds the teams: no file in it is written for the agent
	Rules   policy.Rules   // for what the agent does through its client without having asked
}

// ACPName is the name that such an agent has instead of a driver's.
const ACPName = "acp"

// fromACP is the source of what such an agent tells.
const fromACP = "acp"

// speaker is an agent that speaks the Agent Client Protocol: it has no terminal, and what it does and asks it tells.
// People see that as a transcript.
type speaker struct {
	r *runner
	*acp.Agent
	told    *feed[acp.Event]
	program *driver.Driver // of the program, for what a text contains
	isReady bool           // it has opened a session
	session string
	turn    string // the last one that has begun
	before  string // the one that had begun when it was given a text
}

// maxTold is how many events may wait for the loop, which takes them all in before it does anything else.
const maxTold = 64

func (r *runner) startSpeaker(command []string, conversation string) (*speaker, error) {
	a, err := acp.Start(acp.Options{
		Command: command, Dir: r.Dir, Env: r.Env, Run: r.Run, Load: conversation,
		Version: r.Version, Session: r.ACP.Session, Root: r.ACP.Root, Rules: r.ACP.Rules, Team: r.Box.Store().Dir().Path(),
		Edited: func(path string) {
			if r.Edited != nil {
				r.notify("noting what was edited", func() error { return r.Edited(context.Background(), path) })
			}
		},
	})
	if err != nil {
		return nil, err
	}
	s := &speaker{r: r, Agent: a, told: newFeed[acp.Event](maxTold), program: driver.ForCommand(command)}
	if s.program.Plain || s.program.Unknown {
		s.program, _ = driver.Named(ACPName)
	}
	r.wg.Go(s.listen)
	return s, nil
}

func (s *speaker) listen() {
	for e := range s.Events() {
		s.told.send(e)
	}
	s.told.end()
}

func (s *speaker) woken() <-chan struct{} { return s.told.woken() }
func (s *speaker) refresh()               { s.told.take(s.handle) }

func (s *speaker) handle(e acp.Event) {
	r, q := s.r, s.r.question
	switch {
	case e.Log != nil:
		s.session = e.Log.Session
		switch e.Log.Kind {
		case wire.SessionStart:
			s.isReady = true
			if id := r.prog.resumed.id; id != "" && id != s.session {
				r.notLoaded()
			}
		case wire.TurnStarted:
			s.turn = e.Log.TurnID
		}
		r.append(*e.Log)
		s.showEvent(e.Log)
	case e.Asked != nil:
		event := wire.Event{Source: fromACP, Session: s.session, TurnID: r.state.Session().Turn.ID}
		if e.Asked.Call != "" {
			event = event.With("tool_call_id", e.Asked.Call)
		}
		r.show(r.transcript.print(markAsked, r.askedText(&e.Asked.Question)))
		r.openQuestion(&question{Question: e.Asked.Question, rule: e.Asked.Rule, asked: e.Asked.ID, then: e.Asked.Then}, event)
	case e.Closed != "":
		if q != nil && q.asked == e.Closed && q.pressed != nil {
			r.show(r.transcript.print(markNote, fmt.Sprintf("%s, by %s", q.pressed.Label, cmp.Or(q.by, "a person"))))
			r.closeQuestion(q.then)
		} else if q != nil && q.asked == e.Closed { // it was withdrawn: the change comes as an event
			r.closeQuestion("")
		}
	case e.Said != "":
		r.show(r.transcript.say(e.Said))
	case e.Note != "":
		r.show(r.transcript.print(markNote, e.Note))
	}
}

// showEvent shows people what an event says of a turn.
func (s *speaker) showEvent(e *wire.Event) {
	t, text := &s.r.transcript, ""
	switch e.Kind {
	case wire.TurnStarted:
		text = t.print(markPrompt, e.Text("prompt"))
	case wire.MessageDelta:
		text = t.say(e.Text("delta"))
	case wire.ToolCallStart:
		text = t.print(markTool, e.Text("tool")+": "+e.Text("title"))
	case wire.ToolCallEnd:
		if e.Text("error") != "" {
			text = t.print(markTool, "failed: "+e.Text("tool"))
		}
	case wire.TurnCompleted:
		end := e.Text("status")
		for _, name := range []string{"stop_reason", "error"} {
			if why := e.Text(name); why != "" && why != "end_turn" && why != end {
				end += ": " + why
			}
		}
		text = t.print(markNote, end)
	}
	if text != "" {
		s.r.show(text)
	}
}

const maxAsked = 4 << 10 // bytes of a question that are shown; atm pending has it whole

// askedText shows people a question, and how to answer it.
func (r *runner) askedText(d *ask.Question) string {
	lines, name := []string{d.Dialog, wire.Clip(d.Prompt, maxAsked)}, r.Box.Agent()
	if d.Input != d.Prompt && d.Input != "" {
		lines = append(lines, wire.Clip(d.Input, maxAsked))
	}
	how := fmt.Sprintf("atm approve %s, or atm reject %[1]s", name)
	if _, err := d.Pick(ask.Answer{}); err != nil {
		how = fmt.Sprintf("atm approve %s N", name)
	}
	for _, o := range d.Options {
		lines = append(lines, o.ID+" "+o.Label)
	}
	return strings.Join(append(lines, how), "\n")
}

// step ends a usage limit whose time is over, too: the agent says nothing about that.
func (s *speaker) step(now time.Time) {
	s.refresh()
	if ses := s.r.state.Session(); ses.Activity == reducer.Limited && !ses.Until.IsZero() && !s.r.mustWait(ses.Until, now) {
		e := wire.Event{Kind: wire.StateChange, Source: fromACP, Session: s.session}
		s.r.append(e, "previous", string(reducer.Limited), "new", string(reducer.Idle))
	}
}

func (s *speaker) state() agentState {
	is := agentState{
		driver: ACPName, reader: s.program, activity: s.Activity(), detail: s.r.state.Session().Detail, takesText: true, isReady: s.isReady,
		ways: control.Ways{Prompt: "protocol", Interrupt: "protocol", Answer: "protocol"},
	}
	if q := s.r.question; q != nil {
		is.detail, is.isAsking, is.isDialog, is.cancels = q.Dialog, true, true, q.Dialog == "permission"
	}
	return is
}

// gate says why no turn may begin now.
func (s *speaker) gate(time.Time) control.Gate {
	switch {
	case !s.isReady:
		return control.GateStarting
	case !s.IsIdle():
		return control.GateBusy
	}
	return control.GateOpen
}

// put begins a turn with the text and the attachments of its messages, which are read beside the loop.
func (s *speaker) put(g *giving) {
	var attached []wire.Attachment
	for _, it := range g.items() {
		if !g.isPointer {
			attached = append(attached, it.Attachments...)
		}
	}
	s.before = s.turn
	s.r.happened(delivery.In, "")
	s.r.wg.Go(func() { s.r.report(g, s.Prompt(g.text, attached...)) })
}

// has reports whether the turn has begun.
func (s *speaker) has(g *giving, _ time.Time) (e delivery.Event, why string) {
	if s.refresh(); g.state != delivery.Sent || s.turn == s.before {
		return "", ""
	}
	g.turn = s.turn
	return delivery.Receipt, ""
}

// takeBack waits for what becomes of a prompt: nothing recalls it.
func (s *speaker) takeBack(g *giving) delivery.Event {
	if g.cause == delivery.NotIn {
		return delivery.Gone
	}
	return ""
}

func (s *speaker) interrupt(int) (isMore bool) {
	s.Interrupt()
	return false
}

func (s *speaker) press(q *question, o ask.Option) error {
	err := s.Answer(q.asked, o.ID)
	if errors.Is(err, acp.ErrGone) {
		return errQuestionGone
	}
	return err
}
