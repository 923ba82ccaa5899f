package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

var approveCommand = &cli.Command{
	Name: "approve", Aliases: []string{"confirm", "accept"}, ArgsUsage: "ID|NAME [OPTION]", Usage: "allow what an agent asks for",
	UsageText: "atm approve 9f3a1c\natm approve bob\natm approve bob 2",
	Description: "NAME: that agent's only open question. Without OPTION: the one that allows it once.\n" +
		"Approvers of team.toml may; else people, and the lead for others. Never oneself.",
	Flags:  []cli.Flag{artifactFlag()},
	Action: func(c *cli.Context) error { return decide(c, &decision{c: c}) },
}

var rejectCommand = &cli.Command{
	Name: "reject", Aliases: []string{"deny", "refuse"}, ArgsUsage: "ID|NAME [OPTION]", Usage: "refuse what an agent asks for",
	UsageText:   "atm reject 9f3a1c --reason \"Use the staging host.\"\natm reject bob",
	Description: "The reason goes to the agent as a message, which it gets when it is idle.",
	Flags:       []cli.Flag{&cli.StringFlag{Name: "reason", Aliases: []string{"r"}, Usage: "`WHY`, and what to do instead"}, artifactFlag()},
	Action:      func(c *cli.Context) error { return decide(c, &decision{c: c, deny: true, reason: c.String("reason")}) },
}

func artifactFlag() cli.Flag {
	return &cli.StringFlag{Name: "artifact", Usage: "only the part `URI` of a draft, which stays open"}
}

// A decision is a person's, or the lead's, answer to what an agent asks.
type decision struct {
	c       *cli.Context
	s       *command.Scope
	who     wire.Name
	inAgent bool // it comes from an agent's environment
	deny    bool
	reason  string
	q       policy.Question
}

