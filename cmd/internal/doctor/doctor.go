// Package doctor finds what is wrong in a root, and names the commands that mend it.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/edits"
	"github.com/agentteammail/atm/internal/teamdir/git"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// Check is one finding of the doctor.
type Check struct {
	Code     string `json:"code"`     // stable
	Severity string `json:"severity"` // ok, info, warning, error
	Message  string `json:"message"`
	Fix      string `json:"fix"` // a command that mends the problem or shows it; "" if there is none
}

// IsProblem reports whether the finding is a problem.
func (c Check) IsProblem() bool { return c.Severity == "warning" || c.Severity == "error" }

type fileSystem struct {
	remoteKind    string // "": only this kernel changes it
	isReadOnly    bool
	free          *uint64 // in bytes, for this user; nil: unknown
	isOutOfInodes bool
}

const lowDisk = 64 << 20 // the doctor warns when fewer bytes are free

type doctor struct {
	ctx         context.Context
	root        *teamdir.Root
	place       rootdir.Place
	version     string // of this atm
	fix         bool
	disk        fileSystem
	nearbyRoots []*teamdir.Root // see rootdir.Nearby
	given       app.Given       // names the team while one of several is examined
	about       string          // begins each message: "team main: ", "bob@main: "
	checks      []Check
}

// Examine looks for problems in the whole root, and for what another version of atm than this has left there. With fix it
// mends those that can be mended without a loss, else it changes nothing.
func Examine(ctx context.Context, r *teamdir.Root, p rootdir.Place, version string, fix bool) []Check {
	d := &doctor{ctx: ctx, root: r, place: p, version: version, fix: fix, disk: fileSystemAt(r.Path)}
	for _, found := range rootdir.Nearby(p, r.Path) {
		if other, err := teamdir.OpenFound(found, notices.Tell); err == nil {
			d.nearbyRoots = append(d.nearbyRoots, other)
			defer other.Close()
		}
	}
	d.checkRoot()
	d.checkFileSystem()
	names, err := r.Teams()
	if e, ok := errors.AsType[*teamdir.LocksError](err); ok {
		d.add("team.locks", "error", "mkdir -m 700 "+policy.Quote(e.Path), "%v", err)
	} else if err == nil && len(names) == 0 {
		d.add("team.none", "warning", "atm init alice bob me", "the root has no team")
	} else {
		d.addUnreadable("root.unreadable", r.Path, "%v", err)
	}
	for _, n := range names {
		if len(names) > 1 {
			d.given.Team = string(n)
		}
		t, _ := r.Team(n) // Teams has opened it
		for _, check := range []func(*teamdir.Team){d.checkAgents, d.checkLocks, d.checkConfig, d.checkSessions, d.checkEdits, d.checkMembers, d.checkBridge} {
			d.about = "team " + string(n) + ": "
			check(t)
		}
	}
	d.given.Team, d.about = "", "root: "
	d.checkStale(r.Stale(fix))
	d.about = ""
	d.checkDrivers()
	return d.checks
}

// checkDrivers reports this person's drivers that are not used because of a mistake.
func (d *doctor) checkDrivers() {
	for _, e := range agents.Own(agents.Dir()) {
		if err := e.Fault(); err != nil {
			d.add("driver.mistakes", "warning", "atm doctor --driver all", "%v", err)
		}
	}
}

// checkStale reports the unfinished files of killed commands.
func (d *doctor) checkStale(stale []string) {
	fix, outcome := "atm doctor --fix", ""
	if d.fix {
		fix, outcome = "", ", removed"
	}
	if len(stale) > 0 {
		d.add("tmp.stale", "info", fix, "%s left unfinished for 36 h%s", letter.Many(len(stale), "file"), outcome)
	}
}

// add adds a finding and escapes its message.
func (d *doctor) add(code, severity, fix, format string, args ...any) {
	d.checks = append(d.checks, Check{code, severity, letter.Escape(d.about + fmt.Sprintf(format, args...)), d.given.Commands(fix)})
}

// addUnreadable adds a finding if err says that something at path could not be read.
func (d *doctor) addUnreadable(code, path, format string, err error) {
	if err != nil {
		d.add(code, "error", d.inspect(path, err), format, err)
	}
}

// inspect is the command to type after an error at path: it allows access if that was denied, else shows the path.
func (d *doctor) inspect(path string, err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return d.forOwner("chmod -R u+rwX "+policy.Quote(path), path)
	}
	return "ls -la " + policy.Quote(path)
}

// forOwner returns fix, or for another user's path, which only its owner may chmod, a command that shows the owner.
func (d *doctor) forOwner(fix, path string) string {
	info, err := os.Lstat(path)
	if err != nil || d.place.UID <= 0 || !strings.HasPrefix(fix, "chmod ") || *durable.Owner(info) == d.place.UID {
		return fix
	}
	return "ls -ld " + policy.Quote(path)
}

