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
	w, err := watcher.Open(s.running, boxes, watcher.Options{Messages: true, Events: true, Boxes: at.Team.Boxes})
	if err != nil {
		return err
	}
	s.isWatching = true
	go s.watch(w, boxes, at)
	return nil
}

// memberPoll is how often watch looks whether members have come or gone.
const memberPoll = time.Second

// watch notifies the client of changes. Of a new member the watcher reports only mail and events.
func (s *server) watch(w *watcher.Watcher, boxes []*mailbox.Box, at *command.Scope) {
	defer w.Close()
	isSame := func(a, b *mailbox.Box) bool { return a.Agent() == b.Agent() }
	for s.running.Err() == nil {
		ctx, cancel := context.WithTimeout(s.running, memberPoll)
		s.notify(ctx, w, at.Me.Agent())
		cancel()
		if now, err := at.Team.Boxes(); err == nil && !slices.EqualFunc(now, boxes, isSame) {
			boxes = now
			s.update(teamURI)
		}
	}
}

func (s *server) update(uri string) {
	s.ResourceUpdated(s.running, &sdk.ResourceUpdatedNotificationParams{URI: uri})
}

// batchDelay is how long changes are collected before the client is notified.
const batchDelay = 100 * time.Millisecond

// notify notifies the client of changed resources until the context ends: of the inbox when I get or read mail, of the
// team at every event.
func (s *server) notify(ctx context.Context, w *watcher.Watcher, me wire.Name) {
	for {
		changed := map[string]bool{}
		e, err := w.Next(ctx)
		if err != nil {
			return
		}
		soon, cancel := context.WithTimeout(s.running, batchDelay)
		for ; err == nil; e, err = w.Next(soon) {
			changed[teamURI] = true
			if e.Agent == me && (e.Message != nil || e.Event != nil && e.Event.Kind == wire.EventRead) {
				changed[inboxURI] = true
			}
		}
		cancel()
		for uri := range changed {
			s.update(uri)
		}
	}
}
