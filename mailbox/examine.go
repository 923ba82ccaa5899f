package mailbox

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// ownDirs are the directories of an inbox.
var ownDirs = []string{"tmp", "new", "aside", "cur", "done", "withdrawn", "bad", "leases", "dated"}

// Health is what a look at a mailbox finds, for the doctor.
type Health struct {
	NotFiles   []string // in the inbox: links, sockets, FIFOs, devices, directories
	Empty      []string // in the inbox: files without content
	Unreadable []string // in the inbox: files that cannot be opened
	Claims     int      // dropped files whose taking in was cut off
	Stale      []string // unfinished files in tmp, older than 36 h
	Bad        int
	Doubled    []wire.ID // ids in two of new, cur and withdrawn
	Open       []string  // directories that everybody may read
	Closed     []string  // directories in which this user cannot write
	Misplaced  []string  // files that lie beside the inbox, where nobody looks

	Aside     int      // messages taken too often and never finished
	OddLeases []string // in leases: what is no lease file that can be understood

	OddEvents []string // in events: what is neither a segment nor base.json, or no regular file
	EventGaps []Gap    // events that are missing, but for those in the archive
	EventsErr error    // why the log cannot be read to its end
	OddClaim  bool     // run/claim.json is no regular file
}

// Examine looks at a mailbox and changes nothing; with fix it removes the
// stale files in tmp.
func (b *Box) Examine(fix bool) (Health, error) {
	var h Health
	r, err := b.enter()
	if err != nil {
		return h, err
	}
	defer r.close()
	look := func(dir string, d *atomicfile.Dir, name string) {
		if notDropped(name) {
			return
		}
		base := name
		name = dir + name
		info, err := d.Lstat(base)
		switch {
		case err != nil || dir == "" && info.IsDir() && slices.Contains(ownDirs, base):
		case !info.Mode().IsRegular():
			h.NotFiles = append(h.NotFiles, name)
		case info.Size() == 0:
			h.Empty = append(h.Empty, name)
		default:
			if f, err := d.Open(base); errors.Is(err, fs.ErrPermission) {
				h.Unreadable = append(h.Unreadable, name)
			} else if err == nil {
				f.Close()
			}
		}
	}
	inbox, err := r.dir("inbox", false)
	if inbox == nil || err != nil {
		return h, err
	}
	err = inbox.Names(func(names []string) bool {
		for _, n := range names {
			look("", inbox, n)
		}
		return true
	})
	if err != nil {
		return h, err
	}
	place := map[wire.ID]int{}
	if err := list(r.fresh, func(id wire.ID) { place[id]++; look("new/", r.fresh, string(id)+".json") }, func(n string) { look("new/", r.fresh, n) }); err != nil {
		return h, err
	}
	for _, p := range []string{asideDir, "inbox/cur", "inbox/withdrawn"} {
		d, err := r.dir(p, false)
		if err != nil {
			return h, err
		}
		if err := ids(d, func(id wire.ID) { place[id]++ }); err != nil {
			return h, err
		}
	}
	for id, n := range place {
		if n > 1 {
			h.Doubled = append(h.Doubled, id)
		}
	}
	tmp, err := r.dir("inbox/tmp", false)
	if err != nil {
		return h, err
	}
	if tmp != nil {
		h.Stale = r.stale(tmp)
		if fix {
			r.sweep()
		}
		tmp.Names(func(names []string) bool {
			for _, n := range names {
				if _, _, ok := claimOf(n); ok {
					h.Claims++
				}
			}
			return true
		})
	}
	bad, err := b.BadFiles(0)
	h.Bad = len(bad)
	for _, p := range []string{"inbox", "inbox/tmp", "inbox/new", "inbox/cur", "inbox/done", "events"} {
		if d, err := r.dir(p, false); err == nil && d != nil && !d.Writable() {
			h.Closed = append(h.Closed, p)
		}
	}
	for _, p := range []string{"", "inbox/cur", "inbox/withdrawn"} {
		d, err := r.dir(p, false)
		if err != nil || d == nil {
			continue
		}
		d.Names(func(names []string) bool {
			for _, n := range names {
				info, err := d.Lstat(n)
				if err == nil && !info.IsDir() && n != "state.json" && !notDropped(n) && (p == "" || !isMessageName(n)) {
					h.Misplaced = append(h.Misplaced, filepath.Join(p, n))
				}
			}
			return true
		})
	}
	r.examineLeases(&h)
	b.examineEvents(r, &h)
	for _, p := range []string{"inbox", "inbox/new", "events"} {
		if d, err := r.dir(p, false); err == nil && d != nil {
			if info, err := d.Stat(); err == nil && info.Mode().Perm()&0o007 != 0 && onUnix {
				h.Open = append(h.Open, p)
			}
		}
	}
	return h, err
}

// examineLeases looks at who took what. A lease file that cannot be understood
// holds nothing.
func (r *room) examineLeases(h *Health) {
	if d, err := r.dir(asideDir, false); err == nil && d != nil {
		ids(d, func(wire.ID) { h.Aside++ })
	}
	d, err := r.dir(leasesDir, false)
	if err != nil || d == nil {
		return
	}
	d.Names(func(names []string) bool {
		for _, n := range names {
			id, ok := strings.CutSuffix(n, leaseEnd)
			if ok = ok && wire.IsID(id); ok {
				t, _ := r.takings(leasesDir, wire.ID(id))
				ok = t != nil
			}
			if !ok && n != sharedFile && !strings.HasPrefix(n, ".") {
				h.OddLeases = append(h.OddLeases, n)
			}
		}
		return true
	})
}

// examineEvents looks at the log, and at the runner's claim, which says what
// is being handed over.
func (b *Box) examineEvents(r *room, h *Health) {
	if d, err := r.dir("run", false); err == nil && d != nil {
		if info, err := d.Lstat("claim.json"); err == nil && !info.Mode().IsRegular() {
			h.OddClaim = true
		}
	}
	d, err := r.dir("events", false)
	if err != nil || d == nil {
		h.EventsErr = err
		return
	}
	h.EventsErr = d.Names(func(names []string) bool {
		for _, n := range names {
			stem, segment := strings.CutSuffix(n, ".ndjson")
			segment = segment && len(stem) == 20 && strings.Trim(stem, "0123456789") == ""
			info, err := d.Lstat(n)
			switch {
			case err != nil || strings.HasPrefix(n, "."):
			case !info.Mode().IsRegular() || !segment && n != baseFile:
				h.OddEvents = append(h.OddEvents, n)
			}
		}
		return true
	})
	base, _ := b.Base()
	c := b.Events(base.Seq)
	defer c.Close()
	for h.EventsErr == nil {
		_, gap, err := c.Next()
		if err == io.EOF {
			return
		}
		if gap != nil {
			h.EventGaps = append(h.EventGaps, *gap)
		}
		h.EventsErr = err
	}
}
