package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/runinfo"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
)

func (d *doctor) checkMembers(t *teams.Team) {
	boxes, err := t.Boxes()
	d.failed("team.unreadable", about(t), t.Dir().Path(), err)
	for _, b := range boxes {
		d.checkMailbox(b)
		d.checkRunner(t, b)
		d.checkWaiting(t, b)
		d.checkOtherRoots(b)
	}
	if d.fix {
		d.rebuildSent(t, boxes)
	}
	if len(boxes) > 0 {
		d.add("team", "ok", "", "team %s: %s", t.Name, letter.Many(len(boxes), "member"))
	}
}

func (d *doctor) checkMailbox(b *mailbox.Box) {
	if d.fix {
		b.TakeIn(d.ctx)
	}
	h, err := b.Examine(d.fix)
	d.failed("agent.unreadable", b.Address().String()+": ", b.Path(), err)
	if d.disk.isReadOnly {
		delete(h.Files, "inbox.not_writable")
	}
	back := ""
	if b.Present() != nil {
		back = "; atm team add " + string(b.Agent())
	}
	// %s in the message is a name, in the command its path.
	for _, about := range []struct{ code, severity, fix, message string }{
		{"drop.not_a_file", "warning", "mv %s .", "%s is no regular file and is never opened"},
		{"drop.empty", "info", "ls -l %s", "%s is empty and waits for content"},
		{"drop.unreadable", "warning", "chmod u+r %s", "%s cannot be read"},
		{"drop.misplaced", "warning", "mv %s " + policy.Quote(b.Path()+"/inbox/"), "%s lies where nobody looks for mail"},
		{"message.torn", "warning", "mv %s .", "%s cannot be read as a message"},
		{"inbox.not_writable", "error", "chmod u+rwx %s", "this user cannot write in %s"},
		{"events.odd", "error", "mv %s .", "%s is no part of the log"},
		{"agent.not_a_directory", "error", "mv %s ." + back, "%s is not a directory"},
		{"mode.open", "warning", "chmod 700 %s", "%s is open to everybody"},
	} {
		for _, name := range h.Files[about.code] {
			fix := strings.ReplaceAll(about.fix, "%s", policy.Quote(b.Path()+"/"+name))
			d.add(about.code, about.severity, fix, "%s: "+about.message, b.Address(), name)
		}
	}
	count := func(code, severity string, n int, fix, message string) {
		if n > 0 {
			d.add(code, severity, fix, "%s: %s"+message, b.Address(), letter.Many(n, "file"))
		}
	}
	count("drop.unfinished", "warning", h.Begun, "atm doctor --fix", " dropped, and taken in by half; the next look carries on")
	count("bad.files", "warning", h.Bad, "atm ls "+string(b.Agent())+" --bad", " in inbox/bad could not be understood")
	d.checkStale(b.Address().String(), h.Stale)
	events := b.Path() + "/events"
	d.failed("events.unreadable", b.Address().String()+": the log cannot be read to its end: ", events, h.EventsErr)
	if n := len(h.EventGaps); n > 0 {
		d.add("events.gap", "warning", "ls -l "+policy.Quote(events),
			"%s: events %d to %d are missing or spoilt (%d such gaps); what they said is lost, the rest counts",
			b.Address(), h.EventGaps[0].From, h.EventGaps[0].To, n)
	}
	if h.BadClaims != nil {
		d.add("claims.bad", "error", moveAway(b.Path()+"/run/claims.json", h.BadClaims),
			"%s: run/claims.json counts for nothing, and what is being handed over may be shown twice: %v", b.Address(), h.BadClaims)
	}
}

