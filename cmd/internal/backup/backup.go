// Package backup writes a whole root into a tar file while others send mail, and restores it.
//
// A backup has no locks, no tmp and almost nothing of run. Messages are listed under their mailbox's lock and copied
// one by one. Attachments are copied last, so that no message in the backup lacks its own.
package backup

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	vendors "github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

// files matches the only files of a team that are saved and restored, dirs the directories that are kept even if empty.
// They are compiled when they are used: at start they would cost every command a tenth of its time.
var (
	files = onUse(`^(team\.toml|\.(files|sessions|subscriptions)/[^/]+|\.archive/sessions/[^/]+\.json|\.archive/[a-z0-9_-]+/(done|events|drops)/.+|\.later/[^/]+|\.bridge/([a-z0-9_-]+/(new|cur|withdrawn)|bad)/[^/]+|\.bridge/received/[-0-9]+\.taken|` +
		`([a-z0-9_-]+|\.archive/retired/[^/]+)/(shared|` + strings.Join(marks(), "|") + `|(inbox|sent|events)/.+))$`)
	dirs     = onUse(`^(\.files|\.sessions|\.subscriptions|\.archive(/[^/]+){0,2}|\.archive/retired/[^/]+/(inbox|sent|events)(/.+)?)$`)
	messages = onUse(`^inbox/(new|cur|withdrawn|done/[^/]+)/([^/]+)\.json$`)
)

// marks are the files of mailboxes that a companion has made for the members of a vendor's own team.
func marks() (all []string) {
	for _, name := range vendors.Names() {
		all = append(all, "run/"+name)
	}
	return all
}

func onUse(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

type writer struct {
	ctx   context.Context
	tar   *tar.Writer
	err   error // ends the backup: nothing more is written
	total keep.Moved
	saved map[string]bool // the messages, as team/agent/id

	progress func(messages int)

	missing []error
}

// Write writes a backup of the whole root. missing says what could not be read and is not in the backup; after err the
// backup is useless. progress is called with the number of messages that are in it.
func Write(ctx context.Context, r *teamdir.Root, to io.Writer, progress func(messages int)) (total keep.Moved, missing, err error) {
	w := &writer{ctx: ctx, tar: tar.NewWriter(to), saved: map[string]bool{}, progress: progress}
	names, err := r.Teams()
	w.reportMissing("the root", err)
	format, err := durable.ReadRegular(filepath.Join(r.Path, rootdir.FormatFile), 20)
	w.fail(err)
	w.writeData(rootdir.FormatFile, format, time.Now())
	for _, n := range names {
		t, _ := r.Team(n) // Teams has opened it
		w.writeTeam(t)
	}
	w.fail(ctx.Err())
	w.fail(w.tar.Close())
	return w.total, errors.Join(w.missing...), w.err
}

func (w *writer) fail(err error) { w.err = cmp.Or(w.err, err) }

// reportMissing records once that something could not be read, and reports whether err is set.
func (w *writer) reportMissing(what string, err error) bool {
	if err == nil || errors.Is(err, maildir.ErrNoAgent) { // retired meanwhile: the archive has it
		return err != nil
	}
	err = fmt.Errorf("the backup lacks a part of %s: %w", what, err)
	if !slices.ContainsFunc(w.missing, func(e error) bool { return e.Error() == err.Error() }) {
		w.missing = append(w.missing, err)
	}
	return true
}

func (w *writer) writeTeam(t *teamdir.Team) {
	w.writeDir(string(t.Name))
	skipped := w.total.Skipped
	w.writeMailboxes(t, slices.Concat([]string{"sent", "events", "shared"}, marks(), []string{"inbox"})...)
	names := []string{config.File, ".sessions", teamdir.SubscriptionsDir, ".archive", teamdir.BadEnvelopes, teamdir.ReceivedDir}
	outboxes, err := t.Store.Outboxes()
	w.reportMissing(maildir.BridgeDir, err)
	for _, box := range outboxes {
		for _, dir := range []string{"/new", "/cur", "/withdrawn"} { // in the order in which messages move
			names = append(names, maildir.BridgeDir+"/"+string(box.Address().Host)+dir)
		}
	}
	for _, name := range names {
		w.writeTree(t, name)
	}
	w.total.Skipped = skipped // only the second pass counts them
	w.writeMailboxes(t)       // messages that arrived, or were restored from the archive, during the first pass
	w.writeTree(t, ".files")
}

func (w *writer) writeHeader(h tar.Header) {
	w.fail(w.ctx.Err())
	if w.err == nil {
		w.err = w.tar.WriteHeader(&h)
	}
}

func (w *writer) writeData(name string, data []byte, at time.Time) {
	w.writeHeader(tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600, ModTime: at})
	if w.err == nil {
		_, w.err = w.tar.Write(data)
	}
}

