// Package edits knows who edits which file of a repository and who has claimed it, and tells those who do so at once.
package edits

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/git"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// Two members at one file. Each has it noted when it has edited a file, in a file of a few hundred bytes:
//
//	<team>/.edits/<sha256>.json    of the real path: a worktree's file is another one than the main worktree's
//
// Who edits what another member has edited within EditWindow, and not committed since, or has claimed, is told, and so
// is the other. Nothing here is synced: it says what was lately, and a power cut makes it old. A damaged file counts as
// none, and the next edit writes it anew.

const (
	maxEditFile = 64 << 10
	maxEditors  = 16 // of one file
	maxPath     = 4096

	// EditWindow is how long an edit counts, and how long a pair that was told is not told again, from the last time
	// that both were at the file.
	EditWindow = 30 * time.Minute
)

// askGit is how long git may take to say whether a file was committed. Without an answer it was not. Tests change it.
var askGit = time.Second

// Edit says when a member last edited a file.
type Edit struct {
	By wire.Name `json:"by"`
	At time.Time `json:"at"`
}

// Overlap is a file that two members are at.
type Overlap struct {
	Path    string      `json:"path"`
	Members []wire.Name `json:"members"` // two, by name
	At      time.Time   `json:"at"`      // when one of them last edited it
	Shown   string      `json:"-"`       // Path for people
}

// fileEdits is the content of a file in .edits.
type fileEdits struct {
	Path  string `json:"path"`
	Edits []Edit `json:"edits,omitempty"` // the last of each member, the newest last
	Claim *Claim `json:"claim,omitempty"`
	Told  []told `json:"told,omitempty"`
}

// told is a pair that is told, once, that both are at the file.
type told struct {
	Overlap
	ID     wire.ID   `json:"id"`    // of the messages
	Begun  time.Time `json:"begun"` // when somebody began to send them
	IsSent bool      `json:"is_sent"`
}

// sendEdits is how long it takes at most to send the messages. Whoever has not by then was killed.
const sendEdits = 10 * time.Second

// NoteEdit notes that a member has edited a file. If another member is at the same file, both are told, once.
func NoteEdit(ctx context.Context, t *teamdir.Team, me *maildir.Box, path string, origin *wire.Origin) error {
	path, err := editable(t, path)
	if path == "" || err != nil {
		return err
	}
	now, by := time.Now().UTC(), me.Agent()
	claim, isClaimed := ClaimedBy(t, path, by)
	var others []Edit // by whom both are not told yet
	err = changeEdits(ctx, t, path, func(f *fileEdits) {
		f.Edits = slices.DeleteFunc(f.Edits, func(e Edit) bool { return e.By == by })
		others = slices.DeleteFunc(slices.Clone(f.Edits), func(e Edit) bool { return e.By == claim.By })
		if isClaimed {
			others = append(others, Edit{claim.By, claim.At})
		}
		others = slices.DeleteFunc(others, func(e Edit) bool { return f.isTold(by, e.By, now) })
		f.Edits = append(f.Edits, Edit{by, now})
		f.Edits = f.Edits[max(0, len(f.Edits)-maxEditors):]
	})
	if err != nil || len(others) == 0 || t.Store.MayAct(ctx) != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, askGit)
	defer cancel()
	others = slices.DeleteFunc(others, func(e Edit) bool {
		return e.By != claim.By && git.IsCommittedSince(asking, path, e.At)
	})
	ids := map[wire.Name]wire.ID{}
	err = changeEdits(ctx, t, path, func(f *fileEdits) {
		others = slices.DeleteFunc(others, func(e Edit) bool { return f.isTold(by, e.By, now) }) // meanwhile
		for _, e := range others {
			p := f.pair(by, e.By)
			p.At, p.Begun = now, now
			ids[e.By] = p.ID
		}
	})
	for _, e := range others {
		if err != nil {
			return err
		}
		shown := letter.Quote(ShownPath(t, path), 300)
		toOther := fmt.Sprintf(`%s edits %s, which you edited %s: atm send %[1]s "…"`, by, shown, letter.Ago(now, e.At))
		toMe := fmt.Sprintf(`you edit %s, which %s edited %s: atm send %[2]s "…"; if you go on: atm claim PATH`, shown, e.By, letter.Ago(now, e.At))
		if e.By == claim.By {
			until := letter.Stamp(claim.Until)
			toOther = fmt.Sprintf(`%s edits %s, which you have claimed until %s: atm send %[1]s "…"`, by, shown, until)
			toMe = fmt.Sprintf(`you edit %s, which %s has claimed until %s: atm send %[2]s "…"`, shown, e.By, until)
		}
		err = errors.Join(tellEdit(ctx, t, me, e.By, ids[e.By], toOther, path, origin), tellEdit(ctx, t, me, by, ids[e.By], toMe, path, origin))
		if err == nil {
			err = changeEdits(ctx, t, path, func(f *fileEdits) {
				p := f.pair(by, e.By)
				p.At, p.IsSent = now, true
			})
		}
	}
	return err
}

