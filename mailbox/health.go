package mailbox

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
)

// Health is what a look at a mailbox finds, for the doctor. Paths are below the agent's directory.
type Health struct {
	NotFiles   []string // in inbox: links, sockets, FIFOs, devices, directories
	Empty      []string // in inbox: files without content
	Unreadable []string // files that cannot be opened
	NotDirs    []string // something else where a directory of the mailbox belongs
	Open       []string // directories that everybody may read
	Closed     []string // directories in which this user cannot write
	Misplaced  []string // files that lie where nobody looks
	Stale      []string // unfinished files, older than 36 h
	Torn       []string // files under a message's name that are none
	Begun      int      // dropped files whose taking in was cut off
	Bad        int

	OddEvents []string       // in events: what is neither a segment nor base.json
	EventGaps []eventlog.Gap // events that are missing, but for those in the archive
	EventsErr error          // why the log cannot be read to its end
	BadClaims error          // why run/claims.json counts for nothing
}

// Examine looks at a mailbox and changes nothing; with fix it removes what is stale. The error is for what
// nothing else here is the reason of.
func (b *Box) Examine(fix bool) (h Health, err error) {
	if err = b.Present(); errors.Is(err, ErrNoAgent) {
		return h, err
	}
	h.Stale = b.stale(fix)
	_, begun, err2 := b.drops()
	if len(begun) > 0 { // what is taken in at this moment was not left
		isTakingIn, _ := b.store.locks.Held(b.lockName("drops"))
		_, still, _ := b.drops()
		begun = slices.DeleteFunc(begun, func(name string) bool { return isTakingIn || !slices.Contains(still, name) })
	}
	h.Begun = len(begun)
	h.examineFiles(b)
	h.examineDirs(b)
	bad, err3 := b.badNames()
	h.Bad = len(bad)
	if len(h.NotDirs)+len(h.Closed) > 0 {
		return h, nil
	}
	err4 := h.examineMessages(b)
	h.OddEvents, h.EventGaps, h.EventsErr = b.Log().Check()
	_, h.BadClaims = b.readClaims()
	return h, cmp.Or(err, err2, err3, err4)
}

// examineMessages looks at the newest 500 files under a message's name.
func (h *Health) examineMessages(b *Box) error {
	left := 500
	return b.listPlaces(Range{Unread: true, Owed: true, Done: true, Newest: true}, func(p place, ids []wire.ID) bool {
		ids = ids[:min(left, len(ids))]
		left -= len(ids)
		for _, id := range ids {
			_, err := b.open(p, id, nil)
			name := strings.TrimPrefix(p.file(id), b.in()+"/")
			if bad, isBad := errors.AsType[*BadError](err); isBad && bad.Unreadable == nil {
				h.Torn = append(h.Torn, name)
			} else if isBad && p.state != Unread { // which examineDrop looks at
				h.Unreadable = append(h.Unreadable, name)
			}
		}
		return left > 0
	})
}

func (h *Health) examineDirs(b *Box) {
	for _, dir := range []string{".", "inbox", "inbox/tmp", "inbox/new", "inbox/cur", "inbox/done", "inbox/withdrawn", "inbox/superseded", "inbox/bad", "sent", "events", "run"} {
		info, err := b.store.root.Lstat(b.in(dir))
		switch {
		case err != nil:
		case !info.IsDir():
			h.NotDirs = append(h.NotDirs, dir)
		case b.store.root.Writable(b.in(dir)) != nil:
			h.Closed = append(h.Closed, dir)
		case info.Mode().Perm()&0o007 != 0 && runtime.GOOS != "windows":
			h.Open = append(h.Open, dir)
		}
	}
}

// examineFiles looks at what lies in the mailbox by hand: drops, and files in a place where none is looked for.
func (h *Health) examineFiles(b *Box) {
	for _, dir := range []string{
		"", "inbox", "inbox/new", "inbox/tmp", "inbox/cur", "inbox/withdrawn", "inbox/done", "sent", "../" + b.archived("done"),
	} {
		names, _ := b.store.root.Names(b.in(dir))
		for _, name := range names {
			info, err := b.store.root.Lstat(b.in(dir, name))
			if err != nil || isPassedOver(name) {
				continue
			}
			isOdd := !info.IsDir()
			switch dir {
			case "inbox", "inbox/new":
				h.examineDrop(b, dir, info)
				continue
			case "inbox/cur", "inbox/withdrawn":
				isOdd = isOdd && !isMessageFile(name)
			case "inbox/tmp":
				id, _, _ := strings.Cut(name, ".")
				isOdd = isOdd && !wire.IsID(id)
			case "":
				isOdd = isOdd && !slices.Contains([]string{"inbox", "sent", "events", "run", "state.json", "shared"}, name)
			}
			if isOdd {
				h.Misplaced = append(h.Misplaced, path.Join(dir, name))
			}
		}
	}
}

func (h *Health) examineDrop(b *Box, dir string, info fs.FileInfo) {
	name, file := info.Name(), path.Join(dir, info.Name())
	switch {
	case dir == "inbox" && slices.Contains(inboxDirs, name):
	case info.IsDir() && slices.Contains([]string{"aside", "leases", "dated"}, name): // the first generation's
	case !info.Mode().IsRegular():
		h.NotFiles = append(h.NotFiles, file)
	case info.Size() == 0:
		h.Empty = append(h.Empty, file)
	default:
		f, err := b.store.root.Open(b.in(file))
		f.Close()
		if errors.Is(err, fs.ErrPermission) {
			h.Unreadable = append(h.Unreadable, file)
		}
	}
}
