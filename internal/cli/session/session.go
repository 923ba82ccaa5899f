// Package session is the verbs of interactive sessions (package session at the top): they begin, list,
// show, join and end them.
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

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// Commands are the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{{
		Name: "session", Aliases: []string{"sessions"}, Usage: "talk with an agent about one goal: log, drafts, human input",
		UsageText: "atm session new --agent bob\natm session message bob \"Focus on auth\"\natm session attach bob",
		Description: "ID: the session's, four digits of it, or the name of an agent that has only one.\n" +
			"Drafts: atm pending lists them, atm approve DRAFT and atm reject DRAFT answer them.",
		Subcommands: []*cli.Command{
			newCommand, lsCommand, showCommand, attachCommand, messageCommand,
			verb("pause", "let it rest; what is said waits", command.OpenTeam, moveTo(wire.SessionPaused)),
			verb("resume", "go on; where its agent is off, start resume_cmd of team.toml", command.OpenTeam, resume, "continue"),
			verb("complete", "it has reached its goal", command.OpenTeam, moveTo(wire.SessionCompleted), "finish", "end"),
			verb("abort", "end it, and stop its agent", command.OpenToWrite, abort, "cancel"),
		},
		Action: command.With(command.OpenTeam, list),
	}}
}

func verb(name, usage string, open opener, do func(*call) error, aliases ...string) *cli.Command {
	return &cli.Command{
		Name: name, Aliases: aliases, ArgsUsage: "ID", Usage: usage, UsageText: "atm session " + name + " bob",
		Action: with(open, func(k *call) error {
			err := k.s.MayAct(name, k.agent())
			if err == nil && (name == "pause" || name == "resume") { // of one that was retired it could not go on
				_, err = k.s.Team.Member(k.agent())
			}
			if err != nil {
				return err
			}
			return do(k)
		}),
	}
}

type call struct {
	c   *cli.Context
	s   *command.Scope
	one *sessions.Session
}

func (k *call) agent() wire.Name { return wire.Name(k.one.AgentID) }

// An opener opens the scope of a verb: command.OpenToWrite for one that speaks in the session, as a member.
type opener func(*cli.Context) (*command.Scope, error)

func with(open opener, do func(*call) error) cli.ActionFunc {
	return command.With(open, func(c *cli.Context, s *command.Scope) error {
		one, err := find(c.Context, s, c.Args().First())
		if err != nil {
			return err
		}
		return do(&call{c, s, one})
	})
}

var newCommand = &cli.Command{
	Name: "new", Aliases: []string{"create", "start", "begin"}, ArgsUsage: "[AGENT]", Usage: "begin one; prints its id",
	UsageText:   "atm session new --agent bob",
	Description: "An agent has one session, unless --another.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "agent", Aliases: []string{"with"}, Usage: "with `NAME`"},
		&cli.StringFlag{Name: "goal", Usage: "the `UUID` of the goal that completes it"},
		&cli.StringFlag{Name: "channel", Value: sessions.DefaultChannel, Usage: "the channel `ID` of its people, such as discord:thread:123"},
		&cli.BoolFlag{Name: "another", Usage: "also where the agent has one"},
	},
	Action: command.With(command.OpenTeam, begin),
}

func begin(c *cli.Context, s *command.Scope) error {
	name := cmp.Or(c.String("agent"), c.Args().First())
	if name == "" || c.IsSet("agent") && c.Args().Present() {
		return command.Usage("a session with whom?").WithHint("atm session new --agent NAME")
	}
	goal, err := wire.ParseUUID(c.String("goal"))
	if c.IsSet("goal") && err != nil {
		return command.Usage("--goal: %v", err)
	}
	box, err := s.Enter(name)
	if err != nil {
		return err
	}
	agent := box.Agent()
	if err := cmp.Or(s.MayAct("begin a session of", agent), s.Team.CheckSessionsAllowed(agent)); err != nil {
		return err
	}
	if _, err := aliveOf(c.Context, s, string(agent)); err != nil { // which ends those that are over by their rules
		return err
	}
	o := sessions.Options{Agent: agent, Goal: goal, Channel: c.String("channel"), Alone: !c.Bool("another")}
	made, err := s.Team.Sessions().New(c.Context, o)
	if e, ok := errors.AsType[*sessions.NotAloneError](err); ok { // the agent's name would mean neither
		return command.Refused("%w: %s, %s for %s", err, short(e.Other), e.Other.State, lived(e.Other)).
			WithHint("atm session attach %s; a second one: atm session new --agent %s --another", short(e.Other), agent)
	}
	if err != nil {
		return err
	}
	command.Warn(c, "atm session attach %s", short(made))
	return (&call{c: c}).print(made, "", string(made.SessionID))
}

