package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/wire"
)

var sessionVerb = &cmdline.Verb{
	Name: "session", Summary: "talk with an agent about one goal: log, drafts, human input",
	Examples: []string{"atm session new --agent bob", `atm session message bob "Focus on auth"`, "atm session attach bob"},
	Notes: []string{
		"ID: the session's, or four digits of it, or the name of who has only that one.",
		"Drafts: atm pending lists them, atm approve DRAFT and atm reject DRAFT answer.",
	},
	Guesses: []string{"sessions", "conversation", "goal"},
	Subs: []*cmdline.Verb{
		{
			Name: "new", Summary: "begin one; prints its id", Examples: []string{"atm session new --agent bob"},
			Flags: []cmdline.Flag{
				{Name: "agent", Kind: cmdline.String, Arg: "NAME", Usage: "with whom"},
				{Name: "goal", Kind: cmdline.String, Arg: "UUID", Usage: "of what it is about"},
				{Name: "channel", Kind: cmdline.String, Arg: "ID", Default: session.DefaultChannel, Usage: "where people sit, such as discord:thread:123"},
			},
			Run: run(sessionNew),
		},
		{
			Name: "ls", Aliases: []string{"list"}, Summary: "those that go on", Examples: []string{"atm session ls --all"},
			Flags: []cmdline.Flag{{Name: "all", Usage: "also those that are over"}}, Run: run(sessionLs),
		},
		{
			Name: "show", Aliases: []string{"cat"}, Args: "ID", Summary: "one with its log", Examples: []string{"atm session show bob"},
			Flags:   []cmdline.Flag{{Name: "limit", Aliases: []string{"n"}, Kind: cmdline.Int, Arg: "N", Default: "50", Usage: "of the log, 0: all that is kept"}},
			MinArgs: 1, MaxArgs: 1, Run: run(sessionShow),
		},
		sessionAttachVerb,
		{
			Name: "message", Aliases: []string{"msg", "send", "say"}, Args: "ID TEXT…", Summary: "say something to its agent",
			Examples: []string{`atm session message bob "Focus on auth"`},
			Flags: []cmdline.Flag{
				{Name: "message", Aliases: []string{"m", "body"}, Kind: cmdline.String, Arg: "TEXT", Usage: "the text"},
				{Name: "file", Kind: cmdline.String, Arg: "F", Usage: "text from a file"},
			},
			MinArgs: 1, MaxArgs: -1, Run: run(sessionMessage),
		},
		{
			Name: "pause", Args: "ID", Summary: "let it rest; what is said waits", Examples: []string{"atm session pause bob"},
			MinArgs: 1, MaxArgs: 1, Run: run(func(ctx context.Context, e *env) error { return e.moveSession(ctx, wire.SessionPaused) }),
		},
		{
			Name: "resume", Args: "ID", Summary: "go on; starts resume_cmd of team.toml where its agent does not run", Examples: []string{"atm session resume bob"},
			MinArgs: 1, MaxArgs: 1, Run: long(sessionResume),
		},
		{
			Name: "complete", Args: "ID", Summary: "it has reached its goal", Examples: []string{"atm session complete bob"},
			MinArgs: 1, MaxArgs: 1, Run: run(func(ctx context.Context, e *env) error { return e.moveSession(ctx, wire.SessionCompleted) }),
		},
		{
			Name: "abort", Args: "ID", Summary: "end it, and tell its agent", Examples: []string{"atm session abort bob"},
			MinArgs: 1, MaxArgs: 1, Run: run(sessionAbort),
		},
	},
}

func sessionNew(ctx context.Context, e *env) error {
	if e.String("agent") == "" {
		return cmdline.Usage("a session with whom?").WithHint("atm session new --agent NAME")
	}
	o := session.Options{Channel: e.String("channel")}
	if e.Given("goal") {
		goal, err := wire.ParseUUID(e.String("goal"))
		if err != nil {
			return cmdline.Usage("--goal: %q is no UUID", e.String("goal")).WithHint("leave it out: any goal that is complete completes the session")
		}
		o.Goal = goal
	}
	if e.Given("channel") && (strings.TrimSpace(o.Channel) == "" || len(o.Channel) > maxChannel) {
		return cmdline.Usage("--channel is a name of 1 to %d bytes, such as discord:thread:123", maxChannel)
	}
	if err := e.open(); err != nil {
		return err
	}
	box, err := e.member(e.String("agent"))
	if err != nil {
		return err
	}
	if e.team, err = e.root.Team(box.Address().Team); err != nil {
		return err
	}
	if m, err := e.team.Summary(box.Agent()); err == nil && m.State == reducer.WordPerson {
		return cmdline.Refused("%s is a person: a session is with an agent", box.Agent()).WithHint("atm send %s \"…\"", box.Agent())
	}
	if err := e.mayAct("begin a session of", box.Agent()); err != nil {
		return err
	}
	if err := e.team.CheckSessionsAllowed(); err != nil {
		return explainSession(err)
	}
	o.Agent = box.Agent()
	s, err := e.team.Sessions().New(ctx, o)
	if err != nil {
		return explainSession(err)
	}
	if e.JSON() {
		return e.printSession(s)
	}
	return e.print("%s", s.SessionID)
}

