package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// Interrupt breaks off a member's turn.
func (s *Scope) Interrupt(ctx context.Context, name wire.Name) (o control.Outcome, err error) {
	if err := s.MayAct("interrupt", name); err != nil {
		return o, err
	}
	if running, err := s.Team.Running(name); err == nil && !running {
		if o, err = s.cancelOnWire(ctx, name); err != nil || o.Done != "" {
			return o, err
		}
	}
	err = s.AskRunner(ctx, name, func(c *control.Client) (err error) {
		o, err = c.Interrupt(ctx)
		return err
	})
	return o, err
}

// cancelOnWire asks a member that tells of its turn on the older ACP wire to cancel it: by a call of that wire,
// for whoever feeds the stream, as answerOnWire does. Of any other member nothing is asked.
func (s *Scope) cancelOnWire(ctx context.Context, name wire.Name) (o control.Outcome, err error) {
	state, err := s.Team.State(name)
	if err != nil {
		return o, err
	}
	turn, log := state.Turn(), s.Team.Box(name).Log()
	isOlder := func(e *wire.Event) bool {
		_, isACP := wire.AsWire(e, wire.ACP)
		return isACP && e.Session == turn.Session && e.Wire != nil && e.Text("session_id") != ""
	}
	if !turn.IsOpen() {
		return o, nil
	}
	events, err := log.Tail(func(e *wire.Event) bool { return isOlder(e) || e.Seq <= turn.TurnSeq })
	if err != nil || len(events) == 0 || !isOlder(&events[0]) {
		return o, err
	}
	params := map[string]string{"session_id": turn.Session}
	if !turn.IsGenerated {
		params["turn_id"] = turn.ID
	}
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "session/cancel", "params": params})
	if err != nil {
		return o, err
	}
	e := wire.Event{Kind: "session_cancel", Source: "cli", Session: turn.Session, TurnID: params["turn_id"], Wire: line}
	return control.Outcome{Done: "asked to cancel", Detail: params["turn_id"]}, log.Append(ctx, e)
}

// AnswerWithin is how long a runner may take to say who it is: it does at once unless it is stuck, or the machine.
const AnswerWithin = 3 * time.Second

// AskRunner has something asked of the runner of a member of this team.
func (s *Scope) AskRunner(ctx context.Context, name wire.Name, ask func(*control.Client) error) error {
	patient, cancel := context.WithTimeout(ctx, AnswerWithin)
	client, err := s.Team.DialRunner(patient, name)
	if cancel(); err == nil {
		defer client.Close()
		err = ask(client)
	}
	return s.RunnerError(name, err)
}

// RunnerError gives an error of a member's runner, if there is one, its exit code and its hint.
func (s *Scope) RunnerError(name wire.Name, err error) error {
	if said, ok := errors.AsType[*control.Error](err); ok {
		e := newError(said.Code, "%s: %s", []any{name, letter.Escape(said.Message)}) // an option's words are the screen's
		e.Exit = cmp.Or(e.Exit, ExitFailed)
		return e.WithHint("%s", cmp.Or(said.Hint, "atm status "+string(name)))
	}
	if silent, ok := errors.AsType[*control.NotAnsweringError](err); ok && silent.PID > 0 {
		return Failed("the runner of %s, process %d, does not answer", name, silent.PID).
			WithHint("kill -CONT %d, if it was stopped; atm stop %s ends it", silent.PID, name)
	}
	if errors.Is(err, control.ErrNoRunner) {
		return Failed("%s does not run", name).WithHint("%s", s.Team.RunAgain(name))
	}
	return err
}

// An Answer is what somebody answers to a question. Without an option it is the one that says so, once.
type Answer struct {
	Option   string // its id
	IsDeny   bool
	Reason   string
	Artifact string    // of a draft, the URI of the part that it is about; "": the whole
	By       wire.Name // "": whoever this process acts for
}

func (a *Answer) words() (decision, did string) {
	if a.IsDeny {
		return "reject", "rejected"
	}
	return "approve", "approved"
}

// Acting is the scope of whoever this process acts for: from within an agent's environment that is the
// agent, whatever --as says.
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

