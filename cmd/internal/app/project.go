package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir/git"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
)

// ProjectDir is the variable in which a runner names the directory that its agent works in.
const ProjectDir = "ATM_PROJECT"

// isUnasked reports whether an agent may run this command without anybody being asked: it is typed as the rules of atm
// install allow it, with the verb first. With a flag before the verb none of these rules matches, and the agent's
// program asks its person.
//
// What counts is what the shell was started with: Claude Code 2.1.197 asks nobody about "CLAUDECODE=; atm send …", nor
// about "ATM_ROOT=/other; atm read".
func (g *Given) isUnasked() bool {
	isForm := len(g.Args) > 0 && slices.Contains(policy.Unasked, g.Args[0])
	return isForm && (programs.HasMark(os.Getenv) || len(agentEnvironments()) > 0)
}

// agentEnvironments are what those processes above this one were started with that an agent's program has started.
var agentEnvironments = sync.OnceValue(func() [][]string {
	return slices.DeleteFunc(process.Inherited(), func(environment []string) bool { return !programs.HasMark(variablesOf(environment)) })
})

// inherited returns the values that a variable has there.
func inherited(variable string) (values []string) {
	for _, environment := range agentEnvironments() {
		for _, pair := range environment {
			if value, ok := strings.CutPrefix(pair, variable+"="); ok {
				values = append(values, value)
			}
		}
	}
	return values
}

// isKept reports whether a variable has the value that it has in all of them, and one of them has it.
func isKept(variable string) bool {
	above := inherited(variable)
	return len(above) > 0 && !slices.ContainsFunc(above, func(value string) bool { return value != os.Getenv(variable) })
}

// isConfined reports whether the command may open files of the project only. The tools of atm mcp count too: once they
// are allowed, nobody sees their arguments.
func (g *Given) isConfined() bool { return g.isUnasked() || g.Via == "mcp" }

// OpenFile opens a file that a flag names, also a FIFO. A confined command opens regular files of the project only.
func (g *Given) OpenFile(flag, name string) (*os.File, error) {
	return g.openFile(flag, name, os.Open)
}

// OpenRegular is OpenFile for a regular file: durable.ErrNotRegular (wrapped) for anything else.
func (g *Given) OpenRegular(flag, name string) (*os.File, error) {
	return g.openFile(flag, name, func(name string) (*os.File, error) { return durable.OpenRegular(name, os.O_RDONLY) })
}

func (g *Given) openFile(flag, name string, open func(string) (*os.File, error)) (f *os.File, err error) {
	if !g.isConfined() {
		f, err = open(name)
	} else {
		dir, rel, outside := g.inProject(flag, name, "copy it into the project")
		if outside != nil {
			return nil, outside
		}
		defer dir.Close()
		f, err = durable.OpenIn(dir, rel, os.O_RDONLY, 0)
	}
	if err != nil {
		return nil, failure.Usage("%s: %w", flag, err).WithHint("name a file that is there, by its path from here")
	}
	return f, nil
}

// MakeDir opens the directory that a flag names for files of others, and makes it. A confined command makes and opens
// one of the project only, and none that is hidden.
func (g *Given) MakeDir(flag, name string) (*os.Root, error) {
	if !g.isConfined() {
		os.Mkdir(name, 0o700) // OpenRoot reports an error
		return os.OpenRoot(name)
	}
	dir, rel, err := g.inProject(flag, name, "name one in the project")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	isHidden := func(element string) bool { return len(element) > 1 && element[0] == '.' }
	if slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), isHidden) {
		return nil, failure.Refused("%s: %s is hidden, and programs run or obey what they find in hidden directories", flag, name).
			WithHint("`%s %s attachments`", JoinFilled(" ", g.Verb, g.Word), flag)
	}
	dir.Mkdir(rel, 0o700)
	return dir.OpenRoot(rel)
}

// CheckStdin refuses to a confined command a file on stdin that is outside of the project. A shell has opened it, and
// not every program asks about that: Claude Code 2.1.197 does not. A here-document may be a file without a name.
func (g *Given) CheckStdin() error {
	stdin, isFile := g.In.(*os.File)
	if !g.isConfined() || !isFile {
		return nil
	}
	info, err := stdin.Stat()
	if err != nil || !info.Mode().IsRegular() || durable.Names(info) == 0 {
		return nil
	}
	name, err := os.Readlink("/proc/self/fd/0")
	if err != nil { // not Linux
		return failure.Refused("stdin is a file, and may be one outside of the project").WithHint("--file FILE, or a here-document")
	}
	dir, _, err := g.inProject("stdin", name, "copy it into the project")
	if err == nil {
		dir.Close()
	}
	return err
}

