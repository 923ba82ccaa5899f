package install

import (
	"os"
	"path/filepath"
)

// Status is what a tool's configuration says of our hooks.
type Status struct {
	Tool      string
	Local     bool   // of this worktree, else the user's
	Path      string // the file that has the hooks, or would
	Installed bool
	Current   bool   // Install would change nothing of that file
	Broken    string // a program that the hooks run and that is not there; ""
}

// Status looks whether a tool's hooks are installed. A file that cannot be read
// or understood, or that a repository tracks, is an error: Install would refuse
// it as well.
func (p *Place) Status(tool string, local bool) (Status, error) {
	st := Status{Tool: tool, Local: local}
	r := Request{Tool: tool, Local: local}
	pl, err := p.plan(r)
	if err != nil {
		return st, err
	}
	pt := pl.parts[0] // the one with the hooks
	st.Path = pt.path
	s, err := p.open(r, pt)
	if err != nil {
		return st, err
	}
	if st.Installed = pt.ours(s); !st.Installed {
		return st, nil
	}
	for _, words := range pt.commands {
		if path := filepath.FromSlash(words[0]); filepath.IsAbs(path) {
			if _, err := os.Stat(path); err != nil {
				st.Broken = path
			}
		}
	}
	err = s.install(pt)
	st.Current = !s.changed()
	return st, err
}
