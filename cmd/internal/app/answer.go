package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/aswire"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/input"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Acting returns the scope of the member that this process acts for (Actor), with permission to write. The owner of the
// account has none: Me is nil.
func (s *Scope) Acting() (*Scope, error) {
	acting, by := *s, s.Actor()
	switch {
	case by == policy.Actor{}:
		return &acting, nil
	case by.Name == "":
		if err := acting.findMe(); err != nil {
			return nil, err
		}
		return nil, failure.Refused("this process belongs to a run that has ended: it may not answer for anybody").WithHint("ask a person")
	}
	var err error
	if acting.Me, err = s.Team.Member(by.Name); err != nil {
		return nil, err
	}
	return &acting, acting.MayWrite()
}

// did is what an answer has done.
func did(a ask.Answer) string {
	if a.Deny {
		return "rejected"
	}
	return "approved"
}

// Decide answers a question if this Acting scope may, and sends the asker the reason of a rejection. The option may
// also be a number, a label or the beginning of one.
func (s *Scope) Decide(ctx context.Context, q ask.Question, a ask.Answer) (o control.Outcome, err error) {
	if err := s.MayAnswer(q); err != nil {
		return o, err
	}
	if isMail := q.Host != "" || q.Kind == ask.KindDraft || a.Reason != ""; isMail && s.Me == nil {
		return o, failure.Usage("this answer is mail: who are you?").WithHint("`%s --as NAME`", s.Given.Verb)
	}
	if isDraft := q.Kind == ask.KindDraft; isDraft && a.Option != "" || !isDraft && a.Artifact != "" {
		return o, failure.Usage("an option answers a question, --artifact a draft").WithHint("`atm pending` shows which it is")
	}
	switch {
	case q.Host != "": // which decides whether the answer counts
		if err := pick(q, &a); err != nil {
			return o, err
		}
		to, err := s.Team.ParseAddress(string(q.Agent))
		if err != nil {
			return o, err
		}
		id, err := s.sendAnswer(ctx, to, q, a)
		return control.Outcome{Done: "sent " + id.Short(6), Detail: string(q.Host) + " decides whether it counts"}, err
	case q.Kind == ask.KindDraft:
		return s.answerDraft(ctx, q, a)
	case q.Kind == ask.KindMail && a.Option == "" && a.Reason != "":
		return s.AnswerMail(ctx, q, a.Reason)
	case q.Kind == ask.KindMail && a.Option == "" && a.Deny:
		return s.AnswerMail(ctx, q, "none of these")
	case q.Kind == ask.KindMail:
		chosen, err := q.Pick(ask.Answer{Option: a.Option})
		if err != nil {
			return o, failure.Usage("%s", letter.Escape(err.Error())).WithHint("`atm approve %s 1`, or another text: `atm reply %[1]s \"…\"`", q.Short())
		}
		return s.AnswerMail(ctx, q, chosen.Label)
	}
	if err := pick(q, &a); err != nil {
		return o, err
	}
	o, err = s.Answer(ctx, q, a)
	if err == nil && a.Reason != "" && !o.ReasonGiven {
		_, err = s.sendAnswer(ctx, s.Team.Box(q.Agent).Address(), q, a)
	}
	return o, err
}

// sendAnswer sends the answer as a message: the reason of a rejection, or the whole answer to another host.
func (s *Scope) sendAnswer(ctx context.Context, to wire.Address, q ask.Question, a ask.Answer) (wire.ID, error) {
	did := did(a)
	payload, _ := json.Marshal(notices.PermissionReply{Decision: a.Decision(), Question: q.ID, Since: q.Since, Option: a.Option, Reason: a.Reason})
	m := &wire.Message{
		Type: wire.TypePermissionReply, ReplyWanted: "no", Body: cmp.Or(a.Reason, did),
		Subject: did + ": " + letter.OneLine(q.Summary(), 80), Payload: payload,
	}
	if wire.IsID(q.ID) { // the id of the message that asked the lead
		m.InReplyTo = wire.ID(q.ID)
	}
	_, err := s.Opened().Send(ctx, &teams.Message{From: s.Me.Agent(), To: []string{to.String()}, Content: m})
	return m.ID, err
}

