package mcp

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/agent"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/cli/mail"
	"github.com/agentteammail/atm/cmd/internal/cli/setup"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// The arguments of the tools have the names of the commands' flags; id and words are their words.
type (
	content struct {
		Text    string   `json:"text" jsonschema:"what you say; one subject a message"`
		Subject string   `json:"subject,omitempty" jsonschema:"a line above the text"`
		Ack     bool     `json:"ack,omitempty" jsonschema:"ask the recipient to say: I have it and will act on it"`
		FYI     bool     `json:"fyi,omitempty" jsonschema:"no answer wanted"`
		Urgent  bool     `json:"urgent,omitempty" jsonschema:"may break into a turn"`
		Due     string   `json:"due,omitempty" jsonschema:"an answer is expected within this time, such as 2h"`
		Attach  []string `json:"attach,omitempty" jsonschema:"paths of files to attach"`
		Once    string   `json:"once,omitempty" jsonschema:"a name of your choice: sending again under it sends nothing twice"`
	}
	sendArguments struct {
		To string `json:"to" jsonschema:"a member, or several: bob,carol; all: everybody but you; @reviewers: a group or a role"`
		content
		Thread string   `json:"thread,omitempty" jsonschema:"put it in the thread of this message id"`
		Choice []string `json:"choice,omitempty" jsonschema:"offer these answers, such as yes and no; the answer is a reply"`
		At     string   `json:"at,omitempty" jsonschema:"send it later, at 14:00 or 2026-12-01T09:00"`
		In     string   `json:"in,omitempty" jsonschema:"send it later, after a time such as 2h30m"`
		After  []string `json:"after,omitempty" jsonschema:"ids of messages: it goes out once each is acked as done"`
	}
	replyArguments struct {
		ID string `json:"id" jsonschema:"the id of the message to answer, as read shows it"`
		content
		All bool `json:"all,omitempty" jsonschema:"send it to the other recipients too"`
	}
	readArguments struct {
		ID     string `json:"id,omitempty" jsonschema:"this message only"`
		From   string `json:"from,omitempty" jsonschema:"from this member only"`
		Thread string `json:"thread,omitempty" jsonschema:"from the thread of this message id only"`
		Urgent bool   `json:"urgent,omitempty" jsonschema:"urgent messages only"`
		Limit  uint16 `json:"limit,omitempty" jsonschema:"how many at most (20)"`
		Peek   bool   `json:"peek,omitempty" jsonschema:"mark nothing as read"`
		Last   bool   `json:"last,omitempty" jsonschema:"the last batch again"`
	}
	ackArguments struct {
		ID      string `json:"id" jsonschema:"the id of the message"`
		Outcome string `json:"outcome,omitempty" jsonschema:"what came of it: done, blocked or declined; may be said later"`
		Text    string `json:"text,omitempty" jsonschema:"a short note with it"`
	}
	waitArguments struct {
		Reply    string `json:"reply,omitempty" jsonschema:"until this message id has an answer"`
		Acked    string `json:"acked,omitempty" jsonschema:"until every recipient has acked this message id"`
		Idle     string `json:"idle,omitempty" jsonschema:"until this member has no open turn and is not blocked"`
		Busy     string `json:"busy,omitempty" jsonschema:"until this member is in a turn"`
		TurnDone string `json:"turn-done,omitempty" jsonschema:"until the turn of this member, or of this message id, is over"`
		Blocked  string `json:"blocked,omitempty" jsonschema:"until this member asks for a permission or an answer"`
		Exit     string `json:"exit,omitempty" jsonschema:"until this member is off"`
		Any      bool   `json:"any,omitempty" jsonschema:"wait until one of the arguments is true, not all"`
		Timeout  string `json:"timeout,omitempty" jsonschema:"how long at most (50s); longer, such as 10m, only if your client waits that long; 0: for ever"`
	}
	threadArguments struct {
		ID    string `json:"id" jsonschema:"any message id in it"`
		Limit uint16 `json:"limit,omitempty" jsonschema:"how many of the newest (50)"`
	}
	searchArguments struct {
		Words string `json:"words" jsonschema:"all must occur in the subject or the text, in any case"`
		From  string `json:"from,omitempty" jsonschema:"from this member only"`
		To    string `json:"to,omitempty" jsonschema:"to this member only"`
		Since string `json:"since,omitempty" jsonschema:"no older than this, such as 7d"`
		In    string `json:"in,omitempty" jsonschema:"new, cur or done: unread, owed an ack, or done"`
		Limit uint16 `json:"limit,omitempty" jsonschema:"how many at most (20)"`
	}
	none struct{}
)

