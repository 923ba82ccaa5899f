package ptyrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
)

// handler answers the control socket. Its methods may be called by many at
// once; each has the loop do what it is about.
type handler struct{ r *runner }

// Status says what runs, and what keeps mail from being typed.
func (h handler) Status(ctx context.Context) (control.Status, error) {
	return ask(ctx, h.r, func() (control.Status, error) {
		r := h.r
		s := control.Status{
			PID: os.Getpid(), Run: r.Run, Command: r.Command, Cols: r.Cols, Rows: r.Rows,
			Restarts: r.tries.count, Viewers: len(r.viewers),
		}
		if r.typing == nil { // else the draft is ours
			s.Gate, _ = r.gate(r.Now())
		}
		if p := r.prog; p != nil {
			s.ChildPID, s.Started, s.Ready = p.child.PID(), p.began, p.ready
			s.Driver, s.State, s.Detail = p.driver.Name, string(p.reading.Activity), p.reading.Detail
			if d := p.reading.Dialog; d != nil {
				s.Detail = d.Kind
			}
		} else {
			s.State = string(reducer.Starting)
		}
		return s, nil
	})
}

// Screen is what is on the screen.
func (h handler) Screen(ctx context.Context, req control.ScreenRequest) (control.Screen, error) {
	return ask(ctx, h.r, func() (control.Screen, error) {
		r := h.r
		if r.prog == nil {
			return control.Screen{Lines: r.exit.Tail, Cols: r.Cols, Rows: r.Rows, State: string(reducer.Exited)}, nil
		}
		r.output()
		p := r.prog
		p.see(r.Now(), r.Auto)
		s := p.screen
		out := control.Screen{Cols: r.Cols, Rows: r.Rows, Title: s.Title(), State: string(p.reading.Activity), Detail: p.reading.Detail, Alt: s.Modes().Alt}
		out.CursorX, out.CursorY = s.Cursor()
		switch {
		case req.Last > 0:
			out.Lines = s.Tail(req.Last)
		default:
			out.Lines = s.Lines()
		}
		if req.ANSI {
			out.ANSI = s.ANSI()
		}
		return out, nil
	})
}

// Type types as a person would.
func (h handler) Type(ctx context.Context, req control.TypeRequest) (control.Outcome, error) {
	to := make(chan reply, 1)
	if !h.r.post(func() { h.r.typeFor(req, to) }) {
		return control.Outcome{}, errOver
	}
	return h.wait(ctx, to)
}

func (h handler) wait(ctx context.Context, to <-chan reply) (control.Outcome, error) {
	select {
	case a := <-to:
		return a.out, a.err
	case <-h.r.over:
	case <-ctx.Done():
	}
	select {
	case a := <-to:
		return a.out, a.err
	default:
		return control.Outcome{}, errOver
	}
}

func (r *runner) typeFor(req control.TypeRequest, to chan<- reply) {
	p := r.prog
	if p == nil {
		to <- reply{err: errors.New("its program does not run")}
		return
	}
	if r.typing != nil && r.typing.step >= writing {
		to <- reply{err: errors.New("a message is being typed in; try again in a moment")}
		return
	}
	data := []byte(req.Text)
	if !req.Raw {
		data = []byte(keys(clean(req.Text), p.screen.Modes().Paste && len(req.Text) > 0))
	}
	r.lastHuman = r.Now()
	r.recordInput(data)
	before := printOf(p.reading.Dialog)
	enter := func() {
		if req.Enter {
			// The key would answer what the text was not meant for.
			if r.prog == p {
				r.freshen(r.Now())
			}
			if now := printOf(p.reading.Dialog); now != "" && now != before {
				to <- reply{err: errors.New("a dialog came up: the return key was not pressed")}
				return
			}
			r.recordInput([]byte(driver.Submit))
			p.out.put([]byte(driver.Submit))
		}
		to <- reply{out: control.Outcome{Done: "typed", Detail: fmt.Sprintf("%d bytes", len(req.Text))}}
	}
	p.out.send(write{data: data, done: func(n int, err error) {
		switch {
		case err != nil:
			to <- reply{err: fmt.Errorf("the program does not read: %d bytes of %d were typed", n, len(data))}
		case !req.Enter || len(data) == 0:
			r.post(enter)
		default:
			// A return key right behind a text is swallowed by some.
			time.AfterFunc(max(r.waits.Return, p.driver.SubmitDelay(len(data))), func() { r.post(enter) })
		}
	}})
}

// beginShows is how long a turn that was begun may take to show.
const beginShows = 2 * time.Second

// Interrupt ends the turn.
func (h handler) Interrupt(ctx context.Context) (control.Outcome, error) {
	// A turn that has just begun may not show yet, and the key would do nothing.
	until := time.Now().Add(beginShows)
	for time.Now().Before(until) {
		early, err := ask(ctx, h.r, func() (bool, error) {
			r := h.r
			if r.prog == nil || r.prog.reading.Activity != reducer.Idle {
				return false, nil
			}
			return r.turnOurs || r.state.Turn().Word() == reducer.WordBusy, nil
		})
		if err != nil {
			return control.Outcome{}, err
		}
		if !early {
			break
		}
		select {
		case <-time.After(judgeAfter):
		case <-ctx.Done():
			return control.Outcome{}, ctx.Err()
		}
	}
	return ask(ctx, h.r, func() (control.Outcome, error) {
		r := h.r
		was := "unknown"
		if r.prog != nil {
			was = string(r.prog.reading.Activity)
		}
		if r.prog != nil {
			r.freshen(r.Now())
		}
		if r.prog != nil && r.prog.reading.Activity == reducer.Idle && r.typing == nil {
			return control.Outcome{Done: "idle", Detail: "nothing to interrupt"}, nil
		}
		if err := r.interrupt(false); err != nil {
			return control.Outcome{}, err
		}
		return control.Outcome{Done: "interrupted", Detail: was}, nil
	})
}

// Stop ends the agent and everything that it started.
func (h handler) Stop(ctx context.Context, req control.StopRequest) (control.Outcome, error) {
	to := make(chan reply, 1)
	grace := req.Grace
	if grace <= 0 {
		grace = 2 * time.Second
	}
	if !h.r.post(func() { h.r.stop("asked to", grace, to) }) {
		return control.Outcome{}, errOver
	}
	return h.wait(ctx, to)
}

// Restart ends the program and starts it again.
func (h handler) Restart(ctx context.Context) (control.Outcome, error) {
	return ask(ctx, h.r, func() (control.Outcome, error) {
		r := h.r
		if r.stopping != nil {
			return control.Outcome{}, errors.New("it is being stopped")
		}
		if r.prog == nil {
			r.tries.at = r.Now()
			return control.Outcome{Done: "restarted"}, nil
		}
		r.again = true
		r.stop("asked to restart", 2*time.Second, nil)
		return control.Outcome{Done: "restarting"}, nil
	})
}
