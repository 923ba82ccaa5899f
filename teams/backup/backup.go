// Package backup writes a whole root into one tar, while others send, and brings back what such a file holds.
//
// Locks and tmp are not in it, nor what tells how an agent is run. Messages are listed under their mailbox's lock and
// saved one by one; what is saved last is the attachments: they are there before any message that names them.
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
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

// These are the files of a team that a backup holds, and the only ones that are
// restored; the directories are those that come back when they are empty.
var (
	files = regexp.MustCompile(`^(team\.toml|\.(files|sessions)/[^/]+|\.archive/[a-z0-9_-]+/(done|events|drops)/.+|\.bridge/([a-z0-9_-]+/(new|cur|withdrawn)|bad)/[^/]+|` +
		`([a-z0-9_-]+|\.archive/retired/[^/]+)/(shared|run/claude|(inbox|sent|events)/.+))$`)
	dirs     = regexp.MustCompile(`^(\.files|\.sessions|\.archive(/[^/]+){0,2}|\.archive/retired/[^/]+/(inbox|sent|events)(/.+)?)$`)
	messages = regexp.MustCompile(`^inbox/(new|aside|cur|withdrawn|done/[^/]+)/([^/]+)\.json$`)
)

type writer struct {
	ctx   context.Context
	tar   *tar.Writer
	err   error // why there is no backup: nothing more is written
	total mailbox.Moved
	saved map[string]bool // messages, by team, agent and id

	missing []error
}

// Write writes a backup of the whole root. What cannot be read is not in it, and missing
// says so; with err there is no backup.
func Write(ctx context.Context, r *teams.Root, to io.Writer) (total mailbox.Moved, missing, err error) {
	w := &writer{ctx: ctx, tar: tar.NewWriter(to), saved: map[string]bool{}}
	names, err := r.Teams()
	w.misses("the root", err)
	format, err := r.Dir().ReadFile(rootdir.FormatFile, 20)
	w.fail(err)
	w.add(rootdir.FormatFile, format, time.Now())
	for _, n := range names {
		if t, err := r.Team(n); !w.misses(string(n), err) {
			w.team(t)
		}
	}
	w.fail(ctx.Err())
	w.fail(w.tar.Close())
	return w.total, errors.Join(w.missing...), w.err
}

func (w *writer) fail(err error) { w.err = cmp.Or(w.err, err) }

// misses reports whether something could not be read, and notes it, once.
func (w *writer) misses(what string, err error) bool {
	if err == nil || errors.Is(err, mailbox.ErrNoAgent) { // retired meanwhile: it is in the archive
		return err != nil
	}
	err = fmt.Errorf("not all of %s is in the backup: %w", what, err)
	if !slices.ContainsFunc(w.missing, func(e error) bool { return e.Error() == err.Error() }) {
		w.missing = append(w.missing, err)
	}
	return true
}

func (w *writer) team(t *teams.Team) {
	w.addDir(string(t.Name))
	skipped := w.total.Skipped
	w.mailboxes(t, "sent", "events", "shared", "run/claude", "inbox")
	names := []string{config.File, ".sessions", ".archive", teams.BadEnvelopes}
	outboxes, err := t.Outboxes()
	w.misses(mailbox.BridgeDir, err)
	for _, box := range outboxes {
		for _, dir := range []string{"/new", "/cur", "/withdrawn"} { // as messages move
			names = append(names, mailbox.BridgeDir+"/"+string(box.Address().Host)+dir)
		}
	}
	for _, name := range names {
		w.tree(t, name)
	}
	w.total.Skipped = skipped // the second look counts
	w.mailboxes(t)            // what came back from the archive while it was copied, or came anew
	w.tree(t, ".files")
}

func (w *writer) header(h tar.Header) {
	if w.fail(w.ctx.Err()); w.err == nil {
		w.err = w.tar.WriteHeader(&h)
	}
}

