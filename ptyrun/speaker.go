package ptyrun

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/ptyrun/acp"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
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
// People's terminals show a transcript.
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
		Command: command, Dir: r.Dir, Env: r.Env, Cols: r.Cols, Rows: r.Rows, Run: r.Run, Load: conversation,
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
func (s *speaker) take()                  { s.told.take(s.handle) }

func (s *speaker) handle(e acp.Event) {
	r, q := s.r, s.r.question
	switch {
	case e.Log != nil:
		s.session = e.Log.Session
		switch e.Log.Kind {
		case "session_start":
			s.isReady = true
			if id := r.prog.resumed.id; id != "" && id != s.session {
				r.notLoaded()
			}
		case wire.TurnStarted:
			s.turn = e.Log.TurnID
		}
		r.append(*e.Log)
	case e.Asked != nil:
		event := wire.Event{Source: fromACP, Session: s.session, TurnID: r.state.Session().Turn.ID}
		if e.Asked.ToolCallID != "" {
			event = event.With("tool_call_id", e.Asked.ToolCallID)
		}
		r.openQuestion(&Question{Dialog: e.Asked.Dialog, asked: e.Asked.ID, then: e.Asked.Then}, event)
	case e.Closed != "":
		if q != nil && q.asked == e.Closed && q.pressed != nil {
			r.closeQuestion(q.then)
		} else if q != nil && q.asked == e.Closed { // it was withdrawn: the change comes as an event
			r.closeQuestion("")
		}
	case e.Chosen != nil: // at a terminal
		if q != nil && q.asked == e.Chosen.Question && q.pressed == nil {
			if o := firstOption(q.Dialog.Options, func(o driver.Option) bool { return o.ID == e.Chosen.Option }); o != nil {
				if q.pressed = o; s.press(q, *o) != nil { // it was withdrawn
					q.pressed = nil
				}
			}
		}
	default:
		r.recording.Output(e.Output)
		r.sendOutput(e.Output, e.Seq)
	}
}

func (s *speaker) lookForDoor(time.Time) bool { return false }
func (s *speaker) isPushable() bool           { return false }

func (s *speaker) mailForPlugin(control.PluginRequest) control.PluginMail {
	return control.PluginMail{}
}

func (s *speaker) refresh() { s.take() }

// step ends a usage limit whose time is over: the agent says nothing about that.
func (s *speaker) step(now time.Time) {
	if ses := s.r.state.Session(); ses.Activity == reducer.Limited && !ses.Until.IsZero() && !s.r.mustWait(ses.Until, now) {
		e := wire.Event{Kind: "state_change", Source: fromACP, Session: s.session}
		s.r.append(e, "previous", string(reducer.Limited), "new", string(reducer.Idle))
	}
}

func (s *speaker) ended() {
	if t := s.r.mail.typing; t.isSubmitted() && s.turn != s.before {
		s.r.typingDone(t)
	}
}

func (s *speaker) state() agentState {
	q := s.r.question
	return agentState{
		driver: ACPName, reader: s.program, activity: s.Activity(), takesText: true, isReady: s.isReady, hasDraft: s.Draft() != "",
		isAsking: q != nil, isDialog: q != nil, cancels: q != nil && q.Dialog.Kind == "permission",
	}
}

func (s *speaker) describe(to *control.Status) {
	to.State, to.Detail = string(s.Activity()), s.r.state.Session().Detail
	if q := s.r.question; q != nil {
		to.Detail = q.Dialog.Kind
	}
	if !s.isReady {
		to.Resumed = "" // whether it can load that is not known yet
	}
	to.Ways = control.Ways{Prompt: "protocol", Interrupt: "protocol", Answer: "protocol"}
}

// gate says why no turn may begin now. A half-written line of a person is left alone, but whoever wrote it may be about
// to send it.
func (s *speaker) gate(time.Time, bool) control.Gate {
	switch {
	case !s.isReady:
		return control.GateStarting
	case !s.IsIdle():
		return control.GateBusy
	case s.Draft() != "":
		return control.GateDraft
	}
	return control.GateOpen
}

