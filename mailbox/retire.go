package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// retiredStamp ends the name of a retired mailbox: it sorts by time.
const retiredStamp = "20060102T150405.000000000Z"

// Retire moves a whole mailbox, its unread mail with it, to the archive.
// ErrRunning while a runner holds it. It returns where the mailbox went, below
// the team's directory.
func (s *Store) Retire(ctx context.Context, agent wire.Name) (string, error) {
	b := s.Box(agent)
	if running, err := s.Running(agent); err != nil {
		return "", err
	} else if running {
		return "", fmt.Errorf("%s %w", b.Address(), ErrRunning)
	}
	// None may start while the mailbox goes. Shared, as who probes has it: to them
	// the agent does not run.
	runner, err := s.locks.Lock(ctx, string(agent)+".runner", lockfile.Shared, probesEnd, b.seen)
	var held *lockfile.HeldError
	if errors.As(err, &held) {
		return "", fmt.Errorf("%s %w", b.Address(), ErrRunning)
	}
	if err != nil {
		return "", err
	}
	defer runner.Unlock()
	unlock, err := b.lockAll(ctx, b.seen)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := b.seen(); err != nil {
		return "", err
	}
	retired, err := s.dir.Make(".archive", "retired")
	if err != nil {
		return "", err
	}
	defer retired.Close()
	as := string(agent) + "." + time.Now().UTC().Format(retiredStamp)
	if err := atomicfile.Move(s.dir, string(agent), retired, as); err != nil {
		return "", err
	}
	return ".archive/retired/" + as, errors.Join(retired.Sync(), s.dir.Sync())
}

// lockAll takes the locks under which a whole mailbox may be moved, and says to
// who keeps a part of it open that it will be.
func (b *Box) lockAll(ctx context.Context, seen func() error) (unlock func(), err error) {
	var all []*lockfile.Lock
	unlock = func() {
		for _, l := range slices.Backward(all) {
			l.Unlock()
		}
	}
	for _, name := range []string{"team", string(b.agent) + ".inbox", string(b.agent) + ".reader", string(b.agent) + ".events"} {
		check := seen
		if name == "team" {
			check = nil
		}
		l, err := b.store.locks.Lock(ctx, name, lockfile.Exclusive, b.store.timeout(), check)
		if err != nil {
			unlock()
			return nil, err
		}
		all = append(all, l)
	}
	for _, l := range all {
		l.Moved()
	}
	return unlock, nil
}

// Retired lists the retired mailboxes' directory names, the oldest first.
func (s *Store) Retired() ([]string, error) {
	d, err := s.dir.Walk(".archive", "retired")
	if atomicfile.Absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var out []string
	err = d.Names(func(names []string) bool {
		for _, n := range names {
			name, stamp, ok := strings.Cut(n, ".")
			if _, err := wire.ParseName(name); err != nil || !ok {
				continue
			}
			if _, err := time.Parse(retiredStamp, stamp); err == nil {
				out = append(out, n)
			}
		}
		return true
	})
	slices.Sort(out)
	return out, err
}

// LastRetired is the directory of the agent's mailbox that was retired last, as
// Retired lists it; ErrNoAgent when there is none.
func (s *Store) LastRetired(agent wire.Name) (string, error) {
	all, err := s.Retired()
	if err != nil {
		return "", err
	}
	newest := ""
	for _, n := range all {
		if name, _, _ := strings.Cut(n, "."); name == string(agent) {
			newest = n
		}
	}
	if newest == "" {
		return "", fmt.Errorf("no retired mailbox of %s: %w", agent, ErrNoAgent)
	}
	return newest, nil
}

// Restore brings the mailbox of an agent that was retired last back. ErrExists
// while an agent of that name lives, ErrNoAgent when none was retired.
func (s *Store) Restore(ctx context.Context, agent wire.Name) error {
	return s.RestoreOne(ctx, agent, "")
}

// RestoreOne is Restore for one of several of that name, as Retired lists them;
// "" for the last.
func (s *Store) RestoreOne(ctx context.Context, agent wire.Name, which string) error {
	find := func() (string, error) {
		if which == "" {
			return s.LastRetired(agent)
		}
		if all, err := s.Retired(); err != nil || slices.Contains(all, which) && strings.HasPrefix(which, string(agent)+".") {
			return which, err
		}
		return "", fmt.Errorf("no retired mailbox %q: %w", which, ErrNoAgent)
	}
	b := s.Box(agent)
	if _, err := find(); err != nil && !b.Exists() {
		return err
	}
	unlock, err := b.lockAll(ctx, nil)
	if err != nil {
		return err
	}
	defer unlock()
	if has, err := s.dir.Has(string(agent)); err != nil {
		return err
	} else if has {
		return fmt.Errorf("%s: %w", b.Address(), ErrExists)
	}
	found, err := find()
	if err != nil {
		return err
	}
	retired, err := s.dir.Walk(".archive", "retired")
	if err != nil {
		return err
	}
	defer retired.Close()
	if err := atomicfile.Move(retired, found, s.dir, string(agent)); err != nil {
		return err
	}
	return errors.Join(s.dir.Sync(), retired.Sync())
}
