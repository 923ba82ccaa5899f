package sessions

import (
	"context"
	"errors"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// withhold says why mail is kept, and why human input must not be typed now. An abort never is: it is carried out.
func (f *follower) withhold(m *wire.Message) string {
	in, ok := session.InputOf(m)
	_, counts := f.Store.InputOf(f.agent, m)
	if in.Kind == foreign.HumanAbort && counts {
		f.run.Retry("sessions", f.carryOutAborts)
		return "an abort is not typed"
	}
	if why := f.WhyKept(m); why != "" || !ok || in.Kind == foreign.HumanAbort { // one that does not count is mail: body
		return why
	}
	all, _ := f.read() // sync logs the error
	why, _ := session.WithholdReason(m, all, f.Mute)
	if why != "" {
		f.lock.Lock()
		defer f.lock.Unlock()
		f.held[m.ID] = m
	}
	return why
}

// body returns a message's body, and for a verdict on a draft a sentence: "approve draft 6f1c…" would read as if the
// agent were to approve it. A verdict that does not count stays what it is, with a line that says so.
func (f *follower) body(m *wire.Message) string {
	in, ok := session.InputOf(m)
	_, counts := f.Store.InputOf(f.agent, m)
	switch {
	case ok && in.Kind == foreign.HumanAbort && !counts:
		return "(asks to abort the session, which only a command does: atm session abort " + string(f.agent) + ")\n" + letter.Typable(m.Body)
	case !ok || !in.IsVerdict():
		return m.Body
	case !counts:
		return "(an answer to a draft that does not count: atm pending)\n" + letter.Typable(m.Body)
	}
	what := "Your draft " + string(in.DraftID)
	if in.ArtifactURI != nil {
		what = *in.ArtifactURI + " in your draft " + string(in.DraftID)
	}
	switch {
	case in.Kind == foreign.HumanApprove:
		return what + " is approved."
	case in.Reason != "":
		return what + " is rejected: " + in.Reason
	}
	return what + " is rejected."
}

// carryOutAborts carries out the unread aborts.
func (f *follower) carryOutAborts() error {
	aborts, err := f.Store.UnreadAborts(context.Background(), f.agent)
	for _, in := range aborts {
		err = errors.Join(err, f.abort(in))
	}
	return err
}

// abort aborts the sessions that an abort is for, and stops the agent even if they are locked or cannot be written. The
// abort is read when all is done. The agent is not stopped by an abort that is older than this run, or whose session was
// already over.
func (f *follower) abort(in session.Input) error {
	if f.isMeant(in) && !in.ID.Time().Before(f.startedAt.Truncate(time.Millisecond)) {
		f.run.Stop("aborted by "+string(in.From.Agent), 0)
	}
	if err := f.Store.Abort(context.Background(), f.agent, in); err != nil { // it stays unread, and is tried again
		return err
	}
	return f.Store.MarkRead(context.Background(), f.agent, in)
}

// isMeant reports whether an abort is for a session of the agent that goes on, or that its sender's command has already
// aborted.
func (f *follower) isMeant(abort session.Input) bool {
	s, err := f.Store.Get(abort.Session)
	hasJustEnded := err == nil && s.State == session.Aborted && !s.UpdatedAt.Before(abort.At.Truncate(time.Millisecond))
	return abort.Session == "" || hasJustEnded || err == nil && s.State.Alive() && s.AgentID == string(f.agent)
}
