// Package acpagent is atm acp: a client of the Agent Client Protocol, such as an editor, talks to a member
// through its stdin and stdout. It is a program of its own because it links the protocol.
//
//	session/new       starts a thread: the session ID is the ID of the thread and of its first message
//	session/prompt    sends a message to the member in that thread, and ends when it is answered
//	session/cancel    withdraws the message while it is unread, else interrupts the member; a second prompt cancels the first
//	session/load      shows the thread
//
// The process keeps no state, so any process can continue any session. Messages that the client has not received stay
// unread in my inbox and are shown with the next prompt or load.
//
// Without a member's name, which is how a client starts an agent that it knows from the ACP registry, initialize is
// answered anywhere. The first session says which project's team it is, and the member is the team's lead.
package acpagent

import (
	"cmp"
	"context"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/wire"
)

// Main runs the verb and returns its exit code.
func Main(version string, words []string) int {
	return command.RunCompanion("acp", version, words, func(c *cli.Context) error {
		a := &agent{version: c.App.Version, Scope: &app.Scope{Given: command.Given(c)}}
		if !c.Args().Present() {
			if output.IsTerminal(a.Given.In) {
				return failure.Usage("atm acp needs NAME").WithHint("`atm acp NAME --as NAME`, which an editor starts")
			}
			ctx, stop := app.Interruptible(c.Context)
			defer stop()
			return a.serve(ctx)
		}
		if err := a.open(c.Args().First()); err != nil {
			return err
		}
		return a.Await(a.serve)
	})
}

type agent struct {
	*app.Scope // of Given alone until a session says which team it is
	version    string
	member     *maildir.Box // nil until then
	conn       *acp.AgentSideConnection
	client     *client
	entering   sync.Mutex // held while a session says which
	dir        string     // of the session that was entered last
	prompts    sync.Map   // those without an answer: a *prompt each
}

func (a *agent) name() wire.Name { return a.member.Agent() }

// nameIfKnown is for what may run before, or beside, the first session: otherwise "".
func (a *agent) nameIfKnown() wire.Name {
	a.entering.Lock()
	defer a.entering.Unlock()
	if a.member == nil {
		return ""
	}
	return a.name()
}

// open opens the team in force, for a member of it.
func (a *agent) open(name string) error {
	s, err := app.OpenToWrite(a.Given)
	if err != nil {
		return err
	}
	if name == "" {
		c, err := s.Team.Config()
		if err != nil {
			return err
		}
		if name = string(c.Lead); name == "" {
			return failure.Usage("team %q has no lead, to whom a session without a name talks", s.Team.Name).
				WithHint(`start atm acp NAME, or say in team.toml: lead = "NAME"`)
		}
	}
	member, err := s.EnterTeamOf(name)
	if err != nil {
		return err
	}
	if a.member != nil && s.Root.Path != a.Root.Path {
		return failure.Refused("this process serves %s, not %s", a.Root.Path, s.Root.Path).WithHint("start another atm acp")
	}
	if a.member == nil {
		a.Scope, a.member = s, member
	}
	return nil
}

// enter opens the team of a session's directory, if no name was given. dir is "" for a session that goes on.
func (a *agent) enter(dir string) error {
	a.entering.Lock()
	defer a.entering.Unlock()
	if a.member != nil && (a.dir == "" || dir == "" || dir == a.dir) {
		return nil
	}
	before, _ := os.Getwd()
	dir = cmp.Or(dir, before)
	err := os.Chdir(dir)
	if err == nil {
		err = a.open("")
	}
	if err != nil {
		os.Chdir(before)
		return err
	}
	a.dir = dir
	return nil
}

func (a *agent) serve(ctx context.Context) error {
	in, fromClient := io.Pipe() // so that nothing is read before conn is set
	a.client = newClient(ctx, a.Given.Out)
	a.conn = acp.NewAgentSideConnection(a, a.client, in)
	a.conn.SetLogger(newLogger(a.Given.Err))
	go func() {
		a.client.pass(a.Given.In, fromClient, a.cancel)
		fromClient.Close()
	}()
	select {
	case <-a.conn.Done():
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if context.Cause(a.client.connected) != io.EOF {
		return failure.Failed("the client sent a line of over 10 MiB").WithHint("`atm send %s --attach FILE`", cmp.Or(a.nameIfKnown(), "NAME"))
	}
	return nil
}

func (a *agent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	title := "atm"
	if name := a.nameIfKnown(); name != "" {
		title = string(name) + " (atm)"
	}
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber, // a client with another version decides what to do
		AgentInfo:       &acp.Implementation{Name: "atm", Title: &title, Version: a.version},
		// The ACP registry wants one. No client asks for it, since no session is refused for want of it.
		AuthMethods: []acp.AuthMethod{{Agent: &acp.AuthMethodAgent{
			Id: "user", Name: "Your account on this machine", Description: acp.Ptr("atm runs as you, and needs nothing else."),
		}}},
		AgentCapabilities: acp.AgentCapabilities{
			LoadSession: true, PromptCapabilities: acp.PromptCapabilities{Image: true, EmbeddedContext: true},
		},
	}, nil
}

