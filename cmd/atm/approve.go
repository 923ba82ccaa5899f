package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

var approveVerb = &cmdline.Verb{
	Name: "approve", Aliases: []string{"confirm"}, Args: "ID|NAME [OPTION]", Summary: "allow what an agent asks for",
	Examples: []string{"atm approve 9f3a1c", "atm approve bob", "atm approve bob 2"},
	Notes: []string{
		"NAME: that agent's only open question, or the id of a draft. Without OPTION: the one",
		"that allows this once.",
		"Approvers of team.toml may; else people, and the lead for others. Never oneself.",
	},
	Flags:   []cmdline.Flag{artifactFlag},
	MinArgs: 1, MaxArgs: 2,
	Guesses: []string{"allow", "accept", "yes"},
	Run:     long(func(ctx context.Context, e *env) error { return e.answer(ctx, false) }),
}

var rejectVerb = &cmdline.Verb{
	Name: "reject", Aliases: []string{"deny"}, Args: "ID|NAME [OPTION]", Summary: "refuse what an agent asks for",
	Examples: []string{`atm reject 9f3a1c --reason "Use the staging host."`, "atm reject bob"},
	Notes:    []string{"The reason goes to the agent as a message, which it gets when it is idle."},
	Flags:    []cmdline.Flag{{Name: "reason", Kind: cmdline.String, Arg: "R", Usage: "why, and what to do instead"}, artifactFlag},
	MinArgs:  1, MaxArgs: 2,
	Guesses: []string{"refuse", "no"},
	Run:     long(func(ctx context.Context, e *env) error { return e.answer(ctx, true) }),
}

// artifactFlag names a part of a draft.
var artifactFlag = cmdline.Flag{Name: "artifact", Kind: cmdline.String, Arg: "URI", Usage: "only this part of a draft, which stays open"}

// answer answers an agent's question through its runner, and what it says of a
// draft by a message.
func (e *env) answer(ctx context.Context, deny bool) error {
	if err := e.open(); err != nil {
		return err
	}
	who, inAgent, err := e.answerer()
	if err != nil {
		return err
	}
	if deny && e.Given("reason") && strings.TrimSpace(e.String("reason")) == "" {
		return cmdline.Usage("--reason is empty").WithHint("leave it out, or say why")
	}
	q, err := e.question(ctx, e.Args[0])
	if err != nil {
		return err
	}
	if err := e.mayAnswer(q.Agent, who, inAgent); err != nil {
		return err
	}
	switch {
	case q.Kind == teams.KindDraft:
		return e.answerDraftVerb(ctx, q, deny)
	case e.Given("artifact"):
		return cmdline.Usage("--artifact is about drafts, and %s asks for something else", q.Agent).WithHint("atm pending lists what is asked")
	}
	option := ""
	if len(e.Args) > 1 {
		option = e.Args[1]
	}
	reason := ""
	if deny {
		reason = e.String("reason")
	}
	o, err := e.decide(ctx, q, who, deny, option, reason)
	if err != nil {
		return err
	}
	if e.JSON() {
		return e.PrintJSON(struct {
			ID    string    `json:"id"`
			Agent wire.Name `json:"agent"`
			control.Outcome
		}{q.ID, q.Agent, o})
	}
	return e.sayOutcome(e.team.Box(q.Agent), o)
}

// decide answers what an agent's screen asks through its runner. option "" is the
// one that says so, once; a reason goes to the agent.
func (e *env) decide(ctx context.Context, q policy.Question, who wire.Name, deny bool, option, reason string) (o control.Outcome, err error) {
	box := e.team.Box(q.Agent)
	switch {
	case q.Dialog == policy.DialogTrust:
		return o, cmdline.Refused("%s asks whether a directory is trusted: only a person at its terminal answers that", q.Agent).WithHint("%s", terminalOf(q))
	case !q.Running:
		return o, cmdline.Failed("%s runs under no runner: only its own terminal can answer", q.Agent).WithHint("next time: %s", e.team.RunAgain(q.Agent))
	case q.ID == "":
		return o, cmdline.Failed("%s asks something that its screen does not show as a dialog that is known", q.Agent).WithHint("atm attach %s", q.Agent)
	}
	r := control.AnswerRequest{ID: q.ID, Deny: deny, By: string(who), Reason: reason}
	if option != "" {
		if r.Option, err = q.Choose(option); err != nil {
			verb := "approve"
			if deny {
				verb = "reject"
			}
			f := cmdline.Usage("%s", letter.Escape(err.Error()))
			if q.Kind != reducer.Permission && !deny {
				return o, f.WithHint("atm %s %s %s", verb, q.Short(), q.Options[0].ID)
			}
			return o, f.WithHint("atm %s %s, without one: the one that says so, once", verb, q.Short())
		}
	}
	c, err := e.reach(ctx, box)
	if err != nil {
		return o, err
	}
	defer c.Close()
	if o, err = c.Answer(ctx, r); err != nil {
		return o, e.explainRunner(box, err)
	}
	e.settleRequest(ctx, q)
	if reason != "" {
		if err := e.sendReason(ctx, q, reason); err != nil {
			e.Warn("rejected; the reason could not be sent: %v", err)
		}
	}
	return o, nil
}

