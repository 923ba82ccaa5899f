package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/setaside"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

func (d *doctor) checkMembers(t *teamdir.Team) {
	boxes, err := t.Boxes()
	d.addUnreadable("team.unreadable", t.Dir().Path(), "%v", err)
	team := d.about
	found := make([]examined, len(boxes))
	teamdir.AtOnce(len(boxes), func(i int) {
		f, b := &found[i], boxes[i]
		if d.fix {
			drop.Ingest(d.ctx, b, drop.Patience)
		}
		f.health, f.healthErr = keep.Examine(b, d.fix)
	})
	var names []wire.Name
	var old []string // whose runners are of another version of atm
	for _, b := range boxes {
		names = append(names, b.Agent())
	}
	members := presence.Look(d.ctx, t, presence.Query{}, names...)
	for i, b := range boxes {
		d.about = b.Address().String() + ": "
		d.checkMailbox(b, found[i].health, found[i].healthErr)
		if m := members[i]; m.Err == nil {
			d.checkRunner(t, b, m)
			if d.checkRunnerVersion(t, m) {
				old = append(old, string(m.Name))
			}
			d.checkWaiting(t, b, m)
		}
		d.checkSetAside(t, b)
		d.checkOtherRoots(b)
	}
	d.about = team
	d.addOldRunners(t, old)
	if d.fix {
		d.rebuildSent(t, boxes)
	}
	if len(boxes) > 0 {
		d.add("team", "ok", "", "%s", letter.Many(len(boxes), "member"))
	}
}

// examined is what was found out about a member.
type examined struct {
	health    keep.Health
	healthErr error
}

func (d *doctor) checkMailbox(b *maildir.Box, h keep.Health, err error) {
	if errors.Is(b.CheckPresent(), mailbox.ErrNoMailbox) {
		return // retired meanwhile
	}
	d.addUnreadable("agent.unreadable", b.Path(), "%v", err)
	if d.disk.isReadOnly {
		delete(h.Files, "inbox.not_writable")
	}
	addAgain := ""
	if b.CheckPresent() != nil {
		addAgain = "; atm team add " + string(b.Agent())
	}
	// %s is the file's path in fix, its name in message; %n the path that an unfinished file is to get. With a noun the files are
	// only counted.
	events := b.Path() + "/events"
	for _, problem := range []struct{ code, severity, fix, message, noun string }{
		{"drop.not_a_file", "warning", "mv %s .", "%s is not a regular file, so atm never opens it", ""},
		{"drop.empty", "info", "ls -l %s", "%s is empty: atm waits until it has content", ""},
		{"drop.named_unfinished", "warning", "mv %s %n", "%s is named like an unfinished file, and has not changed for an hour: it is mail once it has another name", ""},
		{"drop.unreadable", "warning", "chmod u+r %s", "%s cannot be read", ""},
		{"drop.misplaced", "warning", "mv %s " + policy.Quote(b.Path()+"/inbox/"), "%s: nobody looks for mail there", ""},
		{"message.torn", "warning", "mv %s .", "%s is not a valid message", ""},
		{"inbox.not_writable", "error", "chmod u+rwx %s", "you cannot write to %s", ""},
		{"events.odd", "error", "mv %s .", "%s is not part of the log", ""},
		{"agent.not_a_directory", "error", "mv %s ." + addAgain, "%s is not a directory", ""},
		{"mode.open", "warning", "chmod 700 %s", "%s is open to everybody", ""},
		{"events.damaged", "warning", "ls -l " + policy.Quote(events), "the log is damaged at %s; all events in other lines still count", ""},
		{"drop.unfinished", "warning", "atm doctor --fix", "atm was interrupted while taking in %s; the next look finishes that", "dropped file"},
	} {
		if n := len(h.Files[problem.code]); n > 0 && problem.noun != "" {
			d.add(problem.code, problem.severity, problem.fix, problem.message, letter.Many(n, problem.noun))
			continue
		}
		for _, name := range h.Files[problem.code] {
			path := filepath.Join(b.Path(), name)
			renamed := filepath.Join(b.Path(), "inbox", drop.Finished(filepath.Base(name)))
			fix := problem.fix
			if _, err := os.Lstat(renamed); err == nil && strings.Contains(fix, "%n") { // which mv would replace
				fix = "ls -l %s"
			}
			fix = strings.NewReplacer("%s", policy.Quote(path), "%n", policy.Quote(renamed)).Replace(fix)
			d.add(problem.code, problem.severity, d.forOwner(fix, path), problem.message, cmp.Or(name, "its directory"))
		}
	}
	d.checkStale(h.Files["tmp.stale"])
	d.addUnreadable("events.unreadable", events, "a part of the event log cannot be read: %v", h.Errs["events.unreadable"])
}

