package rootdir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/git"
)

// RestoredFile in a root says that a backup was restored into it. It is never part of a backup.
const RestoredFile = ".restored"

// Accept records in the user's state directory that this user made or accepts the root, with what Found.Content says of
// it. It is idempotent.
func Accept(p Place, root, content string) error {
	if err := p.note(root, content); err != nil {
		return fmt.Errorf("record %s as yours: %w", root, err)
	}
	p.remember(root, nil)
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
	Reason  string // a sentence that names the root
	Unknown error  // why nobody can accept it: git did not say what it tracks there, or a restore did not finish; else nil
}

func (e *UnacceptedError) Error() string { return e.Reason }
func (e *UnacceptedError) Unwrap() error { return e.Unknown }

func (f Found) unaccepted(format string, args ...any) *UnacceptedError {
	return &UnacceptedError{Root: f.Path, Reason: fmt.Sprintf(format, args...)}
}

// CheckNoted returns an *UnacceptedError unless the user made or accepted the root, and nothing was restored into it
// since. It is the quick part of CheckAccepted.
func (f Found) CheckNoted() error {
	_, isNoted := f.place.noted(f.Path)
	return f.checkNoted(isNoted)
}

// WasNoted is CheckNoted with the note as Find has seen it, for a command that begins.
func (f Found) WasNoted() error { return f.checkNoted(f.isNoted) }

func (f Found) checkNoted(isNoted bool) error {
	if err := CheckRestored(f.Path); err != nil {
		e := f.unaccepted("%v", err)
		e.Unknown = err
		return e
	}
	if _, err := os.Lstat(filepath.Join(f.Path, RestoredFile)); !durable.IsAbsent(err) {
		return f.unaccepted("a backup was restored into %s, and nobody here has accepted it since", f.Path)
	}
	if f.needsNote && !isNoted {
		if f.place.State == "" {
			e := f.unaccepted("%v, so nobody can be known to have made or accepted %s", ErrNoState, f.Path)
			e.Unknown = ErrNoState
			return e
		}
		return f.unaccepted("nobody here made or accepted %s; it may have come with a clone", f.Path)
	}
	return nil
}

// CheckAccepted returns an *UnacceptedError unless the user made or accepted the root as it is now. What git writes into
// it later is found by the next call: whoever acts upon a file looks at the file first, and then calls this; what acts by
// itself uses BeforeLook. It may run git.
func (f Found) CheckAccepted(ctx context.Context) error {
	if err := f.CheckNoted(); err != nil {
		return err
	}
	content, tracked, unknown := f.Content(ctx)
	written, err := f.place.written(f.Path)
	if err == nil && len(tracked.Files) > 0 && isRunFileError(unknown) {
		f.place.remember(f.Path, append(written, tracked.Files...))
	}
	if unknown != nil {
		return f.CannotAccept(unknown)
	}
	saved, _ := f.place.noted(f.Path)
	switch {
	case err != nil:
		return f.unaccepted("%v", err)
	case content != saved.Content:
		f.place.remember(f.Path, append(written, tracked.Files...))
		return f.unaccepted("%s", tracksIn(f.Path, tracked, saved.Content != ""))
	case len(written) > 0:
		for _, name := range written {
			if _, err := os.Lstat(filepath.Join(f.Path, name)); err == nil && tracked.Count == 0 {
				return f.unaccepted("git has written %s in %s, and tracks it no longer", name, f.Path)
			}
		}
		f.place.remember(f.Path, nil)
	}
	return nil
}

// CannotAccept is the *UnacceptedError for an error of Content.
func (f Found) CannotAccept(unknown error) error {
	e := f.unaccepted("%v; until it is, nothing in %s acts", unknown, f.Path)
	if isRunFileError(unknown) {
		e.Reason = unknown.Error()
	}
	e.Unknown = unknown
	return e
}

// RunFileError says that git tracks what a runner writes about itself, such as the rules that an agent is judged by. Nobody
// can accept that: git writes it again at any time.
type RunFileError struct{ Root, Name string }

func (e *RunFileError) Error() string {
	return fmt.Sprintf("git tracks %s in %s, which only atm itself may write", e.Name, e.Root)
}

func isRunFileError(err error) bool {
	_, is := errors.AsType[*RunFileError](err)
	return is
}

// isRunFile reports whether a path in the root is a member's run directory, or in one.
func isRunFile(name string) bool {
	_, below, _ := strings.Cut(strings.ToLower(filepath.ToSlash(name)), "/") // git may write it in another case
	below = strings.TrimPrefix(below, ".archive/retired/")
	parts := strings.SplitN(below, "/", 3)
	return len(parts) > 1 && parts[1] == "run"
}

// Brought is what of a root somebody else may have brought.
type Brought struct {
	All   bool     // this user has never accepted it
	Files []string // which git has written
}

// Brought returns what somebody else may have brought: all, unless this user has once made or accepted the directory. What
// a backup restores is none of it.
func (f Found) Brought() Brought {
	written, err := f.place.written(f.Path)
	_, isNoted := f.place.noted(f.Path)
	return Brought{All: !isNoted || err != nil, Files: written}
}

