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
	go s.watch(w, boxes, at)
	return nil
}

// lookEvery is how often the list of members is looked at: a watcher keeps to the mailboxes that it was opened with.
const lookEvery = time.Second

// watch tells the client what happens in the mailboxes, and goes on with others when members come or go.
func (s *server) watch(w *watcher.Watcher, boxes []*mailbox.Box, at *command.Scope) {
	isSame := func(a, b *mailbox.Box) bool { return a.Agent() == b.Agent() }
	for s.running.Err() == nil {
		ctx, cancel := context.WithTimeout(s.running, lookEvery)
		s.notify(ctx, w, at.Me.Agent())
		<-ctx.Done() // also where the watcher has failed
		cancel()
		now, err := at.Team.Boxes()
		if err != nil || slices.EqualFunc(now, boxes, isSame) {
			continue
		}
		next, err := watcher.Open(s.running, now, watcher.Options{Messages: true, Events: true})
		if err != nil {
			continue
		}
		w.Close()
		w, boxes = next, now
		s.update(teamURI)
		s.update(inboxURI) // mail may have come between the two
	}
	w.Close()
}

func (s *server) update(uri string) {
	s.ResourceUpdated(s.running, &sdk.ResourceUpdatedNotificationParams{URI: uri})
}

// settle is how long what happens is gathered before a client hears of it.
const settle = 100 * time.Millisecond

// notify tells the client which resource is another now, until the context ends: the inbox with my mail and my reading
// of it, the team with everything.
func (s *server) notify(ctx context.Context, w *watcher.Watcher, me wire.Name) {
	for {
		changed := map[string]bool{}
		e, err := w.Next(ctx)
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
			s.update(uri)
		}
	}
}