// maxChannel is the longest name of a channel.
const maxChannel = 256

// sessionPlan is what team.toml says about sessions. Of a file with mistakes
// what could be understood counts for who only looks.
func (e *env) sessionPlan() (*config.Session, error) {
	p, err := e.team.Config()
	if p == nil {
		return nil, err
	}
	return &p.Session, err
}

// tended is a session as it is now, with what its agent said since.
func (e *env) tended(ctx context.Context, id wire.UUID) (*session.Session, error) {
	plan, err := e.sessionPlan()
	if plan == nil {
		return nil, err
	}
	if err != nil {
		e.Warn("%v; nothing ends by itself", err)
		plan = &config.Session{}
	}
	s, err := e.team.RefreshSession(ctx, id, plan)
	if err == nil || errors.Is(err, session.ErrNotFound) {
		return s, err
	}
	if seen, bad := e.team.Sessions().Look(ctx, id); bad == nil {
		e.Warn("session %s as it is, not written: %v", wire.ID(id).Short(6), err)
		return seen, nil
	}
	return nil, err
}

// sessionNamed is the session that a word means: by its id or a part of it, or
// by the name of who has only that one that goes on.
func (e *env) sessionNamed(word string) (wire.UUID, error) {
	if e.team == nil {
		if err := e.open(); err != nil {
			return "", err
		}
	}
	st := e.team.Sessions()
	name, bad := wire.ParseName(word)
	if bad != nil || !e.team.Box(name).Exists() {
		id, err := st.Find(word)
		_, notPart := wire.ParseFragment(word)
		if errors.Is(err, session.ErrNotFound) && notPart != nil && bad == nil {
			if _, unknown := e.member(word); unknown != nil {
				return "", unknown
			}
		}
		return id, explainSession(err)
	}
	list, _, err := st.List()
	if err != nil {
		return "", err
	}
	list = slices.DeleteFunc(list, func(s *session.Session) bool { return s.AgentID != word || !s.State.Alive() })
	switch len(list) {
	case 0:
		return "", cmdline.NotFound("%s has no session that goes on", name).WithHint("atm session new --agent %s; atm session ls --all lists those that are over", name)
	case 1:
		return list[0].SessionID, nil
	}
	var ids []wire.UUID
	for _, s := range list {
		ids = append(ids, s.SessionID)
	}
	return "", explainSession(&session.ManyError{Fragment: word, IDs: ids})
}

// explainSession gives an error of a session its exit code and the way out.
func explainSession(err error) error {
	var many *session.ManyError
	var file *session.FileError
	var refused *wire.SessionError
	var answered *teams.DraftAnsweredError
	switch {
	case errors.As(err, &many):
		ids := make([]string, len(many.IDs))
		quoted := make([]wire.ID, len(many.IDs))
		for i, id := range many.IDs {
			ids[i], quoted[i] = string(id), wire.ID(id)
		}
		return cmdline.Ambiguous("%s", err).WithHint("one of these: %s", shorts(quoted)).WithCandidates(ids...)
	case errors.As(err, &file):
		return cmdline.Failed("%s", err).WithHint("look at it, and move it away or mend it: what wrote it there was not atm")
	case errors.Is(err, session.ErrNotFound):
		return cmdline.NotFound("%s", err).WithHint("atm session ls --all lists them")
	case errors.As(err, &answered):
		return cmdline.Refused("%s", err).WithHint("atm show %s shows the answer", answered.Answer.ID.Short(6))
	case errors.As(err, &refused):
		return cmdline.Refused("%s", refused.Reason).WithHint("atm session ls --all shows the state of each")
	case errors.Is(err, teams.ErrNoSessions), errors.Is(err, teams.ErrNoHumanInput):
		return cmdline.Refused("%s", err).WithHint("team.toml is for a person to change")
	}
	return err
}

