package keep

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/wire"
)

// Health is what doctor is to report about a mailbox, by its code.
type Health struct {
	Files map[string][]string // what something is wrong with: paths below the agent's directory; of events.damaged with a line
	Errs  map[string]error    // why something cannot be used
}

func (h *Health) add(code, file string) { h.Files[code] = append(h.Files[code], file) }

// Examine checks a mailbox. It changes nothing, except that with fix it removes stale temp files. The error is what
// kept it from checking everything.
func Examine(b *maildir.Box, fix bool) (h Health, err error) {
	h.Files, h.Errs = map[string][]string{}, map[string]error{}
	if err = b.CheckPresent(); errors.Is(err, maildir.ErrNoMailbox) {
		return h, err
	}
	h.Files["tmp.stale"] = stale(b)
	if fix {
		removeStale(b, h.Files["tmp.stale"])
	}
	found, err2 := drop.List(b)
	isIngesting, _ := b.Store().Locks().Held(b.LockName("drops"))
	still, _ := drop.List(b)
	for _, d := range found.Drops { // unless a process is ingesting it right now
		isStill := func(other drop.File) bool { return other.Path == d.Path }
		if d.IsBegun && !isIngesting && slices.ContainsFunc(still.Drops, isStill) {
			h.add("drop.unfinished", d.Path)
		}
	}
	for _, f := range found.Left {
		h.add(f.Code, path.Join(f.Dir, f.Name))
	}
	h.examineFiles(b)
	h.examineDirs(b)
	if len(h.Files["agent.not_a_directory"])+len(h.Files["inbox.not_writable"]) > 0 {
		return h, nil
	}
	err4 := h.examineMessages(b)
	h.Files["events.odd"], h.Files["events.damaged"], h.Errs["events.unreadable"] = b.Log().Check()
	return h, cmp.Or(err, err2, err4)
}

// examineMessages checks the newest 500 files that have a message's name.
func (h *Health) examineMessages(b *maildir.Box) error {
	left := 500
	return b.Entries(maildir.Range{Unread: true, Later: true, Owed: true, Done: true, Newest: true}, func(d maildir.Folder, id wire.ID) bool {
		_, err := b.Open(d, id)
		name := strings.TrimPrefix(d.File(id), b.In()+"/")
		if d.State == wire.Done && d != b.Done(id) {
			h.add("drop.misplaced", name)
		}
		if bad, isBad := errors.AsType[*maildir.BadError](err); isBad && bad.Unreadable == nil {
			h.add("message.torn", name)
		} else if isBad {
			h.add("drop.unreadable", name)
		}
		left--
		return left > 0
	})
}

func (h *Health) examineDirs(b *maildir.Box) {
	for _, dir := range []string{"", "inbox", "inbox/tmp", "inbox/new", "inbox/held", "inbox/cur", "inbox/done", "inbox/withdrawn", "inbox/bad", "sent", "events", "run"} {
		info, err := b.Store().Dir().Lstat(b.In(dir))
		switch {
		case err != nil:
		case !info.IsDir():
			h.add("agent.not_a_directory", dir)
		case b.Store().Dir().Writable(b.In(dir)) != nil:
			h.add("inbox.not_writable", dir)
		case info.Mode().Perm()&0o007 != 0 && runtime.GOOS != "windows":
			h.add("mode.open", dir)
		}
	}
}

// examineFiles checks the files that people put into the mailbox where nobody looks for dropped files.
func (h *Health) examineFiles(b *maildir.Box) {
	for _, dir := range []string{
		"", "inbox/tmp", "inbox/held", "inbox/cur", "inbox/withdrawn", "inbox/done", "sent", "../" + b.Archived("done"),
	} {
		names, _ := b.Store().Dir().Names(b.In(dir))
		for _, name := range names {
			info, err := b.Store().Dir().Lstat(b.In(dir, name))
			if err == nil && isMisplaced(dir, info) {
				h.add("drop.misplaced", path.Join(dir, name))
			}
		}
	}
}

// isMisplaced reports whether an entry of a directory is neither the mailbox's own nor being written.
func isMisplaced(dir string, info fs.FileInfo) bool {
	name := info.Name()
	id, _, _ := strings.Cut(name, ".")
	switch {
	case info.IsDir(), name[0] == '.', drop.Finished(name) != name,
		dir == "" && slices.Contains([]string{"inbox", "sent", "events", "run", "state.json", "shared"}, name),
		dir == "inbox/tmp" && wire.IsID(id),
		(dir == "inbox/cur" || dir == "inbox/withdrawn") && maildir.IsMessageFile(name):
		return false
	}
	return true
}