// moveAway is the command that removes a file that does not belong at path. A file that cannot be opened for now stays.
func (d *doctor) moveAway(path string, err error) string {
	_, isSystem := errors.AsType[syscall.Errno](err)
	if errors.Is(err, fs.ErrPermission) || isSystem && !errors.Is(err, syscall.ENOTDIR) {
		return d.inspect(path, err)
	}
	return "mv " + policy.Quote(path) + " ."
}

func (d *doctor) checkRoot() {
	d.add("root", "ok", "", "root %s (%s)", d.root.Path, d.root.Source)
	if why := rootdir.Distrusted(d.root.Path, d.place.UID, false); why.Reason != "" {
		path := policy.Quote(d.root.Path)
		severity, fix := "warning", "chmod go-w "+path+" "+path+"/*/"
		if why.IsOthers { // you named it, or it would have been passed over
			severity, fix = "info", "ls -ld "+path+" "+path+"/*/"
		}
		d.add("root.shared", severity, fix, "the root is open to others: %s", why.Reason)
	}
	if err := d.root.CheckAccepted(d.ctx); err != nil {
		fix := "atm init --root " + policy.Quote(d.root.Path)
		if d.root.Source != rootdir.FromFlag && d.root.Source != rootdir.FromEnv {
			fix = "cd " + policy.Quote(filepath.Dir(d.root.Path)) + " && atm init"
		}
		why := err.Error()
		above, name := filepath.Split(d.root.Path)
		above = policy.Quote(filepath.Clean(above))
		unaccepted, _ := errors.AsType[*rootdir.UnacceptedError](err)
		switch {
		case errors.Is(err, git.ErrBusy):
			fix, why = "git -C "+above+" status", why+"; if no git runs, one that was killed has left its lock: remove it"
		case errors.Is(err, rootdir.ErrTracked):
			fix = "git -C " + above + " rm -r --cached " + policy.Quote(name)
		case errors.Is(err, rootdir.ErrUntrusted): // root.shared has the fix
			fix = "ls -ld " + policy.Quote(d.root.Path)
		case unaccepted != nil && unaccepted.Cause != nil:
			fix = "git -C " + above + " status"
		}
		d.add("root.unaccepted", "warning", fix,
			"%s: atm starts and answers nobody here, takes in no dropped file, and hands over no mail", why)
	}
	_, err := os.Lstat(filepath.Join(d.root.Path, rootdir.IgnoreFile))
	isSeen := errors.Is(err, fs.ErrNotExist)
	if isSeen && d.fix && rootdir.Hide(d.root.Path) == nil {
		d.add("root.visible", "ok", "", "hid the root from npm and others, with a .gitignore")
	} else if isSeen {
		d.add("root.visible", "warning", "atm doctor --fix", "the root has no .gitignore: npm, cargo and others would publish its mail")
	}
	if ignore, isSeen := rootdir.SeenByDocker(d.root.Path); isSeen {
		d.add("root.docker", "warning", "echo "+policy.Quote(filepath.Base(d.root.Path))+" >>"+policy.Quote(ignore),
			"docker would put the mail into an image that it builds beside the root")
	}
	entries, _ := os.ReadDir(d.root.Path)
	for _, e := range entries {
		if n := e.Name(); e.Type().IsRegular() && n != rootdir.FormatFile && !strings.HasPrefix(n, ".") {
			fix := d.moveAway(filepath.Join(d.root.Path, n), nil)
			d.add("drop.misplaced", "warning", fix, "%s in the root: nobody looks for mail there", n)
		}
	}
}

func (d *doctor) checkFileSystem() {
	path := policy.Quote(d.root.Path)
	if d.disk.remoteKind != "" {
		d.add("fs.remote", "warning", "atm backup root.tar",
			"the root is on %s: locks and events do not reach other machines; restore the backup to a local disk", d.disk.remoteKind)
	}
	if d.disk.isReadOnly {
		d.add("disk.read_only", "error", "df "+path,
			"the file system of %s is read-only: you can look at mail, but not send or mark it", d.root.Path)
	}
	if free := d.disk.free; free != nil && *free < lowDisk {
		d.add("disk.low", "warning", "df -h "+path,
			"%s of disk space left: atm archives old mail, but never deletes it", letter.Size(int64(*free)))
	}
	if d.disk.isOutOfInodes {
		d.add("disk.low", "warning", "df -i "+path,
			"the file system of %s has no free inode: nothing can be sent", d.root.Path)
	}
}