func (d *doctor) checkRunner(t *teamdir.Team, b *maildir.Box, m presence.Member) {
	name := b.Agent()
	d.checkSharing(m)
	if err := t.CheckPolicy(name); err != nil {
		severity, fix := "error", d.moveAway(b.Path()+"/run/policy.json", err)
		if m.Running {
			fix = fmt.Sprintf("atm down %s; %s", name, app.RunCommand(t, name))
		}
		whoMay := "nobody"
		if p, _, _ := t.PolicyFor(name); p.IsPartial {
			whoMay = "no rule and no agent"
		}
		d.add("policy.bad", severity, fix, "until its next start %s may answer its questions, and no agent may stop it: %v", whoMay, err)
	}
	if !m.Running {
		info, err := runinfo.Read(t.Dir(), name)
		if err != nil {
			d.add("runner.bad", "warning", d.moveAway(b.Path()+"/run/"+runinfo.File, err),
				"what its last runner left running is unknown: %v", err)
		}
		if left, _ := process.Leftovers(info.Run); len(left) > 0 {
			d.add("runner.gone", "warning", "atm stop "+string(name), "its runner is gone, but %s still runs", left[0])
		}
		return
	}
	if _, err := runinfo.Read(t.Dir(), name); err != nil {
		d.add("runner.bad", "error", fmt.Sprintf("atm down %s; %s", name, app.RunCommand(t, name)),
			"whose its processes are is unknown, so that they may not use its mail: %v", err)
	}
	if m.Runner.NotRecorded != "" {
		d.add("runner.recording", "warning", "df -h "+policy.Quote(t.Dir().Path()),
			"its terminal is not being recorded: %s", m.Runner.NotRecorded)
	}
	if silent, ok := errors.AsType[*control.NotAnsweringError](m.RunnerErr); ok && silent.PID == 0 {
		d.add("runner.silent", "error", "lsof "+policy.Quote(filepath.Join(t.Dir().Path(), ".locks", string(name)+".runner")),
			"some process holds its runner's lock, but no runner answers")
	} else if ok {
		d.add("runner.silent", "error", fmt.Sprintf("kill -CONT %d", silent.PID),
			"its runner, process %d, does not answer; unless it is suspended, atm stop %s ends it", silent.PID, name)
	}
	if t.HasOtherRules(name) {
		d.add("runner.rules", "warning", fmt.Sprintf("atm down %s; %s", name, app.RunCommand(t, name)),
			"team.toml has other rules, or other people who may answer, than when its runner started; they apply from its next start")
	}
}

// checkSharing reports programs that people have started under the same name, or under that of an agent which atm runs.
func (d *doctor) checkSharing(m presence.Member) {
	what := m.Sharing()
	if what == "" {
		return
	}
	var pids []string
	for _, p := range m.Programs {
		pids = append(pids, strconv.Itoa(p.PID))
	}
	d.add("agent.shared", "warning", "ps -fp "+strings.Join(pids, ","),
		"%s; one program has one name: end one, or start it as another member, ATM_AGENT=NAME %s", what, m.Programs[len(m.Programs)-1].Tool)
}