// tellEdit sends a notice, once for an id.
func tellEdit(ctx context.Context, t *teamdir.Team, me *maildir.Box, to wire.Name, id wire.ID, text, path string, origin *wire.Origin) error {
	if !t.Box(to).Exists() {
		return nil // it was retired
	}
	payload, err := json.Marshal(map[string]string{"edited": path})
	if err != nil {
		return err
	}
	_, err = post.Send(ctx, t.Root(), &post.Outgoing{
		From: me, To: []wire.Address{t.Box(to).Address()}, Derived: post.IsNoticeFrom(me.Address()),
		Message: &wire.Message{
			ID: wire.Derive("edited", id, t.Box(to).Address()), Type: wire.TypeNotice, ReplyWanted: "no",
			Body: text, Payload: payload, Origin: origin,
		},
	})
	return err
}

// isTold reports whether a pair has been told, or somebody is about to. It notes that the pair is still at the file.
func (f *fileEdits) isTold(a, b wire.Name, now time.Time) bool {
	i := f.indexOf(a, b)
	if i < 0 || !f.Told[i].IsSent && now.Sub(f.Told[i].Begun).Abs() > sendEdits {
		return false
	}
	f.Told[i].At = now
	return true
}

func (f *fileEdits) indexOf(a, b wire.Name) int {
	return slices.IndexFunc(f.Told, func(p told) bool { return slices.Contains(p.Members, a) && slices.Contains(p.Members, b) })
}

func (f *fileEdits) pair(a, b wire.Name) *told {
	i := f.indexOf(a, b)
	if i < 0 {
		members := []wire.Name{min(a, b), max(a, b)}
		i, f.Told = len(f.Told), append(f.Told, told{Overlap: Overlap{Path: f.Path, Members: members}, ID: wire.NewID()})
	}
	return &f.Told[i]
}

// expire removes what is over, and what atm has not written.
func (f *fileEdits) expire(now time.Time) {
	isOld := func(t time.Time) bool { return now.Sub(t).Abs() >= EditWindow } // a time to come is that of a clock that was set back
	f.Edits = slices.DeleteFunc(f.Edits, func(e Edit) bool { return isOld(e.At) || !wire.IsName(string(e.By)) })
	f.Told = slices.DeleteFunc(f.Told, func(p told) bool {
		isPair := len(p.Members) == 2 && wire.IsName(string(p.Members[0])) && wire.IsName(string(p.Members[1]))
		return isOld(p.At) || !isPair || !wire.IsID(string(p.ID))
	})
	if f.Claim != nil && !f.Claim.holds(now) {
		f.Claim = nil
	}
}

// lockEdits calls f under the lock of what is noted of files.
func lockEdits(ctx context.Context, t *teamdir.Team, f func() error) error {
	l, err := t.Locks().Lock(ctx, "edits", lockfile.Exclusive, t.LockWait(), nil)
	if err != nil {
		return err
	}
	defer l.Unlock()
	return f()
}

// changeEdits changes what is noted of a file, under the lock.
func changeEdits(ctx context.Context, t *teamdir.Team, path string, change func(*fileEdits)) error {
	return lockEdits(ctx, t, func() error { return writeEdits(t, path, change) })
}

// writeEdits is changeEdits under a lock that is held.
func writeEdits(t *teamdir.Team, path string, change func(*fileEdits)) error {
	f, _ := readEdits(t, editsName(path))
	f.Path = path
	f.expire(time.Now())
	change(&f)
	if f.Claim == nil && len(f.Edits) == 0 {
		return t.Dir().Remove(editsName(path))
	}
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	err = t.Dir().Replace(editsName(path), append(data, '\n'), false)
	if errors.Is(err, fs.ErrNotExist) {
		if err = t.Dir().Mkdir(teamdir.EditsDir); err == nil {
			err = t.Dir().Replace(editsName(path), append(data, '\n'), false)
		}
	}
	return err
}