// terminalOf is the way to the terminal of whoever asks.
func terminalOf(q policy.Question) string {
	if q.Running {
		return fmt.Sprintf("atm attach %s", q.Agent)
	}
	return fmt.Sprintf("go to the terminal that %s runs in: atm status %s", q.Agent, q.Agent)
}

// answerer is who answers, and whether from within an agent's environment: a
// member whose name is said, and who is not being run by somebody else.
func (e *env) answerer() (who wire.Name, inAgent bool, err error) {
	who, inAgent = e.actor()
	if who == "" {
		if err := e.who(); err != nil {
			return "", inAgent, err
		}
		return e.me.Agent(), inAgent, e.mine()
	}
	if e.me, err = e.team.Member(who); err != nil {
		return "", inAgent, err
	}
	return who, inAgent, e.mine()
}

// question is the open question that a word means.
func (e *env) question(ctx context.Context, word string) (policy.Question, error) {
	list, err := e.team.Waiting(ctx)
	q, found := teams.FindWaiting(list, word)
	switch {
	case found == nil:
		return q, nil
	case err != nil && errors.Is(found, policy.ErrNoQuestion):
		return q, err
	case !errors.Is(found, policy.ErrNoQuestion):
		return q, found
	}
	if name, err := wire.ParseName(word); err == nil && e.team.Box(name).Exists() {
		return q, cmdline.NotFound("%s asks nothing now", name).WithHint("atm pending lists what is asked")
	}
	if _, bad := wire.ParseFragment(word); bad != nil {
		_, err := e.member(word) // a name that there is not
		if err != nil {
			return q, err
		}
	}
	return q, cmdline.NotFound("no open question %s; it may have its answer by now", letter.Clip(letter.Escape(word), 60)).WithHint("atm pending lists what is asked")
}

// mayAnswer refuses who may not answer what a member asks.
func (e *env) mayAnswer(asker, who wire.Name, inAgent bool) error {
	if !e.root.Accepted {
		return cmdline.Refused("nothing is answered in %s: nobody here made or accepted it", e.root.Path).WithHint("if it is yours: atm init")
	}
	// As they were when its runner was started: team.toml lies where agents write.
	p, ok, err := e.team.SavedPolicy(asker)
	if err != nil {
		return err
	}
	if !ok {
		roster, err := e.team.Config()
		if err != nil {
			return cmdline.Refused("who may answer is not known: %s", err).WithHint("atm doctor")
		}
		p = roster.Policy()
		if p.Lead, err = e.team.Lead(); err != nil {
			return err
		}
	}
	err = p.MayAnswer(asker, who, inAgent)
	if errors.Is(err, policy.ErrNotYours) && inAgent {
		may := slices.DeleteFunc(p.Answerers(asker), func(n wire.Name) bool { return n == who || !e.team.Box(n).Exists() })
		switch {
		case slices.Contains(may, p.Lead):
			may = []wire.Name{p.Lead}
		case len(may) == 0:
			return err
		}
		return cmdline.Refused("%s", err).WithHint("ask: atm send %s \"%s asks …\"", may[0], asker)
	}
	return err
}

// sendReason tells the agent why it was refused.
func (e *env) sendReason(ctx context.Context, q policy.Question, reason string) error {
	m := &wire.Message{
		Type: wire.TypePermissionReply, ReplyWanted: "no", Origin: e.origin(),
		Subject: "rejected: " + letter.Clip(cmp.Or(q.Tool, letter.FirstLine(q.Prompt, 80)), 80),
		Body:    reason,
		Payload: []byte(fmt.Sprintf(`{"decision":"reject","question":%s}`, wire.Quote(q.ID))),
	}
	if id, ok := q.MessageID(); ok {
		m.InReplyTo = id
	}
	o := &teams.Outgoing{From: e.me, To: []wire.Address{{Agent: q.Agent, Team: e.team.Name}}, Message: m, Person: e.person()}
	if err := e.root.Prepare(o); err != nil {
		return err
	}
	if len(o.Failed) > 0 {
		return o.Failed[0].Err
	}
	mailbox.Deliver(ctx, o.Post)
	return o.Post.Outcomes[0].Err
}
