package presence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// Pending returns everything that waits for a person's answer, oldest first: the questions of these members, the local
// drafts and what messages ask. With an *UnreadableError it returns what could be read.
func Pending(ctx context.Context, t *teamdir.Team, members []Member) ([]ask.Question, error) {
	out, err := Asked(ctx, t)
	for _, m := range members {
		out, err = append(out, m.Questions...), errors.Join(err, m.EventsErr)
	}
	slices.SortStableFunc(out, func(a, b ask.Question) int { return a.Since.Compare(b.Since) })
	if err != nil {
		err = &teamdir.UnreadableError{Err: err}
	}
	return out, err
}

// PendingQuestions returns what waits for an answer of all members, also those on other hosts.
func PendingQuestions(ctx context.Context, t *teamdir.Team) ([]ask.Question, error) {
	members, err := Members(ctx, t)
	out, unreadable := Pending(ctx, t, members)
	return out, cmp.Or(err, unreadable)
}

// Questions returns the open questions of a member.
func Questions(t *teamdir.Team, name wire.Name) ([]ask.Question, error) {
	m, err := Summary(context.Background(), t, name)
	return m.Questions, cmp.Or(err, m.EventsErr)
}

func questions(t *teamdir.Team, m *Member, requests []reducer.Waiting) (out []ask.Question) {
	for _, w := range requests {
		q := ask.Of(w)
		q.Agent, q.Running, q.ByWire = m.Name, m.Running, w.IsOnWire && !m.Running
		if asked := programs.Asked(m.says, w, requests); asked != nil {
			if q.Options, q.Served = asked.Options, len(asked.Options) > 0; !asked.Cut { // else a hook has told more
				q.Prompt, q.Input, q.Tool, q.Cut = asked.Prompt, asked.Input, asked.Tool, false
			}
		} else {
			q.Served = !m.Running && programs.IsServed(t, m.Name, w.ID)
		}
		out = append(out, q)
	}
	if slices.ContainsFunc(out, func(q ask.Question) bool { return q.OnChannel }) && t.CheckHumanInput(m.Name) == nil {
		session := onlySession(t, m.Name)
		for i := range out {
			out[i].Session = session
		}
	}
	return out
}

// onlySession returns the session that the agent's name means: its only one that is alive, else "".
func onlySession(t *teamdir.Team, agent wire.Name) (only wire.UUID) {
	list, _, _ := t.Sessions().List()
	for _, s := range list {
		switch {
		case s.AgentID != string(agent) || !s.State.Alive():
		case only != "":
			return ""
		default:
			only = s.SessionID
		}
	}
	return only
}

// Asked returns the open drafts, and what messages ask people.
func Asked(ctx context.Context, t *teamdir.Team) ([]ask.Question, error) {
	drafts, err := Drafts(ctx, t)
	asked, mailErr := MailQuestions(t)
	return append(drafts, asked...), errors.Join(err, mailErr)
}

// MailQuestions returns the messages with choices to people of this machine that nobody has answered: they want an ack, so
// they are unread or owed.
func MailQuestions(t *teamdir.Team) (out []ask.Question, err error) {
	c, err := t.Config() // a file with mistakes names no person
	boxes, listErr := t.Boxes()
	for _, box := range boxes {
		if !c.IsPerson(box.Agent()) {
			continue
		}
		rg := maildir.Range{Unread: true, Owed: true, Newest: true, With: headers.HasChoices | headers.WantsAck}
		_, walkErr := box.Walk(rg, func(it *maildir.Item) bool {
			if !it.Expired(time.Now()) {
				out = append(out, mailQuestion(it.Message, box.Address()))
			}
			return true
		})
		err = errors.Join(err, walkErr)
	}
	return out, errors.Join(err, listErr)
}

func mailQuestion(m *wire.Message, to wire.Address) ask.Question {
	r := letter.Renderer{Team: to.Team}
	q := ask.Question{
		ID: string(m.ID), Kind: ask.KindMail, Agent: wire.Name(r.Who(m.From)), To: to.Agent, Since: m.SentAt,
		Prompt: strings.TrimSpace(m.Subject + "\n" + m.Body), Options: []ask.Option{},
	}
	for i, choice := range m.Choices {
		q.Options = append(q.Options, ask.Option{ID: strconv.Itoa(i + 1), Label: choice})
	}
	return q
}

