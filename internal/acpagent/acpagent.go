// Package acpagent is atm-acp: any client of the Agent Client Protocol, such as an editor, talks to a member
// through it, over stdin and stdout. It is beside atm a program of its own because it links the protocol.
//
//	session/new       begins a thread; the session's id is the id of the thread, and of its first message
//	session/prompt    a message from me to the member in that thread, until it is answered
//	session/cancel    takes the message back while it is unread, else interrupts the member
//	session/load      shows what was said in the thread
//
// Nothing is kept here, so that any process can go on with any session. Whatever a client has not received
// lies unread in my inbox, and is shown with the next prompt or load.
package acpagent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/internal/runspec"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// Main is the program: it returns its exit code.
func Main(version string, words []string) int {
	return command.RunCompanion("acp", runspec.Version(version), words, func(c *cli.Context) error {
		s, err := command.OpenToWrite(c)
		if err != nil {
			return err
		}
		member, err := s.Member(c.Args().First())
		if err == nil && member.Address() == s.Me.Address() {
			err = command.Usage("you are %s yourself", s.Me.Agent()).WithHint("say who you are: --as NAME")
		}
		if err == nil {
			s.Team, err = s.Root.Team(member.Address().Team)
		}
		if err != nil {
			return err
		}
		return s.Await(func(ctx context.Context) error { return (&agent{c: c, Scope: s, member: member}).serve(ctx) })
	})
}

// agent is what the client talks to. Its Team is the member's.
type agent struct {
	*command.Scope
	c      *cli.Context
	member *mailbox.Box
	conn   *acp.AgentSideConnection

	prompts sync.Map       // acp.SessionId: the *prompt that waits
	running sync.WaitGroup // prompts
}

func (a *agent) name() wire.Name { return a.member.Agent() }

// serve returns when the client has gone.
func (a *agent) serve(ctx context.Context) error {
	in, fromClient := io.Pipe() // nothing is read before all is set up
	a.conn = acp.NewAgentSideConnection(a, os.Stdout, in)
	a.conn.SetLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(fromClient, os.Stdin)
		ended <- err
		fromClient.Close()
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-a.conn.Done():
	}
	idle := make(chan struct{})
	go func() { a.running.Wait(); close(idle) }()
	select {
	case <-idle: // what the client has received is marked as read
	case <-time.After(2 * time.Second):
	}
	select {
	case err := <-ended:
		return err
	default:
		return command.Failed("the client said something of more than 10 MiB").WithHint("a large file goes by atm send %s --attach FILE", a.name())
	}
}

func (a *agent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber, // whatever the client speaks: it decides
		AgentInfo:       &acp.Implementation{Name: "atm", Title: acp.Ptr(string(a.name()) + " (atm)"), Version: a.c.App.Version},
		AgentCapabilities: acp.AgentCapabilities{
			LoadSession:        true,
			PromptCapabilities: acp.PromptCapabilities{Image: true, EmbeddedContext: true},
		},
	}, nil
}

func (a *agent) NewSession(context.Context, acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	return acp.NewSessionResponse{SessionId: acp.SessionId(wire.NewID())}, nil
}

// LoadSession shows the thread: messages, and what the member said in the turns that took those without a
// reply.
func (a *agent) LoadSession(ctx context.Context, r acp.LoadSessionRequest) (out acp.LoadSessionResponse, err error) {
	thread, err := a.thread(r.SessionId)
	if err != nil {
		return out, err
	}
	items, err := a.Team.Thread(ctx, thread)
	if len(items) == 0 {
		none := command.NotFound("there is nothing in thread %s", thread).WithHint("begin another session")
		return out, a.refuse(errors.Join(err, none))
	}
	turns, err := a.Team.Turns(a.name(), items[0].SentAt.Add(-24*time.Hour))
	if err != nil {
		return out, a.refuse(err)
	}
	replied := map[wire.ID]bool{}
	for _, it := range items {
		replied[it.InReplyTo] = replied[it.InReplyTo] || teams.Answers(it.Message, it.InReplyTo)
	}
	for _, it := range items {
		if it.From != a.Me.Address() {
			if err := a.show(ctx, r.SessionId, it); err != nil {
				return out, err
			}
			continue
		}
		for _, block := range a.blocks(it.Message) {
			a.update(r.SessionId, acp.UpdateUserMessage(block))
		}
		if turn := turns.Delivery(it.ID).Turn; turn.HasEnded() && turn.Response != "" && !replied[it.ID] {
			a.update(r.SessionId, acp.UpdateAgentMessageText(turn.Response))
		}
	}
	return out, nil
}

// Cancel ends the prompt that waits in a session.
func (a *agent) Cancel(_ context.Context, r acp.CancelNotification) error {
	if p, ok := a.prompts.Load(r.SessionId); ok {
		p.(*prompt).cancel()
	}
	return nil
}

// thread is the thread that a session is.
func (a *agent) thread(id acp.SessionId) (wire.ID, error) {
	if err := teams.GivenID(wire.ID(id)); err != nil {
		return "", a.refuse(command.NotFound("no such session: %w", err).WithHint("begin another session"))
	}
	return wire.ID(id), nil
}

// update tells the client something. The error is that of writing.
func (a *agent) update(session acp.SessionId, u acp.SessionUpdate) error {
	return a.conn.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: session, Update: u})
}

// show shows a message of the thread that is not mine, and marks it as read when the client has received it.
func (a *agent) show(ctx context.Context, session acp.SessionId, it *mailbox.Item) error {
	if !teams.Answers(it.Message, it.InReplyTo) {
		return nil // an ack or a notice
	}
	for i, block := range a.blocks(it.Message) {
		if i == 0 && it.From != a.member.Address() {
			block = acp.TextBlock(it.From.String() + ": " + block.Text.Text)
		}
		if err := a.update(session, acp.UpdateAgentMessage(block)); err != nil {
			return err
		}
	}
	if err := output.WaitUntilRead(ctx, os.Stdout, time.Now().Add(time.Hour)); err != nil {
		return err
	}
	return a.Me.MarkRead(context.WithoutCancel(ctx), it.ID)
}

// refuse is an error as the client shows it.
func (a *agent) refuse(err error) error {
	e := command.Explain(a.c, err)
	code := map[string]int{"usage": -32602, "not_found": -32002}[e.Code]
	if code == 0 {
		code = -32603
	}
	return &acp.RequestError{Code: code, Message: e.Message, Data: e}
}

// sentence is an error as a text for the client.
func (a *agent) sentence(err error) string {
	e := command.Explain(a.c, err)
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

// What is not offered to clients.

func (a *agent) Authenticate(context.Context, acp.AuthenticateRequest) (out acp.AuthenticateResponse, err error) {
	return out, nil // nothing is asked for
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
