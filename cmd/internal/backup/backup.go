// Package backup writes a whole root into a tar file while others send mail, and restores it where there is no root.
//
// The root stays in use, so the order makes the backup consistent. Logs and copies of sent mail come before the inboxes:
// the mail that they tell of is there. The messages of a mailbox are listed under its lock and then copied from wherever
// they are by then: none is missing, and none is there twice. Attachments come last: no message lacks its own.
package backup

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

const archiveDir = ".archive"

// kept matches what a backup has of a team, and left what it leaves out of that: caches, what a runner has made, and what
// is not finished. They are compiled when they are used: at start they would cost every command a tenth of its time.
var (
	kept = onUse(`(?s)^(team\.toml|\.locks|\.(archive|bridge|files|sessions|subscriptions)(/.+)?|[a-z0-9][a-z0-9_-]*(/.+)?)$`)
	left = onUse(`^[a-z0-9_-]+/(state\.json$|run/|inbox/tmp/)|^\.bridge/[^/]+/tmp/|/\.`)
)

func onUse(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// belongs reports whether a backup has something of that name, below a team's directory.
func belongs(name string) bool { return kept().MatchString(name) && !left().MatchString(name) }

// Size is how much a backup has.
type Size struct {
	Messages int   `json:"messages"`
	Bytes    int64 `json:"bytes"`
}

type writer struct {
	ctx      context.Context
	tar      *tar.Writer
	err      error // ends the backup: nothing more is written
	missing  []error
	messages int
	done     map[string]bool // the directories that are saved, and the mailboxes whose messages are
	progress func(messages int)
}

// Write writes a backup of the whole root. missing says what could not be read and is not in the backup; after err the
// backup is useless. progress is called with the number of messages that are in it.
func Write(ctx context.Context, r *teamdir.Root, to io.Writer, progress func(messages int)) (messages int, missing, err error) {
	w := &writer{ctx: ctx, tar: tar.NewWriter(to), done: map[string]bool{}, progress: progress}
	names, err := r.Teams()
	w.reportMissing("the root", err)
	format, err := durable.ReadRegular(filepath.Join(r.Path, rootdir.FormatFile), 20)
	w.fail(err)
	w.writeHeader(tar.Header{Name: rootdir.FormatFile, Size: int64(len(format))})
	w.writeData(format)
	for _, n := range names {
		t, _ := r.Team(n) // Teams has opened it
		w.writeTeam(t)
	}
	w.fail(ctx.Err())
	w.fail(w.tar.Close())
	return w.messages, errors.Join(w.missing...), w.err
}

func (w *writer) fail(err error) { w.err = cmp.Or(w.err, err) }

// reportMissing records once that something could not be read, and reports whether err is set.
func (w *writer) reportMissing(what string, err error) bool {
	if err == nil || errors.Is(err, mailbox.ErrNoMailbox) { // retired meanwhile: the archive has it
		return err != nil
	}
	err = fmt.Errorf("the backup lacks a part of %s: %w", what, err)
	if !slices.ContainsFunc(w.missing, func(e error) bool { return e.Error() == err.Error() }) {
		w.missing = append(w.missing, err)
	}
	return true
}

func (w *writer) writeTeam(t *teamdir.Team) {
	w.writeHeader(tar.Header{Name: string(t.Name) + "/", Typeflag: tar.TypeDir})
	t.Boxes() // makes those whole that git has removed empty directories of
	names, err := t.Dir().Names(".")
	w.reportMissing(string(t.Name), err)
	for _, name := range names {
		if name != archiveDir && name != filestore.Dir {
			w.writeTree(t, name)
		}
	}
	w.writeInboxes(t)
	w.writeTree(t, archiveDir)
	w.writeInboxes(t) // of members that were retired, and are back from the archive meanwhile
	w.writeTree(t, filestore.Dir)
}

// writeInboxes saves what the inboxes and the outboxes have that were not saved yet.
func (w *writer) writeInboxes(t *teamdir.Team) {
	boxes, err := t.Boxes()
	w.reportMissing(string(t.Name), err)
	outboxes, err := t.Store.Outboxes()
	w.reportMissing(maildir.BridgeDir, err)
	for _, box := range append(boxes, outboxes...) {
		if w.done[box.Path()] {
			continue
		}
		w.done[box.Path()] = true
		w.writeTree(t, box.In())
		w.writeTree(t, box.In("inbox"))
		w.writeMessages(box)
	}
}

func (w *writer) writeMessages(box *maildir.Box) {
	what := "the mailbox of " + string(cmp.Or(box.Agent(), box.Host()))
	all, err := keep.ListAll(w.ctx, box)
	if _, isHeld := errors.AsType[*lockfile.HeldError](err); isHeld {
		w.fail(err) // a retry may succeed
	}
	w.reportMissing(what, err)
	saved := map[wire.ID]bool{} // a person may have copied one
	for _, m := range all {
		if saved[m.ID] || w.err != nil {
			continue
		}
		name, data, err := keep.ReadRaw(box, m)
		if errors.Is(err, mailbox.ErrNotFound) || w.reportMissing(what, err) { // a bridge has sent it
			continue
		}
		w.writeHeader(tar.Header{Name: string(box.Address().Team) + "/" + name, Size: int64(len(data)), ModTime: m.ID.Time()})
		w.writeData(data)
		saved[m.ID] = true
		w.messages++
		w.progress(w.messages)
	}
}

// writeTree saves the files at and below a path, but not messages, and neither inboxes nor what writeTeam saves by itself.
// It ignores those that vanish meanwhile: they have been moved.
func (w *writer) writeTree(t *teamdir.Team, name string) {
	info, err := t.Dir().Lstat(name)
	if w.err != nil || !belongs(name) || errors.Is(err, fs.ErrNotExist) || w.reportMissing(name, err) {
		return
	}
	if info.Mode().IsRegular() {
		w.writeFile(t, name)
	}
	if !info.IsDir() {
		return
	}
	dir := string(t.Name) + "/" + name + "/"
	if w.done[dir] {
		return
	}
	w.done[dir] = true
	w.writeHeader(tar.Header{Name: dir, Typeflag: tar.TypeDir})
	if w.holdsMessages(t, name) {
		return
	}
	names, err := t.Dir().Names(name)
	w.reportMissing(name, err)
	for _, n := range names {
		if n == "inbox" && w.isMailbox(t, name) {
			continue
		} else if n == "inbox" {
			w.done[t.Dir().Join(name)] = true // it is no mailbox, and is saved as it is
		}
		w.writeTree(t, name+"/"+n)
	}
}

// isMailbox reports whether a path in the team's directory is that of a mailbox, also if that is not known: see Team.Boxes.
func (w *writer) isMailbox(t *teamdir.Team, name string) bool {
	if !wire.IsName(name) {
		return false
	}
	err := t.Box(wire.Name(name)).CheckPresent()
	return err == nil || !errors.Is(err, mailbox.ErrNoMailbox) && w.reportMissing("the mailbox of "+name, err)
}

// holdsMessages reports whether writeMessages saves what a directory has.
func (w *writer) holdsMessages(t *teamdir.Team, name string) bool {
	parts := strings.Split(name, "/")
	switch {
	case len(parts) != 3:
		return false
	case parts[0] == archiveDir:
		return parts[2] == "done" && w.isMailbox(t, parts[1])
	}
	isInbox := parts[0] == maildir.BridgeDir || parts[1] == "inbox" && w.isMailbox(t, parts[0])
	return isInbox && slices.Contains([]string{"new", "held", "cur", "done", "withdrawn"}, parts[2])
}

// writeFile saves a file with its current length: a log may grow or be cut back meanwhile.
func (w *writer) writeFile(t *teamdir.Team, name string) {
	f, err := t.Dir().Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrNotRegular) || w.reportMissing(name, err) {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if w.reportMissing(name, err) {
		return
	}
	w.writeHeader(tar.Header{Name: string(t.Name) + "/" + name, Size: info.Size(), ModTime: info.ModTime()})
	if w.err != nil {
		return
	}
	n, err := io.Copy(w.tar, io.LimitReader(durable.ReadUntil(w.ctx, f), info.Size()))
	w.reportMissing(name, err)
	fill := bytes.Repeat([]byte("\n"), 1<<10)
	for ; n < info.Size() && w.err == nil; n += int64(len(fill)) { // if the tar cannot be written, this fails too
		w.writeData(fill[:min(int64(len(fill)), info.Size()-n)])
	}
}

func (w *writer) writeHeader(h tar.Header) {
	h.Mode = 0o600
	if h.Typeflag == tar.TypeDir {
		h.Mode = 0o700
	}
	if h.ModTime.IsZero() {
		h.ModTime = time.Now()
	}
	w.fail(w.ctx.Err())
	if w.err == nil {
		w.err = w.tar.WriteHeader(&h)
	}
}

func (w *writer) writeData(data []byte) {
	if w.err == nil {
		_, w.err = w.tar.Write(data)
	}
}