func (s *server) addTools() {
	no := false
	looks := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no}
	acts := &sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no}

	add(s, &sdk.Tool{Name: "send", Annotations: acts, Description: "Send a message to members of the team."}, app.OpenToWrite, send)
	add(s, &sdk.Tool{Name: "read", Annotations: acts, Description: "Your unread mail, oldest first. What you get counts as read."}, app.OpenMe, read)
	add(s, &sdk.Tool{Name: "reply", Annotations: acts, Description: "Answer a message, in its thread. This also acknowledges it and marks it as read."}, app.OpenToWrite, reply)
	add(s, &sdk.Tool{Name: "ack", Annotations: acts, Description: "Say of a message: I have it and will act on it."}, app.OpenToWrite, ack)
	add(s, &sdk.Tool{Name: "wait", Annotations: looks, Description: "Wait for mail or, with arguments, until all of them are true. Does not mark mail as read."}, app.OpenMeIfGiven, s.wait)
	add(s, &sdk.Tool{Name: "team", Annotations: looks, Description: "Who is here, and who is busy, idle, blocked or off."}, app.OpenTeam, team)
	add(s, &sdk.Tool{Name: "pending", Annotations: looks, Description: "What waits for a person: permissions, questions, drafts, late answers."}, app.OpenTeam, pending)
	add(s, &sdk.Tool{Name: "thread", Annotations: looks, Description: "A conversation in order, across the team's inboxes. Does not mark anything as read."}, app.OpenMeIfGiven, thread)
	add(s, &sdk.Tool{Name: "search", Annotations: looks, Description: "Search every message of the team, newest first. Does not mark anything as read."}, app.OpenMeIfGiven, findMail)
}

// add adds a tool that is a verb. A look ends when the client cancels it. Whoever cancels an act would not know whether it was
// done, so it is.
func add[In any](s *server, tool *sdk.Tool, open func(*app.Given) (*app.Scope, error), act func(context.Context, *app.Scope, *command.Printer, In) error) {
	sdk.AddTool(s.Server, tool, func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		c := &call{server: s, verb: tool.Name, open: open, act: func(ctx context.Context, at *app.Scope, p *command.Printer) error { return act(ctx, at, p, in) }}
		switch {
		case tool.Name == "read":
			r, err := c.read(ctx)
			return r, nil, err
		case tool.Annotations.ReadOnlyHint:
			ctx, end := context.WithCancel(ctx)
			defer end()
			go reportProgress(ctx, req)
			c.run(ctx, nil)
		default:
			c.run(context.WithoutCancel(ctx), nil)
		}
		return c.result(), nil, nil
	})
}

const progressInterval = 5 * time.Second

func reportProgress(ctx context.Context, req *sdk.CallToolRequest) {
	token, tick := req.Params.GetProgressToken(), time.Tick(progressInterval)
	for waited := progressInterval; token != nil; waited += progressInterval {
		select {
		case <-tick:
			req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: waited.Seconds(), Message: "waited " + waited.String()})
		case <-ctx.Done():
			return
		}
	}
}

func send(ctx context.Context, s *app.Scope, p *command.Printer, in sendArguments) (err error) {
	d := app.Draft{Choices: in.Choice}
	if in.Thread != "" {
		d.Thread, err = mail.FindThread(s, in.Thread)
	}
	switch {
	case err != nil:
	case in.At != "" && in.In != "":
		err = failure.Usage("at and in contradict each other").WithHint("leave one out")
	case in.At != "":
		d.NotBefore, err = mail.At(in.At)
	case in.In != "":
		var later time.Duration
		if later, err = duration("in", in.In); err == nil {
			d.NotBefore, err = mail.In(later)
		}
	}
	if err != nil {
		return err
	}
	return submit(ctx, s, p, teams.Message{To: []string{in.To}}, d, in.content)
}

func reply(ctx context.Context, s *app.Scope, p *command.Printer, in replyArguments) error {
	p.Word = in.ID
	parent, _, err := s.Find(in.ID)
	if err != nil {
		return err
	}
	return submit(ctx, s, p, teams.Message{Answers: parent.Message, ToAll: in.All}, app.Draft{}, in.content)
}

