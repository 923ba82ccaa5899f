package rootdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/teamdir/git"
)

// Trust is one rule. A root acts if this user has noted the directory, nobody else owns it or may write in it, and git
// tracks nothing in it. Whoever acts upon a file looks at the file first, and calls CheckAccepted then.

// RestoredFile in a root says that a backup was restored into it. It is never part of a backup.
const RestoredFile = ".restored"

// Accept records in the user's state directory that this user made or accepts the root. It is idempotent.
func Accept(p Place, root string) error {
	if err := p.note(root); err != nil {
		return fmt.Errorf("record %s as yours: %w", root, err)
	}
	dir, err := durable.Open(root)
	if err == nil {
		defer dir.Close()
		err = dir.Remove(RestoredFile)
	}
	return err
}

// UnacceptedError says why nothing in a root may act: nothing of it is started, typed, handed over, approved or obeyed.
type UnacceptedError struct {
	Root    string
	Reason  string   // a sentence that names the root
	Tracked []string // the files that git tracks there, relative to the root
	Cause   error    // what has to end before anybody can accept it, such as ErrTracked or a git at work; nil: nothing
}

func (e *UnacceptedError) Error() string { return e.Reason }
func (e *UnacceptedError) Unwrap() error { return e.Cause }

// ErrTracked says that git tracks files in a root, and so may write there at any time what nobody here has seen.
var ErrTracked = errors.New("git tracks files in it")

func (f Found) unaccepted(cause error, format string, args ...any) *UnacceptedError {
	return &UnacceptedError{Root: f.Path, Reason: fmt.Sprintf(format, args...), Cause: cause}
}

// CheckNoted returns an *UnacceptedError unless the user made or accepted the root, and nothing was restored into it
// since. It is the quick part of CheckAccepted.
func (f Found) CheckNoted() error { return f.checkNoted(f.place.noted(f.Path)) }

// WasNoted is CheckNoted with the note as Find has seen it, for a command that begins.
func (f Found) WasNoted() error { return f.checkNoted(f.isNoted) }

func (f Found) checkNoted(isNoted bool) error {
	if _, err := os.Lstat(filepath.Join(f.Path, RestoredFile)); !durable.IsAbsent(err) {
		return f.unaccepted(nil, "a backup was restored into %s, and nobody here has accepted it since", f.Path)
	}
	if f.needsNote && !isNoted {
		if f.place.State == "" {
			return f.unaccepted(ErrNoState, "%v, so nobody can be known to have made or accepted %s", ErrNoState, f.Path)
		}
		return f.unaccepted(nil, "nobody here made or accepted %s; it may have come with a clone", f.Path)
	}
	return nil
}

// CheckAccepted returns an *UnacceptedError unless the root acts now. It may run git.
func (f Found) CheckAccepted(ctx context.Context) error {
	if err := f.CheckNoted(); err != nil {
		return err
	}
	return f.CheckForeign(ctx)
}

// CheckForeign is the part of CheckAccepted that no note of this user changes: whose the directory is, and what git tracks
// in it.
func (f Found) CheckForeign(ctx context.Context) error {
	if why := Distrusted(f.Path, f.place.UID, false).Reason; f.needsNote && why != "" {
		return f.unaccepted(ErrUntrusted, "%s %v: %s", f.Path, ErrUntrusted, why)
	}
	tracked, err := f.tracked(ctx)
	switch {
	case err != nil:
		return f.unaccepted(err, "%v; until it is, nothing in %s acts", err, f.Path)
	case len(tracked) > 0:
		e := f.unaccepted(ErrTracked, "git tracks files in %s", f.Path)
		e.Tracked = tracked
		return e
	}
	return nil
}

// tracked lists what git tracks in the root. It waits for a git process that is quick.
func (f Found) tracked(ctx context.Context) (files []string, err error) {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		files, err = git.TrackedAt(ctx, f.place.Environ, f.Path)
		if !errors.Is(err, git.ErrBusy) || time.Since(began) > time.Second || ctx.Err() != nil {
			return files, err
		}
	}
}

// A Distrust is why a root that was found by search is not trusted.
type Distrust struct {
	Reason   string // as in "owned by uid 1001" or "its team main is writable by everybody"; "": it is trusted
	IsOthers bool   // the root, or a team in it, is another user's
}

// Distrusted checks a root: the directory, and the directories in it whose names do not begin with a dot. With group, write
// permission for the group is a reason too; an accepted root may have it. A uid below 0 skips these checks.
func Distrusted(root string, uid int, group bool) Distrust {
	why, err := distrusted(root, uid, group)
	if err != nil {
		return Distrust{Reason: "it cannot be examined: " + err.Error()}
	}
	return why
}

// distrusted is Distrusted with the error that kept it from examining a root that is trusted so far.
func distrusted(root string, uid int, group bool) (why Distrust, err error) {
	info, err := os.Lstat(root)
	if err != nil {
		return why, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return Distrust{Reason: "it is a symbolic link, which counts only if you name it"}, nil
	}
	if why := distrust(info, uid, group); why.Reason != "" {
		return why, nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return why, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.Type().IsRegular() {
			continue
		}
		// Not Lstat: a link in the root may point to a team.
		info, err := os.Stat(filepath.Join(root, e.Name()))
		if err != nil || !info.IsDir() {
			continue
		}
		if why := distrust(info, uid, group); why.Reason != "" {
			why.Reason = "its team " + e.Name() + " is " + why.Reason
			return why, nil
		}
	}
	return why, nil
}

func distrust(info fs.FileInfo, uid int, group bool) Distrust {
	owner, perm := durable.Owner(info), info.Mode().Perm()
	switch {
	case uid < 0:
		return Distrust{}
	case owner == nil:
		return Distrust{"owned by nobody known", true}
	case *owner != uid:
		return Distrust{fmt.Sprintf("owned by uid %d", *owner), true}
	case perm&0o002 != 0:
		return Distrust{Reason: "writable by everybody"}
	case group && perm&0o020 != 0:
		return Distrust{Reason: "writable by its group and not accepted yet"}
	}
	return Distrust{}
}