func (d *doctor) checkAgents(t *teamdir.Team) {
	names, _ := t.Dir().Names(".")
	d.about = ""
	for _, n := range names {
		info, err := t.Dir().Lstat(n)
		fix := d.moveAway(t.Dir().Join(n), nil)
		isIgnored := strings.HasPrefix(n, config.File) || strings.HasPrefix(n, ".")
		switch {
		case err == nil && !info.IsDir() && (n == ".files" || n == ".archive"):
			d.add("team.not_a_directory", "error", fix, "%s in team %s is not a directory", n, t.Name)
		case err != nil || isIgnored:
		case info.Mode().IsRegular():
			d.add("drop.misplaced", "warning", fix, "%s in team %s: nobody looks for mail there", n, t.Name)
		case !wire.IsName(n):
			d.add("agent.broken", "warning", fix, "%s in team %s is not a valid agent name", n, t.Name)
		case !info.IsDir():
			d.add("agent.link", "error", fix, "%s in team %s is a symbolic link, which atm does not follow", n, t.Name)
		case errors.Is(t.Box(wire.Name(n)).CheckPresent(), mailbox.ErrNoMailbox):
			d.add("agent.broken", "error", "atm team add "+n, "%s in team %s is not an agent: it has no inbox/new", n, t.Name)
		}
	}
}

func (d *doctor) checkLocks(t *teamdir.Team) {
	names, err := t.Dir().Names(".locks")
	if err == nil && !d.disk.isReadOnly {
		err = t.Dir().Writable(".locks")
	}
	d.addUnreadable("team.locks", t.Dir().Join(".locks"), "%v", err)
	if _, err := t.Locks().Held("team"); errors.Is(err, syscall.ENOLCK) || errors.Is(err, errors.ErrUnsupported) {
		d.add("fs.no_locks", "error", "df "+policy.Quote(d.root.Path), "%v: move the root to a local disk whose files can be locked", err)
	}
	for _, n := range names {
		f, err := t.Dir().Open(".locks/" + n)
		if err == nil {
			f.Close()
			continue
		}
		d.add("lock.odd", "error", d.moveAway(t.Dir().Join(".locks/"+n), err), ".locks/%s cannot be locked: %v", n, err)
	}
}

func (d *doctor) checkConfig(t *teamdir.Team) {
	c, err := t.Config()
	mistakes, edit := missingDirectories(t, c), "${EDITOR:-vi} "+policy.Quote(t.Dir().Join(config.File))
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		mistakes = append(wrong.Mistakes, mistakes...)
	} else {
		d.addUnreadable("team.toml", t.Dir().Join(config.File), "%v", err)
	}
	for _, m := range mistakes {
		d.add("team.toml", "error", edit, "team.toml: %s", m)
	}
	known := map[string]error{} // why a program cannot be started, by where it is looked for; nil: it can
	lookUp := func(program, dir, path string) error {
		key := strings.Join([]string{program, dir, path}, "\x00")
		if _, isKnown := known[key]; !isKnown {
			_, err := process.LookUp(program, dir, []string{"PATH=" + path})
			known[key] = nil
			if missing, ok := errors.AsType[process.NoProgramError](err); ok {
				known[key] = missing
			}
		}
		return known[key]
	}
	checkHome := func(what any, command []string) {
		for i, word := range command[1:] {
			isScript := strings.HasPrefix(command[i], "-") && strings.HasSuffix(command[i], "c") // sh -c
			if strings.HasPrefix(word, "~/") && !isScript || strings.HasPrefix(word, "-") && strings.Contains(word, "=~/") {
				d.add("command.home", "warning", edit, "team.toml: %v has %s, where no shell reads the ~: write the path out", what, word)
			}
		}
	}
	for i, on := range c.On {
		if len(on.Command) == 0 { // a mistake
			continue
		}
		checkHome(fmt.Sprintf("on[%d]", i), on.Command)
		if err := lookUp(on.Command[0], t.WorkDir(""), os.Getenv("PATH")); err != nil {
			d.add("command.missing", "warning", edit, "team.toml: on[%d] runs %s, which cannot be started: %v", i, on.Command[0], err)
		}
	}
	for _, n := range c.Startable() {
		m := c.Members[n]
		checkHome(n, m.Command)
		program, dir, path := m.Command[0], "", cmp.Or(m.Env["PATH"], os.Getenv("PATH"))
		if strings.Contains(program, "/") && !filepath.IsAbs(program) {
			dir = t.WorkDir(m.Cwd)
		}
		if dir != "" && m.Worktree {
			continue // the worktree may not be there yet
		}
		why := lookUp(program, dir, path)
		if running, _ := t.Running(n); why != nil && !running {
			d.add("command.missing", "warning", edit, "team.toml: %s runs %s, and atm up cannot start it: %v", n, program, why)
		}
	}
	canApprove := func(n wire.Name) bool { return t.Store.IsAgent(n) || !keep.WasRetired(t.Store, n) }
	if len(c.Approvers) > 0 && !slices.ContainsFunc(c.Approvers, canApprove) {
		d.add("approvers.retired", "warning", "atm team restore "+string(c.Approvers[0]),
			"team.toml: nobody can approve: all approvers are retired")
	}
	if exists, _ := t.Dir().Exists(config.File); exists && err == nil && len(mistakes) == 0 {
		d.add("team.toml", "ok", "", "team.toml is in order: %s, %s", letter.Many(len(c.Members), "member"), letter.Many(len(c.Rules), "rule"))
	}
}

