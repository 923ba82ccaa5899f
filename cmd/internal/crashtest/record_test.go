//go:build unix

package crashtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testround"
)

// A record is what was tried, what processes said is done, and what is wrong.
type record struct {
	mu      sync.Mutex
	items   map[key]*item
	hooks   map[hookEvent]*hookCalls
	excused map[mail]bool  // messages that may have been taken without reading: replied to, acknowledged
	acks    map[mail]bool  // acks whose ids were printed
	retries []call         // sends with an id, which may be sent again
	count   map[string]int // for the line at the end
	wrongs  []string       // each once
	broken  bool           // the disk is gone, or fails: errors are no surprise
}

// key is a text in a mailbox or log, mail an id in one.
type key struct {
	agent string
	token token
}

type mail struct{ agent, id string }

// An item is a text on its way to one mailbox or log.
type item struct {
	kind     string    // message, drop, event
	from     string    // its sender, or the file's name
	promised bool      // a process said that it is in; a dropped file is written to its end, and synced where needed
	at       time.Time // when
	id       string    // of a message, once that was printed
	seq      uint64    // of an event, once that was printed
	sync     bool      // an event that has to survive a power cut
	cut      bool      // a dropped file of which not all was written

	shown         int // how often it came out whole
	begun         bool
	again         int       // so often to readers that began after it was read
	read          time.Time // when the last reader that was neither killed nor slow had ended
	plain, marked int       // so often by hooks: as new, and as a possible repeat
}

// hookEvent is what identifies an event of a hook in the log. about is the turn or the tool call.
type hookEvent struct{ agent, kind, session, about string }

type hookCalls struct {
	tries int  // calls that may have appended it
	said  bool // one ended well, and so says that it is in
	loose bool // two calls may each leave one: a turn goes on after its end, moments differ
}

func newRecord() *record {
	return &record{items: map[key]*item{}, hooks: map[hookEvent]*hookCalls{}, excused: map[mail]bool{}, acks: map[mail]bool{}, count: map[string]int{}}
}

// copy is a record that begins with what was promised in this one.
func (r *record) copy() *record {
	defer r.locked()()
	c := newRecord()
	for k, it := range r.items {
		c.items[k] = new(*it)
	}
	for e, h := range r.hooks {
		c.hooks[e] = new(*h)
	}
	return c
}

// locked is undone at once: defer r.locked()().
func (r *record) locked() (unlock func()) {
	r.mu.Lock()
	return r.mu.Unlock
}

// wrong records a complaint.
func (r *record) wrong(format string, args ...any) {
	defer r.locked()()
	if s := fmt.Sprintf(format, args...); !slices.Contains(r.wrongs, s) {
		r.wrongs = append(r.wrongs, s)
	}
}

// breach records a promise that was broken: lost, doubled, torn.
func (r *record) breach(kind, format string, args ...any) {
	r.add(kind, 1)
	r.wrong(kind+": "+format, args...)
}

func (r *record) add(what string, n int) {
	defer r.locked()()
	r.count[what] += n
}

func (r *record) setBroken(broken bool) {
	defer r.locked()()
	r.broken = broken
	// That a message was read is not synced: after a power cut it may be shown once more.
	for _, it := range r.items {
		it.read = time.Time{}
	}
}

func (r *record) isBroken() bool {
	defer r.locked()()
	return r.broken
}

// failed makes complaints errors of the test, and says whether it has any.
func (r *record) failed(t testing.TB) bool {
	t.Helper()
	defer r.locked()()
	for _, s := range r.wrongs {
		t.Error(s)
	}
	r.wrongs = nil
	return t.Failed()
}

// breaches are the promises that the verdict counts.
var breaches = []string{"lost", "doubled", "torn", "gaps", "consumed unseen", "cleared without an ack", "claims left"}

// report ends a test: what was counted, and what is wrong.
func (r *record) report(t testing.TB, about string) {
	t.Helper()
	var promises, others []string
	for _, what := range breaches {
		promises = append(promises, fmt.Sprintf("%s %d", what, r.count[what]))
	}
	for _, what := range slices.Sorted(maps.Keys(r.count)) {
		if !slices.Contains(append(breaches, "messages", "log lines"), what) {
			others = append(others, fmt.Sprintf("%s %d", what, r.count[what]))
		}
	}
	line := fmt.Sprintf("%s, %s: %d messages, %d events: %s; %s", t.Name(), about, r.count["messages"], r.count["log lines"],
		strings.Join(promises, ", "), strings.Join(others, ", "))
	t.Log(line)
	if testround.IsLong || os.Getenv("ATM_POWERCUT") != "" {
		fmt.Println(line)
	}
	r.failed(t)
}

// begin records that a text is about to be sent, dropped or appended.
func (r *record) begin(t token, it item, to ...string) {
	defer r.locked()()
	for _, agent := range to {
		r.items[key{agent, t}] = new(it)
	}
	r.count[it.kind+"s"]++
}

// excuse records that a message may be taken by a process that does not show it.
func (r *record) excuse(agent, id string) {
	defer r.locked()()
	r.excused[mail{agent, id}] = true
}

// note records what a process promised: by what it printed, and by its exit code.
func (r *record) note(c call, res result, took time.Duration) {
	r.add("processes", 1)
	r.check(res, c.exits...)
	if c.reader != "" {
		var began time.Time
		if c.args[0] == "read" && c.out == nil && res.code == 0 && res.err == "" && took < time.Second {
			began = time.Now().Add(-took)
		}
		tokens, begun := shown(res.out)
		r.saw(c.reader, tokens, begun, began)
		r.saw(c.reader, inJSON(res.out), nil, time.Time{})
	}
	for line := range strings.Lines(res.out) {
		var p printed
		if strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &p) == nil {
			r.notePrinted(c, p)
		}
	}
	if res.code == 0 {
		for _, k := range c.events {
			r.promise(k.agent, k.token, "", 0)
		}
	}
}

