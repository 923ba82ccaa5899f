package ptyrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
)

// handler answers the control socket. Its methods may be called by many at once; each has the loop do what
// it is about.
type handler struct{ r *runner }

// wait has the loop begin something, and waits for what comes of it.
func (h handler) wait(ctx context.Context, begin func(waiter chan<- reply)) (control.Outcome, error) {
	waiter := make(chan reply, 1)
	if !h.r.post(func() { begin(waiter) }) {
		return control.Outcome{}, errOver
	}
	select {
	case a := <-waiter:
		return a.out, a.err
	case <-h.r.over:
	case <-ctx.Done():
	}
	select {
	case a := <-waiter:
		return a.out, a.err
	default:
		return control.Outcome{}, errOver
	}
}

// Status says what runs, and what keeps mail from being typed.
func (h handler) Status(context.Context) (control.Status, error) {
	r := h.r
	return ask(r, func() (control.Status, error) {
		s := control.Status{
			Restarts: r.restarts.count, Viewers: len(r.viewers), State: string(reducer.Starting),
		}
		if err := r.recording.Err(); err != nil {
			s.NotRecorded = err.Error()
		}
		if r.mail.typing == nil { // else the draft is ours
			s.Gate = r.gate(r.Now())
		}
		if p := r.prog; p != nil {
			s.ChildPID, s.Started, s.Ready, s.Driver = p.child.PID(), p.started, p.isReady, p.driver.Name
			s.State, s.Detail = string(p.reading.Activity), p.reading.Detail
			if d := p.reading.Dialog; d != nil {
				s.Detail = d.Kind
			}
		}
		return s, nil
	})
}

// Screen is what is on the screen.
func (h handler) Screen(_ context.Context, req control.ScreenRequest) (control.Screen, error) {
	r := h.r
	return ask(r, func() (control.Screen, error) {
		out := control.Screen{Cols: r.Cols, Rows: r.Rows}
		p := r.prog
		if p == nil {
			out.Lines, out.State = r.exit.Tail, string(reducer.Exited)
			return out, nil
		}
		r.takeOutput()
		p.read(r.Now(), r.isAuto)
		out.Title, out.Alt = p.screen.Title(), p.screen.Modes().Alt
		out.State, out.Detail = string(p.reading.Activity), p.reading.Detail
		out.CursorX, out.CursorY = p.screen.Cursor()
		if out.Lines = p.screen.Lines(); req.Last > 0 {
			out.Lines = p.screen.Tail(req.Last)
		}
		if req.ANSI {
			out.ANSI = p.screen.ANSI()
		}
		return out, nil
	})
}

// Type types as a person would.
func (h handler) Type(ctx context.Context, req control.TypeRequest) (control.Outcome, error) {
	return h.wait(ctx, func(waiter chan<- reply) { h.r.typeFor(req, waiter) })
}

func (r *runner) typeFor(req control.TypeRequest, waiter chan<- reply) {
	p := r.prog
	if p == nil {
		waiter <- reply{err: errors.New("its program does not run")}
		return
	}
	if r.mail.typing.isUnderWay() {
		waiter <- reply{err: errors.New("a message is being typed in; try again in a moment")}
		return
	}
	data := req.Text
	if !req.Raw {
		data = []byte(keysOf(clean(string(req.Text)), p.screen.Modes().Paste && len(req.Text) > 0, p.driver.Plain))
	}
	r.lastKey = r.Now()
	r.recordInput(data)
	before := printOf(p.reading.Dialog)
	done := reply{out: control.Outcome{Done: "typed", Detail: fmt.Sprintf("%d bytes", len(req.Text))}}
	enter := func() {
		if r.prog != p {
			waiter <- reply{err: errors.New("its program has ended: the return key was not pressed")}
			return
		}
		r.refresh(r.Now())
		if now := printOf(p.reading.Dialog); now != "" && now != before { // that the text was not meant for
			waiter <- reply{err: errors.New("a dialog came up: the return key was not pressed")}
			return
		}
		r.recordInput([]byte(driver.Submit))
		p.put([]byte(driver.Submit))
		waiter <- done
	}
	p.send(write{data: data, done: func(n int, err error) {
		switch {
		case err != nil:
			waiter <- reply{err: fmt.Errorf("the program does not read: %d bytes of %d were typed", n, len(data))}
		case !req.Enter:
			waiter <- done
		case len(data) == 0:
			r.post(enter)
		default: // a return key right behind a text is swallowed by some
			time.AfterFunc(max(r.Waits.Return, p.driver.SubmitDelay(len(data))), func() { r.post(enter) })
		}
	}})
}

// Interrupt ends the turn.
func (h handler) Interrupt(ctx context.Context) (control.Outcome, error) {
	r := h.r
	if err := r.awaitWork(ctx); err != nil {
		return control.Outcome{}, err
	}
	return ask(r, func() (control.Outcome, error) {
		was := string(reducer.Unknown)
		if r.prog != nil {
			was = string(r.prog.reading.Activity)
			r.refresh(r.Now())
			if r.prog.reading.Activity == reducer.Idle && r.mail.typing == nil {
				return control.Outcome{Done: "idle", Detail: "nothing to interrupt"}, nil
			}
		}
		if err := r.interrupt(false); err != nil {
			return control.Outcome{}, err
		}
		return control.Outcome{Done: "interrupted", Detail: was}, nil
	})
}

// Answer answers what the agent asks.
func (h handler) Answer(ctx context.Context, req control.AnswerRequest) (control.Outcome, error) {
	if h.r.May != nil {
		if err := h.r.May(req.PID, req.By); err != nil {
			return control.Outcome{}, &control.Error{Code: "refused", Message: err.Error()}
		}
	}
	return h.wait(ctx, func(waiter chan<- reply) { h.r.answerQuestion(req, waiter) })
}

// Stop ends the agent and everything that it started.
func (h handler) Stop(ctx context.Context, req control.StopRequest) (control.Outcome, error) {
	grace := req.Grace
	if grace <= 0 {
		grace = 2 * time.Second
	}
	return h.wait(ctx, func(waiter chan<- reply) { h.r.stop("asked to", grace, waiter) })
}

// Restart ends the program and starts it again.
func (h handler) Restart(context.Context) (control.Outcome, error) {
	r := h.r
	return ask(r, func() (control.Outcome, error) {
		if r.stopping != nil {
			return control.Outcome{}, errors.New("it is being stopped")
		}
		if r.prog == nil {
			r.restarts.at = r.Now()
			return control.Outcome{Done: "restarted"}, nil
		}
		r.isRerun = true
		r.stop("asked to restart", 2*time.Second, nil)
		return control.Outcome{Done: "restarting"}, nil
	})
}
