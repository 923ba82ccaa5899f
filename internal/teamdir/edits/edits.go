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
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/git"
	"github.com/agentteammail/atm/internal/teamdir/post"
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

	// EditWindow is how long an edit counts. Who edits a file again within it is still at it.
	EditWindow = 30 * time.Minute
)

// askGit is how long git may take to say whether a file was committed. Without an answer it was not. Tests change it.
var askGit = time.Second

// Edit says when a member last edited a file.
type Edit struct {
	By wire.Name `json:"by"`
	At time.Time `json:"at"`
	ID wire.ID   `json:"id"` // of its first edit in a row of which none is EditWindow after the last
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
}

// NoteEdit notes that a member has edited a file. If another member is at the same file, both are told, once.
func NoteEdit(ctx context.Context, t *teamdir.Team, me *maildir.Box, path string, origin *wire.Origin) error {
	path, err := editable(t, path)
	if path == "" || err != nil {
		return err
	}
	mine, others := Edit{me.Agent(), time.Now().UTC(), wire.NewID()}, []Edit(nil)
	claim, isClaimed := ClaimedBy(t, path, mine.By)
	err = changeEdits(ctx, t, path, func(f *fileEdits) {
		if i := slices.IndexFunc(f.Edits, func(e Edit) bool { return e.By == mine.By }); i >= 0 {
			mine.ID = f.Edits[i].ID
			f.Edits = slices.Delete(f.Edits, i, i+1)
		}
		others = slices.DeleteFunc(slices.Clone(f.Edits), func(e Edit) bool { return e.By == claim.By })
		f.Edits = append(f.Edits, mine)
		f.Edits = f.Edits[max(0, len(f.Edits)-maxEditors):]
	})
	if isClaimed {
		others = append(others, Edit{By: claim.By, At: claim.At})
	}
	for _, other := range others {
		if err == nil {
			err = tellPair(ctx, t, mine, other, claim, path, origin)
		}
	}
	return err
}

// tellPair tells two members that both are at a file, unless they were told, or the one that was there has committed it.
func tellPair(ctx context.Context, t *teamdir.Team, mine, other Edit, claim Claim, path string, origin *wire.Origin) error {
	me, they, edits := t.Box(mine.By), t.Box(other.By), max(mine.ID, other.ID)
	toMe, toOther := notice{me, they, edits}, notice{they, me, edits}
	if toMe.isSent() && toOther.isSent() || t.Store.MayAct(ctx) != nil {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, askGit)
	defer cancel()
	isClaim := other.By == claim.By
	if !isClaim && git.IsCommittedSince(asking, path, other.At) {
		return nil
	}
	shown, since, goOn := letter.Quote(ShownPath(t, path), 300), "edited "+letter.Ago(mine.At, other.At), "; if you go on: atm claim PATH"
	had := since
	if isClaim {
		since, goOn = "has claimed until "+letter.Stamp(claim.Until), ""
		had = "have claimed until " + letter.Stamp(claim.Until)
	}
	textToOther := fmt.Sprintf(`%s edits %s, which you %s: atm send %[1]s "…"`, mine.By, shown, had)
	textToMe := fmt.Sprintf(`you edit %s, which %s %s: atm send %[2]s "…"%[4]s`, shown, other.By, since, goOn)
	return errors.Join(toOther.send(ctx, t, me, textToOther, path, origin), toMe.send(ctx, t, me, textToMe, path, origin))
}

// A notice tells a member that another one is at a file, too. The edits have made its id, so that it comes once, whichever of
// the two sends it.
type notice struct {
	to, about *maildir.Box
	edits     wire.ID // the later one of theirs
}

func (n notice) id() wire.ID {
	return wire.Derive("edited-"+string(n.about.Agent()), n.edits, n.to.Address())
}

func (n notice) isOurs(m *wire.Message) bool {
	return post.IsNoticeFrom(n.to.Address())(m) || post.IsNoticeFrom(n.about.Address())(m)
}

// isSent reports whether it was sent, or cannot be, since the member was retired.
func (n notice) isSent() bool {
	_, err := n.to.GetDerived(n.id(), n.isOurs)
	return err == nil || !n.to.Exists()
}

func (n notice) send(ctx context.Context, t *teamdir.Team, from *maildir.Box, text, path string, origin *wire.Origin) error {
	if n.isSent() {
		return nil
	}
	payload, err := json.Marshal(map[string]string{"edited": path})
	if err != nil {
		return err
	}
	m := &wire.Message{ID: n.id(), Type: wire.TypeNotice, ReplyWanted: "no", Body: text, Payload: payload, Origin: origin}
	_, err = post.Send(ctx, t.Root(), &post.Outgoing{From: from, To: []wire.Address{n.to.Address()}, Derived: n.isOurs, Message: m})
	return err
}

// expire removes what is over, and what atm has not written.
func (f *fileEdits) expire(now time.Time) {
	isOld := func(t time.Time) bool { return now.Sub(t).Abs() >= EditWindow } // a time to come is that of a clock that was set back
	f.Edits = slices.DeleteFunc(f.Edits, func(e Edit) bool {
		return isOld(e.At) || !wire.IsName(string(e.By)) || !wire.IsID(string(e.ID))
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
		if len(f.Edits) > 1 {
			files = append(files, f)
		}
	})
	if len(files) == 0 || t.Store.MayAct(ctx) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askGit)
	defer cancel()
	for _, f := range files {
		at := slices.DeleteFunc(f.Edits, func(e Edit) bool { return git.IsCommittedSince(ctx, f.Path, e.At) })
		shown := letter.Quote(ShownPath(t, f.Path), 300)
		for i, b := range at {
			for _, a := range at[:i] { // the older one
				all = append(all, Overlap{Path: f.Path, Members: []wire.Name{min(a.By, b.By), max(a.By, b.By)}, At: b.At, Shown: shown})
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
