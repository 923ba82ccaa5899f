package mcp

import (
	"context"
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
	s.addResource(inboxURI, "inbox", "Your unread mail. Looking marks nothing.", "read", "--peek")
	s.addResource(teamURI, "team", "Who is here, and who is busy, idle, blocked or off.", "team")
}

func (s *server) addResource(uri, name, description string, args ...string) {
	resource := &sdk.Resource{URI: uri, Name: name, Description: description, MIMEType: "text/plain"}
	s.AddResource(resource, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		a, err := s.run(context.WithoutCancel(ctx), "", args)
		if err != nil {
			return nil, hinted(err)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: resource.MIMEType, Text: a.text}}}, nil
	})
}

// subscribe begins to watch the team, if nobody has asked for it before. The SDK knows who wants to hear of what.
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
		return hinted(command.Explain(s.c, err))
	}
	w, err := watcher.Open(s.running, boxes, watcher.Options{Messages: true, Events: true})
	if err != nil {
		return err
	}
	s.isWatching = true
	go func() {
		defer w.Close()
		s.notify(w, at.Me.Agent())
	}()
	return nil
}

// settle is how long what happens is gathered before a client hears of it.
const settle = 100 * time.Millisecond

// notify tells the client which resource is another now: the inbox with my mail and my reading of it, the
// team with everything.
func (s *server) notify(w *watcher.Watcher, me wire.Name) {
	for {
		changed := map[string]bool{}
		e, err := w.Next(s.running)
		if err != nil {
			return
		}
		soon, cancel := context.WithTimeout(s.running, settle)
		for ; err == nil; e, err = w.Next(soon) {
			changed[teamURI] = true
			if e.Agent == me && (e.Message != nil || e.Event != nil && e.Event.Kind == wire.EventRead) {
				changed[inboxURI] = true
			}
		}
		cancel()
		for uri := range changed {
			s.ResourceUpdated(s.running, &sdk.ResourceUpdatedNotificationParams{URI: uri})
		}
	}
}