// missingDirectories returns a mistake for each member whose directory or repository does not exist. Only these members
// cannot be started.
func missingDirectories(t *teamdir.Team, c *config.Config) (mistakes []string) {
	for _, n := range slices.Sorted(maps.Keys(c.Members)) {
		if err := t.CheckDirectory(n, c.Members[n]); err != nil {
			mistakes = append(mistakes, err.Error())
		}
	}
	return mistakes
}

func (d *doctor) checkSessions(t *teamdir.Team) {
	_, bad, err := t.Sessions().List()
	d.addUnreadable("session.unreadable", t.Dir().Join(".sessions"), "sessions: %v", err)
	for _, file := range bad {
		d.add("session.spoilt", "error", d.moveAway(file.Path, file), "%v", file)
	}
}

// checkEdits names what is damaged. The next edit of that file writes it anew.
func (d *doctor) checkEdits(t *teamdir.Team) {
	for _, name := range notices.Subscribers(t) {
		if _, err := notices.Subscriptions(t, name); err != nil {
			d.add("subscription", "warning", "atm watch --mail-me none --as "+string(name), "%s gets no mail about others: %v", name, err)
		}
	}
	damaged, err := edits.DamagedEdits(t)
	d.addUnreadable("edits.unreadable", t.Dir().Join(".edits"), "edits and claims: %v", err)
	for _, path := range damaged {
		d.add("edits.damaged", "warning", d.moveAway(path, nil), "%s is damaged: an edit or a claim is not noted", path)
	}
}

func (d *doctor) checkBridge(t *teamdir.Team) {
	hosts, err := d.root.Hosts()
	d.addUnreadable("keys.unreadable", d.root.KeysDir, "%v", err)
	boxes, err := t.Store.Outboxes()
	errs := []error{err}
	for _, b := range boxes {
		ids, err := claim.Outgoing(b)
		errs = append(errs, err)
		host, waiting := b.Address().Host, letter.Many(len(ids), "message")
		if isTrusted := slices.Contains(hosts, host); len(ids) > 0 && !isTrusted {
			d.add("bridge.untrusted", "warning", fmt.Sprintf("atm bridge trust %s KEY", host),
				"%s waiting for host %s, whose key is not trusted here", waiting, host)
		} else if len(ids) > 0 && !presence.IsBridged(t, host) {
			d.add("bridge.off", "warning", "atm bridge", "%s waiting for host %s, but no bridge runs", waiting, host)
		} else if why := presence.HeldReason(t, host); len(ids) > 0 && why != "" {
			d.add("bridge.held", "warning", "atm trace "+ids[0].Short(6), "%s waiting for host %s: %s", waiting, host, why)
		}
	}
	reasons, err := presence.RejectReasons(t)
	for _, envelope := range slices.Sorted(maps.Keys(reasons)) {
		fix := "atm bridge retry"
		reason, isUnknown := strings.CutPrefix(reasons[envelope], presence.UnknownHost)
		if host, _, _ := strings.Cut(reason, ":"); isUnknown && wire.IsName(host) && !slices.Contains(hosts, wire.Name(host)) {
			fix = "atm bridge trust " + host + " KEY; " + fix
		}
		d.add("bridge.bad", "warning", fix, "the bridge rejected %s: %s",
			t.Dir().Join(teamdir.BadEnvelopes+"/"+envelope), reasons[envelope])
	}
	d.addUnreadable("bridge.unreadable", t.Dir().Join(maildir.BridgeDir), "%v", errors.Join(append(errs, err)...))
	if _, err := presence.ReadRows(t); err != nil {
		d.add("rows.unreadable", "warning", d.moveAway(t.Dir().Join(teamdir.RowsDir), err), "%v", err)
	}
	if d.about = ""; slices.Contains(hosts, t.Name) {
		key := filepath.Join(d.root.KeysDir, "trusted", string(t.Name))
		d.add("bridge.clash", "warning", "ls -l "+policy.Quote(key),
			"%s is both a team here and a host: NAME@%[1]s means a member on that host", t.Name)
	}
}
