package follow

import (
	"context"
	"errors"
	"slices"

	"github.com/agentteammail/atm/internal/maildir"
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
	if f.inside, err = f.queue(ctx); err != nil { // first: what leaves it meanwhile is among the items
		return err
	}
	if err := f.settle(ctx, ""); err != nil {
		return err
	}
	return f.note(f.untaken)
}

// note notes that the server gives the mail to the conversation, or why it does not. A full disk changes nothing else.
func (f *follower) note(shut error) error {
	p, ok := f.team.Conversation(f.box.Agent(), f.thread)
	if !ok {
		return errEnded
	}
	f.shut = shut
	why := ""
	if shut != nil {
		why = shut.Error()
	}
	if err := f.team.NoteServer(f.box.Agent(), p, f.socket, why); err != nil {
		f.log.Error("noting the server", "err", err)
	}
	return nil
}

// checkBound returns errEnded unless a program under the name still shows the conversation.
func (f *follower) checkBound() error {
	if err := f.box.CheckPresent(); errors.Is(err, maildir.ErrNoAgent) {
		return errEnded
	}
	if running, err := f.team.Running(f.box.Agent()); running && err == nil {
		return errEnded // a runner gives it the mail
	}
	if _, ok := f.team.Conversation(f.box.Agent(), f.thread); !ok {
		return errEnded
	}
	return nil
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
	if isRefusal(err) { // the first turn has only begun
		return nil
	}
	f.isListening = err == nil
	if err == nil { // what has happened meanwhile
		err = f.settle(ctx, "")
	}
	return err
}
