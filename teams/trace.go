package teams

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// Stage is one step of a message's way, with the evidence for it.
type Stage struct {
	Stage    string     `json:"stage"`
	At       *time.Time `json:"at,omitempty"`
	Evidence *string    `json:"evidence"` // null: no evidence, which is not "no"
	Text     string     `json:"text,omitempty"`
}

// Traced is a message's way to one recipient.
type Traced struct {
	To     string        `json:"to"`
	State  mailbox.State `json:"state,omitempty"`
	Stages []Stage       `json:"stages"`
	Due    string        `json:"due,omitempty"`  // of the answer that is expected, until it came
	Gate   string        `json:"gate,omitempty"` // what the next stage waits for, and the command to do about it
}

// Live asks a member's runner why nothing is typed in just now: "" where nothing
// keeps it from that, or where it does not say.
type Live func(ctx context.Context, b *mailbox.Box) (gate string)

// Trace says how far a message got at each recipient. live may be nil: then only
// what the events tell is known of a gate.
func (r *Root) Trace(ctx context.Context, m *wire.Message, live Live) []Traced {
	var out []Traced
	sender, _ := r.Mailbox(m.From)
	for _, a := range m.To {
		out = append(out, r.traceTo(ctx, m, a, sender, live))
	}
	return out
}

var stages = []string{"stored", "announced", "read", "turn_started", "turn_done", "acked", "replied"}

func (r *Root) traceTo(ctx context.Context, m *wire.Message, a wire.Address, sender *mailbox.Box, live Live) Traced {
	t := Traced{To: a.String()}
	found := map[string]*Stage{}
	for _, s := range stages {
		t.Stages = append(t.Stages, Stage{Stage: s})
	}
	for i := range t.Stages {
		found[t.Stages[i].Stage] = &t.Stages[i]
	}
	set := func(stage string, at time.Time, format string, args ...any) {
		s := found[stage]
		text := fmt.Sprintf(format, args...)
		s.Evidence = &text
		s.At = moment(at)
	}
	b, err := r.Mailbox(a)
	if err != nil {
		t.Gate = fmt.Sprintf("no mailbox of %s here; a retired one keeps its mail: atm team restore %s", a, a.Agent)
		return t
	}
	team, err := r.Team(a.Team)
	if err != nil {
		t.Gate = err.Error()
		return t
	}
	it, err := b.Get(m.ID)
	if err == nil {
		t.State = it.State
		set("stored", m.SentAt, "%s", it.Where)
	}
	p, _, _ := team.Passage(b, m)
	t.Due = team.dueOf(ctx, b, m, time.Now())
	for _, e := range []struct {
		stage string
		mark  Mark
	}{{"announced", p.Announced}, {"read", p.Read}, {"acked", p.Acked}, {"turn_started", p.Began}, {"turn_done", p.Ended}} {
		if e.mark.Is() {
			set(e.stage, e.mark.At, "event %d of %s", e.mark.Seq, a.Agent)
		}
	}
	if p.Status != "" && p.Status != reducer.Completed {
		found["turn_done"].Text = p.Status
	}
	if found["read"].Evidence == nil && (t.State == mailbox.Owed || t.State == mailbox.Done) {
		set("read", time.Time{}, "it lies in %s", it.Where)
	}
	if sender != nil {
		if ack, err := sender.Get(AckID(m.ID, a)); err == nil {
			set("acked", ack.SentAt, "ack %s in the mailbox of %s", ack.ID.Short(6), m.From.Agent)
			found["acked"].Text = ack.Body
		}
		if reply := Replies(ctx, sender, m.ID, a); len(reply) > 0 {
			set("replied", reply[0].SentAt, "message %s in the mailbox of %s", reply[0].ID.Short(6), m.From.Agent)
			found["replied"].Text = reply[0].Title()
			if m.RequiresAck && found["acked"].Evidence == nil {
				set("acked", reply[0].SentAt, "the reply")
			}
		}
	}
	lease := ""
	if it != nil {
		show := letter.Renderer{Now: time.Now(), Team: a.Team}
		lease = show.Lease(LeaseFlags(it))
	}
	switch {
	case t.State == mailbox.Unread && it.Lease != nil:
		t.Gate = fmt.Sprintf("%s: atm wait --acked %s", lease, m.ID.Short(6))
	case t.State == mailbox.Unread:
		row, err := team.Glance(a.Agent)
		if err == nil {
			why := ""
			if live != nil && row.Running {
				why = live(ctx, b)
			}
			t.Gate = gate(row, p, m, why, time.Now(), team.RunAgain)
			if why := team.Withheld(m, a.Agent); why != "" {
				t.Gate = "unread; " + why
			}
			if lease != "" {
				t.Gate = lease + "; " + t.Gate
			}
		}
	case t.State == mailbox.Owed && found["acked"].Evidence == nil:
		t.Gate = fmt.Sprintf("%s has not acknowledged it: atm wait --acked %s", a.Agent, m.ID.Short(6))
	}
	return t
}

