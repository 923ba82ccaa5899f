package claudeteam

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
)

// staleAfter is the age at which a lock counts as left by a killed process and may be broken. Tests shorten it.
var staleAfter = 10 * time.Second

// A fileLock is a lock as proper-lockfile takes it: a directory that its owner recognizes by its modification time. It
// is held for one rewrite and never refreshed, so nothing is written after half of staleAfter.
type fileLock struct {
	path    string
	modTime time.Time
}

// lock waits for the lock of a file. A timeout is a *lockfile.HeldError.
func lock(ctx context.Context, file string, timeout time.Duration) (*fileLock, error) {
	path := file + ".lock"
	for end := time.Now().Add(timeout); ; {
		mkdirErr := os.Mkdir(path, 0o755)
		info, err := os.Lstat(path)
		switch {
		case mkdirErr == nil && err == nil:
			return &fileLock{path, info.ModTime()}, nil
		case mkdirErr != nil && !errors.Is(mkdirErr, fs.ErrExist):
			return nil, mkdirErr
		case err == nil && !info.IsDir():
			return nil, fmt.Errorf("%s is a file, but Claude Code needs a directory there: remove it", path)
		case err == nil && time.Since(info.ModTime()) > staleAfter:
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("break a stale lock: %w", err)
			}
		case time.Now().After(end):
			return nil, &lockfile.HeldError{Lock: path}
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// isHeld reports whether the lock is still ours and younger than maxAge.
func (l *fileLock) isHeld(maxAge time.Duration) bool {
	info, err := os.Lstat(l.path)
	return err == nil && info.ModTime().Equal(l.modTime) && time.Since(l.modTime) < maxAge
}

func (l *fileLock) release() {
	if l.isHeld(staleAfter) {
		os.Remove(l.path)
	}
}

// rewrite durably replaces one of Claude's files, under its lock, with what change returns; nil leaves it as it is.
func (s *Sync) rewrite(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	file, dir := s.root.Join(name), path.Dir(name)
	held, err := lock(ctx, file, s.Team.LockTimeout)
	if err != nil {
		return err
	}
	defer held.release()
	info, err := s.root.Lstat(name)
	if err != nil {
		return err
	}
	old, err := s.root.ReadFile(name, maxFile)
	if err != nil {
		return err
	}
	data, err := change(old)
	if err != nil || data == nil { // a killed writer may have left the present content unsynced
		return errors.Join(err, s.root.Sync(dir))
	}
	temp := path.Join(inboxDir, tempPrefix+rand.Text()) // where checkFiles looks for what a kill left
	defer s.root.Remove(temp)
	if err := s.create(temp, data, info.Mode().Perm()); err != nil {
		return err
	}
	// Some writers take no lock, and if this process was stopped meanwhile, another may have broken ours.
	if now, err := s.root.ReadFile(name, maxFile); err != nil || !bytes.Equal(old, now) || !held.isHeld(staleAfter/2) {
		return cmp.Or(err, fmt.Errorf("another process changed %s; the next pass tries again", file))
	}
	return cmp.Or(os.Rename(s.root.Join(temp), file), s.root.Sync(dir))
}

// create makes a file with the given permissions.
func (s *Sync) create(name string, data []byte, mode fs.FileMode) error {
	err := s.root.Create(name, data)
	if err == nil {
		err = os.Chmod(s.root.Join(name), mode)
	}
	return err
}
