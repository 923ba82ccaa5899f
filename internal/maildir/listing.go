package maildir

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/wire"
)

// Listing is what a folder holds, by the names in it or, while it has not changed, by what is kept of it: see package
// headers.
type Listing struct {
	Folder
	Others []string // names that are no messages'

	box    *Box
	stamp  headers.Stamp
	ids    []wire.ID      // nil: they are in kept
	kept   *headers.Cache // nil: nothing is known but the ids
	opened []*wire.Item   // those of a small folder that learn has opened
	bad    map[int]bool   // what learn could not read
	dir    *durable.Root  // the folder, once a second file is opened in it: a path costs system calls for each element
	opens  int
	isPart bool // of what the folder has: nothing is kept of it
	held   Held // of new: messages that are not there but with their holders
}

// Only lists some messages of a folder.
func (b *Box) Only(d Folder, ids []wire.ID) *Listing {
	return &Listing{Folder: d, box: b, ids: append([]wire.ID{}, ids...), isPart: true}
}

// A folder's names are kept from worthNames messages on, and headers once worthRows had to be read: below that, two files
// that are read and replaced cost what they save. Tests lower them.
var worthNames, worthRows = 500, 16

// HeadersDir is the directory of a mailbox in which headers are kept.
const HeadersDir = "run/headers"

// keptIn is the file in which the headers of a folder are kept; "": nowhere, as of an outbox and a retired mailbox.
func (b *Box) keptIn(d Folder) string {
	if b.host != "" || !wire.IsName(string(b.agent)) || d.Holder() != (holder.Holder{}) {
		return ""
	}
	below, isArchived := strings.CutPrefix(d.Dir, b.Archived()+"/")
	if isArchived {
		below = "archive/" + below
	}
	return b.In(HeadersDir, strings.ReplaceAll(strings.TrimPrefix(below, b.In()+"/"), "/", "."))
}

// List lists a folder, oldest first, without opening a message.
func (b *Box) List(d Folder) (*Listing, error) {
	l := &Listing{Folder: d, box: b}
	if info, err := b.store.root.Lstat(d.Dir); err == nil && info.IsDir() {
		l.stamp = headers.StampOf(info)
	}
	if file := b.keptIn(d); file != "" && l.stamp.IsSettled() {
		if kept := headers.Read(b.store.root, file, headers.IDs, 0); kept != nil && kept.Stamp == l.stamp {
			l.kept = kept
			return l, nil
		}
	}
	names, err := b.store.root.Names(d.Dir)
	l.ids = make([]wire.ID, 0, len(names))
	for _, name := range names {
		if id, ok := MessageID(name); ok {
			l.ids = append(l.ids, id)
		} else {
			l.Others = append(l.Others, name)
		}
	}
	if err != nil || len(l.Others) > 0 {
		l.stamp = l.stamp.Unsettled()
	}
	return l, err
}

// Len returns how many messages the folder has.
func (l *Listing) Len() int {
	if l.ids == nil {
		return l.kept.Len()
	}
	return len(l.ids)
}

// ID returns the id of the i-th message.
func (l *Listing) ID(i int) wire.ID {
	if l.ids == nil {
		return l.kept.Key(i).ID()
	}
	return l.ids[i]
}

// IDs returns the ids of all messages. The caller must not change them.
func (l *Listing) IDs() []wire.ID {
	if l.ids == nil {
		l.ids = make([]wire.ID, l.kept.Len())
		for i := range l.ids {
			l.ids[i] = l.kept.Key(i).ID()
		}
	}
	return l.ids
}

// at returns the place of the i-th message from the oldest or newest.
func (l *Listing) at(i int, newest bool) int {
	if newest {
		return l.Len() - 1 - i
	}
	return i
}

// learn reads the headers that a range asks for, from what is kept and from the messages, and keeps them for the next look.
func (l *Listing) learn(rg Range) {
	needsRows, isKnown := rg.With != 0 || rg.Keep != nil, l.kept != nil
	namesAreWorth := !isKnown && !l.isPart && l.held == nil && l.Len() >= worthNames && l.stamp.IsSettled()
	if l.Len() == 0 || !needsRows && !namesAreWorth {
		return
	}
	root, file := l.box.store.root, l.box.keptIn(l.Folder)
	if l.isPart {
		file = ""
	}
	if isKnown && l.held == nil {
		part := headers.Rows
		if rg.Texts {
			part = headers.Texts
		}
		if kept := headers.Read(root, file, part, rg.With); kept != nil && kept.Stamp == l.stamp && kept.Known == kept.Len() {
			l.kept = kept
			return
		}
	}
	var old *headers.Cache
	if file != "" {
		old = headers.Read(root, file, headers.Texts, 0)
	}
	if old == nil || !old.Stamp.IsSameDir(l.stamp) {
		old = headers.New(headers.Stamp{}, 0, false)
	}
	now, read := l.merge(old, needsRows)
	l.kept = now
	isWorth := l.held == nil && (read >= worthRows || l.stamp.IsSettled() && (l.Len() >= worthNames || old.Len() > 0))
	if file != "" && isWorth && l.box.Mkdir(l.box.In(HeadersDir)) == nil {
		now.Write(root, file) // else the next look reads the messages again
	}
}

