package maildir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// RetiredDir is where the mailboxes of retired members are, in the team's directory.
const (
	RetiredDir   = ".archive/retired"
	retiredStamp = "20060102T150405.000000000Z"
)

// Retire moves an agent's whole mailbox, with its unread mail, to the archive, and returns its new path below the
// team's directory, or ErrRunning while a runner runs it.
func (s *Store) Retire(ctx context.Context, agent wire.Name) (string, error) {
	b := s.Box(agent)
	// No runner may start meanwhile. A shared lock is what a probe holds, so the agent does not seem to run.
	runner, err := b.lockRunner(ctx, lockfile.Shared)
	if err != nil {
		return "", err
	}
	defer runner.Unlock()
	unlock, err := b.lockAll(ctx, b.CheckPresent)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := s.root.MkdirAll(RetiredDir); err != nil {
		return "", err
	}
	as := path.Join(RetiredDir, string(agent)+"."+time.Now().UTC().Format(retiredStamp))
	return as, s.moveMailbox(b.in(), as)
}

// Restore moves back the first mailbox that Retired lists, with the mail of all others of that agent, and returns how
// many messages those had. Their logs stay. Errors: ErrExists if there is an agent of that name, ErrNoAgent if no mailbox
// is listed.
func (s *Store) Restore(ctx context.Context, as string) (earlier int, err error) {
	name, _, _ := strings.Cut(as, ".")
	b := s.Box(wire.Name(name))
	var kept []*Box
	unlock, err := b.lockAll(ctx, func() error {
		there, err := s.root.Exists(b.in())
		if there {
			err = fmt.Errorf("%s: %w", b.Address(), ErrExists)
		}
		if err == nil {
			kept, err = s.Retired(as)
		}
		if err == nil && len(kept) == 0 {
			err = fmt.Errorf("no retired mailbox of %s: %w", as, ErrNoAgent)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	defer unlock()
	all, err := s.Retired(name)
	for _, other := range all {
		if err == nil && other.in() != kept[0].in() { // before it is moved back: after a kill it is done again
			err = errors.Join(kept[0].takeOver(other, "inbox", &earlier), kept[0].takeOver(other, "sent", &earlier))
		}
	}
	if err != nil {
		return earlier, err
	}
	return earlier, s.moveMailbox(kept[0].in(), b.in())
}

// takeOver moves the files at and below a directory of another mailbox to the same place here, but for messages that are
// here and names that are taken, and counts the messages of its inbox.
func (b *Box) takeOver(other *Box, dir string, messages *int) error {
	root := b.store.root
	names, err := root.Names(other.in(dir))
	if err != nil || len(names) == 0 {
		return err
	}
	if err := root.MkdirAll(b.in(dir)); err != nil {
		return err
	}
	for _, name := range names {
		file := path.Join(dir, name)
		if root.IsDir(other.in(file)) == nil {
			err = errors.Join(err, b.takeOver(other, file, messages))
			continue
		}
		isReceived := isMessageFile(name) && strings.HasPrefix(dir, "inbox/") && dir != "inbox/bad" && dir != "inbox/tmp"
		if isReceived {
			_, isHere, e := b.locate(wire.ID(strings.TrimSuffix(name, ".json")))
			if err = errors.Join(err, e); isHere || e != nil {
				continue
			}
		}
		switch e := root.Move(other.in(file), b.in(file)); {
		case e == nil && isReceived:
			*messages++
		case e != nil && !errors.Is(e, fs.ErrExist):
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, root.Sync(b.in(dir)), root.Sync(other.in(dir)))
}

func (s *Store) moveMailbox(from, to string) error {
	if err := s.root.Move(from, to); err != nil {
		return err
	}
	if err := cmp.Or(s.root.Sync(path.Dir(to)), s.root.Sync(path.Dir(from))); err != nil {
		return fmt.Errorf("moved %s to %s, but this may not survive a power cut (%w)", from, to, err)
	}
	return nil
}

// lockAll takes the locks for moving a whole mailbox, if check allows it before and after.
func (b *Box) lockAll(ctx context.Context, check func() error) (unlock func(), err error) {
	unlock = func() {}
	for _, name := range []string{"team", b.lockName("inbox"), b.lockName("reader"), b.lockName("events")} {
		one, err := b.store.lock(ctx, name, lockfile.Exclusive, check)
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
func (s *Store) WasRetired(agent wire.Name) bool {
	kept, _ := s.Retired(string(agent))
	return len(kept) > 0
}

// Retired lists retired mailboxes, read-only, the last retired of each agent first. as is an agent, the name of a
// directory in .archive/retired, or "" for all.
func (s *Store) Retired(as string) (kept []*Box, err error) {
	names, err := s.root.Names(RetiredDir)
	for _, name := range slices.Backward(names) {
		agent, stamp, _ := strings.Cut(name, ".")
		_, bad := time.Parse(retiredStamp, stamp)
		if bad == nil && (as == "" || as == agent || as == name) {
			kept = append(kept, s.Box(wire.Name(path.Join(RetiredDir, name))))
		}
	}
	return kept, err
}
