//go:build unix

package crashtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A record is what was tried, what processes said is done, and what is wrong.
type record struct {
	mu      sync.Mutex
	posts   map[key]*post
	drops   map[key]*drop
	reads   map[key]*reading
	events  map[token]*event
	hooks   map[hookEvent]*hookCalls
	excused map[mail]bool  // messages that may have been taken without reading: replied to, acknowledged
	acks    map[mail]bool  // acks whose ids were printed
	retries []call         // sends with an id, which may be sent again
	count   map[string]int // for the line at the end
	wrongs  []string       // each once
	broken  bool           // the disk is gone, or fails: errors are no surprise
}

// key is a text in a mailbox, mail an id in one.
type key struct {
	agent string
	token token
}

type mail struct{ agent, id string }

// post is a text on its way to one recipient.
type post struct {
	id     string // "" while nothing told it
	from   string
	stored bool // printed: it has to be there
	at     time.Time
}

// drop is a file that was put into an inbox.
type drop struct {
	name  string
	whole bool // all of it was written
	safe  bool // it has to be there: its writer ended, and synced it where the power may be cut
}

// reading is how a text came out.
type reading struct {
	shown         int // times, whole
	begun         bool
	alone         int       // by readers that were neither killed nor slow: once at most
	at            time.Time // of the last of those
	plain, marked int       // by hooks: as new, and as a possible repeat
}

// event is one with a text, which some process was to append.
type event struct {
	agent string
	said  bool   // a process said that it is in: it has to be there, once
	seq   uint64 // under this number, where that was printed
	sync  bool   // and it has to survive a power cut
}

// hookEvent is what identifies an event of a hook in the log. about is the turn or the tool call.
type hookEvent struct{ agent, kind, session, about string }

type hookCalls struct {
	tries int  // calls that may have appended it
	said  bool // one ended well, and so says that it is in
	loose bool // two calls may each leave one: a turn goes on after its end, moments differ
}

func newRecord() *record {
	return &record{
		posts: map[key]*post{}, drops: map[key]*drop{}, reads: map[key]*reading{}, events: map[token]*event{},
		hooks: map[hookEvent]*hookCalls{}, excused: map[mail]bool{}, acks: map[mail]bool{}, count: map[string]int{},
	}
}

// locked is undone at once: defer r.locked()().
func (r *record) locked() (unlock func()) {
	r.mu.Lock()
	return r.mu.Unlock
}

// copy is a record that begins with what was promised in this one.
func (r *record) copy() *record {
	defer r.locked()()
	c := newRecord()
	c.posts, c.drops, c.reads = deepCopy(r.posts), deepCopy(r.drops), deepCopy(r.reads)
	c.events, c.hooks = deepCopy(r.events), deepCopy(r.hooks)
	return c
}

