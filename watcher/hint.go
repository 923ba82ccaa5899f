package watcher

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agentteammail/atm/mailbox"
)

// maxHints is how many names are kept of an agent that nobody has asked for
// yet; beyond it the directory is listed instead.
const maxHints = 8192

// spotKind is what a watched directory is to a mailbox.
type spotKind int

const (
	spotAgent spotKind = iota
	spotInbox
	spotNew
	spotEvents
	spotTeam // not one of a feed's spots
)

// target is a mailbox that is concerned by what happens in a directory.
type target struct {
	box   int
	kind  spotKind
	agent string // with spotTeam: the name of the agent's directory
}

// news is what the kernel told about a mailbox and nobody has looked at yet.
type news struct {
	ids     []key // names that appeared in new, in order, each once
	known   map[key]struct{}
	full    bool // too many, or some lost: list new
	touched bool // new changed in a way that the kernel told
	check   bool // a directory itself came, went or was replaced
	events  bool // the log changed
}

func (n *news) add(k key, max int) {
	if _, there := n.known[k]; there || n.full {
		return
	}
	if len(n.ids) >= max {
		n.full = true
		return
	}
	if n.known == nil {
		n.known = map[key]struct{}{}
	}
	n.known[k] = struct{}{}
	n.ids = append(n.ids, k)
}

func (n *news) reset() {
	if len(n.ids) > 1024 {
		*n = news{} // clearing a large map costs more than making a small one
		return
	}
	clear(n.known)
	*n = news{ids: n.ids[:0], known: n.known}
}

// hints is where what the kernel told is left for Next.
type hints struct {
	at     map[string][]target // by path; complete before anything is heard
	drops  *drops
	wake   chan struct{}
	kernel *kernel // to be woken as well; nil: none
	max    int     // maxHints

	dirty atomic.Bool
	mu    sync.Mutex
	news  []news
}

func newHints(boxes int, d *drops) *hints {
	return &hints{at: map[string][]target{}, drops: d, wake: make(chan struct{}, 1), max: maxHints, news: make([]news, boxes)}
}

func (h *hints) listen(path string, t target) { h.at[path] = append(h.at[path], t) }

// take swaps what was told for what was in into, which is emptied.
func (h *hints) take(into []news) bool {
	if !h.dirty.Load() {
		return false
	}
	for i := range into {
		into[i].reset()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dirty.Store(false)
	for i := range into {
		into[i], h.news[i] = h.news[i], into[i]
	}
	return true
}

// tell notes something and wakes Next.
func (h *hints) tell(f func()) {
	h.mu.Lock()
	f()
	h.dirty.Store(true)
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
	if h.kernel != nil {
		h.kernel.wake()
	}
}

// lost notes that hints were lost: everything is looked at.
func (h *hints) lost() {
	h.tell(func() {
		for i := range h.news {
			n := &h.news[i]
			n.full, n.check, n.events, n.touched = true, true, true, true
		}
	})
	for i := range h.news {
		h.drops.hint(i, true)
	}
}

// taken notes the messages that were made of dropped files.
func (h *hints) taken(box int, t mailbox.Taken) {
	if len(t.Messages) == 0 && t.Events == 0 {
		return
	}
	h.tell(func() {
		for _, id := range t.Messages {
			h.news[box].add(keyOf(id), h.max)
		}
		h.news[box].events = h.news[box].events || t.Events > 0
	})
}

// change is what happened to a name in a directory.
type change int

const (
	appeared change = iota // made, linked or moved there
	written
	touched // its rights or its times
	left    // removed, or moved away
)

// An ear hears what happens in the directories, and that hints were lost: err
// is nil when the kernel's queue ran over.
type ear struct {
	hear func(dir, name string, what change)
	lost func(err error)
}

// hear sorts what the kernel told.
func (h *hints) hear(dir, name string, what change) {
	changed := what == appeared || what == written
	for _, t := range h.at[dir] {
		n := &h.news[t.box]
		switch t.kind {
		case spotTeam:
			if name == t.agent {
				h.tell(func() { n.check = true })
			}
		case spotAgent:
			if name == "inbox" || name == "events" {
				h.tell(func() { n.check = true })
			}
		case spotInbox:
			if name == "new" {
				h.tell(func() { n.check = true })
			} else if what != left && !strings.HasPrefix(name, ".") {
				h.drops.hint(t.box, what == appeared)
			}
		case spotNew:
			k, isMessage := keyOfName(name)
			switch {
			case isMessage && changed:
				h.tell(func() {
					n.touched = true
					n.add(k, h.max)
				})
			case what == left:
				// Somebody read: nothing to wake anybody for.
				h.mu.Lock()
				n.touched = true
				h.dirty.Store(true)
				h.mu.Unlock()
			case !isMessage:
				h.drops.foreign(t.box, what == appeared, name)
			}
		case spotEvents:
			if changed {
				h.tell(func() { n.events = true })
			}
		}
	}
}
