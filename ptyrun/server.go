package ptyrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
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
		s := control.Status{State: string(reducer.Starting), NoTerminal: !r.hasTerminal(), Untyped: r.mail.lastFailure.Field("reason")}
		if err := r.recording.Err(); err != nil {
			s.NotRecorded = err.Error()
		}
		if !r.usesPrompt() { // else the draft is not a person's
			s.Gate = r.mailGate(r.now())
		}
		if p := r.prog; p != nil {
			is := p.state()
			s.ChildPID, s.Started, s.Ready, s.Driver = p.PID(), p.started, is.isReady && r.isLogged() && r.unwritten == 0 && r.follower.IsReady(), is.driver
			s.State, s.Detail, s.ByLine, s.Ways, s.NotResumed = string(is.activity), is.detail, is.isByLine, is.ways, p.resumed.fresh
			if r.hasTerminal() || is.isReady { // else whether it can load the conversation is not known yet
				s.Resumed = p.resumed.id
			}
		}
		if t := r.onTerminal(); t != nil {
			s.Claims = t.claims()
		}
		return s, nil
	})
}

func (r *runner) Screen(_ context.Context, req control.ScreenRequest) (control.Screen, error) {
	return inLoop(r, func() (control.Screen, error) {
		out := control.Screen{Lines: r.exit.Tail, State: string(reducer.Exited)}
		if r.prog != nil {
			r.prog.refresh()
			out = r.shown(req)
		}
		out.Cols, out.Rows = r.Cols, r.Rows
		return out, nil
	})
}

// shown returns what the agent's terminal shows, or the end of its transcript.
func (r *runner) shown(req control.ScreenRequest) control.Screen {
	if t := r.onTerminal(); t != nil {
		return t.show(req)
	}
	is := r.prog.state()
	out := control.Screen{Lines: r.transcript.tail(cmp.Or(req.Last, r.Rows)), State: string(is.activity), Detail: is.detail}
	if req.ANSI {
		out.ANSI = strings.Join(append(out.Lines[:len(out.Lines):len(out.Lines)], ""), "\r\n")
	}
	return out
}

func (r *runner) Type(ctx context.Context, req control.TypeRequest) (done control.Outcome, err error) {
	if !r.hasTerminal() {
		return r.typePrompt(ctx, req)
	}
	var prog *terminal
	typed, err := inLoop(r, func() (*requestedText, error) {
		prog = r.onTerminal()
		switch {
		case prog == nil:
			return nil, errNotRunning
		case r.mail.giving.typed() != nil:
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
		r.poll(r.timing.render, func() bool { return r.onTerminal() != prog || prog.hasText(typed) })
		time.Sleep(r.timing.beforeReturn + driver.SubmitDelay(n))
	}
	return inLoop(r, func() (control.Outcome, error) {
		if r.onTerminal() != prog {
			return done, errors.New("its program has ended: the return key was not pressed")
		}
		prog.refresh()
		return done, prog.submit(typed)
	})
}

// typePrompt gives a text to an agent without a terminal, if that may begin a turn now.
func (r *runner) typePrompt(ctx context.Context, req control.TypeRequest) (done control.Outcome, err error) {
	p := &prompt{text: string(req.Text), done: make(chan error, 1)}
	_, err = inLoop(r, func() (gate control.Gate, err error) {
		switch gate = r.gate(r.now()); {
		case req.Raw || len(req.Text) == 0:
			return gate, refused("it has no terminal that takes keys", tryPrompt)
		case !req.Enter:
			return gate, refused("it has no terminal, so no input line in which a text could wait", tryPrompt)
		case gate != control.GateOpen || r.mail.giving != nil || len(r.mail.prompts) > 0:
			return gate, refused("it takes no prompt now: "+cmp.Or(string(gate), "it gets another one"), tryScreen)
		}
		r.mail.prompts = append(r.mail.prompts, p)
		return gate, nil
	})
	if err == nil {
		err = r.awaitGiven(ctx, p)
	}
	return control.Outcome{Done: "typed", Detail: letter.Many(len(req.Text), "byte")}, err
}

// checkTyping returns an error if a text may not be typed while the agent asks something, perhaps d: it may be an answer.
func (r *runner) checkTyping(req control.TypeRequest, d *ask.Question) error {
	if len(req.Text) > 1 && !req.Raw { // else it may be the key of an answer
		return refused("these keys would answer its question: nothing was typed", control.Try{Op: "answer"}, tryAttach, tryRaw)
	}
	if d == nil {
		return nil
	}
	right := control.Answer
	if req.By == "" || d.Dialog == "question" { // a person's keys, as at an attached terminal
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

func (r *runner) Answer(_ context.Context, req ask.Answer) (control.Outcome, error) {
	label, err := r.answer(req.By, func(q *question) (ask.Option, error) { return r.wantedOption(q, req) })
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
