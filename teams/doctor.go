package teams

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
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

// lowDisk is the free space below which the doctor warns, in bytes.
const lowDisk = 64 << 20

// Doctor looks at everything in the root and changes nothing, unless fix is
// set: then it mends what can be mended without losing anything, and says so.
func (r *Root) Doctor(ctx context.Context, p Place, fix bool) []Check {
	d := &doctor{root: r, ctx: ctx, fix: fix}
	d.say("root", "ok", "", "root %s (%s)", r.Path, r.Source)
	if why := Shared(r.Path, p.UID); why != "" {
		d.say("root.shared", "warning", "chmod go-w "+quote(r.Path), "the root is %s", why)
	}
	if !r.Accepted {
		d.say("root.unaccepted", "warning", "atm init --root "+quote(r.Path), "nobody here made or accepted this root: nothing is started or handed over from it")
	}
	d.disk()
	d.lockless()
	names, err := r.Teams()
	if err != nil {
		d.say("root.unreadable", "error", "", "%v", err)
	}
	if len(names) == 0 && err == nil {
		d.say("team.none", "warning", "atm init alice bob", "the root has no team")
	}
	d.halfMade()
	for _, n := range names {
		t, err := r.Team(n)
		if err != nil {
			d.say("team.unreadable", "error", "", "team %s: %v", n, err)
			continue
		}
		d.team(t, p.UID)
	}
	return d.checks
}

type doctor struct {
	root   *Root
	ctx    context.Context
	fix    bool
	checks []Check

	readOnly bool // the whole disk: then no directory is named for it
}

func (d *doctor) say(code, severity, fix, format string, args ...any) {
	d.checks = append(d.checks, Check{code, severity, fmt.Sprintf(format, args...), fix})
}

func quote(s string) string {
	if s == "" || strings.ContainsAny(s, " '\"\\$&|;<>(){}*?[]#~`!") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

func (d *doctor) disk() {
	remote, refused := remoteFS(d.root.Path), watcher.Probe(d.root.Path)
	switch {
	case remote != "":
		d.say("fs.remote", "warning", "atm backup root.tar", "the root lies on %s: locks and events do not reach other machines; restore the backup to a local disk", remote)
	case refused != nil:
		d.say("fs.no_events", "warning", "", "the kernel tells nothing of changes (%v): what waits looks every second", refused)
	}
	if d.readOnly = readOnlyDisk(d.root.Path); d.readOnly {
		d.say("disk.read_only", "error", "", "the file system of %s is read-only: mail can be looked at, not sent or marked", d.root.Path)
	}
	if free, ok := freeBytes(d.root.Path); ok && free < lowDisk {
		d.say("disk.low", "warning", "", "%s free: atm moves old mail to the archive, but deletes none", letter.Size(int64(free)))
	}
}

// halfMade names teams whose making was cut off.
func (d *doctor) halfMade() {
	names, _ := d.root.dir.Names(".")
	for _, n := range names {
		if strings.HasPrefix(n, ".") && strings.HasSuffix(n, ".making") {
			d.say("team.half_made", "info", "", "%s: a team that was never finished; it is none, and can be removed", n)
		}
	}
}

// lockless names directories that hold mailboxes and have lost their .locks,
// and so are no teams; with fix they get it back.
func (d *doctor) lockless() {
	names, _ := d.root.dir.Names(".")
	for _, n := range names {
		if !wire.IsName(n) || d.root.dir.IsDir(n) != nil {
			continue
		}
		if has, err := d.root.dir.Exists(n + "/.locks"); has || err != nil {
			continue
		}
		inner, _ := d.root.dir.Names(n)
		switch {
		case !slices.ContainsFunc(inner, func(a string) bool { return d.root.dir.IsDir(n+"/"+a+"/inbox/new") == nil }):
		case d.fix && d.root.dir.Mkdir(n+"/.locks") == nil:
			d.say("team.locks", "ok", "", "%s is a team again: its .locks was missing", n)
		default:
			d.say("team.locks", "error", "atm doctor --fix", "%s holds mailboxes and no .locks, and so is no team", n)
		}
	}
}

// doctored is how many unread messages of a mailbox are opened.
const doctored = 500

func (d *doctor) team(t *Team, uid int) {
	if why := Shared(t.Dir().Path(), uid); why != "" {
		d.say("team.shared", "warning", "chmod go-w "+quote(t.Dir().Path()), "team %s is %s", t.Name, why)
	}
	names, _ := t.Dir().Names(".")
	for _, n := range names {
		info, err := t.Dir().Lstat(n)
		if err != nil || strings.HasPrefix(n, ".") {
			continue
		}
		present := t.Box(wire.Name(n)).Present()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			d.say("agent.link", "error", "", "%s in team %s is a symbolic link: links are not followed", letter.Escape(n), t.Name)
		case !info.IsDir():
		case !wire.IsName(n):
			d.say("agent.name", "warning", "", "%s in team %s is no name of an agent", letter.Escape(n), t.Name)
		case errors.Is(present, mailbox.ErrNoAgent):
			d.say("agent.broken", "error", "atm team add "+n, "%s in team %s has no inbox/new and is no agent", n, t.Name)
		case errors.Is(present, durable.ErrNotDirectory):
			bad := "inbox"
			if t.Dir().IsDir(n+"/inbox") == nil {
				bad = "inbox/new"
			}
			d.say("agent.not_a_directory", "error", fmt.Sprintf("mv %s . && atm team add %s", quote(t.Dir().Join(n+"/"+bad)), n),
				"%s in team %s: %s is not a directory, so nothing can be sent to %s", n, t.Name, bad, n)
		}
	}
	d.roster(t)
	d.workplaces(t)
	if old, err := t.Retired(); err == nil && len(old) > 0 {
		d.say("team.retired", "info", "", "team %s: %d retired mailboxes in the archive: %s", t.Name, len(old), strings.Join(old, ", "))
	}
	boxes, err := t.Boxes()
	if err != nil {
		d.say("team.unreadable", "error", "", "team %s: %v", t.Name, err)
	}
	for _, b := range boxes {
		d.box(b)
	}
	if d.fix {
		if n := t.reindex(d.ctx, boxes); n > 0 {
			d.say("sent.rebuilt", "ok", "", "team %s: %d messages noted again in their senders' index", t.Name, n)
		}
	}
	if len(boxes) > 0 {
		d.say("team", "ok", "", "team %s: %d members", t.Name, len(boxes))
	}
}