// draftEvents is how many of an agent's newest events are searched for drafts outside any session.
const draftEvents = 1000

// Drafts returns the drafts that nobody has approved or rejected: those of live sessions, and those that were lately
// announced outside any session. With an error it returns what could be read.
func Drafts(ctx context.Context, t *teamdir.Team) (out []ask.Question, err error) {
	sessions, bad, err := t.Sessions().List()
	for _, b := range bad {
		err = errors.Join(err, b)
	}
	known := map[string]bool{} // by agent and id
	asked := map[wire.Name][]ask.Question{}
	add := func(agent wire.Name, sessionID wire.UUID, d session.Draft, isAlive bool) {
		key := string(agent) + " " + string(d.ID)
		isKnown := known[key]
		known[key] = true
		if isKnown || !isAlive {
			return
		}
		asked[agent] = append(asked[agent], draftQuestion(t, agent, sessionID, d))
	}
	for _, s := range sessions {
		agent := wire.Name(s.AgentID)
		if bad := t.Sessions().CatchUp(ctx, s); bad != nil {
			err = errors.Join(err, fmt.Errorf("the drafts of %s: %w", agent, bad))
		}
		for _, d := range s.Drafts() {
			d.At = cmp.Or(d.At, s.CreatedAt)
			add(agent, s.SessionID, d, s.State.Alive())
		}
	}
	unreadable := t.Each(func(b *maildir.Box) error {
		n := 0
		events, err := b.Log().Tail(func(e *wire.Event) bool { n++; return n == draftEvents || e.IsFreshStart() })
		for i := range events {
			if events[i].Kind != wire.DraftReady { // most are of another kind
				continue
			}
			if e, ok := session.ChannelEvent(&events[i]); ok {
				add(b.Agent(), "", session.Draft{ID: e.DraftID, Summary: e.Summary, Artifacts: e.ArtifactCount, At: events[i].At}, true)
			}
		}
		return err
	})
	for agent, questions := range asked {
		answers, unreadable := DraftAnswers(ctx, t, agent, questions...)
		err = errors.Join(err, unreadable)
		for _, q := range questions {
			if _, isAnswered := answers[q.ID]; !isAnswered {
				out = append(out, q)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b ask.Question) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return out, errors.Join(err, unreadable)
}

// draftQuestion asks whether to approve a draft of a session, or with "" one outside any.
func draftQuestion(t *teamdir.Team, agent wire.Name, sessionID wire.UUID, d session.Draft) ask.Question {
	running, _ := t.Running(agent)
	prompt := letter.Many(d.Artifacts, "artifact")
	if d.Summary != "" {
		prompt = d.Summary + " (" + prompt + ")"
	}
	return ask.Question{
		ID: string(d.ID), Agent: agent, Kind: ask.KindDraft, Session: sessionID, Prompt: prompt,
		Options: []ask.Option{}, Since: d.At.UTC(), Running: running,
	}
}

// DraftAnswers returns, for the drafts of an agent, by their ids, the first answer to the whole draft that counts
// (CheckInput). Every answer is a message in the agent's mailbox, which it walks once.
func DraftAnswers(ctx context.Context, t *teamdir.Team, agent wire.Name, drafts ...ask.Question) (map[string]session.Input, error) {
	since := slices.MinFunc(drafts, func(a, b ask.Question) int { return a.Since.Compare(b.Since) }).Since
	rg := maildir.Range{
		Unread: true, Owed: true, Done: true, Archive: true, Since: since.Add(-time.Hour), // clocks may differ
		With: headers.IsInput,
	}
	answers := map[string]session.Input{}
	// Without dropped files, which are no verdicts, and may need git, for which nobody waits under a lock.
	_, err := t.Box(agent).Walk(rg, func(it *maildir.Item) bool {
		in, isInput := t.Sessions().InputOf(agent, it.Message)
		first, isAnswered := answers[string(in.DraftID)]
		if isInput && in.IsVerdict() && in.ArtifactURI == nil && (!isAnswered || in.At.Before(first.At)) {
			answers[string(in.DraftID)] = in
		}
		return true
	})
	if err != nil && !errors.Is(err, maildir.ErrNoAgent) {
		return answers, fmt.Errorf("the answers to drafts of %s: %w", agent, err)
	}
	return answers, nil
}