// inProject returns the directory of the project that a path leads to, and the path in it without links. The last
// element need not exist. advice is what else to do with a path that is outside.
func (g *Given) inProject(flag, name, advice string) (dir *os.Root, rel string, err error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		var above string
		above, err = filepath.EvalSymlinks(filepath.Dir(name))
		real = filepath.Join(above, filepath.Base(name))
	}
	if err != nil {
		real = name
	}
	if real, err = filepath.Abs(real); err != nil {
		return nil, "", err
	}
	place := g.Place()
	root, _, err := rootdir.Find(place)
	if err != nil {
		return nil, "", err
	}
	all := g.projectDirs(place, root.Path)
	for _, at := range all {
		if rel, err = filepath.Rel(at, real); err == nil && filepath.IsLocal(rel) {
			dir, err = os.OpenRoot(at)
			return dir, rel, err
		}
	}
	e := failure.Refused("%s: %s belongs to no project that atm knows, and an agent may run this without being asked", flag, name)
	hint := ""
	if len(all) > 0 {
		e = failure.Refused("%s: %s is outside of the project, %s, and an agent may run this without being asked", flag, name, all[0])
		hint = advice + "; or "
	}
	if g.Via == "mcp" {
		return nil, "", e.WithHint("%sask a person to send it", hint)
	}
	return nil, "", e.WithHint("%slet your person decide: `%s`", hint, askedForm(root.Path, g.Args))
}

// askedForm is a command that none of the rules of atm install allows.
func askedForm(root string, words []string) string {
	return policy.QuoteAll(append([]string{"atm", "--root", root}, words...))
}

// projectDirs returns the directories of an agent's project, without links, the inner ones first: the one that its
// runner names, the one that its program has started atm mcp in, the linked worktree around the working directory, and
// the one that holds the root. The working directory of a command is the agent's choice, and what is in the root its
// work.
func (g *Given) projectDirs(p rootdir.Place, root string) (dirs []string) {
	add := func(dir string) {
		real, err := filepath.EvalSymlinks(dir)
		home, _ := filepath.EvalSymlinks(p.Home)
		if err == nil && filepath.IsAbs(real) && real != home && real != filepath.Dir(real) {
			dirs = append(dirs, real)
		}
	}
	if isKept(ProjectDir) {
		add(os.Getenv(ProjectDir))
	}
	if !g.isUnasked() {
		add(p.Dir)
	}
	if filepath.Base(root) != rootdir.Name {
		return dirs
	}
	top := filepath.Dir(root)
	if wd, err := filepath.EvalSymlinks(p.Dir); err == nil {
		if c, ok := git.Nearest(wd); ok && c.Main == top {
			add(c.Top)
		}
	}
	add(top)
	return dirs
}

// MayClaim refuses to claim what is outside of the project: hooks have others' edits refused. An agent may not claim all of
// it either.
func (s *Scope) MayClaim(path string) error {
	real, err := durable.RealPath(path)
	if err != nil {
		return err
	}
	root := s.Root.Path
	if !slices.ContainsFunc(s.Given.projectDirs(s.Given.Place(), root), func(dir string) bool { return isWithin(dir, real) }) {
		return failure.Refused("%s is outside of the project", letter.Quote(path, 300)).WithHint("`atm claim PATH`, of a file or directory in it")
	}
	_, isTop := git.At(real)
	isWhole := isTop || filepath.Base(root) == rootdir.Name && isWithin(real, filepath.Dir(root))
	if s.Actor().IsAgent && isWhole {
		return failure.Refused("an agent may not claim the whole project").WithHint("`atm claim PATH`, of what you edit")
	}
	return nil
}

// isWithin reports whether a path is a directory or in it.
func isWithin(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// checkNamedRoot refuses --root to a command that nobody is asked about, unless it names the root in force, or one in
// the project; and an ATM_ROOT that is not the one of the agent's program.
func (g *Given) checkNamedRoot(p rootdir.Place, named rootdir.Found) error {
	if p.Flag == "" && p.Env == "" || !g.isUnasked() {
		return nil
	}
	isChanged := p.Env != "" && len(inherited("ATM_ROOT")) > 0 && !isKept("ATM_ROOT")
	switch {
	case !isChanged && p.Flag == "":
		return nil
	case p.Flag == "":
		return failure.Refused("ATM_ROOT was changed, to the team of another project: %s", named.Path).
			WithHint("leave it as it is; or let your person decide: `%s`", askedForm(named.Path, g.Args))
	case isChanged:
		p.Env = ""
	}
	flag := p.Flag
	p.Flag = ""
	own, _, err := rootdir.Find(p)
	isNear := func(dir string) bool { return isWithin(dir, named.Path) }
	if err == nil && (own.Path == named.Path || slices.ContainsFunc(g.projectDirs(p, own.Path), isNear)) {
		return nil
	}
	return failure.Refused("--root names the team of another project: %s", named.Path).
		WithHint("leave it out; or let your person decide: `%s`", askedForm(flag, withoutFlag(g.Args, "--root")))
}

// withoutFlag removes a flag and its value.
func withoutFlag(words []string, flag string) []string {
	i := slices.IndexFunc(words, func(w string) bool { return w == flag || strings.HasPrefix(w, flag+"=") })
	if i < 0 {
		return words
	}
	n := 1
	if words[i] == flag {
		n = 2
	}
	return slices.Delete(slices.Clone(words), i, min(i+n, len(words)))
}
