package mailbox

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

const (
	retiredDir   = ".archive/retired"
	retiredStamp = "20060102T150405.000000000Z"
)

// Retire moves an agent's whole mailbox, with its unread mail, to the archive, and
// returns where to, below the team's directory. ErrRunning while it is run.
func (s *Store) Retire(ctx context.Context, agent wire.Name) (string, error) {
	b := s.Box(agent)
	// None may start while the mailbox goes. Shared, as who probes has it: to them the
	// agent does not run.
	runner, err := s.locks.Lock(ctx, string(agent)+".runner", lockfile.Shared, probesEnd, b.Present)
	var held *lockfile.HeldError
	if errors.As(err, &held) {
		return "", fmt.Errorf("%s %w", b.Address(), ErrRunning)
	}
	if err != nil {
		return "", err
	}
	defer runner.Unlock()
	unlock, err := b.lockAll(ctx, b.Present)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := b.Present(); err != nil {
		return "", err
	}
	if err := s.root.MkdirAll(retiredDir); err != nil {
		return "", err
	}
	as := path.Join(retiredDir, string(agent)+"."+time.Now().UTC().Format(retiredStamp))
	if err := s.root.Move(b.in(), as); err != nil {
		return "", err
	}
	return as, errors.Join(s.root.Sync(retiredDir), s.root.Sync("."))
}

// lockAll takes the locks under which a whole mailbox may be moved.
func (b *Box) lockAll(ctx context.Context, seen func() error) (unlock func(), err error) {
	var held []func()
	unlock = func() {
		for _, unlock := range slices.Backward(held) {
			unlock()
		}
	}
	for _, name := range []string{"team", b.in() + ".inbox", b.in() + ".reader", b.in() + ".events"} {
		check := seen
		if name == "team" {
			check = nil
		}
		l, err := b.store.lock(ctx, name, lockfile.Exclusive, check)
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, l)
	}
	return unlock, nil
}

// Retired lists the retired mailboxes' directory names, the oldest of each agent first.
func (s *Store) Retired() ([]string, error) {
	names, err := s.root.Names(retiredDir)
	return slices.DeleteFunc(names, func(n string) bool {
		name, stamp, _ := strings.Cut(n, ".")
		_, err := time.Parse(retiredStamp, stamp)
		return err != nil || !wire.IsName(name)
	}), err
}

// LastRetired is the directory of the agent's mailbox that was retired last, as Retired
// lists it; ErrNoAgent when there is none.
func (s *Store) LastRetired(agent wire.Name) (string, error) {
	all, err := s.Retired()
	for _, n := range slices.Backward(all) {
		if strings.HasPrefix(n, string(agent)+".") {
			return n, err
		}
	}
	return "", errors.Join(err, fmt.Errorf("no retired mailbox of %s: %w", agent, ErrNoAgent))
}

// Restore brings a retired mailbox of an agent back: which, as Retired lists them, or
// the last when that is "". ErrExists while an agent of that name lives, ErrNoAgent
// when none was retired.
func (s *Store) Restore(ctx context.Context, agent wire.Name, which string) error {
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
	if there, err := s.root.Exists(b.in()); err != nil {
		return err
	} else if there {
		return fmt.Errorf("%s: %w", b.Address(), ErrExists)
	}
	found, err := find()
	if err != nil {
		return err
	}
	if err := s.root.Move(path.Join(retiredDir, found), b.in()); err != nil {
		return err
	}
	return errors.Join(s.root.Sync("."), s.root.Sync(retiredDir))
}
