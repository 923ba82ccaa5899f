package mcp

import (
	"context"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/room"
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

// subscribe begins to look at the team, if nobody has asked for it before. The SDK knows who wants to hear of what.
func (s *server) subscribe(_ context.Context, req *sdk.SubscribeRequest) error {
	if req.Params.URI != inboxURI && req.Params.URI != teamURI {
		return sdk.ResourceNotFoundError(req.Params.URI)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isWatching {
		return nil
	}
	at, err := command.OpenMe(s.c)
	if err != nil {
		return hinted(command.Explain(s.c, err))
	}
	s.isWatching = true
	r := room.Open(at)
	ctx, cancel := context.WithCancelCause(s.running)
	go func() { cancel(r.Run(ctx)) }()
	first := r.Wait(ctx, func(now *room.Snapshot) bool { return now.Version >= 2 })
	go s.watch(ctx, r, first)
	return nil
}

// watch tells the client which resource is another now, until the context ends.
func (s *server) watch(ctx context.Context, r *room.Room, seen *room.Snapshot) {
	for {
		now := r.Wait(ctx, func(now *room.Snapshot) bool { return now.Version > seen.Version })
		if ctx.Err() != nil {
			return
		}
		s.update(teamURI)
		if !slices.Equal(now.Unread, seen.Unread) {
			s.update(inboxURI)
		}
		seen = now
	}
}

func (s *server) update(uri string) {
	s.ResourceUpdated(s.running, &sdk.ResourceUpdatedNotificationParams{URI: uri})
}
