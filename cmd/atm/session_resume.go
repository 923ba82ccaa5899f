package main

import (
	"bytes"
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
	if s.OfRunner() { // which may have been killed: then it rests
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
	switch {
	case start:
		if err := e.mayAct("run", agent); err != nil {
			return err
		}
		if err := e.startWith(ctx, agent, words); err != nil {
			return cmdline.Failed("%s could not be started: %v; the session stays %s", agent, err, s.State).WithHint("%s", e.team.RunAgain(agent))
		}
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
		e.Warn("%s runs: atm attach %s", agent, agent)
	}
	return e.printSession(s)
}

// startWith runs `atm run AGENT --detach -- WORDS…` for the team in force.
func (e *env) startWith(ctx context.Context, agent wire.Name, words []string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"run", string(agent), "--detach", "--json", "--root", e.root.Path, "--team", string(e.team.Name), "--"}
	c := exec.CommandContext(ctx, exe, append(args, words...)...)
	var out bytes.Buffer
	c.Stdout = &out
	err = c.Run()
	var told struct{ Error *struct{ Message string } }
	if err != nil && json.Unmarshal(out.Bytes(), &told) == nil && told.Error != nil {
		return errors.New(told.Error.Message)
	}
	return err
}
