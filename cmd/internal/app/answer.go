package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/aswire"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// An Answer is an answer to a question. Without an option it selects the one that approves, or rejects, once.
type Answer struct {
	Option   string // id of the option
	IsDeny   bool
	Reason   string
	Artifact string    // URI of the part of a draft that it is about; "": the whole draft
	By       wire.Name // "": the member that this process acts for
}

func (a *Answer) words() (decision, did string) {
	if a.IsDeny {
		return "reject", "rejected"
	}
	return "approve", "approved"
}

// Acting returns the scope of the member that this process acts for (Actor), with permission to write.
func (s *Scope) Acting() (*Scope, error) {
	acting := *s
	who, _ := s.Actor()
	if who == "" {
		return nil, cmp.Or(acting.findMe(), s.MayAnswer(policy.Question{}))
	}
	var err error
	if acting.Me, err = s.Team.Member(who); err != nil {
		return nil, err
	}
	return &acting, acting.MayWrite()
}

// Decide answers a question if this Acting scope may, and sends the asker the reason of a rejection. The option may
// also be a number, a label or the beginning of one.
func (s *Scope) Decide(ctx context.Context, q policy.Question, a Answer) (o control.Outcome, err error) {
	if err := s.MayAnswer(q); err != nil {
		return o, err
	}
	if isDraft := q.Kind == policy.KindDraft; isDraft && a.Option != "" || !isDraft && a.Artifact != "" {
		return o, failure.Usage("an option answers a question, --artifact a draft").WithHint("atm pending shows which it is")
	}
	switch {
	case q.Host != "": // which decides whether the answer counts
		if err := a.chooseOption(q); err != nil {
			return o, err
		}
		to, err := s.Address(string(q.Agent))
		if err != nil {
			return o, err
		}
		id, err := s.sendAnswer(ctx, to, q, a)
		return control.Outcome{Done: "sent " + id.Short(6), Detail: string(q.Host) + " decides whether it counts"}, err
	case q.Kind == policy.KindDraft:
		return s.answerDraft(ctx, q, a)
	}
	if err := a.findOption(q); err != nil {
		return o, err
	}
	o, err = s.Answer(ctx, q, a)
	if err == nil && a.Reason != "" && !q.Served { // else the program gets it with the answer
		_, err = s.sendAnswer(ctx, s.Team.Box(q.Agent).Address(), q, a)
	}
	return o, err
}

// sendAnswer sends the answer as a message: the reason of a rejection, or the whole answer to another host.
func (s *Scope) sendAnswer(ctx context.Context, to wire.Address, q policy.Question, a Answer) (wire.ID, error) {
	decision, did := a.words()
	payload, _ := json.Marshal(teamdir.PermissionReply{Decision: decision, Question: q.ID, Since: q.Since, Option: a.Option, Reason: a.Reason})
	m := &wire.Message{
		Type: wire.TypePermissionReply, ReplyWanted: "no", Origin: s.Origin(), Body: cmp.Or(a.Reason, did),
		Subject: did + ": " + letter.OneLine(cmp.Or(q.Tool, q.Prompt), 80), Payload: payload,
	}
	if wire.IsID(q.ID) { // the id of the message that asked the lead
		m.InReplyTo = wire.ID(q.ID)
	}
	_, err := s.Root.Send(ctx, &teamdir.Outgoing{From: s.Me, To: []wire.Address{to}, Message: m})
	return m.ID, err
}

func (s *Scope) answerDraft(ctx context.Context, q policy.Question, a Answer) (o control.Outcome, err error) {
	decision, did := a.words()
	o.Done = did + " draft " + q.ID
	in := foreign.HumanInput{Kind: decision, DraftID: wire.UUID(q.ID), Reason: a.Reason}
	if a.Artifact != "" {
		o.Done = did + " " + a.Artifact + " in draft " + q.ID
		in.ArtifactURI = &a.Artifact
	}
	out, err := s.Team.AnswerDraft(ctx, q, teamdir.SessionInput{From: s.Me, Input: in, Origin: s.Origin()})
	if err == nil {
		o.Detail = "sent " + out.Message.ID.Short(6)
	}
	return o, err
}

