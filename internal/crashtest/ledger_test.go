//go:build unix

package crashtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// A ledger is what was tried, and what processes said is done.
type ledger struct {
	mu      sync.Mutex
	posts   map[key]*post
	drops   map[key]*drop
	events  map[token]*happening
	traces  map[trace]*traced
	handed  map[key]*handed   // texts that hooks handed over
	got     map[key]int       // texts that came out of some reader's pipe
	alone   map[key]int       // texts that a reader got in peace: once at most
	taken   map[key]time.Time // when
	begun   map[key]bool      // of which the first line did
	excused map[mail]bool     // messages that somebody may have taken without reading: replied to, acknowledged
	acks    map[mail]bool     // acks whose ids were printed
	retries []func()          // sends of ids that were sent before
	count   map[string]int    // for the line at the end
	wrongs  map[string]bool   // each said once
	order   []string          // of wrongs
	broken  bool              // the disk is gone: errors are no surprise
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

func newLedger() *ledger {
	return &ledger{
		posts: map[key]*post{}, drops: map[key]*drop{}, got: map[key]int{}, begun: map[key]bool{}, alone: map[key]int{}, excused: map[mail]bool{},
		events: map[token]*happening{}, traces: map[trace]*traced{}, handed: map[key]*handed{}, taken: map[key]time.Time{},
		acks: map[mail]bool{}, count: map[string]int{}, wrongs: map[string]bool{},
	}
}

func (l *ledger) wrong(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := fmt.Sprintf(format, args...); !l.wrongs[s] {
		l.wrongs[s] = true
		l.order = append(l.order, s)
	}
}

func (l *ledger) add(what string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count[what] += n
}

func (l *ledger) breaks() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
}

func (l *ledger) mended() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = false
	// That a message was read is not synced: after a power cut it may be unread
	// again, and is shown once more.
	clear(l.alone)
}

func (l *ledger) isBroken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// begin notes that a text is about to be sent.
func (l *ledger) begin(t token, from string, to ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range to {
		if l.posts[key{a, t}] == nil {
			l.posts[key{a, t}] = &post{from: from}
		}
	}
}

// printed is what send, reply and ack print with --json.
type printed struct {
	Line      int    `json:"line"`
	ID        string `json:"id"`
	Delivered []struct {
		To string `json:"to"`
	} `json:"delivered"`
}

// stored reads the JSON of send or reply, which may be cut off, and notes what
// it promises.
func (l *ledger) stored(t token, r result) {
	var p printed
	if json.Unmarshal([]byte(r.out), &p) == nil {
		l.promise(t, p)
	}
}

func (l *ledger) promise(t token, p printed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range p.Delivered {
		agent, _, _ := strings.Cut(d.To, "@")
		k := key{agent, t}
		if l.posts[k] == nil {
			l.posts[k] = &post{}
		}
		l.posts[k].id, l.posts[k].stored, l.posts[k].at = p.ID, true, time.Now()
		l.count["acknowledged"]++
	}
}

// acked notes the ack that a process printed.
func (l *ledger) acked(r result) {
	var p printed
	if json.Unmarshal([]byte(r.out), &p) != nil || p.ID == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range p.Delivered {
		agent, _, _ := strings.Cut(d.To, "@")
		l.acks[mail{agent, p.ID}] = true
		l.count["acks"]++
	}
}

// excuse notes that a message may be taken by a process that does not show it.
func (l *ledger) excuse(agent, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.excused[mail{agent, id}] = true
}

// saw notes what a reader of agent's mail got.
func (l *ledger) saw(agent, output string) {
	tokens, begun := shown(output)
	l.sawAll(agent, tokens)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range begun {
		l.begun[key{agent, t}] = true
	}
}

func (l *ledger) sawAll(agent string, tokens []token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range tokens {
		l.got[key{agent, t}]++
		l.count["shown"]++
	}
}

// lay notes a file that is about to be dropped.
func (l *ledger) lay(agent string, t token, d drop) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drops[key{agent, t}] = &d
	l.count["dropped"]++
}

// laid notes that a file is there for certain, and whether it is whole.
func (l *ledger) laid(agent string, t token, there, whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.drops[key{agent, t}]
	d.whole, d.safe = whole, there
}

// some is the id of a message that from sent and that was acknowledged.
func (l *ledger) some(from string) (id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, p := range l.posts {
		if p.stored && p.from == from && time.Since(p.at) < time.Second {
			if n++; rand.IntN(n) == 0 {
				id = p.id
			}
		}
		if n > 50 {
			break
		}
	}
	return id
}

// summary is one line.
func (l *ledger) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var words []string
	for _, what := range slices.Sorted(maps.Keys(l.count)) {
		words = append(words, fmt.Sprintf("%s %d", what, l.count[what]))
	}
	return strings.Join(words, ", ")
}