// checkRunner reports a runner that does not answer, one that was started with other
// rules than those of team.toml, and what a runner that was killed has left.
func (d *doctor) checkRunner(t *teams.Team, b *mailbox.Box) {
	name := b.Agent()
	if running, err := t.Running(name); err != nil || !running {
		info, _ := runinfo.Read(t.Dir(), name)
		if left, _ := info.Leftovers(); err == nil && len(left) > 0 {
			d.add("runner.gone", "warning", "atm stop "+string(name), "%s: its runner is gone, and %s still runs", b.Address(), left[0])
		}
		return
	}
	c, err := t.DialRunner(d.ctx, name)
	if err == nil {
		status, _ := c.Status(d.ctx)
		c.Close()
		if status.NotRecorded != "" {
			d.add("runner.recording", "warning", "df -h "+policy.Quote(t.Dir().Path()),
				"%s: what its terminal shows is not recorded: %s", b.Address(), status.NotRecorded)
		}
	} else if silent, ok := errors.AsType[*control.NotAnsweringError](err); ok && silent.PID == 0 {
		d.add("runner.silent", "error", "lsof "+policy.Quote(filepath.Join(t.Dir().Path(), ".locks", string(name)+".runner")),
			"%s: some process holds its runner's lock, and no runner answers", b.Address())
	} else if ok {
		d.add("runner.silent", "error", fmt.Sprintf("kill -CONT %d", silent.PID),
			"%s: its runner, process %d, does not answer; if it was not stopped, kill -9 %d ends it", b.Address(), silent.PID, silent.PID)
	}
	if t.HasOtherRules(name) {
		again := t.RunAgain(name)
		if again == "atm run "+string(name) {
			again = "atm up " + string(name)
		}
		d.add("runner.rules", "warning", fmt.Sprintf("atm down %s; %s", name, again),
			"%s: the rules of team.toml have changed since its runner was started, and count from its next start", b.Address())
	}
}

// unheard is how long mail may wait for an agent that nothing wakes and that has read before.
const unheard = time.Hour

// checkWaiting reports mail that waits for an agent to which nothing brings it: no runner,
// no hooks, and nobody reads as that agent. What lies in a shared inbox is anybody's.
func (d *doctor) checkWaiting(t *teams.Team, b *mailbox.Box) {
	unread, _ := b.UnreadIDs()
	shared, err := b.Shared()
	if len(unread) == 0 || shared || err != nil {
		return
	}
	m, err := t.Summary(b.Agent())
	if err != nil || m.Running || m.Kind == "person" || t.HasHooks(m.Name) {
		return
	}
	since, read := unread[0].Time(), "it has never read any"
	if m.ReadAt != nil {
		if m.ReadAt.After(since) || time.Since(since) < unheard {
			return
		}
		read = "it last read " + letter.Age(time.Now(), *m.ReadAt)
	}
	d.add("message.unheard", "info", t.RunAgain(m.Name),
		"%s: %d unread, the oldest %s, and nothing brings them to it: no runner, no hooks, and %s; run it, or atm read --as %s",
		b.Address(), len(unread), letter.Age(time.Now(), since), read, m.Name)
}

// checkOtherRoots reports mail for an agent of the same name in a root above this one, or
// below: whoever sent it stood elsewhere.
func (d *doctor) checkOtherRoots(b *mailbox.Box) {
	for _, other := range d.others {
		box, err := other.Mailbox(b.Address())
		if err != nil {
			continue
		}
		if unread, _ := box.UnreadIDs(); len(unread) > 0 {
			d.add("message.other_root", "warning", fmt.Sprintf("atm read --as %s --root %s", b.Agent(), policy.Quote(other.Path)),
				"%s: %d unread for that name in another root, %s", b.Address(), len(unread), other.Path)
		}
	}
}

func (d *doctor) rebuildSent(t *teams.Team, boxes []*mailbox.Box) {
	var failed error
	missing := 0
	outboxes, _ := t.Outboxes()
	boxes = append(boxes, outboxes...)
	for _, b := range boxes {
		b.Walk(d.ctx, mailbox.Range{Unread: true, Owed: true, Done: true, Withdrawn: true, Archive: true}, func(it *mailbox.Item) bool {
			isDrop := it.From.Agent == "drop" || it.Origin != nil && it.Origin.Via == "drop"
			if sender, err := d.root.Mailbox(it.From); err == nil && !isDrop && it.From.Host == "" {
				isNew, err := sender.NoteSent(it.Message)
				if failed = cmp.Or(failed, err); isNew {
					missing++
				}
			}
			return d.ctx.Err() == nil
		})
	}
	d.failed("sent.not_rebuilt", about(t)+"the index of sent mail is not whole: ", t.Dir().Path(), failed)
	if missing > 0 {
		d.add("sent.rebuilt", "ok", "", "team %s: %d messages noted again in their senders' index", t.Name, missing)
	}
}
