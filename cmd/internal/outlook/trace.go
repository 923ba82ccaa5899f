package outlook

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// A Trace is how far a message got at one recipient, and what its next stage waits for.
type Trace struct {
	*post.Progress
	Gate failure.Hint `json:"gate,omitempty"` // and a command that helps
	When When         `json:"when,omitempty"` // an unread message will be seen

	Before []wire.ID `json:"before,omitempty"` // the unread messages that the recipient gets first

	again func(*teamdir.Team, wire.Name) string // the command that runs a member again
}

// TraceOf returns the progress of a message at one recipient. again returns the command that runs a member again.
func TraceOf(answers *post.Answers, r *teamdir.Root, m *wire.Message, a wire.Address, again func(*teamdir.Team, wire.Name) string) Trace {
	t := Trace{Progress: answers.Trace(m, a), again: again}
	if from, err := r.Team(m.From.Team); t.State == wire.Later && err == nil {
		out := later(from, m)
		t.Gate, t.When, t.Due = out.Why(), out.When, ""
		return t
	}
	if !r.IsRemote(a) {
		t.Gate = t.localGate(r, m, a)
	} else if team, err := r.Team(a.Team); err == nil {
		t.Gate = t.remoteGate(team, m, a)
	}
	return t
}

func (t *Trace) localGate(r *teamdir.Root, m *wire.Message, a wire.Address) failure.Hint {
	in := func(hint failure.Hint) failure.Hint { return inRootOf(r, a, hint) }
	unknown, _ := errors.AsType[*teamdir.UnknownError](t.Err)
	other, _ := errors.AsType[*teamdir.LinkError](t.Err)
	switch {
	case other != nil:
		return failure.Say("%s cannot be looked at: %v", a, other)
	case t.State == "bad":
		return in(failure.Say("it cannot be read there: %v; `atm doctor`", t.Err))
	case unknown != nil && unknown.Retired:
		return in(failure.Say("%s is retired; its mail is kept: `atm team restore %s --team %s`", a, a.Agent, a.Team))
	case unknown != nil || errors.Is(t.Err, teamdir.ErrNoTeam):
		return in(failure.Say("%s has no mailbox here: `atm team`", a))
	case t.Delivery == nil:
		return in(failure.Say("the mailbox of %s cannot be read: `atm doctor`", a))
	// It need not be read to be answered: an answer may be a dropped file.
	case t.Err != nil, t.Reached("acked"), t.Reached("replied"):
		return ""
	}
	team, err := r.TeamOf(a)
	if err != nil {
		return failure.Say("%v", err)
	}
	if t.State == wire.Unread {
		return in(t.unreadGate(team, a.Agent))
	}
	why := failure.Hint("")
	if d := t.Delivery; d.Turn != nil && !d.Turn.HasEnded() {
		why = in(t.turnGate(team, a.Agent, m))
	}
	if why == "" && t.State == wire.Owed {
		why = ackGate(m, a)
	}
	return why
}

// inRootOf returns a hint whose commands are about a recipient: if that one is of another root, they name it, but for those of
// the sender.
func inRootOf(r *teamdir.Root, a wire.Address, hint failure.Hint) failure.Hint {
	t, err := r.TeamOf(a)
	if err != nil || t.Root() == r {
		return hint
	}
	return hint.Map(func(command string) string {
		if strings.HasPrefix(command, "atm withdraw ") || strings.HasPrefix(command, "atm wait --acked ") {
			return command
		}
		verb, program, runs := strings.Cut(command, " -- ")
		if verb += " --root " + policy.Quote(t.Root().Path); runs {
			verb += " -- " + program
		}
		return verb
	})
}

func (t *Trace) remoteGate(team *teamdir.Team, m *wire.Message, a wire.Address) failure.Hint {
	switch isInOutbox := t.Err == nil; {
	case isInOutbox && t.State == wire.Withdrawn:
	case isInOutbox:
		return bridged(team, a.Host).Why()
	case t.State == wire.Owed:
		return ackGate(m, a)
	case t.State != "", m.From.Host != "": // its own host knows more
	case t.Returned != nil:
		return failure.Say("it was returned: `atm show %s`", t.Returned.ID.Short(6))
	case errors.Is(t.Err, mailbox.ErrNotFound):
		return failure.Say("it was sent; host %s has reported nothing yet", a.Host)
	default:
		return failure.Say("atm cannot tell whether it was sent: %v", t.Err)
	}
	return ""
}

func ackGate(m *wire.Message, a wire.Address) failure.Hint {
	return failure.Say("%s has not acknowledged it: `atm wait --acked %s`", a.Agent, m.ID.Short(6))
}

// unreadGate says what an unread message waits for, and a command that helps.
func (t *Trace) unreadGate(team *teamdir.Team, name wire.Name) failure.Hint {
	it := t.Item
	lease := (&letter.Renderer{Now: time.Now(), Team: team.Name}).Lease(post.LeaseFlags(it))
	if it.Lease != nil {
		return failure.Say("%s: `atm wait --acked %s`", lease, it.ID.Short(6))
	}
	m, err := presence.One(context.Background(), team, name)
	if err != nil {
		return failure.Say("%s", lease)
	}
	isShared, _ := claim.Shared(team.Box(name))
	folder, _, _ := team.Box(name).Locate(it.ID)
	h := folder.Holder()
	out := mail{
		message: it.Message, to: m.ToMail(), item: it, delivery: t.Delivery, hold: team.HoldReason(it.Message, name), isShared: isShared,
		isVain: h.IsGivenUp() && !h.IsLive(time.Now(), m.Running),
		again:  t.again(team, name),
	}.outlook()
	t.When = out.When
	why := "unread; " + out.Why()
	if out.When.isInTurn() {
		t.Before, _ = team.Box(name).UnreadIDs()
		t.Before = t.Before[:max(slices.Index(t.Before, it.ID), 0)]
	}
	if n := len(t.Before); n > 0 {
		ids := make([]string, min(n, shownBefore))
		for i := range ids {
			ids[i] = t.Before[n-1-i].Short(6)
		}
		why = failure.Say("unread; %d before it (%s); %s", n, strings.Join(ids, " "), out.Why())
	}
	if lease != "" {
		why = failure.Say("%s; %s", lease, why)
	}
	if isShared && it.TimesHandedOut > 0 {
		for _, by := range post.Decliners(team.Box(name), it.ID) {
			why = failure.Say("declined by %s; %s", by.Agent, why)
		}
	}
	return why
}

// shownBefore is how many of the messages before one its trace names: the last ones.
const shownBefore = 5

// turnGate says what a member's open turn waits for, and a command that helps; "": unknown.
func (t *Trace) turnGate(team *teamdir.Team, name wire.Name, m *wire.Message) failure.Hint {
	to, err := presence.One(context.Background(), team, name)
	if err != nil {
		return ""
	}
	return mail{message: m, to: &to, again: t.again(team, name)}.turn()
}