func (w *writer) add(name string, data []byte, at time.Time) {
	w.header(tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600, ModTime: at})
	if w.err == nil {
		_, w.err = w.tar.Write(data)
	}
}

func (w *writer) addDir(name string) {
	w.header(tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o700, ModTime: time.Now()})
}

func (w *writer) mailboxes(t *teams.Team, others ...string) {
	boxes, err := t.Boxes()
	w.misses(string(t.Name), err)
	for _, box := range boxes {
		w.messages(box)
		for _, sub := range others {
			w.tree(t, string(box.Agent())+"/"+sub)
		}
	}
}

func (w *writer) messages(box *mailbox.Box) {
	box.TakeIn(w.ctx)
	ids, err := box.List(w.ctx)
	if _, isHeld := errors.AsType[*lockfile.HeldError](err); isHeld {
		w.fail(err) // nothing is damaged: again is the way on
		return
	}
	if w.misses("the mailbox of "+string(box.Agent()), err); errors.Is(err, mailbox.ErrNoAgent) {
		return
	}
	top := string(box.Address().Team) + "/" + string(box.Agent())
	w.addDir(top)
	for _, id := range ids {
		key := top + "/" + string(id)
		if w.saved[key] || w.err != nil {
			continue
		}
		where, data, err := box.Copy(id)
		if errors.Is(err, mailbox.ErrNotFound) || errors.Is(err, durable.ErrNotRegular) {
			w.total.Skipped++
		} else if !w.misses("the mailbox of "+string(box.Agent()), err) {
			w.add(top+"/"+where, data, id.Time())
			w.saved[key] = true
			w.total.Add(mailbox.Moved{Messages: 1, Bytes: int64(len(data))})
		}
	}
}

// tree saves what lies at a path and belongs into a backup. What vanishes meanwhile has moved on.
func (w *writer) tree(t *teams.Team, name string) {
	info, err := t.Dir().Lstat(name)
	if w.err != nil || errors.Is(err, fs.ErrNotExist) || w.misses(name, err) {
		return
	}
	if info.Mode().IsRegular() && files.MatchString(name) {
		w.file(t, name)
	}
	if !info.IsDir() {
		return
	}
	if dirs.MatchString(name) {
		w.addDir(string(t.Name) + "/" + name)
	}
	names, err := t.Dir().Names(name)
	w.misses(name, err)
	for _, n := range names {
		isTemporary := strings.HasPrefix(n, ".")
		if below := name + "/" + n; !isTemporary && !holdsMessages(t, below) {
			w.tree(t, below)
		}
	}
}

// holdsMessages reports whether messages of a mailbox lie there, which are saved one by
// one, or what is about to become some.
func holdsMessages(t *teams.Team, name string) bool {
	if below, ok := strings.CutPrefix(name, ".archive/"); ok {
		agent, dir, _ := strings.Cut(below, "/")
		return dir == "done" && wire.IsName(agent) && t.Box(wire.Name(agent)).Exists()
	}
	first, last := path.Split(name)
	return strings.HasSuffix(first, "/inbox/") && strings.Contains(" new cur done withdrawn tmp ", " "+last+" ")
}

// file saves a file as long as it is now: a log may grow meanwhile, or be cut back.
func (w *writer) file(t *teams.Team, name string) {
	f, err := t.Dir().Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrNotRegular) || w.misses(name, err) {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if w.misses(name, err) {
		return
	}
	w.header(tar.Header{Name: string(t.Name) + "/" + name, Size: info.Size(), Mode: 0o600, ModTime: info.ModTime()})
	if w.err != nil {
		return
	}
	n, err := io.Copy(w.tar, io.LimitReader(f, info.Size()))
	w.misses(name, err)
	if n < info.Size() { // where it was the backup that could not be written, this fails as well
		_, w.err = w.tar.Write(bytes.Repeat([]byte{'\n'}, int(info.Size()-n)))
	}
}
