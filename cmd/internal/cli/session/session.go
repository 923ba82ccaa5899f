// Package session holds the verbs that begin, show, attach to and end sessions, see package session at the top.
package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/aswire"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox/letter"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Commands returns the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{{
		Name: "session", Aliases: []string{"sessions"}, Usage: "talk with an agent about one goal: log, drafts, human input",
		UsageText: `atm session new --agent bob
atm session message bob "Focus on auth"
atm session attach bob`,
		Description: `ID is the session's id, at least four digits of it, or the name of an agent that has only one.
Drafts: atm pending lists them, atm approve DRAFT and atm reject DRAFT answer them.`,
		Subcommands: []*cli.Command{
			newCommand, lsCommand, showCommand, attachCommand, messageCommand,
			verb("pause", "pause a session; messages wait", app.OpenTeam, moveTo(sessions.Paused)),
			verb("resume", "resume a session; if its agent is off, run resume_cmd of team.toml", app.OpenTeam, resume, "continue"),
			verb("complete", "end a session that has reached its goal", app.OpenTeam, moveTo(sessions.Completed), "finish", "end"),
			cmdline.NoCommand("stop close delete kill rm", "atm session complete ID, or atm session abort ID"),
			verb("abort", "end a session and stop its agent", app.OpenToWrite, abort, "cancel"),
		},
		Action: command.With(app.OpenTeam, list),
	}}
}

// verb is a verb that needs permission to act on the session's agent.
func verb(name, usage string, open opener, do func(*call) error, aliases ...string) *cli.Command {
	return &cli.Command{
		Name: name, Aliases: aliases, ArgsUsage: "ID", Usage: usage, UsageText: "atm session " + name + " bob",
		Action: withSession(open, func(k *call) error {
			err := k.s.MayAct(name, k.agent())
			if err == nil && (name == "pause" || name == "resume") { // the session of a retired agent can only end
				_, err = k.s.Team.Member(k.agent())
			}
			if err != nil {
				return err
			}
			return do(k)
		}),
	}
}

// A call is one verb called with one session.
type call struct {
	c       *cli.Context
	s       *app.Scope
	session *sessions.Session
	started bool // this call started the agent, whose runner resumes its session itself
}

func (k *call) agent() wire.Name { return wire.Name(k.session.AgentID) }

// An opener opens the scope of a verb: app.OpenToWrite if the verb sends as a member.
type opener = func(*app.Given) (*app.Scope, error)

func withSession(open opener, do func(*call) error) cli.ActionFunc {
	return command.With(open, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		sess, err := find(c, s, c.Args().First())
		if err != nil {
			return err
		}
		return do(&call{c: c, s: s, session: sess})
	})
}

var newCommand = &cli.Command{
	Name: "new", Aliases: []string{"create", "start", "begin"}, ArgsUsage: "[AGENT]", Usage: "start a session and print its id",
	UsageText:   "atm session new --agent bob",
	Description: "An agent has one session, unless you say --another.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "agent", Usage: "the agent's `NAME`"},
		&cli.StringFlag{Name: "goal", Usage: "`UUID` of the goal; reaching it completes the session"},
		&cli.StringFlag{Name: "channel", Value: sessions.DefaultChannel, Usage: "the channel `ID` of its people, such as discord:thread:123"},
		&cli.BoolFlag{Name: "another", Usage: "start one even if the agent has one"},
	},
	Action: command.With(app.OpenTeam, begin),
}

func begin(c *cli.Context, s *app.Scope, p *command.Printer) error {
	name := cmp.Or(c.String("agent"), c.Args().First())
	if name == "" || c.IsSet("agent") && c.Args().Present() {
		return failure.Usage("session new needs one agent").WithHint("atm session new --agent NAME")
	}
	goal, err := wire.ParseUUID(c.String("goal"))
	if c.IsSet("goal") && err != nil {
		return failure.Usage("--goal: %v", err).WithHint("leave it out, and say the goal: atm session message %s \"…\"", name)
	}
	box, err := s.EnterTeamOf(name)
	if err != nil {
		return err
	}
	agent := box.Agent()
	if err := cmp.Or(s.MayAct("start a session with", agent), s.Team.CheckSessionsAllowed(agent)); err != nil {
		return err
	}
	if _, err := listNow(c, s); err != nil { // ends sessions that have timed out
		return err
	}
	o := sessions.Options{Agent: agent, Goal: goal, Channel: c.String("channel"), Alone: !c.Bool("another")}
	made, err := s.Team.Sessions().New(c.Context, o)
	if e, ok := errors.AsType[*sessions.SessionExistsError](err); ok { // the agent's name would be ambiguous
		return failure.Refused("%w: %s, %s for %s", err, short(e.Other), e.Other.State, age(e.Other)).
			WithHint("atm session attach %s; for a second one: atm session new --agent %s --another", short(e.Other), agent)
	}
	if err != nil {
		return err
	}
	p.Warn("atm session attach %s", short(made))
	return printSession(c, made, "", string(made.SessionID))
}

