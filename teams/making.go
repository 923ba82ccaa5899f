package teams

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// make makes a new worktree, on the member's branch: the one that is there, else
// a new one at the HEAD of the checkout that it comes from.
func (s *site) make(ctx context.Context) (done string, err error) {
	head, err := s.git.run(ctx, s.from.Top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	var said *gitError
	switch {
	case errors.As(err, &said):
		return "", s.no("git commit --allow-empty -m first", "the repository in %s has no commit yet", shown(s.from.Top))
	case err != nil:
		return "", s.failed(err, "")
	}
	head = strings.TrimSpace(head)
	args := []string{"worktree", "add", "--no-checkout"}
	has, err := s.has(ctx, s.branch())
	if err != nil {
		return "", s.failed(err, "")
	}
	done = fmt.Sprintf("made its worktree %s on branch %s", shown(s.top), s.branch())
	if has {
		args = append(args, "--", s.top, s.branch())
		done += ", which was there"
	} else {
		switch taken, err := s.has(ctx, "atm"); {
		case err != nil:
			return "", s.failed(err, "")
		case taken:
			return "", s.no("git branch -m atm NEW-NAME", "a branch called atm keeps git from making %s", s.branch())
		}
		args = append(args, "--no-track", "-b", s.branch(), "--", s.top, head)
		done += ", at " + head[:min(len(head), 10)]
	}
	held, err := s.hold(ctx)
	if err != nil {
		return "", s.failed(err, "")
	}
	defer held.Close()
	if _, err := s.git.holding(held).run(ctx, s.from.Top, args...); err != nil {
		s.refused()
		return "", s.failed(err, "git -C "+quote(s.from.Top)+" worktree list -v")
	}
	return done, s.checkOut(ctx, held)
}

// refused takes the .making away again where git has made nothing: it is not
// there to say of what others may put there that it was never anybody's.
func (s *site) refused() {
	names, err := os.ReadDir(s.top)
	if (err == nil && len(names) == 0 || errors.Is(err, fs.ErrNotExist)) && s.admin() == "" {
		_ = s.made() // else the next one takes it away
	}
}

func (s *site) has(ctx context.Context, branch string) (bool, error) {
	_, err := s.git.run(ctx, s.from.Top, "show-ref", "--verify", "--quiet", "refs/heads/"+branch)
	var said *gitError
	if errors.As(err, &said) {
		return false, nil
	}
	return err == nil, err
}

// hold takes the .making. Whatever git is started with it holds it as well, so
// that who has it knows that none is still at work for a process that was
// killed.
func (s *site) hold(ctx context.Context) (*os.File, error) {
	if err := s.t.Dir().Mkdir(workplacesDir); err != nil {
		return nil, err
	}
	f, err := s.t.Dir().OpenFile(makingFile(s.name), os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(makingWithin); ; {
		held, err := tryFlock(f)
		switch {
		case err == nil && held:
			return f, nil
		case err == nil && time.Now().After(end):
			err = fmt.Errorf("a git that makes %s is still at work", s.top)
		case err == nil:
			select {
			case <-time.After(20 * time.Millisecond):
				continue
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		f.Close()
		return nil, err
	}
}

// checkOut checks a new worktree out for the first time. Its index appears when
// all files are there.
func (s *site) checkOut(ctx context.Context, held *os.File) error {
	gitDir, _ := gitDirAt(s.top)
	index := filepath.Join(gitDir, "index")
	if _, err := os.Lstat(index); err != nil {
		os.Remove(index + ".lock") // of a git that was killed
		if _, err := s.git.holding(held).run(ctx, s.top, "reset", "--hard", "--quiet", "--no-recurse-submodules"); err != nil {
			return s.failed(err, "git -C "+quote(s.top)+" status")
		}
	}
	return s.made()
}

// made says that the worktree is there whole.
func (s *site) made() error {
	return s.t.Dir().Remove(makingFile(s.name))
}

// resume carries on with a worktree whose making was cut off, or takes back what
// there is of it. It deletes nothing that might not be git's.
func (s *site) resume(ctx context.Context) error {
	if s.git.Path == "" {
		return s.failed(ErrNoGit, "")
	}
	held, err := s.hold(ctx)
	if err != nil {
		return s.failed(err, "")
	}
	defer held.Close()
	gitDir, _ := gitDirAt(s.top)
	wt, _ := worktreeAt(s.top)
	back, here := "", filepath.Join(s.top, ".git")
	if gitDir != "" {
		back = backOf(gitDir)
	}
	if gitDir != "" && wt.common == s.from.Common && back == here {
		if _, err := s.git.run(ctx, s.top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err == nil {
			if _, err := os.Lstat(filepath.Join(gitDir, "locked")); err == nil { // git's, while it adds one
				s.git.run(ctx, s.from.Top, "worktree", "unlock", "--", s.top)
			}
			return s.checkOut(ctx, held)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	// What somebody else put there meanwhile, a worktree of another repository or a
	// copy of another worktree, is looked at as if nothing had been cut off. What a
	// power cut left may name no place.
	ours := filepath.Dir(gitDir) == filepath.Join(s.from.Common, "worktrees") && (back == here || back == "")
	admin := s.admin()
	if admin == "" && ours {
		admin = gitDir
	}
	if admin != "" {
		if _, err := os.Lstat(filepath.Join(admin, "index")); err == nil {
			return s.made() // that may be somebody's work: it is mended as any other
		}
		if err := os.RemoveAll(admin); err != nil {
			return s.failed(err, "")
		}
	}
	if ours {
		os.Remove(here)
	}
	os.Remove(s.top) // if it is empty; else it is named
	return s.made()
}

// restore brings a worktree back that was removed by hand: its branch, and what
// was staged, are still in the repository.
func (s *site) restore(ctx context.Context) error {
	if s.git.Path == "" {
		return s.failed(ErrNoGit, "")
	}
	admin := s.admin()
	dir := workplacesDir + "/" + string(s.name)
	if err := s.t.Dir().MkdirAll(dir); err != nil {
		return s.failed(err, "")
	}
	// As git itself writes it. Files that are still there are not touched.
	if err := s.t.Dir().Replace(dir+"/.git", []byte("gitdir: "+admin+"\n"), false); err != nil {
		return s.failed(err, "")
	}
	if _, err := os.Lstat(filepath.Join(admin, "index")); errors.Is(err, fs.ErrNotExist) {
		held, err := s.hold(ctx) // nothing was ever there
		if err != nil {
			return s.failed(err, "")
		}
		defer held.Close()
		return s.checkOut(ctx, held)
	}
	// It says of each file that is there that it did not touch it, and fails then.
	_, err := s.git.run(ctx, s.top, "checkout-index", "--all", "--quiet")
	if err == nil {
		_, err = s.git.run(ctx, s.top, "update-index", "-q", "--refresh")
	}
	var said *gitError
	if errors.As(err, &said) {
		err = nil // `git status` in it says the same
	}
	if err != nil {
		return s.failed(err, "")
	}
	return nil
}