func submit(ctx context.Context, s *app.Scope, p *command.Printer, m teams.Message, d app.Draft, in content) (err error) {
	d.Text, d.Subject, d.Ack, d.FYI, d.Urgent = in.Text, in.Subject, in.Ack, in.FYI, in.Urgent
	if in.Due != "" {
		d.Due, err = duration("due", in.Due)
	}
	if err = cmp.Or(err, app.CheckText(d.Text)); err != nil {
		return err
	}
	m.Once = in.Once
	if m.Content, err = d.Message(); err != nil {
		return err
	}
	return mail.Submit(ctx, s, p, &m, in.Attach)
}

func duration(name, word string) (time.Duration, error) {
	d, err := cmdline.ParseDuration(word)
	if err != nil {
		return 0, failure.Usage("%s: %q is %w", name, letter.Clip(word, 40), err)
	}
	return d, nil
}

func read(ctx context.Context, s *app.Scope, p *command.Printer, in readArguments) (err error) {
	o := mail.ReadOptions{Limit: int(cmp.Or(in.Limit, letter.MaxMessages)), HasLimit: in.Limit > 0, Peeks: in.Peek, IsLast: in.Last}
	if in.ID != "" {
		p.Word, o.IDs = in.ID, []string{in.ID}
	}
	if o.Filter.IsUrgent = in.Urgent; in.From != "" {
		o.Filter.From, err = s.Correspondents(in.From)
	}
	if in.Thread != "" && err == nil {
		o.Filter.Thread, err = mail.FindThread(s, in.Thread)
	}
	if err != nil {
		return err
	}
	return mail.Read(ctx, s, p, o)
}

func ack(ctx context.Context, s *app.Scope, p *command.Printer, in ackArguments) error {
	p.Word = in.ID
	if in.Outcome != "" && !slices.Contains(wire.Outcomes, in.Outcome) {
		return failure.Usage("outcome must be one of %s, not %q", strings.Join(wire.Outcomes, ", "), in.Outcome)
	}
	if in.Text != "" {
		if err := app.CheckText(in.Text); err != nil {
			return err
		}
	}
	return mail.Ack(ctx, s, p, []string{in.ID}, in.Outcome, in.Text)
}

// wait ends also when the client closes stdin.
func (s *server) wait(ctx context.Context, at *app.Scope, p *command.Printer, in waitArguments) (err error) {
	timeout := 50 * time.Second // many clients abandon a call after a minute
	if in.Timeout != "" {
		if timeout, err = duration("timeout", in.Timeout); err != nil {
			return err
		}
	}
	var wanted [][2]string
	for _, one := range [][2]string{
		{"reply", in.Reply}, {"acked", in.Acked}, {"idle", in.Idle}, {"busy", in.Busy}, {"turn-done", in.TurnDone}, {"blocked", in.Blocked}, {"exit", in.Exit},
	} {
		if one[1] != "" {
			wanted = append(wanted, one)
		}
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(s.connected, end)()
	w, err := mail.NewWait(at, wanted, in.Any, timeout)
	if err != nil {
		return err
	}
	if err = at.AwaitIn(ctx, func(ctx context.Context) error { return mail.Wait(ctx, at, p, w) }); ctx.Err() != nil {
		return failure.Failed("the call was cancelled")
	}
	return err
}

func team(ctx context.Context, s *app.Scope, p *command.Printer, _ none) error {
	return setup.Team(ctx, s, p, true)
}

func pending(ctx context.Context, s *app.Scope, p *command.Printer, _ none) error {
	return agent.Pending(ctx, s, p)
}

func thread(ctx context.Context, s *app.Scope, p *command.Printer, in threadArguments) error {
	p.Word = in.ID
	return mail.Thread(ctx, s, p, in.ID, int(cmp.Or(in.Limit, 50)))
}

func findMail(ctx context.Context, s *app.Scope, p *command.Printer, in searchArguments) (err error) {
	q := search.Query{From: in.From, To: in.To, In: in.In}
	if in.Since != "" {
		if q.Since, err = cmdline.ParseSince(in.Since); err != nil {
			return failure.Usage("since: %w", err)
		}
	}
	return mail.Search(ctx, s, p, q, []string{in.Words}, 0, int(cmp.Or(in.Limit, letter.MaxMessages)))
}
