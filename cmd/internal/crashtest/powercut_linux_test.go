package crashtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentteammail/atm/internal/testround"
)

// A powercut is a world on a disk whose power is cut.
type powercut struct {
	*world
	volume  *volume
	members []string // added, and said so
	backups []string // taken, and said so
}

func needPowerCut(t *testing.T) {
	t.Helper()
	if os.Getenv("ATM_POWERCUT") == "" {
		t.Skip("it mounts file systems: set ATM_POWERCUT=1")
	}
}

// The power is cut while senders, readers and droppers work; the disk is mounted again, and again.
// What was acknowledged is there, whole, after every cut; what was not is whole or absent; and the
// mailbox works as if nothing had been. Of events, the synced ones are there, and all before them.
func TestPowerCut(t *testing.T) {
	needPowerCut(t)
	cycles := 20
	if s := os.Getenv("ATM_POWERCUT_CYCLES"); s != "" {
		var err error
		if cycles, err = strconv.Atoi(s); err != nil {
			t.Fatal("ATM_POWERCUT_CYCLES: ", err)
		}
	}
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			p := &powercut{volume: newVolume(t, kind)}
			p.volume.mount()
			p.world = newWorld(t, p.volume.path, takers...)
			p.cuts = true
			// At once: what init made has to stay.
			p.cut()
			for n := 1; n <= cycles && !p.failed(t); n++ {
				p.goOn()
				p.workAndCut(n)
			}
			for _, then := range []func(){p.goOn, p.cutAfterRepeat, p.cutAfterRotation, p.cutAfterArchive, p.cutAfterRestore} {
				if !p.failed(t) {
					then()
				}
			}
			p.report(t, fmt.Sprintf("%d cycles", cycles))
		})
	}
}

// cut cuts the power, mounts the disk again, and compares with what a cut may take: of a log only the
// end, and that only where nothing of it was synced.
func (p *powercut) cut(mountOptions ...string) {
	p.t.Helper()
	p.setBroken(true)
	p.volume.cut()
	p.comeBack(mountOptions...)
}

func (p *powercut) comeBack(mountOptions ...string) {
	p.volume.unmount()
	p.volume.mount(mountOptions...)
	p.setBroken(false)
	c := p.census()
	p.forgive(c)
	p.judge(c)
}

// workAndCut cuts the power while many are at work.
func (p *powercut) workAndCut(n int) {
	var over atomic.Bool
	timer := time.AfterFunc(time.Duration(20+testround.Rand.IntN(500))*time.Millisecond, func() {
		p.setBroken(true)
		p.volume.cut()
		over.Store(true)
	})
	defer timer.Stop()
	join := func(*world) { p.addMember(n); p.takeBackup(n) }
	p.work([]job{
		{4, sends},
		{1, []func(*world){(*world).read}},
		{2, answers},
		{2, []func(*world){(*world).drop}},
		{1, []func(*world){stress(gc), (*world).retire, (*world).look, (*world).see}},
		{2, events},
		{2, []func(*world){(*world).live}},
		{1, []func(*world){join}},
	}, over.Load)
	var options []string
	if p.volume.kind == "ext4" && n%2 == 1 {
		options = []string{"noauto_da_alloc"}
	}
	p.comeBack(options...)
	for _, name := range p.members {
		if _, err := os.Stat(filepath.Join(p.team(), name, "inbox", "new")); err != nil {
			p.breach("lost", "the member %s, added before the cut: %v", name, err)
		}
	}
	for _, file := range p.backups {
		p.unpack(file)
		os.Remove(file)
	}
	p.backups = nil
}

// addMember adds a member and sends to them at once.
func (p *powercut) addMember(n int) {
	name := fmt.Sprintf("m%d-%x", n, rand.Uint32())
	if p.try(call{args: []string{"team", "add", name}}).code == 0 {
		p.members = append(p.members, name)
		p.run(p.sending("alice", []string{name}, "--", "--json").call)
	}
	time.Sleep(20 * time.Millisecond)
}

// takeBackup takes a backup onto the disk whose power will be cut.
func (p *powercut) takeBackup(n int) {
	file := filepath.Join(p.volume.path, fmt.Sprintf("backup.%d.%x", n, rand.Uint32()))
	if p.try(call{args: []string{"backup", file}}).code == 0 {
		p.backups = append(p.backups, file)
	}
	time.Sleep(20 * time.Millisecond)
}

