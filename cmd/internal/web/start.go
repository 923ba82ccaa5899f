package web

import (
	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
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

// MayStart reports whether a button can start it.
func (p *page) MayStart() bool { return p.MayAct() && p.server.MayStart(p.Member) }

// MayType reports whether it has a form for what is to be typed.
func (p *page) MayType() bool { return p.MayAct() && p.server.MayType(p.Member) }

// MayStop reports whether a button can stop it.
func (p *page) MayStop() bool { return p.MayAct() && p.Member.Running }
