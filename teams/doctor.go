package teams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Check is one finding of the doctor.
type Check struct {
	Code     string `json:"code"`     // stable
	Severity string `json:"severity"` // ok, info, warning, error
	Message  string `json:"message"`
	Fix      string `json:"fix,omitempty"` // a command that mends it
}

// Wrong reports whether the finding is something to mend.
func (c Check) Wrong() bool { return c.Severity == "warning" || c.Severity == "error" }

// fileSystem is what the system tells of a file system.
type fileSystem struct {
	remote     string // its kind, if others than this kernel may change it
	isReadOnly bool
	free       *uint64 // bytes that this user may still fill; nil: not known
}

const lowDisk = 64 << 20 // bytes free below which the doctor warns

// doctor collects the findings about a root.
type doctor struct {
	ctx    context.Context
	root   *Root
	place  Place
	fix    bool
	disk   fileSystem
	checks []Check
}

// Doctor looks at everything in the root and changes nothing, unless fix is set:
// then it mends what can be mended without losing anything, and says so.
func (r *Root) Doctor(ctx context.Context, p Place, fix bool) []Check {
	d := &doctor{ctx: ctx, root: r, place: p, fix: fix, disk: fileSystemAt(r.Path)}
	for _, check := range []func(){d.checkRoot, d.checkFileSystem, d.checkDirectories} {
		check()
	}
	names, err := r.Teams()
	if err != nil {
		d.add("root.unreadable", "error", "", "%v", err)
	} else if len(names) == 0 {
		d.add("team.none", "warning", "atm init alice bob", "the root has no team")
	}
	for _, n := range names {
		t, err := r.Team(n)
		if err != nil {
			d.add("team.unreadable", "error", "", "team %s: %v", n, err)
			continue
		}
		for _, check := range []func(*Team){d.checkAgents, d.checkConfig, d.checkWorktrees, d.checkMembers} {
			check(t)
		}
	}
	return d.checks
}

// add adds a finding. What came from outside is escaped.
func (d *doctor) add(code, severity, fix, format string, args ...any) {
	d.checks = append(d.checks, Check{code, severity, letter.Escape(fmt.Sprintf(format, args...)), fix})
}

// quote makes one word of a text for a shell.
func quote(s string) string {
	if s == "" || strings.ContainsAny(s, " '\"\\$&|;<>(){}*?[]#~`!") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

func (d *doctor) checkRoot() {
	d.add("root", "ok", "", "root %s (%s)", d.root.Path, d.root.Source)
	if why := Shared(d.root.Path, d.place.UID); why != "" {
		d.add("root.shared", "warning", "chmod go-w "+quote(d.root.Path), "the root is %s", why)
	}
	if !d.root.Accepted {
		d.add("root.unaccepted", "warning", "atm init --root "+quote(d.root.Path),
			"nobody here made or accepted this root: nothing is started or handed over from it")
	}
}

func (d *doctor) checkFileSystem() {
	if d.disk.remote != "" {
		d.add("fs.remote", "warning", "atm backup root.tar",
			"the root lies on %s: locks and events do not reach other machines; restore the backup to a local disk", d.disk.remote)
	} else if err := watcher.Probe(d.root.Path); err != nil {
		d.add("fs.no_events", "warning", "", "the kernel does not report changes (%v): what waits looks every second", err)
	}
	if d.disk.isReadOnly {
		d.add("disk.read_only", "error", "", "the file system of %s is read-only: mail can be looked at, not sent or marked", d.root.Path)
	}
	if free := d.disk.free; free != nil && *free < lowDisk {
		d.add("disk.low", "warning", "", "%s free: atm moves old mail to the archive, but deletes none", letter.Size(int64(*free)))
	}
}

// checkDirectories reports what looks like a team in the root and is none.
func (d *doctor) checkDirectories() {
	dir := d.root.dir
	names, _ := dir.Names(".")
	for _, n := range names {
		inner, _ := dir.Names(n)
		hasMailbox := slices.ContainsFunc(inner, func(a string) bool { return dir.IsDir(n+"/"+a+"/inbox/new") == nil })
		if has, err := dir.Exists(n + "/.locks"); !wire.IsName(n) || has || err != nil || !hasMailbox {
			continue
		}
		if d.fix && dir.Mkdir(n+"/.locks") == nil {
			d.add("team.locks", "ok", "", "%s is a team again: its .locks was missing", n)
		} else {
			d.add("team.locks", "error", "atm doctor --fix", "%s holds mailboxes and no .locks, and so is no team", n)
		}
	}
}

// checkAgents reports what lies where a member's directory would, and is none.
func (d *doctor) checkAgents(t *Team) {
	names, _ := t.Dir().Names(".")
	for _, n := range names {
		info, err := t.Dir().Lstat(n)
		if err != nil || strings.HasPrefix(n, "team.toml") || strings.HasPrefix(n, ".") || strings.HasSuffix(n, "~") {
			continue
		}
		if info.Mode().IsRegular() {
			d.add("drop.misplaced", "warning", "", "%s in team %s lies where nobody looks for mail", n, t.Name)
			continue
		}
		if !wire.IsName(n) {
			d.add("agent.broken", "warning", "", "%s in team %s is no name of an agent", n, t.Name)
			continue
		}
		present := t.Box(wire.Name(n)).Present()
		if !info.IsDir() {
			d.add("agent.link", "error", "", "%s in team %s is a symbolic link: links are not followed", n, t.Name)
		} else if errors.Is(present, mailbox.ErrNoAgent) {
			d.add("agent.broken", "error", "atm team add "+n, "%s in team %s has no inbox/new and is no agent", n, t.Name)
		} else if present != nil {
			d.add("agent.not_a_directory", "error", "", "%s in team %s: %v", n, t.Name, present)
		}
	}
}

// checkConfig reports every mistake in team.toml, and what it and the team
// disagree about.
func (d *doctor) checkConfig(t *Team) {
	c, err := t.Config()
	mistakes := t.missingPlaces(c)
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		mistakes = append(wrong.Mistakes, mistakes...)
	} else if err != nil {
		d.add("team.toml", "error", "", "team %s: %v", t.Name, err)
	}
	for _, m := range mistakes {
		d.add("team.toml", "error", "", "team %s: team.toml, %s", t.Name, m)
	}
	if has, _ := t.Dir().Exists(config.File); has && err == nil && len(mistakes) == 0 {
		d.add("team.toml", "ok", "", "team %s: team.toml is in order: %d members, %d rules", t.Name, len(c.Members), len(c.Rules))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Members)) {
		if t.Box(name).Present() != nil {
			d.add("team.toml.member", "info", "atm team add "+string(name),
				"team %s: team.toml names %s, and there is no such mailbox yet", t.Name, name)
		}
	}
}