// Answer answers a question of a member of this team: through its runner, through the process that waits for the answer
// (cmd/internal/question), or on the wire that it was asked on.
func (s *Scope) Answer(ctx context.Context, q policy.Question, a Answer) (o control.Outcome, err error) {
	if a.By == "" {
		a.By, _ = s.Actor()
	}
	if q.ByWire {
		return s.answerOnWire(ctx, q, a)
	}
	r := control.AnswerRequest{ID: q.ID, Since: q.Since, Option: a.Option, Deny: a.IsDeny, By: string(a.By)}
	if q.Served {
		r.Reason = a.Reason
		return s.answerServed(ctx, q, r)
	}
	err = s.AskRunner(ctx, q.Agent, func(c *control.Client) (err error) {
		o, err = c.Answer(ctx, r)
		return err
	})
	return o, err
}

// answerServed answers a question through the process that waits for the answer.
func (s *Scope) answerServed(ctx context.Context, q policy.Question, r control.AnswerRequest) (o control.Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, AnswerWithin)
	defer cancel()
	c, err := s.Team.DialQuestion(ctx, q.Agent, q.ID)
	if err == nil {
		defer c.Close()
		o, err = c.Answer(ctx, r)
	}
	switch {
	case errors.Is(err, control.ErrNoRunner) || errors.Is(err, control.ErrGone):
		err = fmt.Errorf("%s: %w any more", q.Short(), policy.ErrNoQuestion)
	case errors.Is(err, control.ErrNotAnswering):
		err = failure.Failed("the process that waits for the answer does not answer").WithHint("answer it where %s asks it", q.Agent)
	}
	return o, s.RunnerError(q.Agent, err)
}

// AnswerFor answers a question of a member of this team for a.By on another host, if the rules allow that.
func (s *Scope) AnswerFor(ctx context.Context, isInAgent bool, q policy.Question, a Answer) error {
	if err := cmp.Or(s.mayAnswerAs(a.By, isInAgent, q), a.chooseOption(q)); err != nil {
		return err
	}
	_, err := s.Answer(ctx, q, a)
	return err
}

// answerOnWire answers a question on the older ACP wire.
func (s *Scope) answerOnWire(ctx context.Context, q policy.Question, a Answer) (o control.Outcome, err error) {
	if q.Kind != reducer.ClientTool { // whose answer is any text
		if err := a.chooseOption(q); err != nil {
			return o, err
		}
	}
	return aswire.Answer(ctx, s.Team, q, aswire.Reply{Option: a.Option, IsDeny: a.IsDeny, Reason: a.Reason, By: a.By})
}

// findOption replaces the option's number or label by its id.
func (a *Answer) findOption(q policy.Question) (err error) {
	if a.Option == "" {
		return nil
	}
	if a.Option, err = q.Choose(a.Option); err != nil {
		return failure.Usage("%s", letter.Escape(err.Error())).
			WithHint("atm pending lists the options; to give a reason: atm reject %s --reason \"…\"", q.Agent)
	}
	return nil
}

// chooseOption is findOption, and refuses an option that contradicts the answer: to reject, one must be known to.
func (a *Answer) chooseOption(q policy.Question) error {
	if err := a.findOption(q); err != nil || a.Option == "" {
		return err
	}
	denies := slices.ContainsFunc(q.Options, func(o policy.Option) bool { return o.ID == a.Option && o.Denies() })
	if denies && !a.IsDeny {
		return failure.Usage("%q rejects it", a.Option).WithHint("atm reject %s %q", q.Agent, a.Option)
	} else if a.IsDeny && !denies {
		return failure.Usage("%q does not reject it", a.Option).WithHint("atm approve %s %q", q.Agent, a.Option)
	}
	return nil
}

// AnsweredElsewhere returns why atm approve and atm reject cannot answer a question, and a command that does, or that
// helps; "" if they can.
func AnsweredElsewhere(q *policy.Question) (why, hint string) {
	name, isRemote := strings.CutSuffix(string(q.Agent), "@"+string(q.Host))
	where := ""
	if isRemote {
		where = "there: "
	}
	switch {
	case q.Kind == policy.KindDraft, q.ByWire && q.ID != "", q.Served:
		return "", ""
	case q.OnChannel && q.Session != "":
		return "takes the answer as a message in its session", where + `atm session message ` + name + ` "…"`
	case q.OnChannel:
		return "takes the answer as a message", where + `atm send ` + name + ` "…" --type human_input`
	case !q.Running:
		return "has no runner, so only its own terminal can answer", where + "next time atm run " + name
	case q.ID == "" || reducer.IsForTerminal(q.Dialog):
		return "asks something that only a person at its terminal can answer", where + "atm attach " + name
	}
	return "", ""
}
