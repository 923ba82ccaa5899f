package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

var resumeCommand = &cli.Command{
	Name: "resume", Aliases: []string{"continue"}, ArgsUsage: "ID", Usage: "go on; where its agent is off, start resume_cmd of team.toml",
	UsageText: "atm session resume bob",
	Action:    resume,
}

// A resumption lets a session go on that is paused, or whose agent does not run:
// that is started first. A session whose agent cannot be started stays as it is.
type resumption struct {
	c       *cli.Context
	s       *command.Scope
	session *sessions.Session
	agent   wire.Name
}

func resume(c *cli.Context) error {
	s, one, err := openSession(c)
	if err != nil {
		return err
	}
	plan, err := planOf(s)
	if err != nil {
		return err
	}
	r := &resumption{c: c, s: s, session: one, agent: wire.Name(one.AgentID)}
	if err := s.MayAct("resume", r.agent); err != nil {
		return err
	}
	if one.OwnedByRunner() { // which may have been killed: then it is paused
		if r.session, err = refresh(c.Context, s, one.SessionID); err != nil {
			return err
		}
	}
	running, err := s.Team.Running(r.agent)
	if err != nil {
		return err
	}
	words := plan.ResumeWords(one.SessionID)
	starts := !running && len(words) > 0
	if trial := r.session.InteractiveSession; r.session.State != wire.SessionActive || !starts {
		if err := trial.Transition(wire.SessionActive, time.Now()); err != nil {
			return explain(err)
		}
	}
	if starts {
		if err := r.start(words); err != nil {
			return err
		}
	} else if !running && r.session.OwnedByRunner() { // whoever looks next would find it paused again
		return command.Refused("%s does not run, and team.toml has no resume_cmd: the session stays %s", r.agent, r.session.State).
			WithHint("%s; the session goes on with it", s.Team.RunAgain(r.agent))
	} else if !running {
		command.Warn(c, "%s does not run, and team.toml has no resume_cmd: %s", r.agent, s.Team.RunAgain(r.agent))
	}
	now, err := s.Team.Sessions().Change(c.Context, one.SessionID, func(one *sessions.Session) error {
		if starts && one.State == wire.SessionActive { // the runner has resumed it
			return nil
		}
		return one.Move(wire.SessionActive, by(s), time.Now())
	})
	if err != nil {
		return explain(err)
	}
	return command.Print(c, changed{session{Session: now, log: true}})
}

// start runs `atm run AGENT --detach -- WORDS…`, and says how the agent is.
func (r *resumption) start(words []string) error {
	if err := r.s.MayAct("run", r.agent); err != nil {
		return err
	}
	ctx, stop := command.Interruptible(r.c.Context)
	defer stop()
	state, err := runDetached(ctx, r.s, r.agent, words)
	if err != nil {
		return r.notStarted(ctx, err)
	}
	how := ""
	if m, err := r.s.Team.Summary(r.agent); err == nil && state != "ready" {
		how = "; it is " + m.Forecast(time.Now(), false)
	}
	command.Warn(r.c, "%s runs: atm attach %s%s", r.agent, r.agent, how)
	return nil
}

func runDetached(ctx context.Context, s *command.Scope, agent wire.Name, words []string) (state string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	args := []string{"run", string(agent), "--detach", "--json", "--root", s.Root.Path, "--team", string(s.Team.Name), "--"}
	cmd := exec.CommandContext(ctx, self, append(args, words...)...)
	var out bytes.Buffer
	cmd.Stdout = &out
	err = cmd.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	var said struct {
		State string
		Error *struct{ Message string }
	}
	if json.Unmarshal(out.Bytes(), &said) == nil && said.Error != nil {
		err = fmt.Errorf("%s", said.Error.Message)
	}
	return said.State, err
}

// notStarted says what became of a start that failed or that an interrupt left: a
// runner is a process of its own, and once there it goes on, with the session.
func (r *resumption) notStarted(ctx context.Context, err error) error {
	patience := time.Duration(0)
	if ctx.Err() != nil {
		patience = 500 * time.Millisecond // a second is left to say it
	}
	running := r.isRunning(patience)
	if ctx.Err() != nil && running {
		command.Warn(r.c, "interrupted; %s was started and goes on, with its session: atm attach %s joins it, atm stop %s ends it", r.agent, r.agent, r.agent)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if running {
		return command.Failed("%w", err).WithHint("%s goes on, with its session: atm attach %s", r.agent, r.agent)
	}
	return command.Failed("%s could not be started: %w; the session stays %s", r.agent, err, r.session.State).WithHint("%s", r.s.Team.RunAgain(r.agent))
}

// isRunning reports whether the agent's runner holds its lock, or does so soon.
func (r *resumption) isRunning(patience time.Duration) bool {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		running, err := r.s.Team.Running(r.agent)
		if err == nil && running || !time.Now().Before(end) {
			return running
		}
	}
}