func decide(c *cli.Context, d *decision) error {
	if d.deny && c.IsSet("reason") && strings.TrimSpace(d.reason) == "" {
		return command.Usage("--reason is empty").WithHint("leave it out, or say why")
	}
	if err := d.open(); err != nil {
		return err
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	var err error
	if d.q, err = findQuestion(ctx, d.s, c.Args().First()); err != nil {
		return err
	}
	if err := d.mayAnswer(); err != nil {
		return err
	}
	if d.q.Kind == teams.KindDraft {
		return d.answerDraft(ctx)
	}
	if c.IsSet("artifact") {
		return command.Usage("--artifact is about drafts, and %s asks for something else", d.q.Agent).WithHint("atm pending lists what is asked")
	}
	o, err := d.answer(ctx, c.Args().Get(1))
	if err != nil {
		return err
	}
	return command.Print(c, answered{ID: d.q.ID, outcome: outcome{Agent: string(d.q.Agent), Outcome: o}})
}

// answered is what approve and reject print.
type answered struct {
	ID string `json:"id"`
	outcome
}

// open says who answers: from within an agent's environment that agent, whatever
// --as says.
func (d *decision) open() (err error) {
	if d.s, err = command.OpenTeam(d.c); err != nil {
		return err
	}
	d.who, d.inAgent = d.s.Actor()
	if d.who == "" && os.Getenv("ATM_RUN") != "" {
		return command.Refused("this process belongs to a run that is over, or of another team: it answers for nobody").
			WithHint("ask a person: atm pending shows them what is asked")
	}
	if d.who == "" {
		if d.s, err = command.OpenMe(d.c); err != nil {
			return err
		}
		d.who = d.s.Me.Agent()
	} else if d.s.Me, err = d.s.Team.Member(d.who); err != nil {
		return err
	}
	return d.s.MayWrite()
}

// findQuestion is the open question that a word means.
func findQuestion(ctx context.Context, s *command.Scope, word string) (policy.Question, error) {
	list, err := s.Team.Waiting(ctx)
	q, notFound := policy.Find(list, word)
	var many *policy.ManyQuestionsError
	if errors.As(notFound, &many) {
		var ids []string
		for _, q := range many.Questions {
			ids = append(ids, cmp.Or(q.Short(), "-"))
		}
		return q, command.Ambiguous("%s", many).WithHint("name one by its id: %s", strings.Join(ids, " ")).WithCandidates(ids...)
	}
	if notFound == nil || !errors.Is(notFound, policy.ErrNoQuestion) {
		return q, notFound
	}
	if err != nil {
		return q, err
	}
	if s.IsMember(word) {
		return q, command.NotFound("%s asks nothing now", word).WithHint("atm pending lists what is asked")
	}
	if _, bad := wire.ParseFragment(word); bad != nil {
		if _, err := s.Member(word); err != nil {
			return q, err
		}
	}
	return q, command.NotFound("no open question %s; it may have its answer by now", letter.Clip(letter.Escape(word), 60)).WithHint("atm pending lists what is asked")
}

// mayAnswer refuses whoever may not answer, by the rules that the agent's runner was
// started with: team.toml lies where agents write.
func (d *decision) mayAnswer() error {
	asker := d.q.Agent
	if !d.s.Root.Accepted {
		return command.Refused("nothing is answered in %s: nobody here made or accepted it", d.s.Root.Path).WithHint("if it is yours: atm init")
	}
	p, err := d.s.Team.PolicyFor(asker)
	if err != nil {
		return command.Refused("who may answer is not known: %s", err).WithHint("atm doctor")
	}
	err = p.MayAnswer(asker, d.who, d.inAgent)
	if !errors.Is(err, policy.ErrNotYours) || !d.inAgent {
		return err
	}
	others := slices.DeleteFunc(p.Answerers(asker), func(n wire.Name) bool { return n == d.who || !d.s.Team.Box(n).Exists() })
	if len(others) == 0 {
		return err
	}
	whom := others[0]
	if slices.Contains(others, p.Lead) {
		whom = p.Lead
	}
	return command.Refused("%s", err).WithHint("ask: atm send %s \"%s asks …\"", whom, asker)
}

// answer answers what an agent's screen asks, through its runner. option "" is the
// one that says so, once.
func (d *decision) answer(ctx context.Context, option string) (o control.Outcome, err error) {
	q := d.q
	if q.Dialog == policy.DialogTrust {
		terminal := fmt.Sprintf("atm attach %s", q.Agent)
		if !q.Running {
			terminal = fmt.Sprintf("go to the terminal that %s runs in: atm status %s", q.Agent, q.Agent)
		}
		return o, command.Refused("%s asks whether a directory is trusted: only a person at its terminal answers that", q.Agent).WithHint("%s", terminal)
	}
	if !q.Running {
		return o, command.Failed("%s runs under no runner: only its own terminal can answer", q.Agent).WithHint("next time: %s", d.s.Team.RunAgain(q.Agent))
	}
	if q.ID == "" {
		return o, command.Failed("%s asks something that its screen does not show as a known dialog", q.Agent).WithHint("atm attach %s", q.Agent)
	}
	r := control.AnswerRequest{ID: q.ID, Deny: d.deny, By: string(d.who), Reason: d.reason}
	if option != "" {
		if r.Option, err = q.Choose(option); err != nil {
			return o, d.badOption(err)
		}
	}
	box := d.s.Team.Box(q.Agent)
	client, err := connect(ctx, d.c, d.s, box)
	if err != nil {
		return o, err
	}
	defer client.Close()
	if o, err = client.Answer(ctx, r); err != nil {
		return o, runnerError(d.s, box, err)
	}
	d.settleRequest(ctx)
	if d.reason != "" {
		if err := d.sendReason(ctx); err != nil {
			command.Warn(d.c, "rejected; the reason could not be sent: %v", err)
		}
	}
	return o, nil
}

func (d *decision) badOption(err error) error {
	e := command.Usage("%s", letter.Escape(err.Error()))
	if d.q.Kind != reducer.Permission && !d.deny {
		return e.WithHint("atm approve %s %s", d.q.Short(), d.q.Options[0].ID)
	}
	return e.WithHint("atm %s %s, without one: the one that says so, once", d.c.Command.Name, d.q.Short())
}

// settleRequest marks the lead's copy of a question that has its answer. The runner
// takes it back as well, if it is quicker; that it cannot be noted is no failure.
func (d *decision) settleRequest(ctx context.Context) {
	id, ok := d.q.MessageID()
	lead, err := d.s.Team.Notified(d.q.Agent)
	if !ok || err != nil || lead == "" {
		return
	}
	box := d.s.Team.Box(lead)
	it, err := box.Get(id)
	if err != nil || it.State != mailbox.Unread && it.State != mailbox.Owed {
		return
	}
	if d.who == lead {
		box.MarkRead(ctx, id)
	}
	box.MarkAcked(ctx, id, box.Address(), false)
}

// sendReason tells the agent why it was refused.
func (d *decision) sendReason(ctx context.Context) error {
	m := &wire.Message{
		Type: wire.TypePermissionReply, ReplyWanted: "no", Origin: d.s.Origin(),
		Subject: "rejected: " + letter.Clip(cmp.Or(d.q.Tool, letter.FirstLine(d.q.Prompt, 80)), 80),
		Body:    d.reason,
		Payload: []byte(fmt.Sprintf(`{"decision":"reject","question":%s}`, wire.Quote(d.q.ID))),
	}
	if id, ok := d.q.MessageID(); ok {
		m.InReplyTo = id
	}
	o := &teams.Outgoing{From: d.s.Me, To: []wire.Address{{Agent: d.q.Agent, Team: d.s.Team.Name}}, Message: m, Person: command.Person()}
	if err := d.s.Root.Prepare(o); err != nil {
		return err
	}
	if len(o.Failed) > 0 {
		return o.Failed[0].Err
	}
	mailbox.Deliver(ctx, o.Post)
	return o.Post.Outcomes[0].Err
}

// draftAnswer is what approve and reject of a draft print.
type draftAnswer struct {
	ID       string    `json:"id"`
	Agent    wire.Name `json:"agent"`
	Kind     string    `json:"kind"`
	Done     string    `json:"done"`
	Artifact string    `json:"artifact_uri,omitempty"`
	Message  wire.ID   `json:"message"`
}

func (a draftAnswer) String() string {
	what := "draft " + a.ID
	if a.Artifact != "" {
		what = letter.Clip(letter.Escape(a.Artifact), 200) + " in " + what
	}
	return fmt.Sprintf("%s: %s %s (sent %s)", a.Agent, a.Done, what, a.Message.Short(6))
}

// answerDraft says yes or no to a draft, or to one artifact of it, as human input to
// the agent that made it.
func (d *decision) answerDraft(ctx context.Context) error {
	if d.c.Args().Len() > 1 {
		return command.Usage("a draft has no options").WithHint("atm approve %s, or atm reject %s --reason \"…\"", d.q.ID, d.q.ID)
	}
	draft, err := d.s.Team.FindDraft(ctx, d.q.Agent, wire.UUID(d.q.ID))
	if err != nil {
		return err
	}
	shown := draftAnswer{ID: d.q.ID, Agent: d.q.Agent, Kind: teams.KindDraft, Done: "approved", Artifact: d.c.String("artifact")}
	in := wire.HumanInput{Kind: "approve", DraftID: draft.ID}
	if d.deny {
		shown.Done, in.Kind, in.Reason = "rejected", "reject", d.reason
	}
	if d.c.IsSet("artifact") {
		in.ArtifactURI = &shown.Artifact
	}
	out, err := d.s.Team.AnswerDraft(ctx, draft, teams.SessionInput{From: d.s.Me, Input: in, Origin: d.s.Origin(), Person: command.Person()})
	if err != nil {
		return explainDraft(err)
	}
	if out.Unlogged != nil {
		command.Warn(d.c, "delivered; the session's log could not be written: %v", out.Unlogged)
	}
	shown.Message = out.Message.ID
	return command.Print(d.c, shown)
}

func explainDraft(err error) error {
	var answered *teams.DraftAnsweredError
	var refused *wire.SessionError
	if errors.As(err, &answered) {
		return command.Refused("%s", err).WithHint("atm show %s shows the answer", answered.Answer.ID.Short(6))
	}
	if errors.As(err, &refused) {
		return command.Refused("%s", refused.Reason).WithHint("atm session ls --all shows the state of each")
	}
	if errors.Is(err, teams.ErrNoSessions) || errors.Is(err, teams.ErrNoHumanInput) {
		return command.Refused("%s", err).WithHint("team.toml is for a person to change")
	}
	return err
}
