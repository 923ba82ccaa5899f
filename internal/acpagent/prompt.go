package acpagent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// prompt is one that waits for its end. In the client a tool call stands for it, which says how the member is.
type prompt struct {
	*agent
	ctx     context.Context // until it has ended, is cancelled, or the client has gone
	session acp.SessionId
	message *wire.Message

	title   string                        // of the tool call
	shown   map[wire.ID]bool              // messages of the member
	hasText bool                          // what the member says was shown as it said it
	asked   map[string]context.CancelFunc // what the member has asked: ends the request to the client
	asking  sync.WaitGroup
	reason  acp.StopReason // of its turn, where that has one
}

// Prompt sends a message, and shows what comes of it until it is answered.
func (a *agent) Prompt(ctx context.Context, r acp.PromptRequest) (out acp.PromptResponse, err error) {
	if err := a.checkSession(r.SessionId); err != nil {
		return out, err
	}
	// The connection ends ctx when the session gets another prompt, which is refused here. When the client goes, so does
	// the process.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if _, isOpen := a.prompts.LoadOrStore(r.SessionId, cancel); isOpen {
		err = command.Usage("the last prompt of session %s is not over", r.SessionId)
		return out, a.refuse(err)
	}
	defer a.prompts.Delete(r.SessionId)
	return a.prompt(ctx, r)
}

func (a *agent) prompt(ctx context.Context, r acp.PromptRequest) (out acp.PromptResponse, err error) {
	p := &prompt{agent: a, session: r.SessionId, shown: map[wire.ID]bool{}, asked: map[string]context.CancelFunc{}}
	defer p.asking.Wait()
	var end context.CancelFunc
	p.ctx, end = context.WithCancel(ctx)
	defer end()
	o, err := p.outgoing(r)
	if err != nil {
		return out, a.refuse(err)
	}
	unread, _ := a.Me.Peek(ctx, mailbox.ReadOptions{Match: func(m *mailbox.Item) bool { return m.From == a.member.Address() }})
	for _, it := range unread.Items {
		p.answer(it)
	}
	isTaken := false // another process has begun the session meanwhile, so this is its next message
	sent := func(*teams.Response) {
		if isTaken = o.Post.Given && o.Post.Outcomes[0].Known; isTaken {
			end()
			return
		}
		p.sent()
	}
	response, err := a.Root.Ask(p.ctx, o, teams.Observer{Sent: sent, Event: p.event, Message: p.answer})
	if isTaken {
		return a.prompt(ctx, r)
	}
	if p.ctx.Err() == nil {
		return p.ended(response, err)
	}
	p.asking.Wait()
	if p.title != "" { // it was sent
		p.progress(p.takeBack(), acp.ToolCallStatusFailed)
	}
	return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
}

// outgoing is the prompt as a message in the thread: its first, where there is none yet.
func (p *prompt) outgoing(r acp.PromptRequest) (o *teams.Outgoing, err error) {
	if p.message, err = p.agent.message(r.Prompt); err != nil {
		return nil, err
	}
	if r.Meta != nil {
		p.message.Meta, _ = json.Marshal(map[string]any{"acp": r.Meta})
	}
	o = &teams.Outgoing{From: p.Me, To: []wire.Address{p.member.Address()}, Message: p.message}
	_, _, err = p.Team.Find(p.Me, string(p.session))
	if errors.Is(err, mailbox.ErrNotFound) {
		p.message.ID = wire.ID(p.session)
	} else if p.message.Thread = wire.ID(p.session); err != nil {
		return nil, err
	}
	return o, p.Root.PrepareAll(o)
}

func (p *prompt) sent() {
	m, _ := p.Team.Summary(p.name())
	p.title = fmt.Sprintf("sent to %s (%s)", p.name(), m.Forecast(false))
	p.update(p.session, acp.StartToolCall(acp.ToolCallId(p.message.ID), p.title, acp.WithStartStatus(acp.ToolCallStatusPending)))
	p.lookAtQuestions()
}