// Has reports whether a file or a directory of the root, or anything below it, may be somebody else's.
func (b Brought) Has(name string) bool {
	name = strings.ToLower(name)
	return b.All || slices.ContainsFunc(b.Files, func(file string) bool {
		file = strings.ToLower(filepath.ToSlash(file))
		return file == "." || file == name || strings.HasPrefix(file, name+"/") || strings.HasPrefix(name, file+"/")
	})
}

// BeforeLook is called before files of the root are looked at, and mayAct after it: that is CheckAccepted for what was
// seen in between, even if git has removed it already.
func (f Found) BeforeLook() (mayAct func(context.Context) error) {
	before := f.gitState()
	return func(ctx context.Context) error {
		err := f.CheckAccepted(ctx)
		if err == nil && !f.gitState().Equal(before) {
			err = &UnacceptedError{Root: f.Path, Reason: "git was at work around " + f.Path, Unknown: git.ErrBusy}
		}
		return err
	}
}

func (f Found) gitState() (s git.State) {
	for _, path := range append([]string{f.Path}, f.links...) {
		s = append(s, git.StateAt(path)...)
	}
	return s
}

// tracksIn says in words what git tracks in a root.
func tracksIn(root string, t git.Tracked, wasAccepted bool) string {
	example := ""
	for _, name := range t.Files {
		if example == "" || filepath.Base(name) == config.File {
			example = name
		}
	}
	text := fmt.Sprintf("git tracks %d files in %s, such as %s", t.Count, root, example)
	switch {
	case t.Count == 0:
		text = "git tracks nothing in " + root
	case example == ".": // a link or a submodule
		text = "git tracks " + root
	case t.Count == 1:
		text = "git tracks " + example + " in " + root
	}
	if wasAccepted {
		text += "; that has changed since you accepted it"
	}
	return text
}

// Content says what Accept accepts: a digest of what git tracks in the root and of each team.toml there, which git may
// change without its index; "" if git tracks nothing in it. If the root was named through links, git may track those. A
// *RunFileError if git tracks what nobody can accept.
func (f Found) Content(ctx context.Context) (content string, tracked git.Tracked, err error) {
	for _, path := range append([]string{f.Path}, f.links...) {
		t, err := f.trackedAt(ctx, path)
		if err != nil {
			return "", tracked, err
		}
		tracked.Digest += t.Digest
		tracked.Count += t.Count
		for _, name := range t.Files {
			if rel, err := filepath.Rel(f.Path, filepath.Join(path, name)); err == nil {
				tracked.Files = append(tracked.Files, rel)
			}
		}
	}
	if i := slices.IndexFunc(tracked.Files, isRunFile); i >= 0 {
		return "", tracked, &RunFileError{f.Path, tracked.Files[i]}
	}
	if tracked.Count == 0 {
		return "", tracked, nil
	}
	sum := sha256.New()
	fmt.Fprintln(sum, tracked.Digest)
	dir, err := durable.Open(f.Path)
	if err != nil {
		return "", tracked, err
	}
	defer dir.Close()
	names, err := dir.Names(".")
	for _, team := range names {
		if data, err := dir.ReadFile(team+"/"+config.File, config.MaxSize); err == nil {
			fmt.Fprintf(sum, "%s %d\n%s", team, len(data), data)
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), tracked, err
}

// trackedAt is git.TrackedAt; it waits for a git process that is quick.
func (f Found) trackedAt(ctx context.Context, path string) (t git.Tracked, err error) {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		t, err = git.TrackedAt(ctx, f.place.Environ, path)
		if !errors.Is(err, git.ErrBusy) || time.Since(began) > time.Second || ctx.Err() != nil {
			return t, err
		}
	}
}

// DistrustReason returns why a root found by search is not trusted, as in "owned by uid 1001" or "its team main is
// writable by everybody"; "" if it is. It checks the directory and the directories in it whose names do not begin with
// a dot. With group, write permission for the group is a reason too; an accepted root may have it. A uid below 0 skips
// these checks.
func DistrustReason(root string, uid int, group bool) string {
	why, err := distrustReason(root, uid, group)
	if err != nil {
		return "it cannot be examined: " + err.Error()
	}
	return why
}

// distrustReason is DistrustReason with the error that kept it from examining a root that is trusted so far.
func distrustReason(root string, uid int, group bool) (why string, err error) {
	info, err := os.Lstat(root)
	if err != nil {
		return "", err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return "it is a symbolic link, which counts only if you name it", nil
	}
	if why := distrust(info, uid, group); why != "" {
		return why, nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return "", err
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
		if why := distrust(info, uid, group); why != "" {
			return "its team " + e.Name() + " is " + why, nil
		}
	}
	return "", nil
}

func distrust(info fs.FileInfo, uid int, group bool) string {
	owner, perm := durable.Owner(info), info.Mode().Perm()
	switch {
	case uid < 0:
		return ""
	case owner == nil:
		return "owned by nobody known"
	case *owner != uid:
		return fmt.Sprintf("owned by uid %d", *owner)
	case perm&0o002 != 0:
		return "writable by everybody"
	case group && perm&0o020 != 0:
		return "writable by its group and not accepted yet"
	}
	return ""
}
