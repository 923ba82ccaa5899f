package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// sessionResume lets a session go on that is paused, or whose agent does not run:
// that is started first. A session whose agent cannot be started stays as it is.
func sessionResume(ctx context.Context, e *env) error {
	id, err := e.sessionNamed(e.Args[0])
	if err != nil {
		return err
	}
	plan, err := e.sessionPlan()
	if err != nil {
		return err
	}
	s, err := e.team.Sessions().Get(id)
	if err != nil {
		return explainSession(err)
	}
	agent := wire.Name(s.AgentID)
	if err := e.mayAct("resume", agent); err != nil {
		return err
	}
	if s.OwnedByRunner() { // which may have been killed: then it rests
		if s, err = e.tended(ctx, id); err != nil {
			return explainSession(err)
		}
	}
	running, err := e.team.Running(agent)
	if err != nil {
		return err
	}
	words := plan.ResumeWords(id)
	start := !running && len(words) > 0
	if trial := s.InteractiveSession; s.State != wire.SessionActive || !start {
		if err := trial.Transition(wire.SessionActive, time.Now()); err != nil {
			return explainSession(err)
		}
	}
	var began turnout
	switch {
	case start:
		if err := e.mayAct("run", agent); err != nil {
			return err
		}
		if began, err = e.startWith(ctx, agent, words); err != nil {
			return e.notResumed(ctx, s, err)
		}
	case !running && s.OwnedByRunner(): // whoever looks next would find it paused again
		return cmdline.Refused("%s does not run, and team.toml has no resume_cmd: the session stays %s", agent, s.State).WithHint("%s; the session goes on with it", e.team.RunAgain(agent))
	case !running:
		e.Warn("%s does not run, and team.toml has no resume_cmd: %s", agent, e.team.RunAgain(agent))
	}
	s, err = e.team.Sessions().Change(ctx, id, func(s *session.Session) error {
		if start && s.State == wire.SessionActive { // the runner has taken it up
			return nil
		}
		return s.Move(wire.SessionActive, e.by(), time.Now())
	})
	if err != nil {
		return explainSession(err)
	}
	if start {
		e.warnBegan(agent, began)
	}
	return e.printSession(s)
}

// warnBegan says that an agent was started and, where it stands at no prompt that
// can be typed at, how it stands.
func (e *env) warnBegan(agent wire.Name, began turnout) {
	how := ""
	if began.State != "ready" {
		how = "; it is " + e.reached(e.team.Box(agent), time.Now(), false).word
	}
	e.Warn("%s runs: atm attach %s%s", agent, agent, how)
}

// notResumed says what became of a start that failed, or that an interrupt left:
// the runner is a process of its own, and once there it goes on, with the session.
func (e *env) notResumed(ctx context.Context, s *session.Session, err error) error {
	agent := wire.Name(s.AgentID)
	within := time.Duration(0)
	if ctx.Err() != nil {
		within = 500 * time.Millisecond // a second is left to say it
	}
	running := e.beginsToRun(agent, within)
	switch {
	case ctx.Err() != nil && running:
		e.Warn("interrupted; %s was started and goes on, with its session: atm attach %s joins it, atm stop %s ends it", agent, agent, agent)
		return ctx.Err()
	case ctx.Err() != nil:
		e.Warn("interrupted; %s does not run, the session stays %s: atm session resume %s", agent, s.State, wire.ID(s.SessionID).Short(6))
		return ctx.Err()
	case running:
		return cmdline.Failed("%v", err).WithHint("%s goes on, with its session: atm attach %s", agent, agent)
	}
	return cmdline.Failed("%s could not be started: %v; the session stays %s", agent, err, s.State).WithHint("%s", e.team.RunAgain(agent))
}

// beginsToRun reports whether an agent's runner holds its lock, or does so in a
// moment: one that was just started may be about to.
func (e *env) beginsToRun(agent wire.Name, within time.Duration) bool {
	for end := time.Now().Add(within); ; time.Sleep(readinessEvery) {
		running, err := e.team.Running(agent)
		if err == nil && running || !time.Now().Before(end) {
			return running
		}
	}
}

// startWith runs `atm run AGENT --detach -- WORDS…` for the team in force.
func (e *env) startWith(ctx context.Context, agent wire.Name, words []string) (turnout, error) {
	t := turnout{Name: agent}
	err := e.self(ctx, &t, append([]string{"run", string(agent), "--detach", "--"}, words...)...)
	return t, err
}

// readinessEvery is how often a runner is looked for.
const readinessEvery = 50 * time.Millisecond

// turnout is how an agent that was started stands.
type turnout struct {
	Name   wire.Name `json:"name"`
	State  string    `json:"state"`
	Detail string    `json:"detail"`
}

// self runs this program with --json for the team in force and reads its result
// into v, or gives the error that it tells.
func (e *env) self(ctx context.Context, v any, args ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, exe, append([]string{"--json", "--root", e.root.Path, "--team", string(e.team.Name)}, args...)...)
	out, err := c.Output()
	if err == nil {
		return json.Unmarshal(out, v)
	}
	var told struct{ Error struct{ Message string } }
	if ctx.Err() == nil && json.Unmarshal(out, &told) == nil && told.Error.Message != "" {
		return errors.New(told.Error.Message)
	}
	return cmp.Or(ctx.Err(), err)
}