// Decide answers a question, and tells the asker why it was refused. In an Acting scope; whoever may not is
// refused. An option may be its number, its label or the beginning of that.
func (s *Scope) Decide(ctx context.Context, q policy.Question, a Answer) (o control.Outcome, err error) {
	if err := s.MayAnswer(q); err != nil {
		return o, err
	}
	if isDraft := q.Kind == policy.KindDraft; isDraft && a.Option != "" || !isDraft && a.Artifact != "" {
		return o, Usage("a draft has parts and no options, all else options and no --artifact").WithHint("leave it out")
	}
	if q.Host != "" {
		return s.answerRemote(ctx, q, a)
	}
	if q.Kind == policy.KindDraft {
		return s.answerDraft(ctx, q, a)
	}
	if err := a.find(q); err != nil {
		return o, err
	}
	o, err = s.Answer(ctx, q, a)
	if err == nil && a.Reason != "" && !q.ByWire {
		_, err = s.sendAnswer(ctx, s.Team.Box(q.Agent).Address(), q, a)
	}
	return o, err
}

// answerRemote sends the answer to the asker's own host, which judges it.
func (s *Scope) answerRemote(ctx context.Context, q policy.Question, a Answer) (o control.Outcome, err error) {
	if err := a.Choose(q); err != nil {
		return o, err
	}
	to, err := s.Address(string(q.Agent))
	if err != nil {
		return o, err
	}
	id, err := s.sendAnswer(ctx, to, q, a)
	o = control.Outcome{Done: "sent " + id.Short(6), Detail: string(q.Host) + " decides whether it counts"}
	if !s.Team.IsBridged() {
		o.Detail += "; bridge is off: goes out when it runs"
	}
	return o, err
}

// sendAnswer sends the answer as a message: why the asker was refused, or to another host what is answered.
func (s *Scope) sendAnswer(ctx context.Context, to wire.Address, q policy.Question, a Answer) (wire.ID, error) {
	decision, did := a.words()
	payload, _ := json.Marshal(teams.PermissionReply{Decision: decision, Question: q.ID, Since: q.Since, Option: a.Option, Reason: a.Reason})
	about := strings.Join(strings.Fields(cmp.Or(q.Tool, q.Prompt)), " ")
	m := &wire.Message{
		Type: wire.TypePermissionReply, ReplyWanted: "no", Origin: s.Origin(), Body: cmp.Or(a.Reason, did),
		Subject: did + ": " + letter.Clip(letter.Escape(about), 80), Payload: payload,
	}
	if wire.IsID(q.ID) { // that of the message which told the lead
		m.InReplyTo = wire.ID(q.ID)
	}
	err := s.Root.Send(ctx, &teams.Outgoing{From: s.Me, To: []wire.Address{to}, Message: m})
	return m.ID, err
}

func (s *Scope) answerDraft(ctx context.Context, q policy.Question, a Answer) (o control.Outcome, err error) {
	decision, did := a.words()
	o.Done = did + " draft " + q.ID
	in := wire.HumanInput{Kind: decision, DraftID: wire.UUID(q.ID), Reason: a.Reason}
	if a.Artifact != "" {
		o.Done = did + " " + a.Artifact + " in draft " + q.ID
		in.ArtifactURI = &a.Artifact
	}
	out, err := s.Team.AnswerDraft(ctx, q, teams.SessionInput{From: s.Me, Input: in, Origin: s.Origin()})
	_, isOver := errors.AsType[*wire.SessionError](err)
	if isOver || errors.Is(err, teams.ErrForbidden) {
		return o, Refused("%w", err).WithHint("atm session show %s", q.Agent)
	}
	if err == nil {
		o.Detail = "sent " + out.Message.ID.Short(6)
	}
	return o, err
}

// Answer answers a question of a member of this team, in the name of whoever this process acts for: through
// the asker's runner, or on the wire where it was asked.
func (s *Scope) Answer(ctx context.Context, q policy.Question, a Answer) (o control.Outcome, err error) {
	who := a.By
	if who == "" {
		who, _ = s.Actor()
	}
	if q.ByWire {
		return s.answerOnWire(ctx, q, a, who)
	}
	err = s.AskRunner(ctx, q.Agent, func(c *control.Client) (err error) {
		o, err = c.Answer(ctx, control.AnswerRequest{ID: q.ID, Option: a.Option, Deny: a.IsDeny, By: string(who)})
		return err
	})
	return o, err
}

// AnswerFor answers a question of a member of this team for somebody on another host (By), who may by its rules.
func (s *Scope) AnswerFor(ctx context.Context, isInAgent bool, q policy.Question, a Answer) error {
	if err := cmp.Or(s.mayAnswerAs(a.By, isInAgent, q), a.Choose(q)); err != nil {
		return err
	}
	_, err := s.Answer(ctx, q, a)
	return err
}

