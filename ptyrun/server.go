package ptyrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer"
)

var (
	errOver       = errors.New("the program has ended")
	errNotRunning = errors.New("its program is not running")
	errBeingTyped = &control.Error{Code: locked, Message: "a message is being typed in; try again in a moment"}
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
			s.Gate = r.mailGate(r.now())
		}
		if p := r.prog; p != nil {
			is := p.state()
			s.ChildPID, s.Started, s.Ready, s.Driver = p.PID(), p.started, is.isReady && r.isLogged() && r.unwritten == 0 && r.follower.IsReady(), is.driver
			s.Resumed, s.NotResumed = p.resumed.id, p.resumed.fresh
			p.describe(&s)
		}
		return s, nil
	})
}

func (r *runner) Screen(_ context.Context, req control.ScreenRequest) (control.Screen, error) {
	return inLoop(r, func() (control.Screen, error) {
		out := control.Screen{Lines: r.exit.Tail, State: string(reducer.Exited)}
		if r.prog != nil {
			r.prog.refresh()
			out = r.prog.show(req)
		}
		out.Cols, out.Rows = r.Cols, r.Rows
		return out, nil
	})
}

// MailForPlugin answers the program's own processes only: others would take its mail.
func (r *runner) MailForPlugin(_ context.Context, req control.PluginRequest) (control.PluginMail, error) {
	return inLoop(r, func() (control.PluginMail, error) {
		switch {
		case r.prog == nil:
			return control.PluginMail{}, errNotRunning
		case !slices.Contains(process.Ancestors(req.PID), r.prog.PID()):
			return control.PluginMail{}, refused("only its own program is given what is pushed")
		}
		return r.prog.mailForPlugin(req), nil
	})
}

func (r *runner) Type(_ context.Context, req control.TypeRequest) (done control.Outcome, err error) {
	var prog *program
	typed, err := inLoop(r, func() (*requestedText, error) {
		prog = r.prog
		switch {
		case prog == nil:
			return nil, errNotRunning
		case r.mail.typing.holdsKeys():
			return nil, errBeingTyped
		}
		prog.refresh()
		return prog.typeText(req)
	})
	if err != nil {
		return done, err
	}
	done = control.Outcome{Done: "typed", Detail: letter.Many(len(req.Text), "byte")}
	if len(req.Text) == 0 {
		done.Detail = "return"
	}
	done.NotSubmitted = !req.Enter && !req.Raw
	if err := <-typed.written; err != nil || !req.Enter {
		return done, err
	}
	if n := len(typed.data); n > 0 { // some programs swallow a return key right behind a text
		r.poll(r.timing.render, func() bool { return r.prog != prog || prog.hasText(typed) })
		time.Sleep(r.timing.beforeReturn + driver.SubmitDelay(n))
	}
	return inLoop(r, func() (control.Outcome, error) {
		if r.prog != prog {
			return done, errors.New("its program has ended: the return key was not pressed")
		}
		prog.refresh()
		return done, prog.submit(typed)
	})
}

// checkTyping returns an error if a text may not be typed while the agent asks something, perhaps d: it may be an answer.
func (r *runner) checkTyping(req control.TypeRequest, d *driver.Dialog) error {
	if len(req.Text) > 1 && !req.Raw { // else it may be the key of an answer
		return refused("these keys would answer its question: nothing was typed", control.Try{Op: "answer"}, tryAttach, tryRaw)
	}
	if d == nil {
		return nil
	}
	right := control.Answer
	if req.By == "" || d.Kind == "question" { // a person's keys, as at an attached terminal
		right = control.Keys
	}
	return r.CheckRight(right, req.PID, req.By)
}

func (r *runner) CheckRight(right control.Right, pid int, by string) error {
	if r.Authorize == nil {
		return nil
	}
	if err := r.Authorize(right, pid, by); err != nil {
		return refused(err.Error())
	}
	return nil
}

func (r *runner) Answer(_ context.Context, req control.AnswerRequest) (control.Outcome, error) {
	label, err := r.answer(req.By, func(q *Question) (driver.Option, error) { return r.wantedOption(q, req) })
	if err == nil {
		r.awaitLogged(answerTimeout)
	}
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
	return inLoop(r, func() (control.Outcome, error) { return r.restart(req) })
}

func (r *runner) restart(req control.RestartRequest) (control.Outcome, error) {
	r.Resume = r.Resume || req.Resume
	if r.stopping != nil {
		return control.Outcome{}, errors.New(string(control.GateStopping))
	}
	if r.prog == nil && !r.isEnding {
		if !r.restarts.isStarting {
			r.restarts.next = r.now()
		}
		return control.Outcome{Done: "restarted"}, nil
	}
	r.stop("asked to restart")
	r.stopping.isRestart = true
	return control.Outcome{Done: "restarting"}, nil
}