func (w *writer) writeDir(name string) {
	w.writeHeader(tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o700, ModTime: time.Now()})
}

func (w *writer) writeMailboxes(t *teamdir.Team, others ...string) {
	boxes, err := t.Boxes()
	w.reportMissing(string(t.Name), err)
	for _, box := range boxes {
		w.writeMessages(box)
		for _, sub := range others {
			w.writeTree(t, string(box.Agent())+"/"+sub)
		}
	}
}

func (w *writer) writeMessages(box *maildir.Box) {
	drop.Ingest(w.ctx, box, 0)
	ids, err := keep.ListAll(w.ctx, box)
	if _, isHeld := errors.AsType[*lockfile.HeldError](err); isHeld {
		w.fail(err) // a retry may succeed
		return
	}
	w.reportMissing("the mailbox of "+string(box.Agent()), err)
	if errors.Is(err, maildir.ErrNoAgent) {
		return
	}
	top := string(box.Address().Team) + "/" + string(box.Agent())
	w.writeDir(top)
	for _, id := range ids {
		key := top + "/" + string(id)
		if w.saved[key] || w.err != nil {
			continue
		}
		where, data, err := keep.ReadRaw(box, id)
		if errors.Is(err, maildir.ErrNotFound) || errors.Is(err, durable.ErrNotRegular) {
			w.total.Skipped++
		} else if !w.reportMissing("the mailbox of "+string(box.Agent()), err) {
			w.writeData(top+"/"+where, data, id.Time())
			w.saved[key] = true
			w.total.Add(keep.Moved{Messages: 1, Bytes: int64(len(data))})
			w.progress(w.total.Messages)
		}
	}
}

// writeTree saves the files at and below a path. It ignores those that vanish meanwhile: they have been moved.
func (w *writer) writeTree(t *teamdir.Team, name string) {
	info, err := t.Dir().Lstat(name)
	if w.err != nil || errors.Is(err, fs.ErrNotExist) || w.reportMissing(name, err) {
		return
	}
	if info.Mode().IsRegular() && files().MatchString(name) {
		w.writeFile(t, name)
	}
	if !info.IsDir() {
		return
	}
	if dirs().MatchString(name) {
		w.writeDir(string(t.Name) + "/" + name)
	}
	names, err := t.Dir().Names(name)
	w.reportMissing(name, err)
	for _, n := range names {
		isTemporary := strings.HasPrefix(n, ".")
		if below := name + "/" + n; !isTemporary && !holdsMessages(t, below) {
			w.writeTree(t, below)
		}
	}
}

// holdsMessages reports whether a directory has messages of a mailbox, which writeMessages saves, or unfinished ones.
func holdsMessages(t *teamdir.Team, name string) bool {
	if below, ok := strings.CutPrefix(name, ".archive/"); ok {
		agent, dir, _ := strings.Cut(below, "/")
		return dir == "done" && wire.IsName(agent) && t.Box(wire.Name(agent)).Exists()
	}
	first, last := path.Split(name)
	return strings.HasSuffix(first, "/inbox/") && strings.Contains(" new held cur done withdrawn tmp ", " "+last+" ")
}

// writeFile saves a file with its current length: a log may grow or be cut back meanwhile. It leaves out what somebody
// dropped that is large and mostly holes, of which a tar has every byte.
func (w *writer) writeFile(t *teamdir.Team, name string) {
	f, err := t.Dir().Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrNotRegular) || w.reportMissing(name, err) {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && strings.Contains(name, "/inbox/") && info.Size() > drop.MaxSize && durable.DiskUse(info) < info.Size()/2 {
		err = fmt.Errorf("%s, most of it holes", letter.Size(info.Size()))
	}
	if w.reportMissing(name, err) {
		return
	}
	w.writeHeader(tar.Header{Name: string(t.Name) + "/" + name, Size: info.Size(), Mode: 0o600, ModTime: info.ModTime()})
	if w.err != nil {
		return
	}
	n, err := io.Copy(w.tar, io.LimitReader(durable.ReadUntil(w.ctx, f), info.Size()))
	w.reportMissing(name, err)
	if n < info.Size() && w.ctx.Err() == nil { // fill up; if the tar cannot be written, this fails too
		_, w.err = io.CopyN(w.tar, lineFeeds{}, info.Size()-n)
	}
}

// lineFeeds is a reader of line feeds, without an end.
type lineFeeds struct{}

func (lineFeeds) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}