func moveTo(to wire.InteractiveSessionState) func(*call) error {
	return func(k *call) error {
		why := ""
		if who, _ := k.s.Actor(); who != "" {
			why = "by " + string(who)
		}
		one, err := k.s.Team.Sessions().Change(k.c.Context, k.one.SessionID, func(one *sessions.Session) error {
			if one.State == to && to == wire.SessionActive {
				return nil // the runner that resume has started was quicker
			}
			return one.Move(to, why, time.Now())
		})
		if err != nil {
			return err
		}
		return k.print(one, "", line(one))
	}
}

var sessionID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// resume lets a session go on. An agent that does not run is started first; when it cannot be started, the
// session stays as it is.
func resume(k *call) error {
	trial := k.one.InteractiveSession
	if err := trial.Transition(wire.SessionActive, time.Now()); err != nil {
		return err
	}
	plan, err := k.s.Team.Config()
	if err != nil {
		return err
	}
	m, err := k.s.Team.Summary(k.agent())
	if err != nil {
		return err
	}
	if !m.Running {
		own := wire.UUID(cmp.Or(m.Session, string(k.one.SessionID))) // what the agent itself calls it
		config := plan.SessionOf(k.agent())
		needsID := strings.Contains(config.ResumeCmd, "{session_id}")
		if needsID && !sessionID.MatchString(string(own)) { // an event says it: it might be a flag
			return command.Refused("%s calls its session %q: resume_cmd gets no such id", k.agent(), own).
				WithHint("%s; the session goes on with it", k.s.Team.RunAgain(k.agent()))
		}
		needsRunner := k.one.OwnedByRunner() || m.RunnerGone // it would be paused again at the next look
		if err := k.startAgent(config.ResumeWords(own), needsRunner); err != nil {
			return err
		}
	}
	return moveTo(wire.SessionActive)(k)
}

func (k *call) startAgent(words []string, needsRunner bool) error {
	again := k.s.Team.RunAgain(k.agent())
	if len(words) == 0 && needsRunner {
		return command.Refused("%s does not run, and team.toml has no resume_cmd: the session stays %s", k.agent(), k.one.State).
			WithHint("%s; the session goes on with it", again)
	}
	if len(words) == 0 {
		command.Warn(k.c, "%s does not run, and team.toml has no resume_cmd: %s", k.agent(), again)
		return nil
	}
	self, _ := os.Executable()
	args := []string{"run", k.one.AgentID, "--detach", "--root", k.s.Root.Path, "--team", string(k.s.Team.Name), "--"}
	cmd := exec.CommandContext(k.c.Context, self, append(args, words...)...)
	cmd.Stderr = os.Stderr // it prints its own errors
	if err := cmd.Run(); err != nil {
		if now, err := refresh(k.c.Context, k.s, k.one.SessionID); err == nil { // it may have run, and ended the session
			k.one = now
		}
		return command.Failed("%s could not be started: %w; the session is %s", k.agent(), err, k.one.State).
			WithHint("%s", again)
	}
	command.Warn(k.c, "%s runs: atm attach %s", k.agent(), k.agent())
	return nil
}

// find is the session that a word means: by its id or a part of it, or by the name of an agent that has only one.
func find(ctx context.Context, s *command.Scope, word string) (*sessions.Session, error) {
	if !s.IsMember(word) {
		id, err := s.Team.Sessions().Find(word)
		if err != nil {
			return nil, err
		}
		return refresh(ctx, s, id)
	}
	alive, err := aliveOf(ctx, s, strings.TrimPrefix(word, "@"))
	if err != nil {
		return nil, err
	}
	if len(alive) == 0 {
		return nil, command.NotFound("%s has no session that goes on", word).
			WithHint("atm session new --agent %s; atm session ls --all lists those that are over", word)
	}
	if len(alive) == 1 {
		return alive[0], nil
	}
	many := &sessions.ManyError{Fragment: word}
	for _, one := range alive {
		many.IDs = append(many.IDs, one.SessionID)
	}
	return nil, many
}

func listNow(ctx context.Context, s *command.Scope) ([]*sessions.Session, []*sessions.FileError, error) {
	list, bad, err := s.Team.Sessions().List()
	for i, one := range list {
		if now, err := refresh(ctx, s, one.SessionID); err == nil {
			list[i] = now
		}
	}
	return list, bad, err
}

func aliveOf(ctx context.Context, s *command.Scope, agent string) ([]*sessions.Session, error) {
	list, _, err := listNow(ctx, s)
	return slices.DeleteFunc(list, func(one *sessions.Session) bool { return one.AgentID != agent || !one.State.Alive() }), err
}

// refresh is a session as it is now, with what its agent has said since. Where that cannot be written, it
// is as it would be.
func refresh(ctx context.Context, s *command.Scope, id wire.UUID) (*sessions.Session, error) {
	one, err := s.Team.Sessions().Get(id)
	if err != nil {
		return nil, err
	}
	now, err := s.Team.RefreshSession(ctx, one)
	if err != nil {
		return one, one.CatchUp(ctx, s.Team.Box(wire.Name(one.AgentID)))
	}
	return now, nil
}

