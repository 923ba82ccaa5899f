package mailbox

import (
	"errors"
	"io/fs"
	"path"
	"runtime"
	"slices"

	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
)

// Health is what a look at a mailbox finds, for the doctor. Paths are below the agent's
// directory.
type Health struct {
	NotFiles   []string // in the inbox: links, sockets, FIFOs, devices, directories
	NotDirs    []string // something else where a directory of the mailbox belongs
	Empty      []string // in the inbox: files without content
	Unreadable []string // in the inbox: files that cannot be opened
	Begun      int      // dropped files whose taking in was cut off
	Stale      []string // unfinished files, older than 36 h
	Bad        int
	Doubled    []wire.ID // ids in two of new, cur and withdrawn
	Open       []string  // directories that everybody may read
	Closed     []string  // directories in which this user cannot write
	Misplaced  []string  // files that lie where nobody looks

	OddEvents []string       // in events: what is neither a segment nor base.json
	EventGaps []eventlog.Gap // events that are missing, but for those in the archive
	EventsErr error          // why the log cannot be read to its end
	BadClaims error          // why run/claims.json counts for nothing
}

// Examine looks at a mailbox and changes nothing; with fix it removes what is stale.
func (b *Box) Examine(fix bool) (h Health, err error) {
	root := b.store.root
	if err := b.Present(); err != nil {
		return h, err
	}
	h.Stale = b.stale(fix)
	if err := h.examineInbox(b); err != nil {
		return h, err
	}
	bad, err := b.badNames()
	h.Bad = len(bad)
	for _, dir := range []string{"inbox", "inbox/tmp", "inbox/new", "inbox/cur", "inbox/done", "inbox/withdrawn", "inbox/bad", "sent", "events", "run"} {
		info, err := root.Lstat(b.in(dir))
		switch {
		case err != nil:
		case !info.IsDir():
			h.NotDirs = append(h.NotDirs, dir)
		case !root.Writable(b.in(dir)):
			h.Closed = append(h.Closed, dir)
		case info.Mode().Perm()&0o007 != 0 && runtime.GOOS != "windows":
			h.Open = append(h.Open, dir)
		}
	}
	h.misplaced(b, isDay, "inbox/done", "sent", "../.archive/"+string(b.agent)+"/done")
	h.misplaced(b, func(name string) bool { return name != "state.json" && name != "shared" && !notDropped(name) }, "")
	h.misplaced(b, func(name string) bool { return !isMessageFile(name) && !notDropped(name) }, "inbox/cur", "inbox/withdrawn")
	h.OddEvents, h.EventGaps, h.EventsErr = b.Log().Check()
	_, h.BadClaims = b.readClaims()
	return h, err
}

// misplaced looks in directories for files whose names are odd there.
func (h *Health) misplaced(b *Box, isOdd func(name string) bool, dirs ...string) {
	for _, dir := range dirs {
		names, _ := b.store.root.Names(b.in(dir))
		for _, name := range names {
			info, err := b.store.root.Lstat(b.in(dir, name))
			if err == nil && !info.IsDir() && isOdd(name) {
				h.Misplaced = append(h.Misplaced, path.Join(dir, name))
			}
		}
	}
}

// examineInbox looks at what lies in the inbox and in new.
func (h *Health) examineInbox(b *Box) error {
	root := b.store.root
	for _, dir := range []string{"", "new"} {
		names, err := root.Names(b.in("inbox", dir))
		if err != nil {
			return err
		}
		for _, name := range names {
			name = path.Join(dir, name)
			info, err := root.Lstat(b.in("inbox", name))
			switch {
			case err != nil || notDropped(path.Base(name)):
			case slices.Contains(inboxDirs, name): // looked at by Examine
			case !info.Mode().IsRegular():
				h.NotFiles = append(h.NotFiles, name)
			case info.Size() == 0:
				h.Empty = append(h.Empty, name)
			default:
				f, err := root.Open(b.in("inbox", name))
				if f.Close(); errors.Is(err, fs.ErrPermission) {
					h.Unreadable = append(h.Unreadable, name)
				}
			}
		}
	}
	places := map[wire.ID]int{}
	for _, p := range []place{b.unread(), b.owed(), b.withdrawn()} {
		ids, _, _ := b.list(p.dir) // why it cannot be listed is said already
		for _, id := range ids {
			if places[id]++; places[id] == 2 {
				h.Doubled = append(h.Doubled, id)
			}
		}
	}
	_, begun, err := b.drops()
	h.Begun = len(begun)
	return err
}