// maxUnheard is how long mail may wait for an agent without runner and hooks that has read mail before.
const maxUnheard = time.Hour

// checkWaiting reports mail of an agent that nothing will show it to: its runner was killed, or it has no runner and no hooks,
// and nobody reads as that agent. A shared inbox is anybody's to read.
func (d *doctor) checkWaiting(t *teamdir.Team, b *maildir.Box, m presence.Member) {
	unread, _ := b.UnreadIDs()
	shared, err := claim.Shared(b)
	if len(unread) == 0 || shared || err != nil || m.Running || post.IsPerson(d.root, b.Address()) {
		return
	}
	if m.RunnerGone {
		d.add("message.unheard", "warning", app.RunCommand(t, m.Name), "its runner was killed, and %d unread: run it again", len(unread))
		return
	}
	if m.HasHooks() {
		return
	}
	since, lastRead := unread[0].Time(), "it has never read mail"
	if m.ReadAt != nil {
		if m.ReadAt.After(since) || time.Since(since) < maxUnheard {
			return
		}
		lastRead = "it last read " + letter.Ago(time.Now(), *m.ReadAt)
	}
	d.add("message.unheard", "info", app.RunCommand(t, m.Name),
		"%d unread, the oldest %s: no runner or hooks bring mail to it, and %s; run it, or let it read",
		len(unread), letter.Age(time.Now(), since), lastRead)
}

// checkSetAside reports files that are no mail, and mail that was typed in and not accepted.
func (d *doctor) checkSetAside(t *teamdir.Team, b *maildir.Box) {
	all, _ := setaside.Of(t, b) // what cannot be read is reported elsewhere
	const most = 20
	for i, one := range all {
		if i == most {
			d.add("bad.files", "warning", "atm ls "+string(b.Agent())+" --bad", "%d more are set aside", len(all)-most)
			return
		}
		code, what := "bad.files", "is set aside, since it is no mail"
		if one.Kind == setaside.Untyped {
			code, what = "message.untyped", "was typed in and not accepted"
		}
		d.add(code, "warning", app.RetryCommand(&one), "%s %s: %s", one.Short(), what, letter.Clip(one.Reason, 160))
	}
}

// checkOtherRoots reports unread mail for the same address in a root nearby: somebody may have sent it from elsewhere
// by mistake.
func (d *doctor) checkOtherRoots(b *maildir.Box) {
	for _, other := range d.nearbyRoots {
		box, err := other.Mailbox(b.Address())
		if err != nil {
			continue
		}
		if unread, _ := box.UnreadIDs(); len(unread) > 0 {
			d.add("message.other_root", "warning", fmt.Sprintf("atm read --as %s --root %s", b.Agent(), policy.Quote(other.Path)),
				"%d unread for this name in another root, %s", len(unread), other.Path)
		}
	}
}

// rebuildSent adds messages that are missing in their senders' index of sent mail.
func (d *doctor) rebuildSent(t *teamdir.Team, boxes []*maildir.Box) {
	var firstErr error
	added := 0
	outboxes, _ := t.Store.Outboxes()
	for _, b := range slices.Concat(boxes, outboxes) {
		b.Walk(maildir.Everywhere, func(it *wire.Item) bool {
			if it.IsDropped() || it.From.Host != "" {
				return d.ctx.Err() == nil
			}
			if sender, err := d.root.Mailbox(it.From); err == nil {
				isNew, err := sender.NoteSent(it.Message)
				firstErr = cmp.Or(firstErr, err)
				if isNew {
					added++
				}
			}
			return d.ctx.Err() == nil
		})
	}
	d.addUnreadable("sent.not_rebuilt", t.Dir().Path(), "the index of sent mail is incomplete: %v", firstErr)
	if added > 0 {
		d.add("sent.rebuilt", "ok", "", "added %s to their senders' index of sent mail", letter.Many(added, "message"))
	}
}
