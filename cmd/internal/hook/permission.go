package hook

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// answerWithin is how long a hook waits for an answer: a little less than its timeout, at which Claude Code would end it as
// it does when the person has answered.
const answerWithin = 24*time.Hour - time.Minute

// mayAsk reports whether a request may wait for an answer from elsewhere. On Windows no kernel says whose process answers.
func (c *call) mayAsk() bool {
	return runtime.GOOS != "windows" && c.Vendor.Decide != nil && (c.isRunning || c.Vendor.Entry == "" || os.Getenv(c.Vendor.Entry) == "cli")
}

// waitForVerdict waits for the answer to a request, and writes it. Without one the person answers the dialog.
func (c *call) waitForVerdict(ctx context.Context) error {
	err := c.waitForAnswer(ctx)
	if !c.isGiven && c.AnswersAlways {
		err = errors.Join(err, write(c.scope.Given.Out, c.Vendor.Answer(&c.Call, "")))
	}
	return err
}

// give gives the program the answer to its request.
func (c *call) give(a ask.Answer) error {
	c.isGiven = true
	v := agents.Verdict{Option: a.Option, IsDeny: a.Deny, By: a.By, Reason: a.Reason}
	return write(c.scope.Given.Out, c.Vendor.Decide(&c.Call, v))
}

// waitForAnswer returns without an error also if the person has answered. Claude Code ends this process with SIGTERM when
// the person has said no, and does not tell it of a yes; the plugin of OpenCode ends it when the person has answered.
//
// If atm runs the program, only a rule answers here, and the runner asks people. So it is if the program opens no dialog
// before this hook has ended, and its server asks people.
func (c *call) waitForAnswer(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP, os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	p, s := c.Permission, c.scope
	rule := &policy.Request{Tool: p.Tool, Command: p.IsCommand, Input: p.Input}
	if p.IsRisky {
		rule.Input += "…" // of what is incomplete, rules only deny
	}
	if dir := c.Dir; dir != "" {
		rule.Dirs = []string{dir}
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			rule.Dirs = append(rule.Dirs, real)
		}
	}
	q := question{Question: ask.Question{ID: p.ID, Tool: p.Tool, Prompt: p.Prompt, Options: p.Options}, rule: rule, event: p.Event}
	if p.IsChoice {
		q.Dialog, q.rule = "question", nil
	}
	program, _ := process.Program()
	seen := func() reducer.Activity { return reducer.Unknown }
	if c.Vendor.Activity != nil && p.Event.Text("subagent") == "" { // for a sub-agent there may be no dialog: what is seen is another's
		seen = c.Vendor.Activity(ctx, program.PID)
	}
	err := waitFor(ctx, s, q, asker{
		program: program,
		now: func() reducer.Activity {
			if program.PID != 0 && !program.IsRunning() {
				return reducer.Exited
			}
			return seen()
		},
		give:      c.give,
		onlyRules: c.isRunning || c.Vendor.Server != nil,
	})
	switch {
	case errors.Is(err, errUnruled) && c.isRunning:
		waitForRunner(ctx, s)
		return s.Me.Log().Append(ctx, p.Event)
	case errors.Is(err, errUnruled):
		id := wire.NewID()
		q.ID = string(id)
		return errors.Join(s.Me.Log().Append(ctx, p.Event.With(wire.FieldID, q.ID)), notices.NotifyRequest(ctx, s.Team, s.Me, q.Question, id, s.Origin()))
	}
	if errors.Is(err, errOver) || errors.Is(err, errAsked) || ctx.Err() != nil {
		return nil
	}
	return err
}

// waitForRunner waits a moment until the runner has seen the dialog. What it asks has an id, by which people can answer at
// once; what the program has told then adds to that.
func waitForRunner(ctx context.Context, s *app.Scope) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	watcher.Until(ctx, []watcher.Mailbox{s.Me}, watcher.Options{Events: true}, func(watcher.Entry) (bool, error) {
		state, err := s.Team.State(s.Me.Agent())
		if err != nil {
			return false, err
		}
		w := state.Session().Waiting()
		return w != nil && w.ID != "", nil
	})
}
