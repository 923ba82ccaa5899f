package mailbox

import (
	"cmp"
	"context"
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
	Unreadable []string // in inbox: files that cannot be opened
	NotDirs    []string // something else where a directory of the mailbox belongs
	Open       []string // directories that everybody may read
	Closed     []string // directories in which this user cannot write
	Misplaced  []string // files that lie where nobody looks
	Stale      []string // unfinished files, older than 36 h
	Begun      int      // dropped files whose taking in was cut off
	Bad        int

	DamagedKeys []string // notes of what is sent once

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
	h.Begun = len(begun)
	h.examineFiles(b)
	h.examineDirs(b)
	bad, err3 := b.badNames()
	h.Bad = len(bad)
	if len(h.NotDirs)+len(h.Closed) > 0 {
		return h, nil
	}
	h.DamagedKeys = b.damagedKeys()
	h.OddEvents, h.EventGaps, h.EventsErr = b.Log().Check()
	_, h.BadClaims = b.readClaims()
	return h, cmp.Or(err, err2, err3)
}

// damagedLook is how many messages Damaged opens.
const damagedLook = 500

// Damaged lists the files among the newest in cur and done that lie under a message's name and cannot be read as one,
// by their path below the agent's directory. With fix those that are no messages are set aside and counted instead.
func (b *Box) Damaged(ctx context.Context, fix bool) (damaged []*BadError, setAside int, err error) {
	look := func() error {
		left := damagedLook
		return b.listPlaces(Range{Owed: true, Done: true, Newest: true}, func(p place, ids []wire.ID) bool {
			ids = ids[:min(left, len(ids))]
			left -= len(ids)
			for _, id := range ids {
				_, err := b.open(p, id, nil)
				bad, isBad := errors.AsType[*BadError](err)
				if isBad && fix && bad.Unreadable == nil && b.setAsideBad(p, bad) {
					setAside++
				} else if isBad {
					bad.Name = strings.TrimPrefix(p.file(id), b.in()+"/")
					damaged = append(damaged, bad)
				}
			}
			return left > 0
		})
	}
	if fix {
		err = b.locked(ctx, "reader", look)
	} else {
		err = look()
	}
	return damaged, setAside, err
}

func (h *Health) examineDirs(b *Box) {
	for _, dir := range []string{".", "inbox", "inbox/tmp", "inbox/new", "inbox/cur", "inbox/done", "inbox/withdrawn", "inbox/superseded", "inbox/bad", "sent", "events", "run"} {
		info, err := b.store.root.Lstat(b.in(dir))
		switch {
		case err != nil:
		case !info.IsDir():
			h.NotDirs = append(h.NotDirs, dir)
		case !b.store.root.Writable(b.in(dir)):
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
