package claudeteam

import (
	"cmp"
	"context"
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
	for end := time.Now().Add(timeout); ; time.Sleep(5 * time.Millisecond) {
		mkdirErr := os.Mkdir(path, 0o755)
		info, err := os.Lstat(path)
		switch {
		case mkdirErr == nil && err == nil:
			return &fileLock{path, info.ModTime()}, nil
		case mkdirErr != nil && !errors.Is(mkdirErr, fs.ErrExist):
			return nil, mkdirErr
		case err == nil && info.IsDir() && time.Since(info.ModTime()) > staleAfter:
			if os.Remove(path) == nil {
				continue
			}
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return nil, cmp.Or(ctx.Err(), error(&lockfile.HeldError{Lock: path}))
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
	held, err := lock(ctx, s.root.Join(name), s.LockWait)
	if err != nil {
		return err
	}
	defer held.release()
	old, err := s.root.ReadFile(name, maxFile)
	if err != nil {
		return err
	}
	data, err := change(old)
	if err != nil || data == nil { // a killed writer may have left the present content unsynced
		return cmp.Or(err, s.root.Sync(path.Dir(name)))
	}
	if !held.isHeld(staleAfter / 2) { // this process was stopped meanwhile
		return fmt.Errorf("lost the lock %s", held.path)
	}
	return s.root.Replace(name, data, true)
}