// AnswerMail answers what a message to me asks, with one of its choices or another text.
func (s *Scope) AnswerMail(ctx context.Context, q ask.Question, text string) (o control.Outcome, err error) {
	if err := s.MayAnswer(q); err != nil {
		return o, err
	}
	it, err := s.Me.Get(wire.ID(q.ID))
	if err != nil {
		return o, fmt.Errorf("%s: %w", q.Short(), ask.ErrNoQuestion)
	}
	m := &wire.Message{Body: text}
	out, err := s.Send(ctx, &teams.Message{Answers: it.Message, Content: m})
	if err == nil {
		err = out.Err("sent to")
	}
	return control.Outcome{Done: "answered " + q.Short(), Detail: letter.OneLine(m.Body, 80)}, err
}

// SayInSession sends a text of mine to the agent of an interactive session.
func (s *Scope) SayInSession(ctx context.Context, to *session.Session, text string) (input.SessionResult, error) {
	if err := s.MayAct(policy.Speak, wire.Name(to.AgentID)); err != nil {
		return input.SessionResult{}, err
	}
	in := foreign.HumanInput{Kind: foreign.HumanMessage, Text: text}
	return input.SendInput(ctx, s.Team, to.SessionID, input.SessionInput{From: s.Me, Input: in, Origin: s.Origin()})
}

func (s *Scope) answerDraft(ctx context.Context, q ask.Question, a ask.Answer) (o control.Outcome, err error) {
	did := did(a)
	o.Done = did + " draft " + q.ID
	in := foreign.HumanInput{Kind: a.Decision(), DraftID: wire.UUID(q.ID), Reason: a.Reason}
	if a.Artifact != "" {
		o.Done = did + " " + a.Artifact + " in draft " + q.ID
		in.ArtifactURI = &a.Artifact
	}
	out, err := input.AnswerDraft(ctx, s.Team, q, input.SessionInput{From: s.Me, Input: in, Origin: s.Origin()})
	if err == nil {
		o.Detail = "sent " + out.Message.ID.Short(6)
	}
	return o, err
}

// Answer answers a question of a member of this team: through its runner, through the process that waits for the answer
// (cmd/internal/hook), or on the wire that it was asked on.
func (s *Scope) Answer(ctx context.Context, q ask.Question, a ask.Answer) (o control.Outcome, err error) {
	if a.By == "" {
		a.By = string(s.Actor().Name)
	}
	if q.ByWire {
		return s.answerOnWire(ctx, q, a)
	}
	a.ID, a.Since = q.ID, q.Since
	if q.Served {
		return s.answerServed(ctx, q, a)
	}
	err = s.AskRunner(ctx, q.Agent, func(c *control.Client) (err error) {
		o, err = c.Answer(ctx, a)
		return err
	})
	return o, err
}

// answerServed answers a question through the process that waits for the answer.
func (s *Scope) answerServed(ctx context.Context, q ask.Question, a ask.Answer) (o control.Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, AnswerWithin)
	defer cancel()
	if chosen, bad := q.Pick(a); bad == nil {
		if programs.InSharedServer(s.Root) && !s.Actor().IsAgent { // an agent that has hidden who it is
			return o, failure.Refused("this process runs in the server of programs that ask: it may not answer for a person").WithHint("ask a person")
		}
		why := agents.Verdict{IsDeny: a.Reason != "", By: a.By, Reason: a.Reason}.Why()
		if isAsked, isGiven, err := programs.AnswerAtServer(ctx, s.Team, q.Agent, q, chosen, why); isAsked {
			return control.Outcome{Done: "answered", Detail: chosen.Label, ReasonGiven: isGiven}, errors.Join(err, s.noteAnswer(ctx, q, a, chosen, err))
		}
	}
	c, err := programs.DialQuestion(ctx, s.Team, q.Agent, q.ID)
	if err == nil {
		defer c.Close()
		o, err = c.Answer(ctx, a)
	}
	switch {
	case errors.Is(err, control.ErrNoRunner) || errors.Is(err, control.ErrGone):
		err = fmt.Errorf("%s: %w any more", q.Short(), ask.ErrNoQuestion)
	case errors.Is(err, control.ErrNotAnswering):
		err = failure.Failed("the process that waits for the answer does not answer").WithHint("answer it where %s asks it", q.Agent)
	}
	return o, s.RunnerError(q.Agent, err)
}

