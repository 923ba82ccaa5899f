package keep

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// retiredStamp is the form of the time in the name of a retired mailbox.
const retiredStamp = "20060102T150405.000000000Z"

// Retire moves an agent's whole mailbox, with its unread mail, to the archive, and returns its new path below the
// team's directory, or ErrRunning while a runner runs it.
func Retire(ctx context.Context, s *maildir.Store, agent wire.Name) (string, error) {
	b := s.Box(agent)
	// No runner may start meanwhile. A shared lock is what a probe holds, so the agent does not seem to run.
	runner, err := b.LockRunner(ctx, lockfile.Shared)
	if err != nil {
		return "", err
	}
	defer runner.Unlock()
	unlock, err := lockAll(ctx, b, b.CheckPresent)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := s.Dir().MkdirAll(maildir.RetiredDir); err != nil {
		return "", err
	}
	as := path.Join(maildir.RetiredDir, string(agent)+"."+time.Now().UTC().Format(retiredStamp))
	return as, moveMailbox(s, b.In(), as)
}

// Restore moves back the first mailbox that Retired lists. Others that were retired under that name stay where they are. Errors:
// ErrExists if there is an agent of that name, ErrNoMailbox if no mailbox is listed.
func Restore(ctx context.Context, s *maildir.Store, as string) error {
	name, _, _ := strings.Cut(as, ".")
	b := s.Box(wire.Name(name))
	var kept []*maildir.Box
	unlock, err := lockAll(ctx, b, func() error {
		there, err := s.Dir().Exists(b.In())
		if there {
			err = fmt.Errorf("%s: %w", b.Address(), maildir.ErrExists)
		}
		if err == nil {
			kept, err = Retired(s, as)
		}
		if err == nil && len(kept) == 0 {
			err = fmt.Errorf("no retired mailbox of %s: %w", as, maildir.ErrNoMailbox)
		}
		return err
	})
	if err != nil {
		return err
	}
	defer unlock()
	return moveMailbox(s, kept[0].In(), b.In())
}

func moveMailbox(s *maildir.Store, from, to string) error {
	if err := s.Dir().Move(from, to); err != nil {
		return err
	}
	if err := cmp.Or(s.Dir().Sync(path.Dir(to)), s.Dir().Sync(path.Dir(from))); err != nil {
		return fmt.Errorf("moved %s to %s, but this may not survive a power cut (%w)", from, to, err)
	}
	return nil
}

// lockAll takes the locks for moving a whole mailbox, if check allows it before and after.
func lockAll(ctx context.Context, b *maildir.Box, check func() error) (unlock func(), err error) {
	unlock = func() {}
	for _, name := range []string{"team", b.LockName("inbox"), b.LockName("reader"), b.LockName("events")} {
		one, err := b.Store().Lock(ctx, name, lockfile.Exclusive, check)
		if err != nil {
			unlock()
			return nil, err
		}
		before := unlock
		unlock = func() { one(); before() }
	}
	return unlock, nil
}

// WasRetired reports whether a mailbox of that name can be restored.
func WasRetired(s *maildir.Store, agent wire.Name) bool {
	kept, _ := Retired(s, string(agent))
	return len(kept) > 0
}

// Retired lists retired mailboxes, read-only, the last retired of each agent first. as is an agent, the name of a
// directory in .archive/retired, or "" for all.
func Retired(s *maildir.Store, as string) (kept []*maildir.Box, err error) {
	names, err := s.Dir().Names(maildir.RetiredDir)
	for _, name := range slices.Backward(names) {
		agent, stamp, _ := strings.Cut(name, ".")
		_, bad := time.Parse(retiredStamp, stamp)
		if bad == nil && (as == "" || as == agent || as == name) {
			kept = append(kept, s.Box(wire.Name(path.Join(maildir.RetiredDir, name))))
		}
	}
	return kept, err
}
