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
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
)

// Health is what doctor is to report about a mailbox. Paths are below the agent's directory.
type Health struct {
	Files       map[string][]string // files that something is wrong with, by doctor's code for it
	Stale       []string            // temp files older than TempAge
	Interrupted int                 // dropped files whose ingestion was interrupted
	Bad         int                 // files in bad

	EventGaps []eventlog.Gap // missing events, but for those in the archive
	EventsErr error          // why the log cannot be read to its end
	BadClaims error          // why run/claims.json is ignored
}

func (h *Health) add(code, file string) { h.Files[code] = append(h.Files[code], file) }

// Examine checks a mailbox. It changes nothing, except that with fix it removes stale temp files. The error is what
// kept it from checking everything.
func Examine(b *maildir.Box, fix bool) (h Health, err error) {
	h.Files = map[string][]string{}
	if err = b.CheckPresent(); errors.Is(err, maildir.ErrNoAgent) {
		return h, err
	}
	h.Stale = stale(b)
	if fix {
		removeStale(b, h.Stale)
	}
	found, err2 := drop.List(b)
	isIngesting, _ := b.Store().Locks().Held(b.LockName("drops"))
	still, _ := drop.List(b)
	for _, d := range found.Drops { // unless a process is ingesting it right now
		if d.Written.IsZero() && !isIngesting && slices.Contains(still.Drops, d) {
			h.Interrupted++
		}
	}
	h.examineFiles(b)
	h.examineDirs(b)
	bad, err3 := drop.BadNames(b)
	h.Bad = len(bad)
	if len(h.Files["agent.not_a_directory"])+len(h.Files["inbox.not_writable"]) > 0 {
		return h, nil
	}
	err4 := h.examineMessages(b)
	h.Files["events.odd"], h.EventGaps, h.EventsErr = b.Log().Check()
	_, h.BadClaims = b.ReadClaims()
	return h, cmp.Or(err, err2, err3, err4)
}

// examineMessages checks the newest 500 files that have a message's name.
func (h *Health) examineMessages(b *maildir.Box) error {
	left := 500
	return b.Entries(maildir.Range{Unread: true, Owed: true, Done: true, Newest: true}, func(d maildir.Folder, id wire.ID) bool {
		_, err := b.Open(d, id)
		name := strings.TrimPrefix(d.File(id), b.In()+"/")
		if d.State == maildir.Done && d != b.Done(id) {
			h.add("drop.misplaced", name)
		}
		if bad, isBad := errors.AsType[*maildir.BadError](err); isBad && bad.Unreadable == nil {
			h.add("message.torn", name)
		} else if isBad && d.State != maildir.Unread { // fileProblem checks unread ones
			h.add("drop.unreadable", name)
		}
		left--
		return left > 0
	})
}

func (h *Health) examineDirs(b *maildir.Box) {
	for _, dir := range []string{"", "inbox", "inbox/tmp", "inbox/new", "inbox/cur", "inbox/done", "inbox/withdrawn", "inbox/bad", "sent", "events", "run"} {
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

// examineFiles checks the files that people put into the mailbox, also where nobody looks for dropped files.
func (h *Health) examineFiles(b *maildir.Box) {
	for _, dir := range []string{
		"", "inbox", "inbox/new", "inbox/tmp", "inbox/cur", "inbox/withdrawn", "inbox/done", "sent", "../" + b.Archived("done"),
	} {
		names, _ := b.Store().Dir().Names(b.In(dir))
		for _, name := range names {
			info, err := b.Store().Dir().Lstat(b.In(dir, name))
			if err != nil || drop.IsLitter(name) {
				continue
			}
			if code := fileProblem(b, dir, info, names); code != "" {
				h.add(code, path.Join(dir, name))
			}
		}
	}
}

// fileProblem returns doctor's code for what is wrong with an entry of a directory, which has these names, or "".
func fileProblem(b *maildir.Box, dir string, info fs.FileInfo, names []string) string {
	name, isDropDir := info.Name(), dir == "inbox" || dir == "inbox/new"
	id, _, _ := strings.Cut(name, ".")
	_, isUnfinished := drop.FinishedName(name)
	switch {
	case info.IsDir() && !isDropDir, !isDropDir && isUnfinished,
		dir == "" && slices.Contains([]string{"inbox", "sent", "events", "run", "state.json", "shared"}, name),
		dir == "inbox" && slices.Contains(drop.InboxDirs, name),
		dir == "inbox/tmp" && wire.IsID(id),
		(dir == "inbox/cur" || dir == "inbox/withdrawn") && maildir.IsMessageFile(name):
		return ""
	case !isDropDir:
		return "drop.misplaced"
	}
	if code, isOld := drop.WhyLeft(info, names); isOld || code == drop.LeftEmpty {
		return code
	}
	f, err := b.Store().Dir().Open(b.In(dir, name))
	f.Close()
	if errors.Is(err, fs.ErrPermission) {
		return drop.LeftUnreadable
	}
	return ""
}
