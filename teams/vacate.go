package teams

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// Vacated is what became of a member's worktree that was to be removed.
type Vacated struct {
	Top    string
	Branch string // where its commits are; "": it was on none
	Kept   string // why it is still there; "": it is removed
}

// Workplaces are the members, or those who were some, whose worktrees lie here.
func (t *Team) Workplaces() ([]wire.Name, error) {
	names, err := t.Dir().Names(workplacesDir)
	var out []wire.Name
	for _, n := range names {
		if wire.IsName(n) {
			out = append(out, wire.Name(n))
		}
	}
	return out, err
}

// Vacate removes a member's worktree if nothing is lost with it: no file that
// is neither committed nor ignored, nothing staged, no commit that is on no
// branch, nothing that is under way. Its branch stays. While the member runs it
// is mailbox.ErrRunning, and nobody starts it meanwhile.
func (t *Team) Vacate(ctx context.Context, git Git, name wire.Name) (Vacated, error) {
	v := Vacated{Top: filepath.Join(t.Dir().Path(), workplacesDir, string(name))}
	hold, err := t.HoldRunner(ctx, name)
	switch {
	case err == nil:
		defer hold.Release()
	case !errors.Is(err, mailbox.ErrNoAgent): // of one who was retired it may stay behind
		return v, err
	}
	unlock, err := t.lockWorkplace(ctx, name)
	if err != nil {
		return v, err
	}
	defer unlock()
	wt, _ := worktreeAt(v.Top)
	gitDir, _ := gitDirAt(v.Top)
	if wt.common == "" || wt.common == gitDir || backOf(gitDir) != filepath.Join(v.Top, ".git") {
		v.Kept = "it is no git worktree, or the repository does not know it"
		return v, nil
	}
	if v.Kept, v.Branch, err = git.unfinished(ctx, v.Top, gitDir); v.Kept != "" || err != nil {
		return v, err
	}
	// Not forced: git looks once more, and refuses what we have overlooked.
	_, err = git.run(ctx, v.Top, "--git-dir="+wt.common, "worktree", "remove", "--", v.Top)
	var said *gitError
	if errors.As(err, &said) {
		v.Kept, err = said.said, nil
	}
	return v, err
}

// underWay are what git leaves in a worktree's directory in the repository while
// something is not finished.
var underWay = []struct{ file, what string }{
	{"rebase-merge", "a rebase"}, {"rebase-apply", "a rebase"}, {"MERGE_HEAD", "a merge"}, {"CHERRY_PICK_HEAD", "a cherry-pick"},
	{"REVERT_HEAD", "a revert"}, {"BISECT_LOG", "a bisection"}, {"sequencer", "a row of commits"}, {"index.lock", "a git command"},
}

// unfinished says what would be lost with a worktree; "": nothing. branch is
// the one that it is on.
func (g Git) unfinished(ctx context.Context, top, gitDir string) (why, branch string, err error) {
	for _, u := range underWay {
		if _, err := os.Lstat(filepath.Join(gitDir, u.file)); err == nil {
			return u.what + " is under way in it", "", nil
		}
	}
	out, err := g.run(ctx, top, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=none")
	if err != nil {
		return "", "", err
	}
	if files := strings.Split(strings.TrimRight(out, "\x00"), "\x00"); files[0] != "" {
		return fmt.Sprintf("not committed: %s", someOf(files, func(s string) string { return s[min(3, len(s)):] })), "", nil
	}
	// What git was told not to look at it does not show.
	if out, err = g.run(ctx, top, "ls-files", "-v", "-z"); err != nil {
		return "", "", err
	}
	var hidden []string
	for f := range strings.SplitSeq(out, "\x00") {
		if len(f) < 3 {
			continue
		}
		_, there := os.Lstat(filepath.Join(top, f[2:]))
		if f[0] >= 'a' && f[0] <= 'z' || f[0] == 'S' && there == nil {
			hidden = append(hidden, f)
		}
	}
	if len(hidden) > 0 {
		return fmt.Sprintf("git was told not to look at %s", someOf(hidden, func(s string) string { return s[2:] })), "", nil
	}
	ref, err := g.run(ctx, top, "symbolic-ref", "--quiet", "HEAD")
	var said *gitError
	if err != nil && !errors.As(err, &said) {
		return "", "", err
	}
	// HEAD may be on a ref of the worktree's own (refs/worktree, refs/bisect),
	// which goes with it.
	if branch, ok := strings.CutPrefix(strings.TrimSpace(ref), "refs/heads/"); ok && err == nil {
		return "", branch, nil
	}
	out, err = g.run(ctx, top, "for-each-ref", "--count=1", "--contains", "HEAD", "refs/heads", "refs/tags", "refs/remotes")
	if err == nil && out == "" {
		why = "its HEAD is on no branch: git branch NAME there keeps what it has committed"
	}
	return why, "", err
}

// someOf names the first of some files, and how many there are.
func someOf(files []string, name func(string) string) string {
	const most = 3
	var out []string
	for _, f := range files[:min(len(files), most)] {
		out = append(out, letter.Clip(letter.Escape(name(f)), 60))
	}
	s := strings.Join(out, ", ")
	if n := len(files) - most; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}
