package inbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/run"
)

// A Prompt is a text that is given as if its person had typed it.
type Prompt struct {
	text     string
	isUndone bool       // urgent mail undid its turn: it is given again after that mail
	isOver   bool       // nobody wants it any more
	done     chan error // gets the outcome, once; nil: the first prompt of a run, whose failure is reported
}

// end ends a prompt: it tells the outcome to whoever waits for it, and reports whether anybody does.
func (in *Inbox) end(p *Prompt, err error) bool {
	in.prompts = slices.DeleteFunc(in.prompts, func(other *Prompt) bool { return other == p })
	if p.done != nil {
		select {
		case p.done <- err:
		default: // it was told before
		}
	}
	return p.done != nil
}

// Add has a text given as if the agent's person had typed it, before the others if it is the first.
func (in *Inbox) Add(text string, isFirst bool) *Prompt {
	p := &Prompt{text: text, done: make(chan error, 1)}
	if isFirst {
		in.prompts = slices.Insert(in.prompts, 0, p)
	} else {
		in.prompts = append(in.prompts, p)
	}
	return p
}

// AwaitGiven returns when the agent has accepted a prompt, or why it did not. When ctx ends one that it did not begin to
// take is not given. It waits beside the loop.
func (in *Inbox) AwaitGiven(ctx context.Context, p *Prompt) error {
	err := loop.ErrOver
	select {
	case err := <-p.done:
		return err
	case <-in.Context().Done():
	case <-ctx.Done():
		in.Call(func() {
			p.isOver = true
			in.prompts = slices.DeleteFunc(in.prompts, func(other *Prompt) bool { return other == p })
		})
		err = fmt.Errorf("the program did not wait for a text: %w", context.Cause(ctx))
	}
	select {
	case err := <-p.done: // it was given before
		return err
	default:
		return err
	}
}

// Give gives the agent a text as if its person had typed it, and returns when it has accepted that.
func (in *Inbox) Give(ctx context.Context, text string, isFirst bool) error {
	var p *Prompt
	if !in.Call(func() { p = in.Add(text, isFirst) }) {
		return loop.ErrOver
	}
	return in.AwaitGiven(ctx, p)
}

const logTimeout = 10 * time.Second

// Type gives a text to an agent without a terminal, if that may begin a turn now.
func (in *Inbox) Type(ctx context.Context, req control.TypeRequest) (done control.Outcome, err error) {
	p, err := loop.In(in.Loop, func() (*Prompt, error) {
		switch gate := in.Gate(in.Now()); {
		case req.Raw || len(req.Text) == 0:
			return nil, control.Refused("it has no terminal that takes keys", run.TryPrompt)
		case !req.Enter:
			return nil, control.Refused("it has no terminal, so no input line in which a text could wait", run.TryPrompt)
		case gate != control.GateOpen || in.giving != nil || len(in.prompts) > 0:
			return nil, control.Refused("it takes no prompt now: "+cmp.Or(string(gate), "it gets another one"), run.TryScreen)
		}
		return in.Add(string(req.Text), false), nil
	})
	if err == nil {
		err = in.AwaitGiven(ctx, p)
	}
	if err == nil {
		in.AwaitLogged(logTimeout) // so that who waits for idle next does not see the time before
	}
	return control.Outcome{Done: "typed", Detail: letter.Many(len(req.Text), "byte")}, err
}

// TakePrompts takes away the prompts that were not given.
func (in *Inbox) TakePrompts() (all []*Prompt) {
	all, in.prompts = in.prompts, nil
	return all
}

// PutPrompts has prompts given after all, before the others.
func (in *Inbox) PutPrompts(all []*Prompt) { in.prompts = append(all, in.prompts...) }
