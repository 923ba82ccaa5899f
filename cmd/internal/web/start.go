package web

import (
	"cmp"
	"context"
	"errors"
	"os/exec"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// StartCommand is the command that starts the page's member; "": it runs, or not here.
func (p *page) StartCommand() string {
	if p.Member.Running || p.Member.Host != "" || p.Member.Kind == "person" || p.Member.Shared {
		return ""
	}
	return app.RunCommand(p.Scope.Team, p.Member.Name)
}

// HowToStart is the command that starts a member of which nothing is known yet.
func (p page) HowToStart(m presence.Member) string {
	if m.State != reducer.WordUnknown || m.Since != nil || m.Host != "" || m.Kind == "person" || m.Shared {
		return ""
	}
	return app.RunCommand(p.Scope.Team, m.Name)
}

// MayStart reports whether a button can start it: team.toml says how.
func (p *page) MayStart() bool { return p.MayAct() && strings.HasPrefix(p.StartCommand(), "atm up ") }

// start starts a member as `atm up` does, which looks at the same rights.
func (s *server) start(ctx context.Context, name wire.Name) (string, error) {
	_, unknown := s.Scope.Member(string(name))
	if err := cmp.Or(s.Scope.MayAct(policy.Start, name), unknown); err != nil {
		return "", err
	}
	if s.Scope.Me == nil {
		return "", failure.Usage("nobody has said who you are").WithHint("start again with --as NAME, or set ATM_AGENT")
	}
	atm, err := app.Companion("atm")
	if err != nil {
		return "", failure.Failed("atm is neither next to this program nor on PATH").WithHint("`atm up %s`", name)
	}
	words := []string{"up", string(name), "--root", s.Scope.Root.Path, "--team", string(s.Scope.Team.Name)}
	out, err := exec.CommandContext(ctx, atm, words...).CombinedOutput()
	said := strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), "; ")
	if err != nil {
		return "", errors.New(strings.TrimPrefix(said, "atm: "))
	}
	return said, nil
}