// noteAnswer notes an answer that a program's server has taken, unless that has failed.
func (s *Scope) noteAnswer(ctx context.Context, q ask.Question, a ask.Answer, chosen ask.Option, failed error) error {
	state, err := s.Team.State(q.Agent)
	if err != nil || failed != nil {
		return err
	}
	now := reducer.ToolRunning
	if a.Deny = chosen.Denies(); a.Deny || q.Kind == reducer.Question {
		now = reducer.Thinking
	}
	ses := state.Session()
	e := wire.Event{Kind: wire.StateChange, Source: wire.SourceHook, Session: ses.ID, TurnID: ses.Turn.ID}
	e = e.With("previous", string(ses.Activity)).With(wire.FieldNew, string(now)).With(wire.FieldID, q.ID)
	e = e.With("answer", chosen.Label).With(wire.FieldBy, a.By).With("option_id", chosen.ID).With("decision", a.Decision())
	return s.Team.Box(q.Agent).Log().Append(ctx, e)
}

// AnswerFor answers a question of a member of this team for a.By on another host, if the rules allow that.
func (s *Scope) AnswerFor(ctx context.Context, isInAgent bool, q ask.Question, a ask.Answer) error {
	if err := cmp.Or(s.mayAnswer(q, policy.Actor{Name: wire.Name(a.By), IsAgent: isInAgent}), pick(q, &a)); err != nil {
		return err
	}
	_, err := s.Answer(ctx, q, a)
	return err
}

// answerOnWire answers a question on the older ACP wire.
func (s *Scope) answerOnWire(ctx context.Context, q ask.Question, a ask.Answer) (o control.Outcome, err error) {
	if q.Kind != reducer.ClientTool { // whose answer is any text
		if err := pick(q, &a); err != nil {
			return o, err
		}
	}
	return aswire.Answer(ctx, s.Team, q, a)
}

// pick replaces the word of an answer by the id of the option that it means.
func pick(q ask.Question, a *ask.Answer) error {
	if a.Option == "" {
		return nil
	}
	o, err := q.Pick(*a)
	why, _ := errors.AsType[*ask.PickError](err)
	switch {
	case why != nil && why.Option != "" && why.Deny:
		return failure.Usage("%s", why).WithHint("`atm reject %s %s`", q.Agent, policy.Quote(why.Option))
	case why != nil && why.Option != "":
		return failure.Usage("%s", why).WithHint("`atm approve %s %s`", q.Agent, policy.Quote(why.Option))
	case why != nil:
		return failure.Usage("%s", letter.Escape(why.Message)).
			WithHint("`atm pending` lists the options; to give a reason: `atm reject %s --reason \"…\"`", q.Agent)
	}
	a.Option = o.ID
	return nil
}

// AnsweredElsewhere returns why atm approve and atm reject cannot answer a question, and a command that does, or that
// helps; "" if they can.
func AnsweredElsewhere(q *ask.Question) (why string, hint failure.Hint) {
	name, isRemote := strings.CutSuffix(string(q.Agent), "@"+string(q.Host))
	where := failure.Hint("")
	if isRemote {
		where = "there: "
	}
	switch {
	case q.Kind == ask.KindDraft, q.Kind == ask.KindMail, q.ByWire && q.ID != "", q.Served:
		return "", ""
	case q.OnChannel && q.Session != "":
		return "takes the answer as a message in its session", where + failure.Say("`atm session message %s \"…\"`", name)
	case q.OnChannel:
		return "takes the answer as a message", where + failure.Say("echo '{\"to\":%q,\"type\":\"human_input\",\"body\":\"…\"}' | `atm send --batch`", name)
	case !q.Running:
		return "has no runner, so only its own terminal can answer", where + failure.Say("next time `atm run %s -- CMD`", name)
	case q.IsTyped():
		return "takes any text at its terminal", where + failure.Say("`atm type %s \"…\" --enter`, or `atm attach %[1]s`", name)
	case q.ID == "" || reducer.IsForTerminal(q.Dialog):
		return "asks something that only a person at its terminal can answer", where + failure.Say("`atm attach %s`", name)
	}
	return "", ""
}
