package setup

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/question"
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

// waitForAnswer waits for an answer to a permission request of the program that has started this hook. Claude Code ends it with
// SIGTERM when the person has said no, and does not tell it of a yes; the plugin of OpenCode ends it when the person has
// answered.
//
// With isRun atm runs the program: then only a rule answers here, and the runner asks people. So it is if the program opens
// no dialog before this hook has ended, and its server asks people.
func waitForAnswer(ctx context.Context, s *app.Scope, v *agents.Vendor, isRun bool, p *agents.Permission, give func(agents.Verdict) error) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP, os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	rule := &policy.Request{Tool: p.Tool, Command: p.IsCommand, Input: p.Input}
	if p.IsRisky {
		rule.Input += "…" // of what is incomplete, rules only deny
	}
	if dir, err := os.Getwd(); err == nil { // see agents.Vendor.ProjectDir
		rule.Dirs = []string{dir}
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			rule.Dirs = append(rule.Dirs, real)
		}
	}
	program, _ := process.Program()
	q := question.Question{Question: ask.Question{ID: p.ID, Tool: p.Tool, Prompt: p.Prompt, Options: p.Options}, Rule: rule, Event: p.Event}
	if p.IsChoice {
		q.Dialog, q.Rule = "question", nil
	}
	seen := func() reducer.Activity { return reducer.Unknown }
	if v.Activity != nil && p.Event.Text("subagent") == "" { // for a sub-agent there may be no dialog: what is seen is another's
		seen = v.Activity(ctx, program.PID)
	}
	now := func() reducer.Activity {
		if program.PID != 0 && !program.IsRunning() {
			return reducer.Exited
		}
		return seen()
	}
	err := question.Wait(ctx, s.Team, s.Me, q, question.Options{
		Program:   program,
		Now:       now,
		OnlyRules: isRun || v.Server != nil,
		Give: func(a ask.Answer) error {
			return give(agents.Verdict{Option: a.Option, IsDeny: a.Deny, By: a.By, Reason: a.Reason})
		},
	})
	switch {
	case errors.Is(err, question.ErrUnruled) && isRun:
		waitForRunner(ctx, s)
		return s.Me.Log().Append(ctx, p.Event)
	case errors.Is(err, question.ErrUnruled):
		id := wire.NewID()
		q.ID = string(id)
		return errors.Join(s.Me.Log().Append(ctx, p.Event.With(wire.FieldID, q.ID)), notices.NotifyRequest(ctx, s.Team, s.Me, q.Question, id, s.Origin()))
	}
	if errors.Is(err, question.ErrOver) || errors.Is(err, question.ErrAsked) || ctx.Err() != nil {
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
