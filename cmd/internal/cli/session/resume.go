package session

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// resume resumes a session. It first starts an agent that does not run; if that fails, the session stays as it is.
func resume(ctx context.Context, k *call) error {
	trial := k.session.InteractiveSession
	stateErr := trial.Transition(sessions.Active, time.Now())
	plan, planErr := k.s.Team.Config()
	m, err := presence.One(ctx, k.s.Team, k.agent())
	if err := cmp.Or(stateErr, planErr, err); err != nil {
		return err
	}
	if m.Running {
		return moveTo(sessions.Active)(ctx, k)
	}
	own := wire.UUID(cmp.Or(string(m.Session), string(k.session.SessionID))) // the agent's own id for it
	config, again := plan.SessionOf(k.agent()), app.RunCommand(k.s.Team, k.agent())
	words, isPlain := config.ResumeWords(own), regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`).MatchString(string(own))
	switch {
	case len(words) > 0 && strings.Contains(*config.ResumeCmd, "{session_id}") && !isPlain: // it might be a flag
		return failure.Refused("%s reports the session id %q, which cannot go into resume_cmd", k.agent(), own).
			WithHint("`%s`; then the session continues", again)
	case len(words) > 0:
		if err := k.startAgent(ctx, words); err != nil {
			return failure.Failed("%s could not be started: %w", k.agent(), err).WithHint("`%s`", again)
		}
	case k.session.Notes.Owned || m.RunnerGone: // the next refresh would pause it again
		return failure.Refused("%s is not running, and team.toml has no resume_cmd: the session stays %s", k.agent(), k.session.State).
			WithHint("`%s`; then the session continues", again)
	default:
		k.p.Warn("%s is not running, and team.toml has no resume_cmd: %s", k.agent(), again)
	}
	return moveTo(sessions.Active)(ctx, k)
}

func (k *call) startAgent(ctx context.Context, words []string) error {
	self, _ := os.Executable()
	args := []string{"run", k.session.AgentID, "--detach", "--root", k.s.Root.Path, "--team", string(k.s.Team.Name), "--"}
	cmd := exec.CommandContext(ctx, self, append(args, words...)...)
	cmd.Stderr = k.p.Err
	if err := cmd.Run(); err != nil {
		return err
	}
	k.p.Warn("%s is running: `atm attach %[1]s`", k.agent())
	k.started = true
	return nil
}