func moveTo(to sessions.State) func(*call) error {
	return func(k *call) error {
		reason := ""
		if who, _ := k.s.Actor(); who != "" {
			reason = "by " + string(who)
		}
		sess, err := k.s.Team.Sessions().Change(k.c.Context, k.session.SessionID, func(sess *sessions.Session) error {
			if k.started && sess.State == to {
				return nil
			}
			return sess.Move(to, reason, time.Now())
		})
		if err != nil {
			return err
		}
		return printSession(k.c, sess, "", line(sess))
	}
}

// resume resumes a session. It first starts an agent that does not run; if that fails, the session stays as it is.
func resume(k *call) error {
	trial := k.session.InteractiveSession
	stateErr := trial.Transition(sessions.Active, time.Now())
	plan, planErr := k.s.Team.Config()
	m, err := k.s.Team.Summary(k.agent())
	if err := cmp.Or(stateErr, planErr, err); err != nil {
		return err
	}
	if m.Running {
		return moveTo(sessions.Active)(k)
	}
	own := wire.UUID(cmp.Or(string(m.Session), string(k.session.SessionID))) // the agent's own id for it
	config, again := plan.SessionOf(k.agent()), app.RunCommand(k.s.Team, k.agent())
	words, isPlain := config.ResumeWords(own), regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`).MatchString(string(own))
	switch {
	case strings.Contains(config.ResumeCmd, "{session_id}") && !isPlain: // it might be a flag
		return failure.Refused("%s reports the session id %q, which cannot go into resume_cmd", k.agent(), own).
			WithHint("%s; then the session continues", again)
	case len(words) > 0:
		if err := k.startAgent(words); err != nil {
			return failure.Failed("%s could not be started: %w", k.agent(), err).WithHint("%s", again)
		}
	case k.session.Notes.Runner.Owned || m.RunnerGone: // the next refresh would pause it again
		return failure.Refused("%s is not running, and team.toml has no resume_cmd: the session stays %s", k.agent(), k.session.State).
			WithHint("%s; then the session continues", again)
	default:
		command.PrinterOf(k.c).Warn("%s is not running, and team.toml has no resume_cmd: %s", k.agent(), again)
	}
	return moveTo(sessions.Active)(k)
}

func (k *call) startAgent(words []string) error {
	self, _ := os.Executable()
	args := []string{"run", k.session.AgentID, "--detach", "--root", k.s.Root.Path, "--team", string(k.s.Team.Name), "--"}
	cmd := exec.CommandContext(k.c.Context, self, append(args, words...)...)
	cmd.Stderr = k.c.App.ErrWriter
	if err := cmd.Run(); err != nil {
		return err
	}
	command.PrinterOf(k.c).Warn("%s is running: atm attach %[1]s", k.agent())
	k.started = true
	return nil
}

func abort(k *call) error {
	out, err := k.say(foreign.HumanInput{Kind: "abort"})
	if err != nil {
		return err
	}
	sess := cmp.Or(out.Session, k.session)
	if out.Message == nil {
		return printSession(k.c, sess, "", "aborted; its agent is gone")
	}
	return printSession(k.c, sess, out.Message.ID, fmt.Sprintf("aborted; sent %s to %s", out.Message.ID.Short(6), sess.AgentID))
}

// find finds a session by its id, by the beginning of that, or by the name of an agent that has only one.
func find(c *cli.Context, s *app.Scope, word string) (*sessions.Session, error) {
	if !s.IsMember(word) {
		id, err := s.Team.Sessions().Find(word)
		if err != nil {
			return nil, err
		}
		return refresh(c.Context, s, id)
	}
	all, err := listNow(c, s)
	many := &sessions.AmbiguousError{Fragment: word}
	var found *sessions.Session
	for _, sess := range all {
		if sess.State.Alive() && sess.AgentID == strings.TrimPrefix(word, "@") {
			found, many.IDs = sess, append(many.IDs, sess.SessionID)
		}
	}
	if len(many.IDs) > 1 {
		return nil, many
	}
	if err == nil && found == nil {
		err = failure.NotFound("%s has no open session", word).
			WithHint("atm session new --agent %s; atm session ls --all lists those that are over", word)
	}
	return found, err
}

// listNow refreshes and lists all sessions, and warns of files that are none.
func listNow(c *cli.Context, s *app.Scope) ([]*sessions.Session, error) {
	all, bad, err := s.Team.Sessions().List()
	for _, file := range bad {
		command.PrinterOf(c).Warn("%v", file)
	}
	for i, sess := range all {
		if now, err := refresh(c.Context, s, sess.SessionID); err == nil {
			all[i] = now
		}
	}
	return all, err
}

// refresh adds to a session what its agent has said since, if need be only in memory.
func refresh(ctx context.Context, s *app.Scope, id wire.UUID) (*sessions.Session, error) {
	sess, err := s.Team.Sessions().Get(id)
	if err != nil {
		return nil, err
	}
	now, err := s.Team.RefreshSession(ctx, sess)
	if err != nil {
		return sess, s.Team.Sessions().CatchUp(ctx, sess)
	}
	return now, nil
}

var lsCommand = &cli.Command{
	Name: "ls", Aliases: []string{"list"}, Usage: "list the sessions that are not over",
	UsageText: `atm session ls
atm session ls --all`,
	Flags:  []cli.Flag{&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "include those that are over"}},
	Action: command.With(app.OpenTeam, list),
}

var showCommand = &cli.Command{
	Name: "show", Aliases: []string{"cat", "log", "logs", "info", "history", "status"}, ArgsUsage: "ID", Usage: "show a session and its log",
	UsageText: "atm session show bob",
	Flags: []cli.Flag{
		cmdline.CountFlag("limit", 50, "the last `N` log entries (default 50); 0: all that are kept", "all that are kept", "n"),
		cmdline.ChoiceFlag("as-wire", "`acp`: the agent's ACP session, as that wire has it", "acp"),
	},
	Action: func(c *cli.Context) error {
		if c.IsSet("as-wire") {
			return command.With(app.OpenTeam, showACP)(c)
		}
		return show(c)
	},
}

func showACP(c *cli.Context, s *app.Scope, p *command.Printer) error {
	word := c.Args().First() // an agent, or a session with one
	if id, err := s.Team.Sessions().Find(word); err == nil {
		sess, err := s.Team.Sessions().Get(id)
		if err != nil {
			return err
		}
		word = sess.AgentID
	}
	b, err := s.EnterTeamOf(word)
	if err != nil {
		return err
	}
	raw, err := aswire.ACPSession(s.Team, b.Agent())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Out, string(command.EscapeJSON(raw)))
	return err
}

var show = withSession(app.OpenTeam, func(k *call) error {
	sess := k.session
	text := fmt.Sprintf("session %s with %s: %s, %s\nchannel %s", sess.SessionID, sess.AgentID, sess.State, age(sess), letter.Escape(sess.ChannelID))
	if sess.GoalID != sessions.NoGoal {
		text += ", goal " + string(sess.GoalID)
	}
	entries, all := sess.Entries(0)
	// The log is in the order of arrival.
	slices.SortStableFunc(entries, func(a, b sessions.Entry) int { return a.Timestamp.Compare(b.Timestamp) })
	if limit := k.c.Int("limit"); limit > 0 {
		entries = entries[max(len(entries)-limit, 0):]
	}
	if before := all - uint64(len(entries)); before > 0 {
		text += fmt.Sprintf("\n… %d earlier", before)
	}
	for _, m := range entries {
		text += "\n" + entry{m, sess.AgentID}.String()
	}
	return printSession(k.c, sess, "", text)
})

func list(c *cli.Context, s *app.Scope, p *command.Printer) error {
	all, err := listNow(c, s)
	if err != nil {
		return err
	}
	shown, text := []json.RawMessage{}, ""
	for _, sess := range all {
		if sess.State.Alive() || c.Bool("all") {
			sess.Messages = nil
			written, err := wire.Marshal(sess.InteractiveSession)
			if err != nil {
				return err
			}
			shown = append(shown, written)
			text += line(sess) + "\n"
		}
	}
	if over := len(all) - len(shown); over > 0 {
		text += fmt.Sprintf("%d over: atm session ls --all", over)
	}
	return p.PrintAs(map[string]any{"sessions": shown}, cmp.Or(text, "no sessions: atm session new --agent NAME"))
}

type result struct {
	Session json.RawMessage `json:"session"` // in the vocabulary of its owner
	Alive   bool            `json:"alive"`
	ID      wire.ID         `json:"id,omitempty"` // of the message that was sent
}

func printSession(c *cli.Context, sess *sessions.Session, sent wire.ID, text string) error {
	written, err := wire.Marshal(sess.InteractiveSession)
	return command.PrinterOf(c).PrintUnlessError(err, result{written, sess.State.Alive(), sent}, text)
}

func line(sess *sessions.Session) string {
	channel := letter.Clip(letter.Escape(sess.ChannelID), 60)
	return fmt.Sprintf("%s  %s  %s  %s  %s", short(sess), sess.AgentID, sess.State, age(sess), channel)
}

func short(sess *sessions.Session) string { return wire.ID(sess.SessionID).Short(6) }

func age(sess *sessions.Session) string {
	if sess.State.Alive() {
		return sess.Elapsed(time.Now())
	}
	return sess.Elapsed(sess.UpdatedAt)
}

type entry struct {
	sessions.Entry
	agent string
}

// String is the time, the sender and the text. Further lines are indented, so that none looks like another entry.
func (e entry) String() string {
	names := map[string]string{sessions.SenderAgent: e.agent, sessions.SenderSystem: "--"}
	text, _ := (&letter.Renderer{}).Body(e.Content, 0, 0)
	who := letter.Escape(cmp.Or(names[e.Sender], e.Sender))
	return letter.Stamp(e.Timestamp) + " " + who + ": " + strings.TrimSpace(string(text))
}
