// Package acpagent is atm-acp: a client of the Agent Client Protocol, such as an editor, talks to a member
// through it, over stdin and stdout. It is a program beside atm because it links the protocol.
//
//	session/new       begins a thread: the session's id is the thread's, and that of its first message
//	session/prompt    is a message from me to the member in that thread, until it is answered
//	session/cancel    takes the message back while it is unread, else interrupts the member
//	session/load      shows what was said in the thread
//
// Nothing is kept here, so that any process can go on with any session. What a client has not received lies
// unread in my inbox, and is shown with the next prompt or load.
package acpagent

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// Main is the program: it returns its exit code.
func Main(version string, words []string) int {
	return command.RunCompanion("acp", version, words, func(c *cli.Context) error {
		s, err := command.OpenToWrite(c)
		if err != nil {
			return err
		}
		member, err := s.Enter(c.Args().First())
		if err != nil {
			return err
		}
		return s.Await((&agent{c: c, Scope: s, member: member}).serve)
	})
}

type agent struct {
	*command.Scope
	c      *cli.Context
	member *mailbox.Box
	conn   *acp.AgentSideConnection

	prompts sync.Map // what cancels the open prompt of an acp.SessionId
}

func (a *agent) name() wire.Name { return a.member.Agent() }

func (a *agent) serve(ctx context.Context) error {
	in, fromClient := io.Pipe() // nothing is read before all is set up
	a.conn = acp.NewAgentSideConnection(a, os.Stdout, in)
	a.conn.SetLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	go func() {
		_, err := io.Copy(fromClient, os.Stdin)
		fromClient.CloseWithError(err)
	}()
	select {
	case <-a.conn.Done():
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (a *agent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber, // whatever the client speaks: it decides
		AgentInfo:       &acp.Implementation{Name: "atm", Title: acp.Ptr(string(a.name()) + " (atm)"), Version: a.c.App.Version},
		AgentCapabilities: acp.AgentCapabilities{
			LoadSession: true, PromptCapabilities: acp.PromptCapabilities{Image: true, EmbeddedContext: true},
		},
	}, nil
}

func (a *agent) NewSession(context.Context, acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	return acp.NewSessionResponse{SessionId: acp.SessionId(wire.NewID())}, nil
}

// LoadSession shows the thread: messages, and what the member said in turns that took one without a reply.
func (a *agent) LoadSession(ctx context.Context, r acp.LoadSessionRequest) (out acp.LoadSessionResponse, err error) {
	if err := a.checkSession(r.SessionId); err != nil {
		return out, err
	}
	items, err := a.Team.Thread(ctx, wire.ID(r.SessionId))
	if len(items) == 0 && err == nil {
		err = command.NotFound("no thread %s", r.SessionId).WithHint("begin another session")
	}
	if len(items) == 0 {
		return out, a.refuse(err)
	}
	turns, err := a.Team.Turns(a.name(), items[0].SentAt.Add(-24*time.Hour))
	if err != nil {
		return out, a.refuse(err)
	}
	for _, it := range items {
		if it.From != a.Me.Address() {
			a.show(ctx, r.SessionId, it)
			continue
		}
		for _, block := range a.blocks(it.Message) {
			a.update(r.SessionId, acp.UpdateUserMessage(block))
		}
		isReplied := slices.ContainsFunc(items, func(other *mailbox.Item) bool { return teams.Answers(other.Message, it.ID) })
		if turn := turns.Delivery(it.ID).Turn; turn.HasEnded() && turn.Response != "" && !isReplied {
			a.update(r.SessionId, acp.UpdateAgentMessageText(turn.Response))
		}
	}
	return out, nil
}

// checkSession refuses what is no session's id: it is that of a thread.
func (a *agent) checkSession(id acp.SessionId) error {
	if wire.IsID(string(id)) {
		return nil
	}
	return a.refuse(command.Usage("%q is not the id of a session", id).WithHint("session/new gives one"))
}

func (a *agent) update(session acp.SessionId, u acp.SessionUpdate) error {
	return a.conn.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: session, Update: u})
}

// show shows a message of somebody else, and marks it as read when the client has received it.
func (a *agent) show(ctx context.Context, session acp.SessionId, it *mailbox.Item) {
	if !teams.Answers(it.Message, it.InReplyTo) {
		return // an ack or a notice
	}
	for _, block := range a.blocks(it.Message) {
		if a.update(session, acp.UpdateAgentMessage(block)) != nil {
			return
		}
	}
	if output.WaitUntilRead(ctx, os.Stdout, time.Now().Add(time.Hour)) == nil {
		a.Me.MarkRead(context.WithoutCancel(ctx), it.ID) // where that fails it is shown again
	}
}

func (a *agent) refuse(err error) *acp.RequestError {
	e := command.Explain(a.c, err)
	code := cmp.Or(map[string]int{"usage": -32602, "not_found": -32002}[e.Code], -32603)
	return &acp.RequestError{Code: code, Message: strings.TrimSuffix(e.Message+"; "+e.Hint, "; "), Data: e}
}

// Cancel ends the prompt that waits in a session. (The connection's own context of it has ended when a second prompt
// came.)
func (a *agent) Cancel(_ context.Context, r acp.CancelNotification) error {
	if end, ok := a.prompts.Load(r.SessionId); ok {
		end.(context.CancelFunc)()
	}
	return nil
}

// Nothing is asked for, and the rest is not offered.

func (a *agent) Authenticate(context.Context, acp.AuthenticateRequest) (out acp.AuthenticateResponse, err error) {
	return out, nil
}
func (a *agent) CloseSession(context.Context, acp.CloseSessionRequest) (out acp.CloseSessionResponse, err error) {
	return out, acp.NewMethodNotFound(acp.AgentMethodSessionClose)
}
func (a *agent) ListSessions(context.Context, acp.ListSessionsRequest) (out acp.ListSessionsResponse, err error) {
	return out, acp.NewMethodNotFound(acp.AgentMethodSessionList)
}
func (a *agent) ResumeSession(context.Context, acp.ResumeSessionRequest) (out acp.ResumeSessionResponse, err error) {
	return out, acp.NewMethodNotFound(acp.AgentMethodSessionResume)
}
func (a *agent) SetSessionConfigOption(context.Context, acp.SetSessionConfigOptionRequest) (out acp.SetSessionConfigOptionResponse, err error) {
	return out, acp.NewMethodNotFound(acp.AgentMethodSessionSetConfigOption)
}
func (a *agent) SetSessionMode(context.Context, acp.SetSessionModeRequest) (out acp.SetSessionModeResponse, err error) {
	return out, acp.NewMethodNotFound(acp.AgentMethodSessionSetMode)
}
