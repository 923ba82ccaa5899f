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

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// Pending returns everything that waits for a person's answer, oldest first: the questions of these members, the local
// drafts and what messages ask. With an *UnreadableError it returns what could be read.
func Pending(ctx context.Context, t *teamdir.Team, members []Member) ([]ask.Question, error) {
	out, err := Asked(ctx, t, members)
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
	m, err := One(context.Background(), t, name)
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
func onlySession(t *teamdir.Team, agent wire.Name) wire.UUID {
	if list, _ := t.Sessions().Of(agent); len(list) == 1 {
		return list[0].SessionID
	}
	return ""
}

// Asked returns the open drafts of members, and what messages ask people.
func Asked(ctx context.Context, t *teamdir.Team, members []Member) ([]ask.Question, error) {
	drafts, err := Drafts(ctx, t, members)
	asked, mailErr := MailQuestions(t)
	return append(drafts, asked...), errors.Join(err, mailErr)
}

// MailQuestions returns the messages with choices to people of this machine that nobody has answered: they want an ack, so
// they are unread or owed.
func MailQuestions(t *teamdir.Team) (out []ask.Question, err error) {
	c, err := t.Config() // a file with mistakes names no person
	names, listErr := t.Dir().Names(".")
	for _, name := range names {
		box := t.Box(wire.Name(name))
		if !c.IsPerson(box.Agent()) || !box.Exists() {
			continue
		}
		rg := maildir.Range{Unread: true, Owed: true, Newest: true, With: headers.HasChoices | headers.WantsAck}
		_, walkErr := box.Walk(rg, func(it *wire.Item) bool {
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

// draftEvents is how many of an agent's newest events a draft outside any session waits for an answer.
const draftEvents = 1000

// Drafts returns the drafts of members that nobody has approved or rejected: those of sessions that go on, and those that
// were lately announced outside any. With an error it returns what could be read.
func Drafts(ctx context.Context, t *teamdir.Team, members []Member) (out []ask.Question, err error) {
	members = slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return len(m.drafts) == 0 })
	if len(members) == 0 {
		return nil, nil
	}
	sessions, bad, err := t.Sessions().List()
	for _, b := range bad {
		err = errors.Join(err, b)
	}
	for _, m := range members {
		var asked []ask.Question
		for _, d := range m.drafts {
			if s, waits := sessionOf(d, m.Name, sessions); waits && (s != nil || d.Seq+draftEvents > m.seq) {
				asked = append(asked, draftQuestion(m, s, d))
			}
		}
		answers, unreadable := DraftAnswers(ctx, t, m.Name, map[wire.ID]bool{}, asked...)
		err = errors.Join(err, unreadable)
		for _, q := range asked {
			if _, isAnswered := answers[q.ID]; !isAnswered {
				out = append(out, q)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b ask.Question) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return out, err
}

// sessionOf returns the session of a draft, of those that go on: the one that it names, else the agent's oldest that had
// begun by then; nil: it is outside any. waits is false if it was reviewed there, or if its session is over.
func sessionOf(d reducer.Draft, agent wire.Name, sessions []*session.Session) (of *session.Session, waits bool) {
	for _, s := range sessions {
		isNamed := d.InSession == string(s.SessionID)
		hadBegun := d.InSession == "" && s.AgentID == string(agent) && !d.At.Before(s.CreatedAt)
		if isNamed || hadBegun {
			return s, !slices.Contains(s.DraftIDs, d.ID)
		}
	}
	return nil, d.InSession == ""
}

// draftQuestion asks whether to approve a draft of a session, or with nil one outside any.
func draftQuestion(m Member, s *session.Session, d reducer.Draft) ask.Question {
	prompt := letter.Many(d.Artifacts, "artifact")
	if d.Summary != "" {
		prompt = d.Summary + " (" + prompt + ")"
	}
	q := ask.Question{
		ID: string(d.ID), Agent: m.Name, Kind: ask.KindDraft, Prompt: prompt, Options: []ask.Option{}, Since: d.At.UTC(), Running: m.Running,
	}
	if s != nil {
		q.Session = s.SessionID
	}
	return q
}

// DraftAnswers returns, for the drafts of an agent, by their ids, the first answer to the whole draft that counts
// (CheckInput). Every answer is a message in the agent's mailbox, which it walks once. It opens no message that was looked
// at, and adds the others to these.
func DraftAnswers(ctx context.Context, t *teamdir.Team, agent wire.Name, looked map[wire.ID]bool, drafts ...ask.Question) (map[string]session.Input, error) {
	answers := map[string]session.Input{}
	if len(drafts) == 0 {
		return answers, nil
	}
	since := slices.MinFunc(drafts, func(a, b ask.Question) int { return a.Since.Compare(b.Since) }).Since
	rg := maildir.Range{
		Unread: true, Owed: true, Done: true, Archive: true, Since: since.Add(-time.Hour), // clocks may differ
		Wants: func(id wire.ID) bool {
			isNew := !looked[id]
			looked[id] = true
			return isNew
		},
		With: headers.IsInput,
	}
	// Without dropped files, which are no verdicts, and may need git, for which nobody waits under a lock.
	_, err := t.Box(agent).Walk(rg, func(it *wire.Item) bool {
		in, isInput := t.Sessions().InputOf(agent, it.Message)
		first, isAnswered := answers[string(in.DraftID)]
		if isInput && in.IsVerdict() && in.ArtifactURI == nil && (!isAnswered || in.At.Before(first.At)) {
			answers[string(in.DraftID)] = in
		}
		return true
	})
	if err != nil && !errors.Is(err, maildir.ErrNoMailbox) {
		return answers, fmt.Errorf("the answers to drafts of %s: %w", agent, err)
	}
	return answers, nil
}