func (p *prompt) progress(title string, status acp.ToolCallStatus) {
	if title != p.title || status != acp.ToolCallStatusInProgress {
		p.title = title
		p.update(p.session, acp.UpdateToolCall(acp.ToolCallId(p.message.ID), acp.WithUpdateTitle(title), acp.WithUpdateStatus(status)))
	}
}

// answer shows a message of the member, if it is in the thread.
func (p *prompt) answer(it *mailbox.Item) {
	if it.ThreadID() == wire.ID(p.session) && !p.shown[it.ID] {
		p.shown[it.ID] = true
		p.show(p.ctx, p.session, it)
	}
}

// event shows what an event of the member tells: what it says and does in the turn that took the message, and
// how it is.
func (p *prompt) event(e *wire.Event, turn *teams.Turn) {
	isOurs := turn != nil && !turn.HasEnded() && (e.TurnID == "" || e.TurnID == turn.ID) && (e.Session == "" || e.Session == turn.Session)
	if turn != nil && e.TurnID == turn.ID && e.Kind == wire.TurnCompleted {
		p.reason = acp.StopReason(e.Text("stop_reason"))
	}
	if u, ok := updateOf(e); ok {
		if isOurs {
			p.hasText = p.hasText || u.AgentMessageChunk != nil
			p.update(p.session, u)
		}
		return
	}
	if m, err := p.Team.Summary(p.name()); err == nil {
		title := fmt.Sprintf("%s is %s: %s", p.name(), m.State, m.About())
		p.progress(strings.TrimSuffix(title, ": "), acp.ToolCallStatusInProgress)
	}
	p.lookAtQuestions()
}

func updateOf(e *wire.Event) (u acp.SessionUpdate, ok bool) {
	title := cmp.Or(e.Text("title", "tool"), "tool")
	id, status := acp.ToolCallId(cmp.Or(e.Text("tool_call_id"), title)), acp.ToolCallStatusCompleted
	switch e.Kind {
	case "tool_call_start", "tool_call":
		return acp.StartToolCall(id, title, acp.WithStartStatus(acp.ToolCallStatusInProgress)), true
	case "tool_call_end", "tool_call_update":
		if e.Text("error") != "" {
			status = acp.ToolCallStatusFailed
		}
		return acp.UpdateToolCall(id, acp.WithUpdateStatus(cmp.Or(acp.ToolCallStatus(e.Text("status")), status))), true
	case "message_delta", "agent_message_chunk":
		return acp.UpdateAgentMessageText(e.Text("delta", "text")), true
	}
	return u, false
}

func (p *prompt) ended(r *teams.Response, err error) (out acp.PromptResponse, _ error) {
	if r.Reply != nil {
		p.answer(r.Reply)
	} else if r.Text != "" && !p.hasText {
		p.update(p.session, acp.UpdateAgentMessageText(r.Text))
	}
	out.StopReason = cmp.Or(p.reason, acp.StopReasonEndTurn)
	if r.Status == reducer.Interrupted || r.Status == reducer.Cancelled {
		out.StopReason, err = acp.StopReasonCancelled, nil
	} else if r.Status == reducer.Failed && err == nil {
		err = fmt.Errorf("the turn of %s failed", p.name())
	}
	if err != nil {
		p.progress(err.Error(), acp.ToolCallStatusFailed)
		return out, p.refuse(err)
	}
	p.progress(fmt.Sprintf("%s: %s after %s", p.name(), r.Status, r.Took.Round(100*time.Millisecond)), acp.ToolCallStatusCompleted)
	return out, nil
}

