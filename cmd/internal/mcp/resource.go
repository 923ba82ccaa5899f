package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

const (
	inboxURI = "atm://inbox"
	teamURI  = "atm://team"
)

func (s *server) addResource(uri, name, description string, args ...string) {
	resource := &sdk.Resource{URI: uri, Name: name, Description: description, MIMEType: "text/plain"}
	s.AddResource(resource, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		p, err := s.run(context.WithoutCancel(ctx), "", args)
		if err != nil {
			return nil, withHint(err)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: resource.MIMEType, Text: framed(p.text)}}}, nil
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
	me, err := app.OpenMe(s.given)
	if err != nil {
		return withHint(s.given.Explain(err))
	}
	defer me.Root.Close()
	team, err := teams.OpenWith(me.Team.Dir().Path(), teams.Options{MayAct: me.Root.MayAct, LockTimeout: me.Root.LockTimeout})
	if err != nil {
		return withHint(s.given.Explain(err))
	}
	w, err := team.Watch(s.running, watcher.Options{Messages: true, Events: true})
	if err != nil {
		team.Close()
		return withHint(s.given.Explain(err))
	}
	s.isWatching = true
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