// proper complains of what no process may do: a stack trace, an exit code that is none of
// atm's, a line of stderr that does not say whose it is.
func (rec *record) proper(r result) {
	if strings.HasPrefix(r.err, "runtime: eventfd failed with 24\n") || strings.HasPrefix(r.err, "runtime: epollcreate failed with 24\n") {
		return // Go itself needs three descriptors, at the first file that it polls
	}
	if strings.Contains(r.err, "panic: ") || strings.Contains(r.err, "goroutine ") || strings.Contains(r.err, "fatal error: ") {
		rec.wrong("it panics: atm %s: exit %d\n%s", strings.Join(r.args, " "), r.code, r.err)
		return
	}
	if r.code > 6 {
		rec.wrong("exit code: %s", r)
	}
	for line := range strings.Lines(r.err) {
		if !strings.HasPrefix(line, "atm: ") && r.code >= 0 {
			rec.wrong("a line of stderr %q: %s", line, r)
			break
		}
	}
}

// check complains of an exit code that nothing explains.
func (rec *record) check(r result, exits ...int) {
	switch {
	case r.code == -1:
		rec.add("killed", 1)
	case (r.code == 5 || r.code == 1 && r.args[0] == "event") && strings.Contains(r.out+r.err, " is held"):
		rec.add("locks not got", 1) // five seconds may pass on a busy machine
	case r.code != 0 && !slices.Contains(exits, r.code) && !rec.isBroken():
		rec.wrong("exit code: %s", r)
	}
}

// printed is a line of JSON of send, reply, ack or event.
type printed struct {
	Line      int                   `json:"line"`
	ID        string                `json:"id"`
	Delivered []struct{ To string } `json:"delivered"`
	logLine
}

func (r *record) notePrinted(c call, p printed) {
	for _, d := range p.Delivered {
		agent, _, _ := strings.Cut(d.To, "@")
		switch {
		case len(c.texts) > 0:
			r.promise(agent, c.texts[max(0, p.Line-1)], p.ID, 0)
		case c.args[0] == "ack":
			r.mu.Lock()
			r.acks[mail{agent, p.ID}] = true
			r.count["acks"]++
			r.mu.Unlock()
		}
	}
	t, _ := tokenOf(p.text())
	if at := slices.IndexFunc(c.events, func(k key) bool { return k.token == t }); at >= 0 && p.Seq > 0 {
		r.promise(c.events[at].agent, t, "", p.Seq)
	}
}

// promise records that a process said of a text that it is in, with its id or seq where it said that.
func (r *record) promise(to string, t token, id string, seq uint64) {
	defer r.locked()()
	it := r.items[key{to, t}]
	if it == nil || seq != 0 && it.seq != 0 && seq != it.seq {
		r.wrongs = append(r.wrongs, fmt.Sprintf("what was not given to it, or is in already, is said to be in: %s, %s%d", t, id, seq))
		return
	}
	if !it.promised {
		r.count[it.kind+"s acknowledged"]++
	}
	it.promised, it.at, it.id, it.seq = true, time.Now(), id, cmp.Or(seq, it.seq)
}

// saw records what a reader of agent's mail got. began is when a reader began that was neither killed nor slow: what it got
// no later one may get.
func (r *record) saw(agent string, tokens, begun []token, began time.Time) {
	defer r.locked()()
	for _, t := range slices.Concat(tokens, begun) {
		if r.items[key{agent, t}] == nil {
			r.wrongs = append(r.wrongs, fmt.Sprintf("%s is shown what it has not got: %s", agent, t))
			return
		}
	}
	for _, t := range begun {
		r.items[key{agent, t}].begun = true
	}
	for _, t := range tokens {
		it := r.items[key{agent, t}]
		it.shown++
		r.count["shown"]++
		if !began.IsZero() {
			if !it.read.IsZero() && began.After(it.read) {
				it.again++
			}
			it.read = time.Now()
		}
	}
}

// calledHook records a hook's call that was to leave an event.
func (r *record) calledHook(e hookEvent, said, loose bool) {
	defer r.locked()()
	c := r.hooks[e]
	if c == nil {
		c = &hookCalls{}
		r.hooks[e] = c
	}
	c.tries++
	c.said = c.said || said
	c.loose = c.loose || loose
}

// isPutBack says whether an agent's mail may have been put back, which makes it new. r.mu is held.
func (r *record) isPutBack(agent string) bool { return agent == "carol" && r.count["put back"] > 0 }

// forgive takes back what is not promised across a power cut: the last events of a log, unless
// they were synced; and what only hooks know.
func (r *record) forgive(c *census) {
	places := c.places()
	for k, it := range r.items {
		var last uint64
		if lines := c.logs[k.agent]; len(lines) > 0 {
			last = lines[len(lines)-1].Seq
		}
		if it.kind == "event" && it.promised && !it.sync && (it.seq > last || it.seq == 0 && len(places[k]) == 0) {
			it.promised, it.seq = false, 0
			r.count["events lost to a cut"]++
		}
		it.plain, it.marked, it.read = 0, 0, time.Time{}
	}
	for _, h := range r.hooks {
		h.said = false
	}
}
