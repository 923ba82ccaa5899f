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
	if h.Stale = b.stale(); fix {
		b.sweep()
	}
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
	for _, dir := range []string{"inbox/done", "sent", "../.archive/" + string(b.agent) + "/done"} {
		names, _ := root.Names(b.in(dir))
		for _, name := range names {
			if isDay(name) && root.IsDir(b.in(dir, name)) != nil {
				h.Misplaced = append(h.Misplaced, path.Join(dir, name))
			}
		}
	}
	for _, dir := range []string{"", "inbox/cur", "inbox/withdrawn"} {
		names, _ := root.Names(b.in(dir))
		for _, name := range names {
			info, err := root.Lstat(b.in(dir, name))
			known := dir == "" && (name == "state.json" || name == "shared") || dir != "" && isMessageFile(name)
			if err == nil && !info.IsDir() && !known && !notDropped(name) {
				h.Misplaced = append(h.Misplaced, path.Join(dir, name))
			}
		}
	}
	h.OddEvents, h.EventGaps, h.EventsErr = b.Log().Check()
	_, h.BadClaims = b.readClaims()
	return h, err
}

// examineInbox looks at what lies in the inbox and in new.
func (h *Health) examineInbox(b *Box) error {
	root := b.store.root
	look := func(name string) {
		info, err := root.Lstat(b.in("inbox", name))
		switch {
		case err != nil || notDropped(path.Base(name)):
		case slices.Contains(inboxDirs, name): // looked at by Examine
		case !info.Mode().IsRegular():
			h.NotFiles = append(h.NotFiles, name)
		case info.Size() == 0:
			h.Empty = append(h.Empty, name)
		default:
			if f, err := root.Open(b.in("inbox", name)); errors.Is(err, fs.ErrPermission) {
				h.Unreadable = append(h.Unreadable, name)
			} else if err == nil {
				f.Close()
			}
		}
	}
	for _, dir := range []string{"", "new"} {
		names, err := root.Names(b.in("inbox", dir))
		if err != nil {
			return err
		}
		for _, name := range names {
			look(path.Join(dir, name))
		}
	}
	places := map[wire.ID]int{}
	for _, p := range []place{b.unread(), b.owed(), b.withdrawn()} {
		ids, _, err := b.list(p.dir)
		if err != nil {
			continue // said already
		}
		for _, id := range ids {
			if places[id]++; places[id] == 2 {
				h.Doubled = append(h.Doubled, id)
			}
		}
	}
	names, _ := root.Names(b.in("inbox/tmp"))
	for _, name := range names {
		if _, _, ok := claimedName(name); ok {
			h.Begun++
		}
	}
	return nil
}