var lsCommand = &cli.Command{
	Name: "ls", Aliases: []string{"list"}, Usage: "the sessions that go on",
	UsageText: "atm session ls\natm session ls --all",
	Flags:     []cli.Flag{&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "also those that are over"}},
	Action:    command.With(command.OpenTeam, list),
}

var showCommand = &cli.Command{
	Name: "show", Aliases: []string{"cat", "log"}, ArgsUsage: "ID", Usage: "one with its log",
	UsageText: "atm session show bob",
	Flags: []cli.Flag{
		command.CountFlag("limit", 50, "the last `N` of the log (default 50); 0: all that is kept", "all that is kept", "n"),
		&cli.StringFlag{Name: "as-wire", Usage: "`acp`: the ACP session of the agent ID, as that wire has it"},
	},
	Action: func(c *cli.Context) error {
		if c.IsSet("as-wire") {
			return command.With(command.OpenTeam, showACP)(c)
		}
		return show(c)
	},
}

func showACP(c *cli.Context, s *command.Scope) error {
	if as := c.String("as-wire"); as != "acp" {
		return command.Usage("--as-wire: %q is not acp", as)
	}
	word := c.Args().First() // an agent, or a session of ours with one
	if id, err := s.Team.Sessions().Find(word); err == nil {
		one, err := s.Team.Sessions().Get(id)
		if err != nil {
			return err
		}
		word = one.AgentID
	}
	b, err := s.Enter(word)
	if err != nil {
		return err
	}
	raw, err := s.Team.ACPSession(b.Agent())
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(raw))
	return err
}

var show = with(command.OpenTeam, func(k *call) error {
	one := k.one
	text := fmt.Sprintf("session %s with %s: %s, %s\nchannel %s", one.SessionID, one.AgentID, one.State, lived(one), letter.Escape(one.ChannelID))
	if one.GoalID != sessions.NoGoal {
		text += ", goal " + string(one.GoalID)
	}
	entries, all := one.Entries(0)
	// The log is in the order in which things became known.
	slices.SortStableFunc(entries, func(a, b wire.SessionMessage) int { return a.Timestamp.Compare(b.Timestamp) })
	if limit := k.c.Int("limit"); limit > 0 {
		entries = entries[max(len(entries)-limit, 0):]
	}
	if before := all - uint64(len(entries)); before > 0 {
		text += fmt.Sprintf("\n… %d before these", before)
	}
	for _, m := range entries {
		text += "\n" + entry{m, one.AgentID}.String()
	}
	return k.print(one, "", text)
})

func list(c *cli.Context, s *command.Scope) error {
	all, bad, err := listNow(c.Context, s)
	if err != nil {
		return err
	}
	for _, file := range bad {
		command.Warn(c, "%v", file)
	}
	shown, text := []json.RawMessage{}, ""
	for _, one := range all {
		if one.State.Alive() || c.Bool("all") {
			one.Messages = nil
			written, err := wire.Marshal(one.InteractiveSession)
			if err != nil {
				return err
			}
			shown = append(shown, written)
			text += line(one) + "\n"
		}
	}
	if over := len(all) - len(shown); over > 0 {
		text += fmt.Sprintf("%d over: atm session ls --all", over)
	}
	return command.PrintAs(c, map[string]any{"sessions": shown}, cmp.Or(text, "no sessions: atm session new --agent NAME"))
}

type result struct {
	Session json.RawMessage `json:"session"` // as its owner writes it
	Alive   bool            `json:"alive"`
	ID      wire.ID         `json:"id,omitempty"` // of the message that was sent
}

func (k *call) print(one *sessions.Session, sent wire.ID, text string) error {
	written, err := wire.Marshal(one.InteractiveSession)
	return command.Done(k.c, err, result{written, one.State.Alive(), sent}, text)
}

func line(one *sessions.Session) string {
	channel := letter.Clip(letter.Escape(one.ChannelID), 60)
	return fmt.Sprintf("%s  %s  %s  %s  %s", short(one), one.AgentID, one.State, lived(one), channel)
}

func short(one *sessions.Session) string { return wire.ID(one.SessionID).Short(6) }

func lived(one *sessions.Session) string {
	if one.State.Alive() {
		return one.Elapsed(time.Now())
	}
	return one.Elapsed(one.UpdatedAt)
}

type entry struct {
	wire.SessionMessage
	agent string
}

// String is the time, who spoke and the text. Further lines of the text are indented, so that none looks
// like another entry.
func (e entry) String() string {
	names := map[string]string{sessions.SenderAgent: e.agent, sessions.SenderSystem: "--"}
	r := letter.Renderer{Terminal: command.Terminal()}
	text, _ := r.Body(e.Content, 0, 0)
	who := letter.Escape(cmp.Or(names[e.Sender], e.Sender))
	return letter.Stamp(e.Timestamp) + " " + who + ": " + strings.TrimSpace(string(text))
}