func (d *doctor) checkWorktrees(t *Team) {
	c, err := t.Config()
	trees, _ := t.Dir().Names(worktreesDir)
	for _, n := range trees {
		if at := worktreesDir + "/" + n; err == nil && !c.Members[wire.Name(n)].Worktree {
			d.add("worktree.left", "info", "git worktree remove "+quote(t.Dir().Join(at)),
				"team %s: %s is still there, and team.toml gives %s no worktree", t.Name, at, n)
		}
	}
}

func (d *doctor) checkMembers(t *Team) {
	boxes, err := t.Boxes()
	if err != nil {
		d.add("team.unreadable", "error", "", "team %s: %v", t.Name, err)
	}
	for _, b := range boxes {
		d.checkMailbox(b)
		d.checkRunner(t, b)
	}
	if d.fix {
		d.rebuildSent(t, boxes)
	}
	if len(boxes) > 0 {
		d.add("team", "ok", "", "team %s: %d members", t.Name, len(boxes))
	}
}

// checkMailbox reports what package mailbox finds wrong in a mailbox.
func (d *doctor) checkMailbox(b *mailbox.Box) {
	if d.fix {
		b.TakeIn(d.ctx)
	}
	h, err := b.Examine(d.fix)
	if err != nil {
		d.add("agent.unreadable", "error", "", "%s: %v", b.Address(), err)
		return
	}
	_, torn, _ := b.Walk(d.ctx, mailbox.Range{Unread: true, Limit: 500}, func(*mailbox.Item) bool { return true })
	if d.disk.isReadOnly {
		h.Closed = nil
	}
	// Of files or directories: %s in the message is a name, in the command its path.
	each := func(code, severity string, names []string, dir, fix, message string) {
		for _, name := range names {
			fix := strings.ReplaceAll(fix, "%s", quote(b.Path()+"/"+dir+name))
			d.add(code, severity, fix, "%s: "+message, b.Address(), dir+name)
		}
	}
	each("drop.not_a_file", "warning", h.NotFiles, "inbox/", "", "%s is no regular file and is never opened")
	each("drop.empty", "info", h.Empty, "inbox/", "", "%s is empty and waits for content")
	each("drop.unreadable", "warning", h.Unreadable, "inbox/", "chmod u+r %s", "%s cannot be read")
	each("drop.misplaced", "warning", h.Misplaced, "", "mv %s "+quote(b.Path()+"/inbox/"), "%s lies where nobody looks for mail")
	each("inbox.not_writable", "error", h.Closed, "", "chmod u+rwx %s", "this user cannot write in %s")
	each("events.odd", "error", h.OddEvents, "events/", "mv %s .", "%s is no part of the log")
	each("agent.not_a_directory", "error", h.NotDirs, "", "mv %s .", "%s is not a directory")
	each("mode.open", "warning", h.Open, "", "chmod 700 %s", "%s is open to everybody")
	count := func(code, severity string, n int, fix, message string) {
		if n > 0 {
			d.add(code, severity, fix, "%s: "+message, b.Address(), n)
		}
	}
	count("drop.unfinished", "warning", h.Begun, "atm doctor --fix", "%d dropped files whose taking in was cut off; the next look carries on")
	count("bad.files", "warning", h.Bad, "atm ls "+string(b.Agent())+" --bad", "%d files in inbox/bad could not be understood")
	count("message.torn", "warning", torn, "atm read --as "+string(b.Agent()), "%d files in inbox/new are not messages; reading sets them aside")
	if d.fix {
		count("tmp.stale", "info", len(h.Stale), "", "%d unfinished files older than 36 h removed")
	} else {
		count("tmp.stale", "info", len(h.Stale), "atm gc", "%d unfinished files older than 36 h")
	}
	if h.EventsErr != nil {
		d.add("events.unreadable", "error", "", "%s: the log cannot be read to its end: %v", b.Address(), h.EventsErr)
	}
	if n := len(h.EventGaps); n > 0 {
		d.add("events.gap", "warning", "", "%s: events %d to %d are missing or spoilt (%d such gaps); what they said is lost, the rest counts",
			b.Address(), h.EventGaps[0].From, h.EventGaps[0].To, n)
	}
	if h.BadClaims != nil {
		d.add("claims.bad", "error", "mv "+quote(b.Path()+"/run/claims.json")+" .",
			"%s: run/claims.json counts for nothing, and what is being handed over may be shown twice: %v", b.Address(), h.BadClaims)
	}
}

