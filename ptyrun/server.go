package ptyrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/ptyrun/internal/terminal"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// runner is the control.Runner of its agent. These methods run beside the loop, many at once, and have the loop do
// their work.
var _ control.Runner = (*runner)(nil)

func (r *runner) Status(context.Context) (control.Status, error) {
	isMoved := r.inbox.IsMoved()
	return loop.In(r.Loop, func() (control.Status, error) {
		s := control.Status{State: string(reducer.Starting), NoTerminal: !r.hasTerminal()}
		if err := r.Recording.Err(); err != nil {
			s.NotRecorded = err.Error()
		}
		if p := r.prog; p != nil {
			is := p.State()
			s.ChildPID, s.Started, s.Ready, s.Driver = p.PID(), p.started, is.IsReady && r.IsLogged() && r.unwritten == 0 && (r.follower.IsReady == nil || r.follower.IsReady()), is.Driver
			s.State, s.Detail, s.Ways, s.NotResumed = string(is.Activity), is.Detail, is.Ways, p.resumed.fresh
			if r.hasTerminal() || is.IsReady { // else whether it can load the conversation is not known yet
				s.Resumed = p.resumed.id
			}
		}
		r.inbox.AddStatus(&s, isMoved)
		return s, nil
	})
}

func (r *runner) Screen(_ context.Context, req control.ScreenRequest) (control.Screen, error) {
	return loop.In(r.Loop, func() (control.Screen, error) {
		out := control.Screen{Lines: r.exit.Tail, State: string(reducer.Exited)}
		if r.prog != nil {
			r.prog.Refresh()
			out = r.viewers.Screen(req)
		}
		out.Cols, out.Rows = r.viewers.Size.Cols, r.viewers.Size.Rows
		return out, nil
	})
}

// Attach serves a person's terminal until that leaves.
func (r *runner) Attach(ctx context.Context, req control.AttachRequest, v *control.Viewer) error {
	return r.viewers.Attach(ctx, req, v)
}

func (r *runner) Type(ctx context.Context, req control.TypeRequest) (done control.Outcome, err error) {
	if !r.hasTerminal() {
		return r.inbox.Type(ctx, req)
	}
	t, err := loop.In(r.Loop, func() (*terminal.Terminal, error) {
		if t := terminal.Of(r.Run); t != nil {
			return t, nil
		}
		return nil, run.ErrNotRunning
	})
	if err != nil {
		return done, err
	}
	return t.Type(req, func(d *ask.Question) error { return r.checkTyping(req, d) })
}

// checkTyping returns an error if a text may not be typed while the agent asks something, perhaps d: it may be an answer.
func (r *runner) checkTyping(req control.TypeRequest, d *ask.Question) error {
	if len(req.Text) > 1 && !req.Raw { // else it may be the key of an answer
		return control.Refused("these keys would answer its question: nothing was typed", control.Try{Op: "answer"}, run.TryAttach, run.TryRaw)
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
		return control.Refused(err.Error())
	}
	return nil
}

func (r *runner) Answer(ctx context.Context, req ask.Answer) (control.Outcome, error) {
	out, err := r.Questions.Answer(ctx, req)
	if err == nil {
		r.AwaitLogged(answerTimeout)
	}
	return out, err
}

const (
	answerTimeout = 3 * time.Second // for an answer to be in the log
	hookTimeout   = 3 * time.Second // for what a hook tells of a question on a screen
	pressTimeout  = 2 * time.Second // beyond Timing.PersonQuiet, until a key may be pressed
)

// asker is the runner as the questions.Owner, which calls on the loop.
type asker struct{ *runner }

// Check refreshes what the agent shows. No key of an answer meets one of a person.
func (a asker) Check(ask.Answer) error {
	if a.Agent == nil {
		return run.ErrNotRunning
	}
	now := a.Now()
	a.Agent.Refresh()
	switch isAsked := a.Questions.Asked() != nil; {
	case !isAsked && a.Agent.State().IsDialog:
		return run.NotNow("a dialog is only just coming up")
	case isAsked && now.Sub(a.LastKey) < a.Timing.Idle:
		return run.NotNow("a person is typing in it")
	}
	return nil
}

func (a asker) Append(e wire.Event) error {
	if e.Kind != wire.StateChange {
		a.told = nil
		a.inbox.Abandon("a dialog came up")
	} else if o := e.Text("answer"); o != "" {
		a.Recording.Marker("answer:" + o + " by " + e.Text(wire.FieldBy))
	}
	a.runner.Append(e)
	return nil
}

func (a asker) MayRule() error {
	a.WaitLogged() // the events of the answer must come after the question
	err := a.Box.Store().MayAct(a.Context())
	if err != nil {
		a.Post(a.inbox.AskMayAct)
	}
	return err
}

func (a asker) Tell(q ask.Question, isOver bool) {
	if a.Decide != nil && !isOver {
		a.Go(func() {
			if a.Brought.File != "" { // a hook tells what the tool is about to do
				a.Poll(hookTimeout, func() bool { return a.told != nil })
				a.Call(func() {
					if e := a.told; e != nil {
						q.Tool, q.Prompt, q.Input = e.Text("tool"), e.Text("prompt"), cmp.Or(e.Text("input"), e.Text("prompt"))
					}
				})
			}
			if answer, isDecided := a.Decide(q); isDecided {
				answer.ID, answer.By = q.ID, cmp.Or(answer.By, "the program that runs it")
				if _, err := a.Questions.Answer(a.Context(), answer); err != nil {
					a.Run.Log.Error("answering a question", "err", err)
				}
			}
		})
	}
	a.notify("telling people about a question", func() error {
		if isOver {
			return a.WithdrawNotice(context.Background(), wire.ID(q.ID))
		}
		return a.NotifyLead(context.Background(), q)
	})
}

// Stop returns when the loop has ended; by then what the agent started is gone.
func (r *runner) Stop(context.Context) (control.Outcome, error) {
	r.Post(func() { r.stop("asked to") })
	<-r.Context().Done()
	e := r.exit
	return control.Outcome{Done: "stopped", Detail: cmp.Or(e.Signal, fmt.Sprintf("exit %d", e.Code)), Ended: e.Ended}, nil
}

func (r *runner) Restart(_ context.Context, req control.RestartRequest) (control.Outcome, error) {
	return loop.In(r.Loop, func() (control.Outcome, error) { return r.restart(req) })
}

func (r *runner) restart(req control.RestartRequest) (control.Outcome, error) {
	r.Resume = r.Resume || req.Resume
	if r.stopping != nil {
		return control.Outcome{}, errors.New(string(control.GateStopping))
	}
	if r.prog == nil && !r.isEnding {
		r.restarts.Next = r.Now()
		return control.Outcome{Done: "restarted"}, nil
	}
	r.stop("asked to restart")
	r.stopping.isRestart = true
	return control.Outcome{Done: "restarting"}, nil
}