func deepCopy[K comparable, V any](m map[K]*V) map[K]*V {
	c := map[K]*V{}
	for k, v := range m {
		c[k] = new(*v)
	}
	return c
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
	for _, got := range r.reads {
		got.alone = 0
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
	if os.Getenv("ATM_STRESS")+os.Getenv("ATM_POWERCUT") != "" {
		fmt.Println(line)
	}
	r.failed(t)
}

// begin records that a text is about to be sent.
func (r *record) begin(t token, from string, to ...string) {
	defer r.locked()()
	for _, a := range to {
		r.posts[key{a, t}] = &post{from: from}
	}
}

// excuse records that a message may be taken by a process that does not show it.
func (r *record) excuse(agent, id string) {
	defer r.locked()()
	r.excused[mail{agent, id}] = true
}

// setDrop records what is known of a dropped file.
func (r *record) setDrop(agent string, t token, d drop) {
	defer r.locked()()
	r.drops[key{agent, t}] = &d
}

// happens records that an event is about to be appended.
func (r *record) happens(t token, agent string, sync bool) {
	defer r.locked()()
	r.events[t] = &event{agent: agent, sync: sync}
	r.count["events"]++
}

// note records what a process promised: by what it printed, and by its exit code.
func (r *record) note(c call, res result, took time.Duration) {
	r.add("processes", 1)
	r.check(res, c.exits...)
	if c.reader != "" {
		tokens, begun := shown(res.out)
		r.saw(c.reader, append(tokens, inJSON(res.out)...), begun)
		if isWhole := c.args[0] == "read" && c.out == nil && res.code == 0 && res.err == ""; isWhole && took < time.Second {
			r.sawAlone(c.reader, tokens)
		}
	}
	for line := range strings.Lines(res.out) {
		var p printed
		if strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &p) == nil {
			r.notePrinted(c, p)
		}
	}
	if at := slices.Index(c.args, "--id"); at > 0 && len(c.texts) == 1 {
		// For people the line has the end of the id only.
		id := c.args[at+1]
		if short, to, ok := strings.Cut(res.out, " to "); ok && short == "sent "+id[30:] && strings.Contains(to, "\n") {
			r.promise(id, c.texts[0], strings.Fields(to)[0])
		}
	}
	if res.code == 0 {
		for _, t := range c.events {
			r.happened(t, 0)
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
	case (r.code == 5 || r.code == 1 && r.args[0] == "event") && strings.Contains(r.out+r.err, " is held by "):
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
			r.promise(p.ID, c.texts[max(0, p.Line-1)], agent)
		case c.args[0] == "ack":
			r.mu.Lock()
			r.acks[mail{agent, p.ID}] = true
			r.count["acks"]++
			r.mu.Unlock()
		}
	}
	if t, _ := tokenOf(p.text()); t != "" && p.Seq > 0 && len(c.events) > 0 {
		r.happened(t, p.Seq)
	}
}

// promise records that a process said of a text that it is delivered.
func (r *record) promise(id string, t token, to string) {
	defer r.locked()()
	if p := r.posts[key{to, t}]; p != nil {
		p.id, p.stored, p.at = id, true, time.Now()
	}
	r.count["acknowledged"]++
}

// happened records that a process said an event is in; seq is 0 where it did not say under
// which number.
func (r *record) happened(t token, seq uint64) {
	r.mu.Lock()
	h := r.events[t]
	twice := h != nil && h.seq != 0 && seq != 0 && h.seq != seq
	if h != nil {
		if !h.said {
			r.count["events said to be in"]++
		}
		h.said = true
		if seq != 0 {
			h.seq = seq
		}
	}
	r.mu.Unlock()
	if h == nil || twice {
		r.wrong("an event that was not given to it, or is in already, is said to be in: %s, %d", t, seq)
	}
}

// reading is what is known of a text in a mailbox. r.mu is held.
func (r *record) reading(agent string, t token) *reading {
	k := key{agent, t}
	if r.reads[k] == nil {
		r.reads[k] = &reading{}
	}
	return r.reads[k]
}

// saw records what a reader of agent's mail got.
func (r *record) saw(agent string, tokens, begun []token) {
	defer r.locked()()
	for _, t := range tokens {
		r.reading(agent, t).shown++
		r.count["shown"]++
	}
	for _, t := range begun {
		r.reading(agent, t).begun = true
	}
}

// sawAlone records what no other such reader may get.
func (r *record) sawAlone(agent string, tokens []token) {
	defer r.locked()()
	for _, t := range tokens {
		got := r.reading(agent, t)
		got.alone++
		got.at = time.Now()
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
	last, there := map[string]uint64{}, map[token]bool{}
	for name, lines := range c.logs {
		agent, _, _ := strings.Cut(name, ".")
		for _, e := range lines {
			last[agent] = max(last[agent], e.Seq)
			t, _ := tokenOf(e.text())
			there[t] = true
		}
	}
	for t, h := range r.events {
		if h.said && !h.sync && (h.seq > last[h.agent] || h.seq == 0 && !there[t]) {
			h.said, h.seq = false, 0
			r.count["events lost to a cut"]++
		}
	}
	for _, h := range r.hooks {
		h.said = false
	}
	for _, got := range r.reads {
		got.plain, got.marked, got.at = 0, 0, time.Time{}
	}
}
