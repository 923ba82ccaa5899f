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

const (
	memberPoll = time.Second            // how often watch looks whether members have come or gone
	batchDelay = 100 * time.Millisecond // how long changes are collected before the client is notified
)

// watch notifies the client of changed resources: of the inbox when I get or read mail, of the team at every event, and
// when members come or go, which the watcher does not report.
func (s *server) watch(w *watcher.Watcher, boxes []*mailbox.Box, at *command.Scope) {
	defer w.Close()
	isSame := func(a, b *mailbox.Box) bool { return a.Agent() == b.Agent() }
	for s.running.Err() == nil {
		changed := map[string]bool{}
		for end := time.Now().Add(memberPoll); ; {
			ctx, cancel := context.WithDeadline(s.running, end)
			e, err := w.Next(ctx)
			cancel()
			if err != nil {
				break
			}
			if len(changed) == 0 {
				end = time.Now().Add(batchDelay)
			}
			changed[teamURI] = true
			if e.Agent == at.Me.Agent() && (e.Message != nil || e.Event != nil && e.Event.Kind == wire.EventRead) {
				changed[inboxURI] = true
			}
		}
		if now, err := at.Team.Boxes(); err == nil && !slices.EqualFunc(now, boxes, isSame) {
			boxes, changed[teamURI] = now, true
		}
		for uri := range changed {
			s.ResourceUpdated(s.running, &sdk.ResourceUpdatedNotificationParams{URI: uri})
		}
	}
}
