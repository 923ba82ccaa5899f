package ptyrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
)

// runner is the control.Handler of its agent: these methods may be called by many at once, and
// each has the loop do what it is about.
var _ control.Handler = (*runner)(nil)

type reply struct {
	out control.Outcome
	err error
}

func (r *runner) wait(ctx context.Context, begin func(waiter chan<- reply)) (control.Outcome, error) {
	waiter := make(chan reply, 1)
	if !r.post(func() { begin(waiter) }) {
		return control.Outcome{}, errOver
	}
	select {
	case a := <-waiter:
		return a.out, a.err
	case <-r.over:
	case <-ctx.Done():
	}
	select {
	case a := <-waiter:
		return a.out, a.err
	default:
		return control.Outcome{}, errOver
	}
}

func (r *runner) Status(context.Context) (control.Status, error) {
	return ask(r, func() (control.Status, error) {
		s := control.Status{Restarts: r.restarts.count, Viewers: len(r.viewers), State: string(reducer.Starting)}
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

func (r *runner) Screen(_ context.Context, req control.ScreenRequest) (control.Screen, error) {
	return ask(r, func() (control.Screen, error) {
		p := r.prog
		if p == nil {
			return control.Screen{Cols: r.Cols, Rows: r.Rows, Lines: r.exit.Tail, State: string(reducer.Exited)}, nil
		}
		r.takeOutput()
		p.read(r.Now(), r.isAuto)
		out := control.Screen{
			Cols: r.Cols, Rows: r.Rows, Title: p.screen.Title(), Alt: p.screen.Modes().Alt,
			State: string(p.reading.Activity), Detail: p.reading.Detail, Lines: p.screen.Lines(),
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

func (r *runner) Type(ctx context.Context, req control.TypeRequest) (control.Outcome, error) {
	return r.wait(ctx, func(waiter chan<- reply) {
		r.typeFor(req, func(out control.Outcome, err error) { waiter <- reply{out, err} })
	})
}

func (r *runner) typeFor(req control.TypeRequest, answer func(control.Outcome, error)) {
	p, none := r.prog, control.Outcome{}
	if p == nil {
		answer(none, errNotRunning)
		return
	}
	if r.mail.typing.isUnderWay() {
		answer(none, errBeingTyped)
		return
	}
	data := req.Text
	if !req.Raw {
		data = []byte(keysOf(clean(string(req.Text)), p.screen.Modes().Paste && len(req.Text) > 0, p.driver.Plain))
	}
	r.lastKey = r.Now()
	r.recordInput(data)
	before := printOf(p.reading.Dialog)
	done := control.Outcome{Done: "typed", Detail: fmt.Sprintf("%d bytes", len(req.Text))}
	enter := func() {
		if r.prog != p {
			answer(none, errors.New("its program has ended: the return key was not pressed"))
			return
		}
		r.refresh(r.Now())
		if now := printOf(p.reading.Dialog); now != "" && now != before { // that the text was not meant for
			answer(none, errors.New("a dialog came up: the return key was not pressed"))
			return
		}
		r.typeKeys([]byte(driver.Submit))
		answer(done, nil)
	}
	p.send(write{data: data, done: func(n int, err error) {
		switch {
		case err != nil:
			answer(none, fmt.Errorf("the program does not read: %d bytes of %d were typed", n, len(data)))
		case !req.Enter:
			answer(done, nil)
		case len(data) == 0:
			r.post(enter)
		default: // a return key right behind a text is swallowed by some
			time.AfterFunc(max(r.Waits.Return, p.driver.SubmitDelay(len(data))), func() { r.post(enter) })
		}
	}})
}

func (r *runner) Interrupt(ctx context.Context) (control.Outcome, error) {
	if err := r.awaitWork(ctx); err != nil {
		return control.Outcome{}, err
	}
	turn := ""
	out, err := ask(r, func() (control.Outcome, error) {
		if r.prog != nil {
			r.refresh(r.Now())
			if r.prog.reading.Activity == reducer.Idle && r.mail.typing == nil {
				return control.Outcome{Done: "idle", Detail: "nothing to interrupt"}, nil
			}
		}
		turn = r.state.Turn().ID
		was, err := r.interrupt(false)
		return control.Outcome{Done: "interrupted", Detail: string(was)}, err
	})
	if err != nil || out.Done == "idle" {
		return out, err
	}
	return out, r.awaitEnd(ctx, turn)
}

func (r *runner) Answer(ctx context.Context, req control.AnswerRequest) (control.Outcome, error) {
	if r.May != nil {
		if err := r.May(req.PID, req.By); err != nil {
			return control.Outcome{}, &control.Error{Code: "refused", Message: err.Error()}
		}
	}
	return r.wait(ctx, func(waiter chan<- reply) { r.answerQuestion(req, waiter) })
}

func (r *runner) Stop(ctx context.Context, req control.StopRequest) (control.Outcome, error) {
	return r.wait(ctx, func(waiter chan<- reply) { r.stop("asked to", cmp.Or(req.Grace, stopGrace), waiter) })
}

func (r *runner) Restart(context.Context) (control.Outcome, error) {
	return ask(r, func() (control.Outcome, error) {
		if r.stopping != nil {
			return control.Outcome{}, errors.New(string(control.GateStopping))
		}
		if r.prog == nil {
			r.restarts.at = r.Now()
			return control.Outcome{Done: "restarted"}, nil
		}
		r.isRerun = true
		r.stop("asked to restart", stopGrace, nil)
		return control.Outcome{Done: "restarting"}, nil
	})
}
