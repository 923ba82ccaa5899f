package ptyrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
)

var (
	errOver       = errors.New("the program has ended")
	errNotRunning = errors.New("its program is not running")
	errBeingTyped = &control.Error{Code: "locked", Message: "a message is being typed in; try again in a moment"}
)

// runner is the control.Handler of its agent. These methods run beside the loop, many at once, and have the loop do
// their work.
var _ control.Handler = (*runner)(nil)

func (r *runner) Status(context.Context) (control.Status, error) {
	return inLoop(r, func() (control.Status, error) {
		s := control.Status{State: string(reducer.Starting), Untyped: r.mail.lastFailure.Field("reason")}
		if err := r.recording.Err(); err != nil {
			s.NotRecorded = err.Error()
		}
		if r.mail.typing == nil { // else the draft is not a person's
			s.Gate = r.gate(r.now())
		}
		if p := r.prog; p != nil {
			s.ChildPID, s.Started, s.Ready, s.Driver = p.child.PID(), p.started, p.isReady, p.driver.Name
			s.Resumed, s.NotResumed = p.resumed.id, p.resumed.fresh
			s.State, s.Detail = string(p.reading.Activity), p.reading.Detail
			s.ByLine = p.driver.Plain && !p.screen.Modes().Paste
			if d := p.reading.Dialog; d != nil {
				s.Detail = d.Kind
			}
			s.Claims = p.claims()
		}
		return s, nil
	})
}

// claims returns what the program's sources say.
func (p *program) claims() (all []control.Claim) {
	rd := &p.reading
	add := func(c control.Claim) {
		c.Counts = c.Source == string(cmp.Or(rd.Source, reducer.FromScreen))
		all = append(all, c)
	}
	if d := rd.Declared; d.State != "" {
		add(control.Claim{Source: string(reducer.FromDeclared), Says: string(d.State), By: d.App, Detail: cmp.Or(d.Message, string(d.Kind)), At: p.declaredAt})
	}
	if rd.Title == reducer.Confirming || rd.Title == reducer.Thinking || rd.Title == reducer.Idle {
		add(control.Claim{Source: string(reducer.FromTitle), Says: string(rd.Title), Detail: p.screen.Title(), At: p.readingSince})
	}
	if rd.Source == reducer.FromScreen || rd.Source == "" || rd.Dialog != nil {
		add(control.Claim{Source: string(reducer.FromScreen), Says: string(rd.Activity), Detail: rd.Detail, At: p.readingSince})
	}
	return all
}

func (r *runner) Screen(_ context.Context, req control.ScreenRequest) (control.Screen, error) {
	return inLoop(r, func() (control.Screen, error) {
		p := r.prog
		if p == nil {
			return control.Screen{Cols: r.Cols, Rows: r.Rows, Lines: r.exit.Tail, State: string(reducer.Exited)}, nil
		}
		r.refresh(r.now())
		out := control.Screen{
			Cols: r.Cols, Rows: r.Rows, Title: p.screen.Title(), Lines: p.screen.Lines(),
			State: string(p.reading.Activity), Detail: p.reading.Detail,
		}
		out.CursorX, out.CursorY = p.screen.Cursor()
		if req.Last > 0 {
			out.Lines = p.screen.Tail(req.Last)
		}
		if req.ANSI {
			out.ANSI = p.screen.ANSI(req.Last)
		}
		return out, nil
	})
}

func (r *runner) Type(_ context.Context, req control.TypeRequest) (done control.Outcome, err error) {
	typed, err := inLoop(r, func() (*requestedText, error) { return r.typeRequested(req) })
	if err != nil {
		return done, err
	}
	done = control.Outcome{Done: "typed", Detail: letter.Many(len(req.Text), "byte")}
	if len(req.Text) == 0 {
		done.Detail = "return"
	}
	if !req.Enter && !req.Raw {
		done.Detail += fmt.Sprintf(", not submitted: atm type %s --enter", r.Box.Agent())
	}
	if err := <-typed.written; err != nil || !req.Enter {
		return done, err
	}
	if n := len(typed.data); n > 0 { // some programs swallow a return key right behind a text
		r.awaitText(typed)
		time.Sleep(r.timing.beforeReturn + driver.SubmitDelay(n))
	}
	return inLoop(r, func() (control.Outcome, error) {
		if r.prog != typed.prog {
			return done, errors.New("its program has ended: the return key was not pressed")
		}
		r.refresh(r.now())
		if now := fingerprint(r.prog.reading.Dialog); now != "" && now != typed.dialog { // the return key would answer it
			return done, errors.New("a dialog came up: the return key was not pressed")
		}
		r.typeKeys([]byte(r.prog.driver.SubmitKeys()), nil)
		return done, nil
	})
}