// takeBack takes the message back while it is unread, else it interrupts the member, and says what it did. Where that
// is refused since the keys would answer what the member asks, what the client was asked is rejected first.
func (p *prompt) takeBack() string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	state, err := mailbox.Unread, mailbox.ErrBeingTyped
	for errors.Is(err, mailbox.ErrBeingTyped) && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
		state, err = p.member.Withdraw(ctx, p.message.ID, p.Me.Address(), true)
	}
	if _, isUnlogged := errors.AsType[*mailbox.UnloggedError](err); isUnlogged {
		err = nil // it was done
	}
	if state == mailbox.Unread && err == nil {
		return "taken back before it was read"
	}
	if err == nil {
		_, err = p.Interrupt(ctx, p.name())
	}
	if command.IsRefusal(err) {
		questions, _ := p.Team.Questions(p.name())
		for _, q := range questions {
			if p.asked[q.ID] != nil && q.Kind != reducer.ClientTool && p.MayAnswer(q) == nil {
				p.Answer(ctx, q, command.Answer{IsDeny: true})
			}
		}
		_, err = p.Interrupt(ctx, p.name())
	}
	if err != nil {
		return p.refuse(err).Message
	}
	return "interrupted"
}

// lookAtQuestions has the client answer what the member has come to ask if I may, and else shows it as text.
func (p *prompt) lookAtQuestions() {
	questions, err := p.Team.Questions(p.name())
	key := func(q policy.Question) string { return cmp.Or(q.ID, q.Since.String()) }
	for known, end := range p.asked {
		if err == nil && !slices.ContainsFunc(questions, func(q policy.Question) bool { return key(q) == known }) {
			end()
		}
	}
	for _, q := range questions {
		if p.asked[key(q)] != nil || q.ID == "" && q.Running { // without an id: the screen will soon show more
			continue
		}
		var ctx context.Context
		ctx, p.asked[key(q)] = context.WithCancel(p.ctx)
		if err := p.checkAnswerable(&q); err != nil {
			p.showQuestion(q, err)
			continue
		}
		p.asking.Go(func() { p.request(ctx, q) })
	}
}

// checkAnswerable is nil if the client may answer a question. An editor may itself allow what is called a permission:
// options of which it is not known what they do are left out there.
func (p *prompt) checkAnswerable(q *policy.Question) error {
	if err := p.MayAnswer(*q); err != nil {
		return err
	}
	if q.Kind == reducer.ClientTool {
		return command.Refused("an editor has no result for it").WithHint("atm approve %s RESULT", q.Short())
	}
	if q.Kind != reducer.Permission || len(q.Options) == 0 {
		return nil
	}
	q.Options = slices.DeleteFunc(q.Options, func(o policy.Option) bool { return o.Kind == "" })
	if len(q.Options) == 0 {
		return command.Refused("what its options do is not known").WithHint("atm approve %s OPTION", q.Short())
	}
	return nil
}

// maxRequests is how often the client is asked: a program answers wrongly at once, and always.
const maxRequests = 3

// request asks the client until an answer has worked, the question is gone, or the client gives none: then it stays
// open, which is said.
func (p *prompt) request(ctx context.Context, q policy.Question) {
	r := acp.RequestPermissionRequest{SessionId: p.session, ToolCall: acp.ToolCallUpdate{
		ToolCallId: acp.ToolCallId(p.message.ID), Title: acp.Ptr(fmt.Sprintf("%s %s", q.Agent, q.Asks())),
		Content: []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(q.Prompt))},
	}}
	if len(q.Options) == 0 {
		q.Options = []policy.Option{{Label: "Allow", Kind: "allow_once"}, {Label: "Reject", Kind: "reject_once"}}
	}
	for i, o := range q.Options {
		kind := acp.PermissionOptionKind(cmp.Or(o.Kind, "allow_once"))
		r.Options = append(r.Options, acp.PermissionOption{OptionId: acp.PermissionOptionId(fmt.Sprint(i + 1)), Name: o.Label, Kind: kind})
	}
	for range maxRequests {
		chosen, err := p.conn.RequestPermission(ctx, r)
		if err != nil || chosen.Outcome.Selected == nil {
			break
		}
		id := chosen.Outcome.Selected.OptionId
		i := slices.IndexFunc(r.Options, func(o acp.PermissionOption) bool { return o.OptionId == id })
		if i < 0 {
			err = command.Usage("%q is not the id of an option", id)
		} else {
			_, err = p.Answer(context.Background(), q, command.Answer{Option: q.Options[i].ID, IsDeny: q.Options[i].Denies()})
		}
		if err == nil || ctx.Err() != nil { // answered, or gone meanwhile
			return
		}
		p.update(p.session, acp.UpdateAgentMessageText(p.refuse(err).Message+"\n\n"))
	}
	if ctx.Err() == nil {
		why := command.Refused("it still waits for an answer")
		p.showQuestion(q, why.WithHint("atm approve %s, or atm reject %[1]s", q.Short()))
	}
}