// checkRunner reports a runner that does not answer, one that was started with other
// rules than those of team.toml, and what a runner that was killed has left.
func (d *doctor) checkRunner(t *Team, b *mailbox.Box) {
	name := b.Agent()
	if running, err := t.Running(name); err != nil || !running {
		if left, _ := t.runInfo(name).Leftovers(); err == nil && len(left) > 0 {
			d.add("runner.gone", "warning", "atm stop "+string(name), "%s: its runner is gone, and %s still runs", b.Address(), left[0])
		}
		return
	}
	c, err := t.dialRunner(d.ctx, name)
	if err == nil {
		status, _ := c.Status(d.ctx)
		c.Close()
		if status.NotRecorded != "" {
			d.add("runner.recording", "warning", "", "%s: what its terminal shows is not recorded: %s", b.Address(), status.NotRecorded)
		}
	} else if silent, ok := errors.AsType[*control.NotAnsweringError](err); ok && silent.PID == 0 {
		d.add("runner.silent", "error", "lsof "+quote(filepath.Join(t.Dir().Path(), ".locks", string(name)+".runner")),
			"%s: some process holds its runner's lock, and no runner answers", b.Address())
	} else if ok {
		d.add("runner.silent", "error", fmt.Sprintf("kill -CONT %d", silent.PID),
			"%s: its runner, process %d, does not answer; if it was not stopped, kill -9 %d ends it", b.Address(), silent.PID, silent.PID)
	}
	if t.hasOtherRules(name) {
		again := t.RunAgain(name)
		if again == "atm run "+string(name) {
			again = "atm up " + string(name)
		}
		d.add("runner.rules", "warning", fmt.Sprintf("atm down %s; %s", name, again),
			"%s: the rules of team.toml have changed since its runner was started, and count from its next start", b.Address())
	}
}

// rebuildSent notes every message that is missing in its sender's index of sent mail.
func (d *doctor) rebuildSent(t *Team, boxes []*mailbox.Box) {
	missing := 0
	for _, b := range boxes {
		b.Walk(d.ctx, mailbox.Range{Unread: true, Owed: true, Done: true, Withdrawn: true, Archive: true}, func(it *mailbox.Item) bool {
			isDrop := it.From.Agent == "drop" || it.Origin != nil && it.Origin.Via == "drop"
			if sender, err := d.root.Mailbox(it.From); err == nil && !isDrop && sender.NoteSent(it.Message) {
				missing++
			}
			return d.ctx.Err() == nil
		})
	}
	if missing > 0 {
		d.add("sent.rebuilt", "ok", "", "team %s: %d messages noted again in their senders' index", t.Name, missing)
	}
}
