package teamdir

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir/snapshot"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// EndPast makes everything in the root the past, which can be read and acts no more, but for team.toml and the messages that are
// still to be handed over or sent: those were shown to whoever accepts the root. It ends sessions, claims, subscriptions, what is
// owed, and what the logs have begun. It also removes what runners and hooks go by. Members that run have begun it themselves.
func (r *Root) EndPast(ctx context.Context) error {
	teams, err := r.Teams()
	errs := []error{err}
	for _, name := range teams {
		t, err := r.Team(name)
		if err == nil {
			err = t.endPast(ctx)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end what came with the root: %w", err)
	}
	return nil
}

func (t *Team) endPast(ctx context.Context) error {
	var errs []error
	for _, dir := range []string{SubscriptionsDir, EditsDir, RowsDir} {
		errs = append(errs, t.Dir().RemoveAll(dir))
	}
	sessions, _, err := t.Sessions().List()
	errs = append(errs, err)
	for _, s := range sessions {
		_, err := t.Sessions().Change(ctx, s.SessionID, func(s *session.Session) error {
			return s.Move(session.Aborted, "(its root was accepted)", time.Now())
		})
		errs = append(errs, err)
	}
	boxes, err := t.Brought()
	retired, retiredErr := keep.Retired(t.Store, "")
	errs = append(errs, err, retiredErr)
	for _, b := range append(boxes, retired...) {
		errs = append(errs, b.MakeWhole(), b.EndOwed(ctx))
	}
	names, err := t.Dir().Names(".")
	errs = append(errs, err)
	for _, name := range names { // also of what is no member yet
		b := t.Box(wire.Name(name))
		if !wire.IsName(name) || t.Dir().IsDir(name) != nil || b.IsRunning() {
			continue
		}
		errs = append(errs, t.endRun(b), endLog(ctx, b))
	}
	for _, b := range retired {
		errs = append(errs, t.endRun(b), archiveLog(b))
	}
	return errors.Join(errs...)
}

// Brought lists the mailboxes of members, and those that would be if they had all of their directories.
func (t *Team) Brought() (boxes []*maildir.Box, err error) {
	names, err := t.Dir().Names(".")
	for _, name := range names {
		if b := t.Box(wire.Name(name)); wire.IsName(name) && t.Dir().IsDir(b.In("")) == nil && t.Dir().IsDir(b.In("inbox")) == nil {
			boxes = append(boxes, b)
		}
	}
	return boxes, err
}

// endRun removes what a member's run directory has but recordings and the runner's log, which nothing goes by.
func (t *Team) endRun(b *maildir.Box) (errs error) {
	dir := b.In("run")
	names, err := t.Dir().Names(dir)
	if err != nil { // it is no directory
		return t.Dir().RemoveAll(dir)
	}
	for _, name := range names {
		if name != "run.log" && !(strings.HasPrefix(name, "screen.") && strings.HasSuffix(name, ".cast")) {
			errs = errors.Join(errs, t.Dir().RemoveAll(path.Join(dir, name)))
		}
	}
	return errs
}

// endLog ends what a log has begun.
func endLog(ctx context.Context, b *maildir.Box) error {
	seq, err := b.Log().LastSeq()
	switch {
	case errors.Is(err, maildir.ErrNoMailbox):
		return archiveLog(b)
	case err == nil && seq > 0:
		err = b.Log().AppendSync(ctx, wire.Event{Source: wire.SourceCLI, Kind: wire.FreshStart})
	}
	return errors.Join(err, snapshot.Remove(b))
}

// archiveLog archives the log of a directory that is no mailbox now: if it is one again, its log is a new one.
func archiveLog(b *maildir.Box) error {
	dir := b.Store().Dir()
	isThere, err := dir.Exists(b.In("events"))
	if err == nil && isThere {
		err = dir.MkdirAll(".archive")
	}
	if err == nil && isThere {
		err = dir.Move(b.In("events"), ".archive/"+path.Base(b.In())+".events."+string(wire.NewID()))
	}
	return errors.Join(err, snapshot.Remove(b))
}

// Worktrees lists the members that have a directory in .worktrees.
func (t *Team) Worktrees() (names []wire.Name) {
	found, _ := t.Dir().Names(".worktrees")
	for _, name := range found {
		if wire.IsName(name) {
			names = append(names, wire.Name(name))
		}
	}
	return names
}