// goOn has atm work on what a cut left: mail, logs with half a line at the end, which is ended, and
// the states of all.
func (p *powercut) goOn() {
	me := one(readers...)
	torn := fmt.Sprintf(`{"seq":%d,"at":"2026-`, rand.Uint32()) + strings.Repeat("\x00", testround.Rand.IntN(20))
	log := p.tearLog(me, torn)
	p.mail(me)
	p.readAll(me)
	c := p.settle()
	p.judge(c)
	if log != "" {
		data, err := os.ReadFile(log)
		if err != nil || !strings.Contains(string(data), torn+"\n") || !strings.HasSuffix(string(data), "\n") {
			p.wrong("the torn line is not ended in %s (%v)", log, err)
		}
	}
	for _, agent := range takers {
		turn := "after-" + newID(0)
		p.must("event", "turn_started", "turn_id="+turn, "--as", agent)
		p.run(p.streaming(agent, 1, false, "--sync").call)
		if out := p.must("status", agent, "--json").out; !strings.Contains(out, turn) || !strings.Contains(out, `"turn_status":"busy"`) {
			p.wrong("in turn %s: %s", turn, out)
		}
		p.must("event", "turn_idle", "turn_id="+turn, "--as", agent)
	}
	p.judgeStatus(takers...)
	p.run(call{args: []string{"doctor"}, exits: []int{1}})
}

// cutAfterRotation fills a segment, has a synced event begin the next one, and cuts the power: what
// comes before a synced event is as durable as it. Without a synced one a gapless beginning is left.
func (p *powercut) cutAfterRotation() {
	for _, flags := range [][]string{{"--sync"}, nil} {
		p.fillLog("alice", never)
		p.run(p.streaming("alice", 1, false, flags...).call)
		p.must("status", "alice")
		p.cut()
	}
}

// cutAfterRepeat gives an event that is in, and not synced, once more with --sync: exit 0 is the
// promise.
func (p *powercut) cutAfterRepeat() {
	p.must("event", "--sync", "note", "--as", "dave") // the log is there
	a := p.streaming("dave", 1, true, "--sync")
	first := a.call
	first.args = first.args[:len(first.args)-1]
	p.run(first)
	p.run(a.call)
	p.cut()
}

// cutAfterArchive archives events and cuts the power: the state is what it was.
func (p *powercut) cutAfterArchive() {
	p.fillLog("bob", never)
	p.run(p.streaming("bob", 1, false, "--sync").call)
	want := p.status("bob")
	p.must("gc", "--keep", "0s")
	p.cut()
	if got := p.status("bob"); got != want {
		p.wrong("the status of bob after gc and a cut:\n%s\nand it was\n%s", got, want)
	}
}

// cutAfterRestore restores a backup into a new root and cuts the power at once.
func (p *powercut) cutAfterRestore() {
	file := filepath.Join(p.volume.path, "last")
	p.must("backup", file)
	p.root = filepath.Join(p.volume.path, "restored")
	p.must("restore", file)
	p.cut()
}

// TestPowerCutWithoutJournal takes the disk as it is at one moment, as if the machine had been
// killed, of an ext4 that has no journal: what was acknowledged is there, and whole, when e2fsck has
// been over it.
func TestPowerCutWithoutJournal(t *testing.T) {
	needPowerCut(t)
	v := newVolume(t, "ext4", "-O", "^has_journal")
	v.mount()
	w := newWorld(t, v.path, takers...)
	unix.Sync() // making the team is not what is tried here
	for n := range 30 {
		me := []string{one(readers...)}
		switch {
		case n%3 == 0:
			w.mustRun(w.sending("alice", me, "--attach", "--json").call)
		case n%10 == 1: // under an id of its own, twice
			a := w.batch(map[string]any{"to": me, "id": newID(0)})
			w.mustRun(a.call)
			w.mustRun(a.call)
		default:
			w.mustRun(w.sending("alice", me, "--", "--json").call)
		}
	}
	w.mustRun(w.sending("alice", takers[1:], "--", "--json").call)
	w.mustRun(w.batching(20, false).call)
	image, err := os.ReadFile(v.image)
	if err != nil {
		t.Fatal(err)
	}
	v.unmount()
	w.want(os.WriteFile(v.image, image, 0o600))
	out, err := exec.Command("e2fsck", "-fy", v.image).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() > 2) {
		t.Fatalf("e2fsck: %v\n%s", err, out)
	}
	v.mount()
	w.judge(w.census())
	w.drain()
	w.report(t, "no journal")
}
