//go:build linux

package crashtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var powercutJobs = []job{
	{"send", 2, []func(*world){(*world).send, (*world).say, (*world).attach}},
	{"once", 1, []func(*world){(*world).sendOnce, (*world).sendAgain}},
	{"several", 2, []func(*world){(*world).sendAll, (*world).batch}},
	{"read", 1, []func(*world){(*world).read, (*world).cutRead}},
	{"answer", 2, []func(*world){(*world).answer, (*world).answer, (*world).withdraw, (*world).unread}},
	{"drop", 2, []func(*world){(*world).dropIn}},
	{"keep", 1, []func(*world){(*world).gc, (*world).retire, (*world).look, (*world).see}},
	{"event", 2, []func(*world){(*world).event, (*world).stream, (*world).eventTwice}},
	{"session", 2, []func(*world){(*world).live}},
}

// The power is cut while senders, readers and droppers work; the disk is
// mounted again, and again. What was acknowledged is there, whole, after every
// cut; what was not is whole or absent; and the mailbox works as if nothing had
// been. Of events, the synced ones are there, and all before them.
func TestPowerCut(t *testing.T) {
	if os.Getenv("ATM_POWERCUT") == "" {
		t.Skip("it mounts file systems: set ATM_POWERCUT=1")
	}
	cycles := 20
	if s := os.Getenv("ATM_POWERCUT_CYCLES"); s != "" {
		var err error
		if cycles, err = strconv.Atoi(s); err != nil {
			t.Fatal("ATM_POWERCUT_CYCLES: ", err)
		}
	}
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			v := newVolume(t, kind)
			v.mount()
			w := newWorld(t, v.path, takers...)
			w.cuts = true
			p := powercut{world: w, volume: v}
			// At once: what init and the first message made has to stay.
			p.breaks()
			v.cut()
			p.comeBack(0)
			for n := 1; n <= cycles && !t.Failed(); n++ {
				p.cycle(n)
			}
			p.againAndCut()
			p.rotateAndCut()
			p.archiveAndCut()
			p.restoreAndCut()
			fmt.Printf("powercut %s: %d cycles: %s; %s\n", kind, p.done, p.sum, w.summary())
		})
	}
}

