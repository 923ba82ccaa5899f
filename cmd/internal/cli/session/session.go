// Package session holds the verbs that begin, show, attach to and end sessions, see package session at the top.
package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	sessions "github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// Commands returns the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{{
		Name: "session", Category: "sessions", Usage: "talk with an agent about one goal: log, drafts, human input",
		UsageText: `atm session new --agent bob
atm session message bob "Focus on auth"
atm session attach bob`,
		Description: `ID is the session's id, at least four digits of it, or the name of an agent that has only one.
Drafts: atm pending lists them, atm approve DRAFT and atm reject DRAFT answer them.`,
		Subcommands: []*cli.Command{
			newCommand, lsCommand, showCommand, attachCommand, messageCommand,
			verb("pause", "pause a session; messages wait", app.OpenTeam, moveTo(sessions.Paused)),
			verb("resume", "resume a session; if its agent is off, run resume_cmd of team.toml", app.OpenTeam, resume, "continue"),
			verb("complete", "end a session that has reached its goal", app.OpenTeam, moveTo(sessions.Completed), "!", "finish", "end"),
			verb("abort", "end a session and stop its agent", app.OpenToWrite, abort, "!", "cancel"),
		},
		Action: command.With(app.OpenTeam, list),
	}}
}

// verb is a verb that needs permission to act on the session's agent.
func verb(name, usage string, open opener, do func(context.Context, *call) error, elsewhere ...string) *cli.Command {
	return &cli.Command{
		Name: name, Category: strings.Join(elsewhere, " "), ArgsUsage: "ID", Usage: usage, UsageText: "atm session " + name + " bob",
		Action: withSession(open, func(c *cli.Context, k *call) error {
			err := k.s.MayAct(policy.Act(name), k.agent())
			if err == nil && (name == "pause" || name == "resume") { // the session of a retired agent can only end
				_, err = k.s.Team.Member(k.agent())
			}
			if err != nil {
				return err
			}
			return do(c.Context, k)
		}),
	}
}

// A call is one verb called with one session.
type call struct {
	s       *app.Scope
	p       *command.Printer
	session *sessions.Session
	started bool // this call started the agent, whose runner resumes its session itself
}

func (k *call) agent() wire.Name { return wire.Name(k.session.AgentID) }

// An opener opens the scope of a verb: app.OpenToWrite if the verb sends as a member.
type opener = func(*app.Given) (*app.Scope, error)

// withSession is the action of a verb for one session: do takes its options from the command line.
func withSession(open opener, do func(*cli.Context, *call) error) cli.ActionFunc {
	return command.With(open, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		sess, err := find(c.Context, s, c.Args().First())
		if err != nil {
			return err
		}
		return do(c, &call{s: s, p: p, session: sess})
	})
}

func moveTo(to sessions.State) func(context.Context, *call) error {
	return func(ctx context.Context, k *call) error {
		reason := ""
		if who := k.s.Actor().Name; who != "" {
			reason = "by " + string(who)
		}
		sess, err := k.s.Team.Sessions().Change(ctx, k.session.SessionID, func(sess *sessions.Session) error {
			if k.started && sess.State == to {
				return nil
			}
			return sess.Move(to, reason, time.Now())
		})
		if refused, ok := errors.AsType[*sessions.Error](err); ok && to == sessions.Completed && k.session.State == sessions.Paused {
			return failure.Refused("%s", refused.Reason).
				WithHint("`atm session resume %s` first; or `atm session abort %[1]s`", wire.ID(k.session.SessionID).Short(6))
		}
		if err != nil {
			return err
		}
		return printSession(k.p.Confirming(), sess, "", line(sess))
	}
}

// find finds a session by its id, by the beginning of that, or by the name of an agent that has only one.
func find(ctx context.Context, s *app.Scope, word string) (*sessions.Session, error) {
	if !s.IsMember(word) {
		id, err := s.Team.Sessions().Find(word)
		if err != nil {
			return nil, err
		}
		return refresh(ctx, s, id)
	}
	all, err := listNow(ctx, s)
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
			WithHint("`atm session new --agent %s`; `atm session ls --all` lists those that are over", word)
	}
	return found, err
}

// listNow refreshes and lists the sessions that went on, and warns of files that are none.
func listNow(ctx context.Context, s *app.Scope) ([]*sessions.Session, error) {
	all, bad, err := s.Team.Sessions().List()
	warnOf(s, bad)
	for i, sess := range all {
		if now, err := refresh(ctx, s, sess.SessionID); err == nil {
			all[i] = now
		}
	}
	return all, err
}

func warnOf(s *app.Scope, bad []*sessions.FileError) {
	for _, file := range bad {
		s.Given.Warn("%v", file)
	}
}

// refresh reads a session, and ends or pauses it if that is due. If it cannot be written, the session stays as it is.
func refresh(ctx context.Context, s *app.Scope, id wire.UUID) (*sessions.Session, error) {
	sess, err := s.Team.Sessions().Get(id)
	if err != nil {
		return nil, err
	}
	if now, err := presence.RefreshSession(ctx, s.Team, sess); err == nil {
		sess = now
	}
	return sess, nil
}

type result struct {
	Session json.RawMessage `json:"session"` // in the vocabulary of its owner
	Alive   bool            `json:"alive"`
	ID      wire.ID         `json:"id,omitempty"` // of the message that was sent
}

func printSession(p *command.Printer, sess *sessions.Session, sent wire.ID, text string) error {
	written, err := wire.Marshal(sess.InteractiveSession)
	return p.PrintUnlessError(err, result{written, sess.State.Alive(), sent}, text)
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