// speaker says who I am, and that I may speak.
func (e *env) speaker() error {
	if err := e.who(); err != nil {
		return err
	}
	return e.mine()
}

// saying is what I say to a session.
func (e *env) saying(in wire.HumanInput) teams.SessionInput {
	return teams.SessionInput{From: e.me, Input: in, Origin: e.origin(), Person: e.person()}
}

func sessionMessage(ctx context.Context, e *env) error {
	if err := e.speaker(); err != nil {
		return err
	}
	id, err := e.sessionNamed(e.Args[0])
	if err != nil {
		return err
	}
	text, err := e.text(e.Args[1:])
	if err != nil {
		return err
	}
	out, err := e.team.Say(ctx, id, e.saying(wire.HumanInput{Kind: "message", Text: text}))
	if err != nil {
		return explainSession(err)
	}
	return e.sayDelivered(out, false)
}

// sayDelivered says what became of something that was said. stops says that an
// abort stops its agent.
func (e *env) sayDelivered(out teams.SessionResult, stops bool) error {
	if out.Unlogged != nil {
		e.Warn("delivered; the session's log could not be written: %v", out.Unlogged)
	}
	m := out.Message
	state := "its agent is gone"
	to := ""
	if m != nil {
		to = string(m.To[0].Agent)
		if row, err := e.team.Summary(m.To[0].Agent); err == nil {
			state = row.Forecast(time.Now(), false)
			if stops && out.Session != nil && out.Session.State == wire.SessionAborted {
				state = "which is stopped with all that it started"
			}
		}
	}
	if out.Session != nil && out.Session.State == wire.SessionPaused {
		state = "the session is paused: it waits for atm session resume " + wire.ID(out.Session.SessionID).Short(6)
	}
	if e.JSON() {
		doc := map[string]any{"delivered": m != nil}
		if m != nil {
			doc["id"], doc["to"] = m.ID, m.To[0].String()
		}
		if out.Session != nil {
			doc["session"] = sessionDocument{out.Session, nil, false}
		}
		return e.PrintJSON(doc)
	}
	if m == nil {
		return e.print("aborted; %s", state)
	}
	verb := "sent"
	if out.Session != nil && out.Session.State == wire.SessionAborted {
		verb = "aborted; sent"
	}
	return e.print("%s %s to %s (%s)", verb, m.ID.Short(6), to, state)
}

// mayBring refuses a message that would end another agent, as an abort of its
// session does, to whom that agent may not end by a command.
func (e *env) mayBring(o *teams.Outgoing) error {
	if in, ok := session.InputOf(o.Message); !ok || in.Kind != "abort" {
		return nil
	}
	for _, to := range o.To {
		if err := e.mayAct("abort", to.Agent); err != nil {
			return err
		}
	}
	return nil
}

// moveSession takes a session to another state.
func (e *env) moveSession(ctx context.Context, to wire.InteractiveSessionState) error {
	id, err := e.sessionNamed(e.Args[0])
	if err != nil {
		return err
	}
	s, err := e.team.Sessions().Get(id)
	if err != nil {
		return explainSession(err)
	}
	if err := e.mayAct(e.Verb.Name, wire.Name(s.AgentID)); err != nil {
		return err
	}
	s, err = e.team.Sessions().Change(ctx, id, func(s *session.Session) error { return s.Move(to, e.by(), time.Now()) })
	if err != nil {
		return explainSession(err)
	}
	return e.printSession(s)
}

// by is who does something to a session, for its log.
func (e *env) by() string {
	if who, _ := e.actor(); who != "" {
		return "by " + string(who)
	}
	return ""
}

func sessionAbort(ctx context.Context, e *env) error {
	if err := e.speaker(); err != nil {
		return err
	}
	id, err := e.sessionNamed(e.Args[0])
	if err != nil {
		return err
	}
	s, err := e.team.Sessions().Get(id)
	if err != nil {
		return explainSession(err)
	}
	if err := e.mayAct("abort", wire.Name(s.AgentID)); err != nil {
		return err
	}
	ran, _ := e.team.Running(wire.Name(s.AgentID)) // it may be stopped before this can say so
	out, err := e.team.Say(ctx, id, e.saying(wire.HumanInput{Kind: "abort"}))
	if err != nil {
		return explainSession(err)
	}
	return e.sayDelivered(out, ran)
}