// awaitText waits until the box shows a text that a request has typed, as long as a program may take to draw it.
func (r *runner) awaitText(typed *requestedText) {
	for end := time.Now().Add(r.timing.render); typed.text != "" && typed.dialog == "" && time.Now().Before(end); time.Sleep(r.timing.idle / 5) {
		isShown, err := inLoop(r, func() (bool, error) {
			return r.prog != typed.prog || r.prog.driver.HasInBox(r.prog.look(), typed.text), nil
		})
		if isShown || err != nil {
			return
		}
	}
}

// requestedText is a text that a request has typed.
type requestedText struct {
	prog    *program
	text    string // "": raw keys, of which a box shows nothing
	data    []byte
	dialog  string     // fingerprint of the dialog on the screen at that moment
	written chan error // gets the result of writing it
}

func (r *runner) typeRequested(req control.TypeRequest) (*requestedText, error) {
	p := r.prog
	switch {
	case p == nil:
		return nil, errNotRunning
	case r.mail.typing.hasBegun():
		return nil, errBeingTyped
	}
	r.refresh(r.now())
	if !req.Raw && r.hasLeftover() {
		return nil, refused("its prompt may still hold a message: nothing was typed",
			fmt.Sprintf("atm screen %[1]s shows it; to type anyway: atm attach %[1]s, or --raw", r.Box.Agent()))
	}
	d := p.reading.Dialog
	isText := len(req.Text) > 1 && !req.Raw // else it may be the key of an answer
	if p.asks() && isText && !p.driver.Plain {
		return nil, refused("these keys would answer its question: nothing was typed",
			fmt.Sprintf("atm pending shows the question; atm approve %[1]s OPTION, atm attach %[1]s, or --raw", r.Box.Agent()))
	}
	if d != nil { // the text may answer it
		right := control.Answer
		if req.By == "" || d.Kind == "question" { // a person's keys, as at an attached terminal
			right = control.Keys
		}
		if err := r.CheckRight(right, req.PID, req.By); err != nil {
			return nil, err
		}
	}
	t := &requestedText{prog: p, data: req.Text, dialog: fingerprint(d), written: make(chan error, 1)}
	if !req.Raw {
		if !p.takesText() && len(req.Text) > control.MaxLine() {
			return nil, refused(untypable(string(req.Text), false)+": nothing was typed", "")
		}
		t.text = Clean(string(req.Text))
		if t.data = p.keysOf(t.text); len(req.Text) <= 1 { // a pasted key answers nothing
			t.data = []byte(keysOf(t.text, false, p.driver.Plain))
		}
	}
	r.lastKey = r.now()
	r.typeKeys(t.data, func(n int, err error) {
		if err != nil {
			err = fmt.Errorf("the program stopped reading after %d of %d bytes", n, len(t.data))
		}
		t.written <- err
	})
	return t, nil
}

func (r *runner) CheckRight(right control.Right, pid int, by string) error {
	if r.Authorize == nil {
		return nil
	}
	if err := r.Authorize(right, pid, by); err != nil {
		return refused(err.Error(), "")
	}
	return nil
}

func (r *runner) Answer(_ context.Context, req control.AnswerRequest) (control.Outcome, error) {
	label, err := r.answer(req.By, func(q *Question) (driver.Option, error) { return r.wantedOption(q, req) })
	return control.Outcome{Done: "answered", Detail: label}, err
}

// Stop returns when the loop has ended; by then what the agent started is gone.
func (r *runner) Stop(context.Context) (control.Outcome, error) {
	r.post(func() { r.stop("asked to") })
	<-r.ctx.Done()
	e := r.exit
	return control.Outcome{Done: "stopped", Detail: cmp.Or(e.Signal, fmt.Sprintf("exit %d", e.Code)), Ended: e.Ended}, nil
}

func (r *runner) Restart(_ context.Context, req control.RestartRequest) (control.Outcome, error) {
	return inLoop(r, func() (control.Outcome, error) {
		r.Resume = r.Resume || req.Resume
		if r.stopping != nil {
			return control.Outcome{}, errors.New(string(control.GateStopping))
		}
		if r.prog == nil && !r.isEnding {
			r.restarts.next = r.now()
			return control.Outcome{Done: "restarted"}, nil
		}
		r.stop("asked to restart")
		r.stopping.isRestart = true
		return control.Outcome{Done: "restarting"}, nil
	})
}