// merge returns the headers of the folder as it is now, by those of an earlier state and by the messages, and how many of
// these it has read.
func (l *Listing) merge(old *headers.Cache, readsRest bool) (now *headers.Cache, read int) {
	known := make([]*headers.Header, l.Len())
	var unknown []int
	for i, j := 0, 0; i < l.Len(); i++ {
		k := headers.KeyOf(l.ID(i))
		for ; j < old.Len() && old.Key(j).IsBefore(k); j++ {
		}
		if j < old.Len() && old.Key(j) == k {
			if h, ok := old.Header(j); ok {
				known[i] = &h
				continue
			}
		}
		unknown = append(unknown, i)
	}
	if readsRest {
		read = l.readHeaders(unknown, known)
	}
	now = headers.New(l.stamp, l.Len(), readsRest || old.Known > 0)
	for i, h := range known {
		now.Add(headers.KeyOf(l.ID(i)), h)
	}
	return now, read
}

// readHeaders reads messages for their headers, on all processors, and returns how many it could read.
func (l *Listing) readHeaders(which []int, to []*headers.Header) (read int) {
	items, errs := make([]*wire.Item, len(which)), make([]error, len(which))
	isSmall, workers := l.Len() < worthRows, min(runtime.GOMAXPROCS(0), len(which))
	l.openDir()
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := w; n < len(which); n += workers {
				it, err := l.openFile(which[n])
				if errs[n] = err; err == nil {
					h := headers.Of(it.Message)
					to[which[n]] = &h
				}
				if isSmall {
					items[n] = it
				}
			}
		})
	}
	wg.Wait()
	l.bad = map[int]bool{}
	if isSmall {
		l.opened = make([]*wire.Item, l.Len())
	}
	for n, i := range which {
		if _, isBad := errors.AsType[*BadError](errs[n]); isBad {
			l.bad[i] = true
		} else if errs[n] == nil {
			read++
		}
		if isSmall {
			l.opened[i] = items[n]
		}
	}
	return read
}

// accepts reports whether the i-th message is one of the range, or cannot be read.
func (l *Listing) accepts(i int, rg Range) bool {
	if rg.Wants != nil && !rg.Wants(l.ID(i)) {
		return false
	}
	if rg.With == 0 && rg.Keep == nil {
		return true
	}
	h, isKnown := l.kept.Header(i)
	if !isKnown { // else it was moved on just now
		return l.bad[i]
	}
	return h.Has(rg.With) && (rg.Keep == nil || rg.Keep(&h))
}

// hasNone reports whether no message of the folder has all of the flags.
func (l *Listing) hasNone(with headers.Flags) bool {
	return with != 0 && l.kept != nil && l.kept.Known == l.Len() && !l.kept.Flags.Has(with)
}

// open opens the i-th message.
func (l *Listing) open(i int) (*wire.Item, error) {
	if l.opened != nil && l.opened[i] != nil {
		return l.opened[i], nil
	}
	if l.opens++; l.opens == 2 {
		l.openDir()
	}
	return l.openFile(i)
}

func (l *Listing) openDir() {
	if dir, err := l.box.store.root.Sub(l.Dir); err == nil && l.dir == nil {
		l.dir = dir
	}
}

func (l *Listing) openFile(i int) (*wire.Item, error) {
	id, d, dir := l.ID(i), l.Folder, l.dir
	if h, isHeld := l.held[id]; isHeld {
		d, dir = l.box.HeldBy(h), nil
	}
	var it *wire.Item
	var err error
	if dir == nil {
		it, err = l.box.Open(d, id)
	} else {
		it, err = l.box.openIn(dir, FileName(id), d, id)
	}
	if d.State == wire.Unread && errors.Is(err, ErrNotFound) { // it has just changed hands
		return l.box.openUnread(id)
	}
	return it, err
}

func (b *Box) openUnread(id wire.ID) (*wire.Item, error) {
	it, err := b.OpenAnywhere(id)
	if err == nil && it.State != wire.Unread {
		err = notFound(id)
	}
	return it, err
}

// withHeld returns the unread messages of a range, of which l has those in new.
func (b *Box) withHeld(l *Listing, rg Range) (*Listing, error) {
	held, err := b.Held()
	if len(held) == 0 && rg.Unread {
		return l, err
	}
	all := &Listing{Folder: l.Folder, Others: l.Others, box: b, stamp: l.stamp, kept: l.kept, isPart: l.isPart, held: held}
	if l.isPart {
		all.ids = l.ids
		return all, err
	}
	all.ids = []wire.ID{} // not nil: they are not in kept
	if rg.Unread {
		all.ids = append(all.ids, l.IDs()...)
	}
	notDue := b.NotDue(held)
	for id := range held {
		if rg.Unread && !notDue[id] || rg.Later && notDue[id] {
			all.ids = append(all.ids, id)
		}
	}
	slices.Sort(all.ids)
	all.ids = slices.Compact(all.ids)
	return all, err
}

// close closes the folder.
func (l *Listing) close() {
	if l.dir != nil {
		l.dir.Close()
		l.dir = nil
	}
}
