//go:build linux

package crashtest

import (
	"slices"
	"strings"
)

// cutLogs compares with what a cut may take: of a log only the end, and that
// only where nothing of it was synced. Then the logs go on, and the state folds.
func (p *powercut) cutLogs() {
	p.t.Helper()
	c := take(p.t, p.team())
	p.forgive(c)
	for agent, lines := range c.logs {
		if n := len(lines); n > 0 && lines[n-1].Seq < p.folded(agent) {
			p.t.Errorf("the events of %s end at %d, the base at %d", agent, lines[n-1].Seq, p.folded(agent))
		}
	}
}

// note appends a small event.
func (p *powercut) note(me string, flags ...string) {
	t, text := write(200)
	p.happens(t, me, slices.Contains(flags, "--sync"))
	r := p.run(call{args: append([]string{"event", "--stdin", "--json", "--as", me}, flags...), text: eventLine("", "", text)})
	p.printedEvents(r.out)
	p.expect(r, 0)
}

// rotateAndCut fills a segment, has a synced event begin the next one, and cuts
// the power: what comes before a synced event is as durable as it.
func (p *powercut) rotateAndCut() {
	if p.t.Failed() {
		return
	}
	p.fillLog("alice", never)
	p.note("alice", "--sync")
	p.cutNow()
	// The same without a synced one: a gapless beginning is left.
	p.fillLog("alice", never)
	p.note("alice")
	p.must("status", "alice")
	p.cutNow()
}

// againAndCut gives an event that is in, and not synced, once more with --sync:
// exit 0 is the promise.
func (p *powercut) againAndCut() {
	if p.t.Failed() {
		return
	}
	p.must("event", "--sync", "note", "--as", "dave") // the log is there
	t, text := write(200)
	p.happens(t, "dave", true)
	args := []string{"event", "--stdin", "--as", "dave"}
	line := eventLine("", "id-"+string(t), text)
	p.expect(p.run(call{args: args, text: line}), 0)
	if r := p.run(call{args: append(args, "--sync"), text: line}); r.code == 0 {
		p.happened(t, 0)
	}
	p.cutNow()
}

// archiveAndCut archives events and cuts the power: the state is what it was.
func (p *powercut) archiveAndCut() {
	if p.t.Failed() {
		return
	}
	p.fillLog("bob", never)
	p.note("bob", "--sync")
	want := p.status("bob")
	p.must("gc", "--keep", "0s")
	p.cutNow()
	if got := p.status("bob"); got != want {
		p.t.Errorf("the status of bob after gc and a cut:\n%s\nand it was\n%s", got, want)
	}
}

// cutNow cuts the power while nobody is at work, mounts and judges.
func (p *powercut) cutNow() {
	p.t.Helper()
	p.breaks()
	p.volume.cut()
	p.volume.unmount()
	p.volume.mount()
	p.mended()
	p.cutLogs()
	p.tally(p.judge(p.t, take(p.t, p.team())))
}

// goOn has every log go on, and every state fold, after a cut.
func (p *powercut) goOn() {
	for _, agent := range takers {
		turn := "after-" + newID(0)
		p.must("event", "turn_started", "turn_id="+turn, "--as", agent)
		p.note(agent, "--sync")
		if out := p.must("status", agent, "--json").out; !strings.Contains(out, turn) || !strings.Contains(out, `"turn_status":"busy"`) {
			p.t.Errorf("in turn %s: %s", turn, out)
		}
		p.must("event", "turn_idle", "turn_id="+turn, "--as", agent)
	}
	p.judgeStatus(p.t, takers...)
}