func (a *agent) NewSession(_ context.Context, r acp.NewSessionRequest) (out acp.NewSessionResponse, err error) {
	if err := a.enter(r.Cwd); err != nil {
		return out, a.rpcError(err)
	}
	return acp.NewSessionResponse{SessionId: acp.SessionId(wire.NewID())}, nil
}

// LoadSession shows the messages of the thread, and the responses of turns that took a message and sent no reply.
func (a *agent) LoadSession(ctx context.Context, r acp.LoadSessionRequest) (out acp.LoadSessionResponse, err error) {
	if err := a.enter(r.Cwd); err != nil {
		return out, a.rpcError(err)
	}
	items, err := search.Thread(ctx, a.Team, wire.ID(r.SessionId))
	if len(items) == 0 {
		return out, a.rpcError(cmp.Or(err, noSession(r.SessionId)))
	}
	turns, err := a.Team.HistorySince(a.name(), items[0].SentAt.Add(-24*time.Hour))
	if err != nil {
		return out, a.rpcError(err)
	}
	for _, it := range items {
		if it.From != a.Me.Address() {
			a.show(ctx, r.SessionId, it)
			continue
		}
		for _, block := range a.blocks(it.Message) {
			a.update(r.SessionId, acp.UpdateUserMessage(block))
		}
		isReplied := slices.ContainsFunc(items, func(other *wire.Item) bool {
			return other.InReplyTo == it.ID && post.IsReply(other.Message) && post.CheckAnswer(a.Root, it.Message, other.Message) == nil
		})
		if turn := turns.Delivery(it.ID).Turn; turn.HasEnded() && !isReplied {
			if said, _ := a.Team.Content(a.name(), turn); said.Response != "" { // what cannot be read is not shown
				a.update(r.SessionId, words(said.Response))
			}
		}
	}
	return out, nil
}

func noSession(id acp.SessionId) error {
	return failure.NotFound("no session %q", id).WithHint("start another session")
}

func (a *agent) update(session acp.SessionId, u acp.SessionUpdate) error {
	return a.conn.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: session, Update: u})
}

// leaveTimeout is how long a client that has closed stdin may take to receive a message.
const leaveTimeout = 1800 * time.Millisecond

// show shows a message to the client, and marks it as read once the client has received it.
func (a *agent) show(ctx context.Context, session acp.SessionId, it *wire.Item) {
	if !post.IsReply(it.Message) {
		return
	}
	for _, block := range a.blocks(it.Message) {
		if a.update(session, acp.UpdateAgentMessage(block)) != nil {
			return
		}
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(a.client.connected, func() { time.AfterFunc(leaveTimeout, stop) })()
	if output.WaitUntilRead(waiting, a.Given.Out, time.Now().Add(time.Hour)) == nil {
		a.Me.MarkRead(context.WithoutCancel(ctx), it.ID) // if that fails it is shown again
	}
}

func (a *agent) rpcError(err error) *acp.RequestError {
	e := a.Given.Explain(err)
	code := cmp.Or(map[string]int{"usage": -32602, "not_found": -32002}[e.Code], -32603)
	return &acp.RequestError{Code: code, Message: app.JoinFilled("; ", e.Message, e.Hint.String()), Data: e}
}

// cancel cancels the prompts of a session.
func (a *agent) cancel(session acp.SessionId) {
	for p := range a.prompts.Range {
		if p := p.(*prompt); p.session == session {
			p.cancel()
		}
	}
}

// Cancel has nothing to do: the prompts were cancelled when the line was read. atm needs no authentication and offers none
// of the other methods.
func (a *agent) Cancel(context.Context, acp.CancelNotification) error { return nil }

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
