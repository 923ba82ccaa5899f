package install

import (
	"errors"
	"os"
	"slices"

	"github.com/agentteammail/atm/internal/confedit"
	"github.com/agentteammail/atm/teams/git"
)

// localDir is where this worktree's own configuration lies: its top, or the
// working directory where there is no worktree.
func (p *Place) localDir() (string, error) {
	if p.Dir == "" {
		return "", errors.New("there is no working directory")
	}
	dir, err := realDirOf(p.Dir)
	if err != nil {
		return "", err
	}
	if all := git.Above(dir); len(all) > 0 {
		return all[0].Top, nil
	}
	return dir, nil
}

// exclude adds the repository's exclude file to a plan, with a line for each
// file of it. Such a line names one file, not a directory: what else is in
// .claude or its like is for git to see.
func (p *Place) exclude(pl *plan, local string) {
	all := git.Above(local)
	if len(all) == 0 {
		return
	}
	var want []string
	file := ""
	for _, pt := range pl.parts {
		f, line := all[0].ExcludeFile(pt.path)
		if f != "" {
			file, want = f, append(want, line)
		}
	}
	if file == "" {
		return
	}
	pl.parts = append(pl.parts, part{
		path: file, format: lines, shared: true,
		fill: func(s *sheet) error {
			for _, line := range want {
				if e := confedit.AddLine(s.text.Bytes(), line); e != nil {
					s.text.Apply(e)
					s.new.Values["lines"] = union(s.new.Values["lines"], []string{line})
					s.say("git does not see %s", line)
				}
			}
			// All worktrees share the file, and the lines serve each.
			if len(s.new.Values["lines"]) > 0 && !slices.Contains(s.new.Values["for"], local) {
				s.new.Values["for"] = append(s.new.Values["for"], local)
				s.renote = true
			}
			return nil
		},
		clear: func(s *sheet) error {
			noted, _ := s.old.values("lines")
			others, _ := s.old.values("for")
			others = slices.DeleteFunc(slices.Clone(others), func(top string) bool {
				_, err := os.Stat(top)
				return top == local || err != nil
			})
			if len(noted) > 0 && len(others) > 0 {
				s.new = s.old.next()
				s.new.Values["for"] = others
				s.renote = true
				return nil
			}
			for _, line := range noted {
				if e := confedit.RemoveLine(s.text.Bytes(), line); e != nil {
					s.text.Apply(e)
					s.say("git sees %s", line)
				}
			}
			return nil
		},
	})
}

// isLinked reports whether a worktree is another than the repository's main
// one.
func isLinked(top string) bool {
	all := git.Above(top)
	return len(all) > 0 && all[0].IsLinked()
}