func (s *speaker) recipe(*typing) []recipeStep { return []recipeStep{{s.prompt, s.isAccepted}} }

// prompt begins a turn with the text and the attachments of its messages, which are read beside the loop.
func (s *speaker) prompt(t *typing) error {
	r := s.r
	var attached []wire.Attachment
	for _, it := range t.items {
		if !t.asPointer {
			attached = append(attached, it.Attachments...)
		}
	}
	t.draft, t.isWaiting, s.before = t.text, true, s.turn
	r.wg.Go(func() {
		err := s.Prompt(t.text, attached...)
		r.post(func() {
			t.failed, t.isWaiting = err, false
			if err == nil {
				t.startedAt, t.returns = r.now(), 1
			}
		})
	})
	return nil
}

// isAccepted reports whether the turn has begun.
func (s *speaker) isAccepted(t *typing, _ time.Time) (bool, error) {
	if t.failed != nil && t.prompt != nil { // it is given later, like one whose gate has closed
		s.r.mail.prompts = slices.Insert(s.r.mail.prompts, 0, t.prompt)
		return false, errNotInjected
	}
	if t.failed != nil {
		s.r.mail.requeue(idsOf(t.items))
		return false, &injectError{outcomeFailed, t.failed.Error()}
	}
	return s.turn != s.before, nil
}

func (s *speaker) given(*typing) (turn string) { return s.turn }
func (s *speaker) takeBack(*typing) bool       { return false }
func (s *speaker) beginInterrupt() bool        { return false }

func (s *speaker) interrupt(int) (isMore bool) {
	s.Interrupt()
	return false
}

func (s *speaker) press(q *Question, o driver.Option) error {
	err := s.Answer(q.asked, o.ID)
	if errors.Is(err, acp.ErrGone) {
		return errQuestionGone
	}
	return err
}

func (s *speaker) isOpen(q *Question) (isOpen, isDrawn bool) { return q == s.r.question, true }

func (s *speaker) answer() string          { return "" } // its turn_completed has it
func (s *speaker) declared() screen.Status { return nil }
func (s *speaker) forgetLines()            {}

func (s *speaker) repaint(lines int) ([]byte, uint64) { return s.Repaint(lines) }
func (s *speaker) clear() []byte                      { return nil }
func (s *speaker) leave() []byte                      { return []byte("\r\n") }

func (s *speaker) tail(lines int) []string {
	all := s.Lines()
	return all[max(0, len(all)-lines):]
}

func (s *speaker) show(req control.ScreenRequest) control.Screen {
	n := s.r.Rows
	if req.Last > 0 {
		n = req.Last
	}
	out := control.Screen{Lines: s.tail(n), State: string(s.Activity())}
	if req.ANSI {
		for _, line := range out.Lines {
			out.ANSI += line + "\r\n"
		}
	}
	return out
}

func (s *speaker) resize(to control.Size) { s.Resize(to.Cols, to.Rows) }

func (s *speaker) keys(keys []byte) {
	if s.r.RecordInput {
		s.r.recording.Input(keys)
	}
	s.Keys(keys)
}

func (s *speaker) typeText(req control.TypeRequest) (*requestedText, error) {
	if q := s.r.question; q != nil {
		if err := s.r.checkTyping(req, &q.Dialog); err != nil {
			return nil, err
		}
	}
	t := &requestedText{data: req.Text, written: make(chan error, 1)}
	if !req.Raw {
		t.text = Clean(string(req.Text))
		t.data = []byte(keysOf(t.text, len(t.text) > 1, false))
	}
	t.written <- nil
	s.keys(t.data)
	return t, nil
}

func (s *speaker) hasText(*requestedText) bool { return true }

func (s *speaker) submit(*requestedText) error {
	s.keys([]byte("\r"))
	return nil
}