// TestPowerCutWithoutJournal takes the disk as it is at one moment, as if the
// machine had been killed, of an ext4 that has no journal: what was acknowledged
// is there, and whole, when e2fsck has been over it.
func TestPowerCutWithoutJournal(t *testing.T) {
	if os.Getenv("ATM_POWERCUT") == "" {
		t.Skip("it mounts file systems: set ATM_POWERCUT=1")
	}
	v := newVolume(t, "ext4", "-O", "^has_journal")
	v.mount()
	w := newWorld(t, v.path, takers...)
	unix.Sync() // making the team is not what is tried here
	file := filepath.Join(t.TempDir(), "attached")
	if err := os.WriteFile(file, []byte("all of it\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	me := one(readers)
	var sent []string
	send := func(args ...string) {
		text := fmt.Sprintf("message %d.", len(sent))
		sent = append(sent, text)
		w.must(append([]string{"send", me, "--as", "alice", text}, args...)...)
	}
	for n := range 30 {
		switch {
		case n%3 == 0:
			send("--attach", file)
		case n%10 == 1: // under an id of its own, twice
			id := "--id=" + newID(0)
			send(id)
			w.must("send", me, "--as", "alice", sent[len(sent)-1], id)
		default:
			send()
		}
	}
	text := "to all"
	sent = append(sent, text)
	w.must("send", strings.Join(takers[1:], ","), "--as", "alice", text)
	var lines strings.Builder
	for n := range 20 {
		text := fmt.Sprintf("of a batch %d.", n)
		sent = append(sent, text)
		fmt.Fprintf(&lines, "{\"to\":%q,\"body\":%q}\n", me, text)
	}
	if r := w.run(call{args: []string{"send", "--batch", "--as", "alice"}, text: lines.String()}); r.code != 0 {
		t.Fatal(r)
	}
	image, err := os.ReadFile(v.image)
	if err != nil {
		t.Fatal(err)
	}
	v.unmount()
	if err := os.WriteFile(v.image, image, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("e2fsck", "-fy", v.image).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() > 2) {
		t.Fatalf("e2fsck: %v\n%s", err, out)
	}
	v.mount()
	shown := w.must("read", "--full", "--as", me, "--json").out
	for _, text := range sent {
		if n := strings.Count(shown, fmt.Sprintf("%q", text)); n != 1 {
			t.Errorf("%q is there %d times", text, n)
		}
	}
	for _, name := range takers[1:] {
		if name != me && !strings.Contains(w.must("read", "--as", name).out, "to all") {
			t.Error("lost: what was sent to all, at ", name)
		}
	}
	all, err := filepath.Glob(filepath.Join(w.team(), ".files", "[0-9a-f]*"))
	if err != nil || len(all) != 1 {
		t.Errorf("attachments: %q, %v", all, err)
	}
}

type powercut struct {
	*world
	volume  *volume
	members []string // added, and said so
	backups []string // taken, and said so
	done    int
	sum     verdict // of all cycles
}

// cycle works, cuts, mounts and looks.
func (p *powercut) cycle(n int) {
	var over atomic.Bool
	cut := time.AfterFunc(time.Duration(20+rand.IntN(500))*time.Millisecond, func() {
		p.breaks()
		p.volume.cut()
		over.Store(true)
	})
	defer cut.Stop()
	adding := job{"add", 1, []func(*world){func(*world) { p.addMember(n); p.takeBackup(n) }}}
	p.work(append(slices.Clone(powercutJobs), adding), over.Load)
	p.comeBack(n)
	p.done++
}

// addMember adds a member and sends to them at once.
func (p *powercut) addMember(n int) {
	name := fmt.Sprintf("m%d-%x", n, rand.Uint32())
	r := p.run(call{args: []string{"team", "add", name}, kill: mortal()})
	p.expect(r, 0)
	if r.code == 0 {
		p.members = append(p.members, name)
		t, text := write(200)
		p.begin(t, "alice", name)
		p.stored(t, p.run(call{args: []string{"send", name, "--as", "alice", "--json", text}}))
	}
	time.Sleep(20 * time.Millisecond)
}

// takeBackup takes a backup onto the disk whose power will be cut.
func (p *powercut) takeBackup(n int) {
	file := filepath.Join(p.volume.path, fmt.Sprintf("backup.%d.%x", n, rand.Uint32()))
	r := p.run(call{args: []string{"backup", file}, kill: mortal()})
	p.expect(r, 0)
	if r.code == 0 {
		p.backups = append(p.backups, file)
	}
	time.Sleep(20 * time.Millisecond)
}

// restoreAndCut restores a backup into a new root and cuts the power at once:
// what was restored has to be there.
func (p *powercut) restoreAndCut() {
	if p.t.Failed() {
		return
	}
	other := *p.world
	other.root = filepath.Join(p.volume.path, "restored")
	file := filepath.Join(p.volume.path, "last")
	p.must("backup", file)
	other.must("restore", file)
	p.volume.cut()
	p.volume.unmount()
	p.volume.mount()
	p.tally(other.judge(p.t, take(p.t, other.team())))
}

// comeBack mounts the disk after a cut, judges what is on it, and then has atm
// work on it.
func (p *powercut) comeBack(n int) {
	p.t.Helper()
	p.volume.unmount()
	var options []string
	if p.volume.kind == "ext4" && n%2 == 1 {
		options = append(options, "noauto_da_alloc")
	}
	p.volume.mount(options...)
	p.mended()
	p.cutLogs()
	p.tally(p.judge(p.t, take(p.t, p.team())))
	for _, name := range p.members {
		if _, err := os.Stat(filepath.Join(p.team(), name, "inbox", "new")); err != nil {
			p.t.Errorf("lost: the member %s, added before the cut: %v", name, err)
		}
	}
	for _, file := range p.backups {
		if _, ok := p.unpack(file); !ok {
			p.t.Errorf("lost: the backup %s", file)
		}
		os.Remove(file)
	}
	if p.backups = nil; p.t.Failed() {
		return
	}
	me := one(readers)
	log, torn := p.tear(me)
	t, text := write(300)
	p.begin(t, "alice", me)
	p.stored(t, p.must("send", me, "--as", "alice", "--json", "--", text))
	p.pipe(call{args: []string{"read", "--full", "--as", me}}, me, []int{0}, all)
	c := p.settle()
	p.tally(p.judge(p.t, c))
	if torn != "" {
		p.mendedLog(c, me, log, torn)
	}
	p.goOn()
	p.expect(p.run(call{args: []string{"doctor"}}), 0, 1)
}

func (p *powercut) tally(v verdict) {
	p.sum.messages, p.sum.events = v.messages, v.events
	p.sum.gaps += v.gaps
	p.sum.lost += v.lost
	p.sum.doubled += v.doubled
	p.sum.torn += v.torn
	p.sum.unseen += v.unseen
	p.sum.unpaid += v.unpaid
}

// tear leaves half a line at the end of somebody's events, as a cut may.
func (p *powercut) tear(me string) (log, torn string) {
	dir := filepath.Join(p.team(), me, "events")
	list, err := os.ReadDir(dir)
	if err != nil || len(list) == 0 {
		return "", ""
	}
	log = filepath.Join(dir, list[len(list)-1].Name())
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		p.t.Error(err)
		return "", ""
	}
	defer f.Close()
	torn = fmt.Sprintf(`{"seq":%d,"at":"2026-`, rand.Uint32()) + strings.Repeat("\x00", rand.IntN(20))
	if _, err := f.WriteString(torn); err != nil {
		p.t.Error(err)
	}
	return log, torn
}

// mendedLog: the half line is out of the log, kept among the bad files, and
// the sequence has no gap.
func (p *powercut) mendedLog(c *census, me, log, torn string) {
	data, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(data), torn) || !strings.HasSuffix(string(data), "\n") {
		p.t.Errorf("the torn line is still in %s (%v)", log, err)
	}
	kept := false
	for _, o := range c.others {
		if o.agent == me && o.kind == "bad" && strings.Contains(o.path, "/events.") {
			data, _ := os.ReadFile(filepath.Join(p.team(), o.path))
			kept = kept || strings.Contains(string(data), torn)
		}
	}
	if !kept {
		p.t.Errorf("the torn line of %s is not among the bad files", log)
	}
	for i, line := range c.events[me] {
		if !strings.HasPrefix(line, fmt.Sprintf(`{"seq":%d,`, i+1)) {
			p.t.Errorf("events of %s: line %d: %s", me, i+1, clip(line))
			break
		}
	}
}