// answerOnWire answers what an agent without a runner asks on the older ACP wire: by an event in the words
// of that wire, for whoever feeds its stream and follows `atm events NAME --follow --as-wire acp`.
func (s *Scope) answerOnWire(ctx context.Context, q policy.Question, a Answer, who wire.Name) (o control.Outcome, err error) {
	answer, said, err := a.onWire(q)
	if err != nil {
		return o, err
	}
	log := s.Team.Box(q.Agent).Log()
	asks := func(e *wire.Event) bool {
		return e.Kind == "confirm_required" && strings.Trim(string(e.Body().Raw("id")), `"`) == q.ID
	}
	events, err := log.Tail(func(e *wire.Event) bool { return asks(e) || e.At.Before(q.Since) })
	if err != nil {
		return o, err
	}
	if len(events) > 0 && asks(&events[0]) {
		answer = wire.PermissionResponse(&events[0], answer)
	}
	e, err := wire.Adopt(answer)
	if err != nil {
		return o, err
	}
	e.Source = "cli"
	decision, _ := a.words()
	e = e.With("id", q.ID).With("by", string(who)).With("decision", decision)
	o = control.Outcome{Done: "answered", Detail: said}
	return o, s.Team.Sessions().Exclusive(ctx, func() error { // the first answer counts, also of two at once
		open, err := s.Team.Questions(q.Agent)
		if err != nil {
			return err
		}
		isThis := func(other policy.Question) bool { return other.ID == q.ID && other.Since.Equal(q.Since) }
		if !slices.ContainsFunc(open, isThis) {
			return fmt.Errorf("%s: %w any more", q.ID, policy.ErrNoQuestion)
		}
		return log.Append(ctx, e)
	})
}

// onWire is the answer as the older ACP wire has it, and what it says.
func (a *Answer) onWire(q policy.Question) (line []byte, said string, err error) {
	if q.Kind == reducer.ClientTool {
		return a.toolResult(q)
	}
	if err := a.Choose(q); err != nil {
		return nil, "", err
	}
	answer, kind := map[string]string{"outcome": "cancelled"}, "allow_once"
	if a.IsDeny {
		kind = "reject_once"
	}
	said = a.Option
	if n := slices.IndexFunc(q.Options, func(o policy.Option) bool { return o.Kind == kind }); said == "" && n >= 0 {
		said = q.Options[n].ID
	}
	if said != "" {
		answer = map[string]string{"outcome": "selected", "option_id": said}
	} else if !a.IsDeny {
		return nil, "", Usage("which one? none of its options says yes").WithHint("atm pending lists the options")
	}
	line, _ = json.Marshal(answer)
	line, err = wire.Canonical("acp.RequestPermissionResult", line)
	return line, cmp.Or(said, "cancelled"), err
}

func (a *Answer) toolResult(q policy.Question) (line []byte, said string, err error) {
	answer := map[string]any{"request_id": q.ID, "tool_call_id": q.Call, "success": !a.IsDeny, "output": nil}
	said = a.Option
	if a.IsDeny {
		said = cmp.Or(a.Reason, "rejected")
		answer["error"] = said
	} else if json.Valid([]byte(a.Option)) {
		answer["output"] = json.RawMessage(a.Option)
	} else {
		answer["output"] = a.Option
	}
	line, _ = json.Marshal(answer)
	line, err = wire.Canonical("acp.ToolExecutionResult", line)
	return line, said, err
}

// find makes the option the id of the one that is meant, if any.
func (a *Answer) find(q policy.Question) (err error) {
	if a.Option == "" {
		return nil
	}
	if a.Option, err = q.Choose(a.Option); err != nil {
		return Usage("%s", letter.Escape(err.Error())).
			WithHint("atm pending lists the options; a reason: atm reject %s --reason \"…\"", q.Agent)
	}
	return nil
}

// Choose finds the option. One that does the contrary of what is answered is refused, and so is a no that is not
// known to be one.
func (a *Answer) Choose(q policy.Question) error {
	if err := a.find(q); err != nil || a.Option == "" {
		return err
	}
	denies := slices.ContainsFunc(q.Options, func(o policy.Option) bool { return o.ID == a.Option && o.Denies() })
	if denies && !a.IsDeny {
		return Usage("%q denies it", a.Option).WithHint("atm reject %s %q", q.Agent, a.Option)
	} else if a.IsDeny && !denies {
		return Usage("%q does not say no", a.Option).WithHint("atm approve %s %q", q.Agent, a.Option)
	}
	return nil
}
