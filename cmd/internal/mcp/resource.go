package mcp

import (
	"context"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

const (
	inboxURI = "atm://inbox"
	teamURI  = "atm://team"
)

func (s *server) addResources() {
	s.addResource(inboxURI, "inbox", "Your unread mail. Looking does not mark it as read.", "read", app.OpenMe,
		func(ctx context.Context, at *app.Scope, p *command.Printer) error {
			return read(ctx, at, p, readArguments{Peek: true})
		})
	s.addResource(teamURI, "team", "Who is here, and who is busy, idle, blocked or off.", "team", app.OpenTeam,
		func(ctx context.Context, at *app.Scope, p *command.Printer) error { return team(ctx, at, p, none{}) })
}

func (s *server) addResource(uri, name, description, verb string, open func(*app.Given) (*app.Scope, error), act func(context.Context, *app.Scope, *command.Printer) error) {
	resource := &sdk.Resource{URI: uri, Name: name, Description: description, MIMEType: "text/plain"}
	s.AddResource(resource, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		c := &call{server: s, verb: verb, open: open, act: act}
		if c.run(ctx, nil); c.err != nil {
			return nil, errors.New(c.String())
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: resource.MIMEType, Text: c.String()}}}, nil
	})
}

// subscribe starts to watch the team at the first subscription. The SDK keeps the subscriptions.
func (s *server) subscribe(_ context.Context, req *sdk.SubscribeRequest) error {
	if req.Params.URI != inboxURI && req.Params.URI != teamURI {
		return sdk.ResourceNotFoundError(req.Params.URI)
	}
	s.watching.Lock()
	defer s.watching.Unlock()
	if s.isWatching {
		return nil
	}
	if err := s.watch(); err != nil {
		return errors.New(withHint(s.given.Explain(err)))
	}
	s.isWatching = true
	return nil
}

func (s *server) watch() error {
	me, err := app.OpenMe(s.given)
	if err != nil {
		return err
	}
	team := me.Opened()
	w, err := team.Watch(s.running, watcher.Options{Messages: true, Events: true})
	if err != nil {
		team.Close()
		return err
	}
	go s.notify(team, w, me.Me.Agent())
	return nil
}

// notify notifies the client of changed resources: of the team at every event, of the inbox when I get or read mail.
func (s *server) notify(team *teams.Team, w *watcher.Watcher, me wire.Name) {
	defer team.Close()
	defer w.Close()
	for s.running.Err() == nil {
		e, _ := w.Next(s.running)
		if e.Address.Agent == "" {
			continue
		}
		s.ResourceUpdated(s.running, &sdk.ResourceUpdatedNotificationParams{URI: teamURI})
		if e.Address.Agent == me && (e.Message != nil || e.Event != nil && e.Event.Kind == wire.EventRead) {
			s.ResourceUpdated(s.running, &sdk.ResourceUpdatedNotificationParams{URI: inboxURI})
		}
	}
}
