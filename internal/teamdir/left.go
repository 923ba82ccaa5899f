package teamdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

// In a member's run directory runners, hooks and programs write what they go by: rules, whose processes are the agent's,
// where a program listens. Nobody reads that before it acts. So when somebody accepts a root, what did not come from here
// goes, and where rules were, noRules stay: a session that was judged by them is judged by nobody's, until its
// program is started again.

// Left is what came with a root in a run directory.
type Left struct {
	Team  wire.Name
	Dir   string   // in the team
	Names []string // of the files and directories in it that are removed
}

// Left lists what is removed when the root is accepted of what somebody else may have brought. A runner that lives has
// written its files itself, but for those that git has written over them.
func (r *Root) Left(brought rootdir.Brought) (all []Left) {
	teams, _ := r.Teams()
	for _, name := range teams {
		t, _ := r.Team(name) // Teams has opened it
		for _, dir := range t.runDirs() {
			if l := t.left(dir, brought); len(l.Names) > 0 {
				all = append(all, l)
			}
		}
	}
	return all
}

// runDirs lists the run directories: also of what is no member yet, and of retired ones.
func (t *Team) runDirs() (dirs []string) {
	const retired = maildir.RetiredDir
	for _, in := range []string{".", retired} {
		names, _ := t.Dir().Names(in)
		for _, name := range names {
			dir := path.Join(in, name, "run")
			if isThere, _ := t.Dir().Exists(dir); isThere && (in == retired || wire.IsName(name)) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

func (t *Team) left(dir string, brought rootdir.Brought) Left {
	l, inRoot := Left{Team: t.Name, Dir: dir}, string(t.Name)+"/"+dir
	if !brought.Has(inRoot) {
		return l
	}
	names, err := t.Dir().Names(dir)
	if err != nil { // no directory
		l.Names = []string{"."}
		return l
	}
	isRunning := false
	if member := path.Dir(dir); wire.IsName(member) {
		isRunning, _ = t.Running(wire.Name(member))
	}
	l.Names = slices.DeleteFunc(names, func(name string) bool {
		data, _ := t.Dir().ReadFile(path.Join(dir, name), int64(len(noRules)))
		return string(data) == noRules || isInert(name) || isRunning && !(rootdir.Brought{Files: brought.Files}).Has(inRoot+"/"+name)
	})
	return l
}

// isInert reports whether nothing goes by a file in a run directory: recordings, a log, the mark of a member of a
// vendor's own team.
func isInert(name string) bool {
	return name == "run.log" || all.Find(name) != nil || strings.HasPrefix(name, "screen.") && strings.HasSuffix(name, ".cast")
}

// RemoveLeft removes what Left has listed.
func (r *Root) RemoveLeft(all []Left) (errs error) {
	for _, l := range all {
		t, err := r.Team(l.Team)
		for _, name := range l.Names {
			if err == nil {
				err = t.Dir().RemoveAll(path.Join(l.Dir, name))
			}
		}
		if err == nil && slices.Contains(l.Names, policyFile) {
			err = t.Dir().Replace(path.Join(l.Dir, policyFile), []byte(noRules), true)
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("remove what came with the root: %w", err))
		}
	}
	return errs
}

// FilesThatAct lists the files of the team that somebody sends, hands over, types in or takes in, each with what tells it
// from another of that name.
func (t *Team) FilesThatAct() (all []string) {
	dirs := []string{LaterDir, SubscriptionsDir}
	boxes, _ := t.Boxes()
	for _, b := range boxes {
		inbox := string(b.Agent()) + "/inbox"
		dirs = append(dirs, string(b.Agent()), inbox, inbox+"/new")
	}
	outboxes, _ := t.Store.Outboxes()
	for _, b := range outboxes {
		outbox := maildir.BridgeDir + "/" + string(b.Address().Host)
		dirs = append(dirs, outbox+"/new", outbox+"/cur")
	}
	for _, dir := range dirs {
		names, _ := t.Dir().Names(dir)
		for _, name := range names {
			name = path.Join(dir, name)
			if info, err := t.Dir().Lstat(name); err == nil && !info.IsDir() && path.Base(name) != "state.json" {
				all = append(all, fmt.Sprintf("%q %d %s", name, info.Size(), info.ModTime()))
			}
		}
	}
	return all
}

// Worktrees lists the members that have a directory in .worktrees.
func (t *Team) Worktrees() (names []wire.Name) {
	found, err := t.Dir().Names(".worktrees")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range found {
		if wire.IsName(name) {
			names = append(names, wire.Name(name))
		}
	}
	return names
}