func editsName(path string) string {
	return fmt.Sprintf("%s/%x.json", teamdir.EditsDir, sha256.Sum256([]byte(path)))
}

// readEdits reads a file of .edits. One that is damaged has nothing, and an error.
func readEdits(t *teamdir.Team, name string) (f fileEdits, err error) {
	err = t.Dir().ReadJSON(name, maxEditFile, &f)
	if err == nil && editsName(f.Path) != name {
		err = errors.New("it is for another path than its name says")
	}
	if err != nil {
		f = fileEdits{}
	}
	return f, err
}

// editable returns the real path of a file that members may be at together; "": it is in the root, where each has its own.
func editable(t *teamdir.Team, path string) (string, error) {
	if len(path) > maxPath || !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%s is no absolute path of a file", letter.Quote(path, 80))
	}
	path, err := durable.RealPath(filepath.Clean(path))
	root, rootErr := filepath.EvalSymlinks(t.Root().Path)
	if err != nil || rootErr != nil || isWithin(root, path) && !isWithin(filepath.Join(root, string(t.Name), ".worktrees"), path) {
		return "", err
	}
	return path, nil
}

// isWithin reports whether a clean path is dir or in it.
func isWithin(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator)))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}

// ShownPath returns a path as it is shown: relative to the directory of the root, if it is in there.
func ShownPath(t *teamdir.Team, path string) string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(t.Root().Path))
	if err == nil && isWithin(dir, path) {
		path, _ = filepath.Rel(dir, path)
	}
	return path
}

// Overlaps returns the files that two members are at, the newest first. What one of them has committed since is none,
// and what cannot be read: doctor names it. In a root that nobody has accepted there are none: it may name a repository
// of its own, which git would be run in.
func Overlaps(ctx context.Context, t *teamdir.Team) (all []Overlap) {
	var files []fileEdits
	eachEdits(t, func(f fileEdits) {
		if len(f.Told) > 0 {
			files = append(files, f)
		}
	})
	if len(files) == 0 || t.Store.MayAct(ctx) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askGit)
	defer cancel()
	for _, f := range files {
		for _, pair := range f.Told {
			isOver := slices.ContainsFunc(f.Edits, func(e Edit) bool {
				return slices.Contains(pair.Members, e.By) && git.IsCommittedSince(ctx, f.Path, e.At)
			})
			if !isOver {
				pair.Path, pair.Shown = f.Path, letter.Quote(ShownPath(t, f.Path), 300)
				all = append(all, pair.Overlap)
			}
		}
	}
	slices.SortFunc(all, func(a, b Overlap) int { return b.At.Compare(a.At) })
	return all
}

// eachEdits calls f for each file of .edits, without what is over.
func eachEdits(t *teamdir.Team, f func(fileEdits)) error {
	names, err := t.Dir().Names(teamdir.EditsDir)
	for _, name := range names {
		if edits, err := readEdits(t, teamdir.EditsDir+"/"+name); err == nil {
			edits.expire(time.Now())
			f(edits)
		}
	}
	return err
}

// PruneEdits removes what is over, and what a killed process has left.
func PruneEdits(ctx context.Context, t *teamdir.Team) error {
	names, err := t.Dir().Names(teamdir.EditsDir)
	if len(names) == 0 || err != nil {
		return err
	}
	return lockEdits(ctx, t, func() error {
		for _, name := range names {
			name = teamdir.EditsDir + "/" + name
			info, err := t.Dir().Lstat(name)
			if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > MaxClaim { // nothing in it can count
				t.Dir().Remove(name)
			}
		}
		return nil
	})
}

// DamagedEdits returns the paths of what is in .edits and not understood.
func DamagedEdits(t *teamdir.Team) (paths []string, err error) {
	names, err := t.Dir().Names(teamdir.EditsDir)
	for _, name := range names {
		_, bad := readEdits(t, teamdir.EditsDir+"/"+name)
		if bad != nil && !errors.Is(bad, fs.ErrNotExist) && !strings.HasPrefix(name, ".") {
			paths = append(paths, t.Dir().Join(teamdir.EditsDir+"/"+name))
		}
	}
	return paths, err
}