// gate says what keeps an unread message from its recipient, and what to do.
// why is what the recipient's runner says to that, again the command that runs a
// member that is off.
func gate(m Member, p *Passage, msg *wire.Message, why string, now time.Time, again func(wire.Name) string) string {
	since := ""
	if m.Since != nil {
		since = " since " + letter.Span(now.Sub(*m.Since))
	}
	say := func(format string, args ...any) string { return "unread; " + fmt.Sprintf(format, args...) }
	name := m.Name
	switch {
	case m.State == reducer.WordPerson:
		return say("%s is a person, who reads it when they look", name)
	case msg.Expired(now):
		return say("it has expired: nobody brings it to %s any more, who may still read it", name)
	case p.Announced.Is() && p.pointed && !m.Running:
		return say("%s was told of it, and is off%s without having called atm read: %s", name, since, again(name))
	case p.Announced.Is() && !m.Running:
		return say("it was handed to %s, and counts as read when its hooks are next called: atm status %s", name, name)
	case m.Running:
		return say("%s", m.runs(p, msg, why, since, now))
	case m.State == reducer.WordBlocked:
		return say("%s waits for an answer itself (%s)%s: atm status %s", name, m.about(), since, name)
	case m.State == reducer.WordBusy && m.handed():
		return say("%s is busy%s, and gets it in the course of this turn: atm wait --idle %s", name, since, name)
	case m.State == reducer.WordOff:
		return say("%s is off%s, and gets it when it runs again: %s", name, since, again(name))
	case m.handed():
		return say("%s gets it when its next turn begins: atm wait --busy %s", name, name)
	}
	return say("no runner brings mail to %s, who reads it with atm read", name)
}

// runs is gate for one who runs under a runner.
func (m Member) runs(p *Passage, msg *wire.Message, why, since string, now time.Time) string {
	name := m.Name
	failed := ""
	if p.Failed.Is() {
		failed = fmt.Sprintf("typing it in failed %s (%s)", letter.Age(now, p.Failed.At), letter.Clip(letter.Escape(p.Reason), 80))
	}
	switch {
	case m.Inject == "off":
		return fmt.Sprintf("nothing is typed into %s (inject is off), who reads it with atm read", name)
	case msg.Expired(now):
		return fmt.Sprintf("it has expired, and is not typed into %s any more", name)
	case m.Detail == "not answering":
		return fmt.Sprintf("the runner of %s does not answer: atm doctor", name)
	case m.State == reducer.WordBlocked || why == "dialog" || why == "it asks something":
		about := m.about()
		if m.State != reducer.WordBlocked || about == "" {
			about, since = "a dialog", ""
		}
		if w := m.WaitingOn; w != nil && w.Dialog == policy.DialogTrust {
			return fmt.Sprintf("%s asks whether a directory is trusted, which only a person at its terminal answers%s: atm attach %s", name, since, name)
		}
		return fmt.Sprintf("%s waits for an answer itself (%s)%s: atm pending, then atm approve %s, or atm attach %s", name, about, since, name, name)
	case strings.Contains(why, "draft"), why == "" && p.Reason == "draft" && failed != "":
		return fmt.Sprintf("somebody has begun to write in the prompt of %s, and nothing is typed over that: atm attach %s sends or clears it", name, name)
	case why == "a person types":
		return fmt.Sprintf("a person is typing into %s; it is typed in when they pause: atm wait --busy %s", name, name)
	case m.State == reducer.WordBusy || why == "busy":
		return fmt.Sprintf("%s is busy%s, and gets it when it is idle: atm wait --idle %s", name, since, name)
	case m.State == reducer.WordStarting:
		return fmt.Sprintf("%s is starting%s, and gets it at its first prompt: atm screen %s", name, since, name)
	case m.State == reducer.WordError:
		return fmt.Sprintf("%s stopped with an error (%s)%s: atm screen %s", name, m.about(), since, name)
	case strings.HasPrefix(p.Reason, "what atm itself says"):
		return fmt.Sprintf("%s: atm read --as %s", p.Reason, name)
	case failed != "":
		return fmt.Sprintf("%s, and is tried again: atm screen %s", failed, name)
	case p.typing:
		return fmt.Sprintf("it is being typed into %s: atm trace %s in a moment", name, msg.ID.Short(6))
	case p.Announced.Is() && p.pointed:
		return fmt.Sprintf("%s was told of it, and has not called atm read yet: atm screen %s", name, name)
	case p.Announced.Is():
		return fmt.Sprintf("it was handed to %s, and counts as read when its hooks are next called: atm status %s", name, name)
	case why != "":
		return fmt.Sprintf("%s shows no prompt that mail could be typed into (%s): atm screen %s", name, letter.Escape(why), name)
	case m.State == reducer.WordIdle:
		return fmt.Sprintf("%s is idle, and gets it in a moment: atm wait --busy %s", name, name)
	}
	return fmt.Sprintf("%s runs and has not taken it: atm screen %s", name, name)
}
