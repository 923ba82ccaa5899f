package follow

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/agents/codex/appserver"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// recover asks the server what it has of the thread.
func (f *follower) recover(ctx context.Context) error {
	loaded, err := f.client.Loaded(ctx)
	if err == nil && !slices.Contains(loaded, f.thread) {
		err = errNotLoaded
	}
	if err != nil {
		return err
	}
	thread, err := f.client.Read(ctx, f.thread)
	if err != nil {
		return err
	}
	f.status = thread.Status
	if err := f.reread(ctx); err != nil {
		return err
	}
	if thread.Status.IsIdle() { // it may have failed before anybody listened
		turns, err := f.client.Turns(ctx, f.thread, 1)
		if err = ignoreRefusal(err); err != nil {
			return err
		}
		if len(turns) > 0 {
			err = f.endFailed(ctx, turns[0])
		}
		if err != nil {
			return err
		}
	}
	return f.note(f.untaken)
}

// findNew follows the thread that the program shows since its person has begun another conversation (/new): of that no hook
// tells before its first prompt. If another program may show that one, the mail waits, and the note says why.
func (f *follower) findNew(ctx context.Context) error {
	newest, err := f.client.Newest(ctx)
	if err != nil || newest <= f.thread { // their ids are in order of time
		return err
	}
	root := f.team.Root()
	if _, _, isBound := programs.MemberOfThread(root, newest); isBound {
		return nil
	}
	p, ok := programs.Conversation(f.team, f.box.Agent(), f.thread)
	t, err := f.client.Read(ctx, newest)
	if err != nil || !ok {
		return err
	}
	its := process.Variables(process.Environment(p.PID))
	_, shows, names := programs.FindProgram(root, newest, t.Dir, true, func(name string) string { return its[name] })
	switch {
	case len(names) == 0, len(names) == 1 && shows.PID != p.PID: // it is another program's
		return nil
	case len(names) > 1:
		return errUnclear
	}
	p.Session, f.thread = newest, newest
	if err := programs.Note(f.team, f.box.Agent(), p, true); err != nil {
		return err
	}
	return errOther
}

// errUnclear is why a program takes no mail.
var errUnclear = errors.New("which conversation it shows cannot be told before somebody writes there")

// endFailed reports the end of a turn that failed, if nobody has: Codex calls no hook then.
func (f *follower) endFailed(ctx context.Context, t appserver.Turn) error {
	if t.Status != "failed" {
		return nil
	}
	s, err := f.team.State(f.box.Agent())
	if err != nil {
		return nil // the next look may tell
	}
	ses := s.SessionOf(f.thread)
	if ses == nil || ses.Turn.ID != t.ID || !ses.Turn.IsOpen() {
		return nil
	}
	why := ""
	if t.Error != nil {
		why = wire.Clip(t.Error.Message, 1000)
	}
	event := func(kind string) wire.Event {
		e := wire.Event{Source: wire.SourceHook, Kind: kind, Session: f.thread, EventID: "codex/" + kind + "/" + t.ID}
		return e.With("transport", "hook")
	}
	ended, idle := event(wire.TurnCompleted).With(wire.FieldStatus, reducer.Failed), event(wire.TurnIdle)
	ended.TurnID, idle.TurnID = t.ID, t.ID
	events := []wire.Event{event(wire.StreamError).With(wire.FieldErrorSummary, why), ended, idle}
	if until := agents.LimitEnd(why, time.Now(), time.Now()); !until.IsZero() {
		events = append(events, event(wire.StateChange).With(wire.FieldNew, string(reducer.Limited)).With(wire.FieldDetail, why).With("until", until.UTC().Format(time.RFC3339)))
	}
	if err := f.box.Log().Append(ctx, events...); err != nil && ctx.Err() == nil {
		f.log.Error("noting a turn that failed", "err", err)
	}
	return nil
}

// note notes that the server gives the mail to the conversation, or why it does not. A full disk changes nothing else.
func (f *follower) note(shut error) error {
	p, err := f.shows()
	if err != nil {
		return err
	}
	f.shut = shut
	why := ""
	if shut != nil {
		why = shut.Error()
	}
	if err := programs.NoteServer(f.team, f.box.Agent(), p, f.socket, why); err != nil {
		f.log.Error("noting the server", "err", err)
	}
	return nil
}

// goAlong reports whether the mail is for the conversation that is followed. If a person has used another one since, in
// another window or in this one, it is that which is followed from now on: errOther.
func (f *follower) goAlong() (isMine bool, err error) {
	if f.ofRun != "" {
		return true, nil
	}
	p, _ := programs.Bound(f.team, f.box.Agent())
	if p.Session == f.thread || p.Tool != codexTool || !isThread(p.Session) {
		return p.Session == f.thread, nil
	}
	if f.thread = p.Session; f.hasFound {
		f.socket = ""
	}
	return false, errOther
}

// shows returns the program under the name that shows the conversation. If none does any more it is errEnded, or errOther:
// see goAlong.
func (f *follower) shows() (programs.Program, error) {
	p, ok := programs.Conversation(f.team, f.box.Agent(), f.thread)
	if ok {
		return p, nil
	}
	_, err := f.goAlong()
	return p, cmp.Or(err, errEnded)
}

// checkBound is shows, for an agent that is there, and that atm runs or does not as when this began.
func (f *follower) checkBound() error {
	if err := f.box.CheckPresent(); errors.Is(err, maildir.ErrNoAgent) {
		return errEnded
	}
	running, err := f.team.Running(f.box.Agent())
	if f.ofRun != "" {
		if err == nil && !running || f.team.RunOf(f.box.Agent()) != f.ofRun || !f.program.IsRunning() {
			return errEnded
		}
		if f.thread == "" {
			return nil
		}
	} else if running && err == nil {
		return errEnded // a runner gives it the mail
	}
	_, err = f.shows()
	return err
}

// listen subscribes to the thread, or ends that.
func (f *follower) listen(ctx context.Context, wants bool) (err error) {
	switch {
	case wants == f.isListening:
		return nil
	case !wants:
		f.isListening = false
		return f.client.Unsubscribe(ctx, f.thread)
	}
	_, err = f.client.Resume(ctx, f.thread)
	if appserver.IsRefusal(err) { // the first turn has only begun
		return nil
	}
	f.isListening = err == nil
	if err == nil { // what has happened meanwhile
		err = f.settle(ctx, "")
	}
	return err
}