// showQuestion shows a question as text, and why the client is not asked.
func (p *prompt) showQuestion(q policy.Question, why error) {
	text := fmt.Sprintf("%s %s\n(%s)\n\n", q.Agent, q.Asks(), p.refuse(why).Message)
	p.update(p.session, acp.UpdateAgentMessageText(text))
}

// message is a prompt as a message: its text with links in it, then the texts that were embedded. Images and other data
// are attached.
func (a *agent) message(prompt []acp.ContentBlock) (_ *wire.Message, err error) {
	m, embedded := &wire.Message{ReplyWanted: "yes", Origin: a.Origin()}, ""
	m.Origin.Via = "acp"
	for _, b := range prompt {
		switch {
		case b.Text != nil:
			m.Body += b.Text.Text
		case b.ResourceLink != nil:
			m.Body += fmt.Sprintf("[%s](%s)", b.ResourceLink.Name, b.ResourceLink.Uri)
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			r := b.Resource.Resource.TextResourceContents
			m.Body += fmt.Sprintf("[%s](%s)", path.Base(r.Uri), r.Uri)
			about := fmt.Sprintf("ref=%q", r.Uri)
			if r.MimeType != nil {
				about += fmt.Sprintf(" type=%q", *r.MimeType)
			}
			embedded += fmt.Sprintf("\n<context %s>\n%s\n</context>", about, strings.TrimSuffix(r.Text, "\n"))
		case b.Image != nil:
			name := fmt.Sprintf("image-%d.%s", len(m.Attachments)+1, path.Base(b.Image.MimeType))
			err = a.attach(m, name, b.Image.MimeType, b.Image.Data)
		case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
			r := b.Resource.Resource.BlobResourceContents
			err = a.attach(m, path.Base(r.Uri), *cmp.Or(r.MimeType, acp.Ptr("")), r.Blob)
		default:
			err = command.Usage("a prompt holds text, links, what is embedded and images").
				WithHint("atm send %s --attach FILE", a.name())
		}
		if err != nil {
			return nil, err
		}
	}
	if m.Body += embedded; strings.TrimSpace(m.Body) == "" && m.Attachments == nil {
		return nil, command.Usage("the prompt is empty")
	}
	return m, nil
}

func (a *agent) attach(m *wire.Message, name, mediaType, content string) error {
	data, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		return command.Usage("%s is not base64: %w", name, err)
	}
	file, err := a.member.Store().Attach(name, bytes.NewReader(data))
	file.MediaType = cmp.Or(mediaType, file.MediaType)
	m.Attachments = append(m.Attachments, file)
	return err
}

func (a *agent) blocks(m *wire.Message) []acp.ContentBlock {
	text := strings.TrimPrefix(m.Subject+"\n\n"+m.Body, "\n\n")
	if m.From != a.Me.Address() && m.From != a.member.Address() {
		text = m.From.String() + ": " + text
	}
	out := []acp.ContentBlock{acp.TextBlock(text)}
	for _, f := range m.Attachments {
		file := url.URL{Scheme: "file", Path: a.Team.Dir().Join(mailbox.FilesDir + "/" + f.SHA256)}
		out = append(out, acp.ResourceLinkBlock(f.Name, file.String()))
	}
	return out
}
