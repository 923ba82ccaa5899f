package mcp

import (
	"context"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

const (
	inboxURI = "atm://inbox"
	teamURI  = "atm://team"
)

func (s *server) addResources() {
	s.addResource(inboxURI, "inbox", "Your unread mail. Looking does not mark it as read.", "read", "--peek")
	s.addResource(teamURI, "team", "Who is here, and who is busy, idle, blocked or off.", "team")
}

func (s *server) addResource(uri, name, description string, args ...string) {
	resource := &sdk.Resource{URI: uri, Name: name, Description: description, MIMEType: "text/plain"}
	s.AddResource(resource, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		a, err := s.run(context.WithoutCancel(ctx), "", args)
		if err != nil {
			return nil, withHint(err)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: resource.MIMEType, Text: a.text}}}, nil
	})
}

// subscribe starts to watch the team at the first subscription. The SDK keeps the subscriptions.
func (s *server) subscribe(_ context.Context, req *sdk.SubscribeRequest) error {
	if req.Params.URI != inboxURI && req.Params.URI != teamURI {
		return sdk.ResourceNotFoundError(req.Params.URI)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isWatching {
		return nil
	}
	var boxes []*mailbox.Box
	at, err := command.OpenMe(s.c)
	if err == nil {
		boxes, err = at.Team.Boxes()
	}
	if err != nil {
		return withHint(command.Explain(s.c, err))
	}
	opened := make(chan error, 2)
	go func() { opened <- s.watch(at, boxes, func() { opened <- nil }) }()
	err = <-opened
	s.isWatching = err == nil
	return err
}

const notifyInterval = 100 * time.Millisecond

// watch notifies the client of changed resources: of the inbox when I get or read mail, of the team at every event, and
// when members come or go, which the watcher does not report. It calls opened as soon as nothing can be missed.
func (s *server) watch(at *command.Scope, boxes []*mailbox.Box, opened func()) error {
	isSame := func(a, b *mailbox.Box) bool { return a.Agent() == b.Agent() }
	changed, notifiedAt := map[string]bool{}, time.Time{}
	all := watcher.Options{Messages: true, Events: true, Boxes: at.Team.Boxes}
	return watcher.Until(s.running, boxes, all, func(e watcher.Entry) (done bool, err error) {
		if e == (watcher.Entry{}) {
			opened()
		}
		if e.Agent != "" {
			changed[teamURI] = true
		}
		if e.Agent == at.Me.Agent() && (e.Message != nil || e.Event != nil && e.Event.Kind == wire.EventRead) {
			changed[inboxURI] = true
		}
		if time.Since(notifiedAt) < notifyInterval { // the rest goes with a later entry or at the next tick
			return false, nil
		}
		if now, err := at.Team.Boxes(); err == nil && !slices.EqualFunc(now, boxes, isSame) {
			boxes, changed[teamURI] = now, true
		}
		for uri := range changed {
			s.ResourceUpdated(s.running, &sdk.ResourceUpdatedNotificationParams{URI: uri})
			notifiedAt = time.Now()
		}
		clear(changed)
		return false, nil
	})
}