// roster names what is wrong with team.toml, and members it speaks of that
// there are not.
func (d *doctor) roster(t *Team) {
	r, err := t.Roster()
	if err != nil {
		d.say("team.toml", "error", "atm team check", "team %s: %v", t.Name, err)
		return
	}
	var wrong *TomlError
	if _, err := t.Plan(); errors.As(err, &wrong) {
		for _, m := range wrong.Mistakes {
			d.say("team.toml", "error", "atm team check", "team %s: team.toml, %s", t.Name, letter.Escape(m.String()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Members)) {
		if t.Box(name).Present() != nil {
			d.say("team.toml.member", "info", "atm team add "+quote(string(name)), "team %s: team.toml speaks of %s, who is no member", t.Name, letter.Escape(string(name)))
		}
	}
}

// workplaces names worktrees that are nobody's any more, and those that their
// repository has lost sight of.
func (d *doctor) workplaces(t *Team) {
	names, err := t.Workplaces()
	if err != nil {
		d.say("worktree.unreadable", "error", "", "team %s: %v", t.Name, err)
	}
	plan, _ := t.Plan() // what is wrong with it is said above
	if plan == nil {
		return
	}
	for _, n := range names {
		at := workplacesDir + "/" + string(n)
		s, err := t.site(Git{}, n, plan.Members[n].Cwd)
		var how found
		if err == nil {
			how, err = s.look()
		}
		switch {
		case !plan.Members[n].Worktree:
			d.say("worktree.left", "info", "git worktree remove "+at, "team %s: %s is still there, and team.toml gives %s no worktree", t.Name, at, n)
		case err != nil:
			d.say("worktree.odd", "warning", "", "team %s: %s: %v", t.Name, at, err)
		case how == halfMade:
			d.say("worktree.half_made", "info", "atm up "+string(n), "team %s: the making of %s was cut off; the next start finishes it", t.Name, at)
		case how != standing:
			d.say("worktree.lost", "warning", "atm up "+string(n), "team %s: %s and its repository have lost each other; the next start mends it", t.Name, at)
		}
	}
}

func (d *doctor) box(b *mailbox.Box) {
	name := b.Address().String()
	if d.fix {
		b.TakeIn(d.ctx)
	}
	h, err := b.Examine(d.fix)
	if err != nil {
		d.say("agent.unreadable", "error", "", "%s: %v", name, err)
		return
	}
	d.runner(b)
	for _, n := range h.NotFiles {
		d.say("drop.not_a_file", "warning", "", "%s: inbox/%s is no regular file and is never opened", name, letter.Escape(n))
	}
	for _, n := range h.Empty {
		d.say("drop.empty", "info", "", "%s: inbox/%s is empty and waits for content", name, letter.Escape(n))
	}
	for _, n := range h.Unreadable {
		d.say("drop.unreadable", "warning", "chmod u+r "+quote(b.Path()+"/inbox/"+n), "%s: inbox/%s cannot be read", name, letter.Escape(n))
	}
	if h.Begun > 0 {
		d.say("drop.unfinished", "warning", "atm doctor --fix", "%s: %d dropped files whose taking in was cut off; the next look carries on", name, h.Begun)
	}
	if n := len(h.Stale); n > 0 {
		if d.fix {
			d.say("tmp.stale", "ok", "", "%s: %d unfinished files older than 36 h removed", name, n)
		} else {
			d.say("tmp.stale", "info", "atm gc", "%s: %d unfinished files older than 36 h", name, n)
		}
	}
	if h.Bad > 0 {
		d.say("bad.files", "warning", fmt.Sprintf("atm ls %s --bad", b.Agent()), "%s: %d files in inbox/bad could not be understood", name, h.Bad)
	}
	// No message of atm's is torn; a disk may be.
	if _, torn, err := b.Walk(d.ctx, mailbox.Range{Unread: true, Limit: doctored}, func(*mailbox.Item) bool { return true }); err == nil && torn > 0 {
		d.say("message.torn", "warning", fmt.Sprintf("atm read --as %s", b.Agent()), "%s: %d files in inbox/new are no messages; reading sets them aside", name, torn)
	}
	for _, x := range h.Doubled {
		d.say("message.doubled", "error", "", "%s: message %s lies in two places", name, x)
	}
	for _, n := range h.Closed {
		if d.readOnly {
			break
		}
		d.say("inbox.not_writable", "error", "chmod u+rwx "+quote(b.Path()+"/"+n), "%s: this user cannot write in %s", name, n)
	}
	for _, n := range h.Misplaced {
		d.say("drop.misplaced", "warning", "mv "+quote(b.Path()+"/"+n)+" "+quote(b.Path()+"/inbox/"), "%s: %s lies where nobody looks for mail", name, letter.Escape(n))
	}
	for _, n := range h.OddEvents {
		d.say("events.odd", "error", "mv "+quote(b.Path()+"/events/"+n)+" .", "%s: events/%s is no part of the log", name, letter.Escape(n))
	}
	if h.EventsErr != nil {
		d.say("events.unreadable", "error", "", "%s: the log cannot be read to its end: %v", name, h.EventsErr)
	}
	if n := len(h.EventGaps); n > 0 {
		g := h.EventGaps[0]
		d.say("events.gap", "warning", "", "%s: events %d to %d are missing or spoilt (%d such gaps); what they said is lost, the rest counts", name, g.From, g.To, n)
	}
	if h.BadClaims != nil {
		d.say("claims.bad", "error", "mv "+quote(b.Path()+"/run/claims.json")+" .", "%s: run/claims.json counts for nothing, and what is being handed over may be shown twice: %v", name, h.BadClaims)
	}
	for _, n := range h.NotDirs {
		d.say("agent.not_a_directory", "error", "mv "+quote(b.Path()+"/"+n)+" .", "%s: %s is not a directory", name, n)
	}
	for _, n := range h.Open {
		d.say("mode.open", "warning", "chmod 700 "+quote(b.Path()+"/"+n), "%s: %s is open to everybody", name, n)
	}
}

// reindex notes every message in its sender's index of sent mail that misses
// there, and says how many did.
func (t *Team) reindex(ctx context.Context, boxes []*mailbox.Box) (missing int) {
	for _, b := range boxes {
		b.Walk(ctx, mailbox.Range{Unread: true, Owed: true, Done: true, Withdrawn: true, Archive: true}, func(it *mailbox.Item) bool {
			if it.From.Agent == "drop" || it.Origin != nil && it.Origin.Via == "drop" {
				return true
			}
			if sender, err := t.root.Mailbox(it.From); err == nil && sender.NoteSent(it.Message) {
				missing++
			}
			return ctx.Err() == nil
		})
	}
	return missing
}

// runner looks at a member's runner: whether it answers, and whether the rules
// that it was started with are those of team.toml.
func (d *doctor) runner(b *mailbox.Box) {
	name := b.Agent()
	t, err := d.root.Team(b.Address().Team)
	if err != nil {
		return
	}
	if running, err := t.Running(name); err != nil || !running {
		return
	}
	c, err := control.Dial(d.ctx, filepath.Join(b.Path(), "run"))
	var silent *control.NotAnsweringError
	switch {
	case err == nil:
		c.Close()
	case errors.As(err, &silent) && silent.PID > 0:
		d.say("runner.silent", "error", fmt.Sprintf("kill -CONT %d", silent.PID), "%s: its runner, process %d, does not answer; if it was not stopped, kill -9 %d ends it", b.Address(), silent.PID, silent.PID)
	case errors.As(err, &silent):
		d.say("runner.silent", "error", "", "%s: its runner does not answer", b.Address())
	}
	kept, ok, err := t.KeptPolicy(name)
	if !ok || err != nil {
		return
	}
	plan, err := t.Plan()
	if err != nil {
		return // said already, with every mistake
	}
	now := plan.Policy()
	now.Lead = t.leads(now.Lead)
	if !now.Equal(kept) {
		again := t.RunAgain(name)
		if again == "atm run "+string(name) {
			again = "atm up " + string(name)
		}
		d.say("runner.rules", "warning", fmt.Sprintf("atm down %s; %s", name, again), "%s: the rules of team.toml have changed since its runner was started, and count from its next start", b.Address())
	}
}
