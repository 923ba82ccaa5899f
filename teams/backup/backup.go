// Package backup writes a whole root into one tar, while others send, and brings back
// what such a file holds.
//
// Locks and tmp are not in it, nor what tells how an agent is run. Messages are
// listed under their mailbox's lock and saved one by one; what is saved last is the
// attachments: they are there before any message that names them.
package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

// These are the files of a team that a backup holds, and the only ones that are
// restored; the directories are those that come back when they are empty.
var (
	files = regexp.MustCompile(`^(team\.toml|\.(files|sessions)/[^/]+|\.archive/[a-z0-9_-]+/(done|events|drops)/.+|` +
		`([a-z0-9_-]+|\.archive/retired/[^/]+)/(shared|(inbox|sent|events)/.+))$`)
	dirs     = regexp.MustCompile(`^(\.files|\.sessions|\.archive(/[^/]+){0,2}|\.archive/retired/[^/]+/(inbox|sent|events)(/.+)?)$`)
	messages = regexp.MustCompile(`^inbox/(new|aside|cur|withdrawn|done/[^/]+)/([^/]+)\.json$`)
)

type writer struct {
	ctx   context.Context
	tar   *tar.Writer
	total mailbox.Moved
	saved map[string]bool // messages, by team, agent and id
}

// Write writes a backup of the whole root.
func Write(ctx context.Context, r *teams.Root, to io.Writer) (mailbox.Moved, error) {
	w := &writer{ctx: ctx, tar: tar.NewWriter(to), saved: map[string]bool{}}
	names, err := r.Teams()
	if err == nil {
		err = w.add(rootdir.FormatFile, []byte("1\n"), time.Now())
	}
	for _, n := range names {
		var t *teams.Team
		if err == nil {
			t, err = r.Team(n)
		}
		if err == nil {
			err = w.team(t)
		}
	}
	if err == nil {
		err = w.tar.Close()
	}
	return w.total, err
}

func (w *writer) team(t *teams.Team) error {
	err := w.addDir(string(t.Name))
	if err == nil {
		err = w.mailboxes(t, "sent", "events", "shared", "inbox")
	}
	for _, name := range []string{config.File, ".sessions", ".archive"} {
		if err == nil {
			err = w.tree(t, name)
		}
	}
	if err == nil {
		err = w.mailboxes(t) // what came back from the archive while it was copied, or came anew
	}
	if err == nil {
		err = w.tree(t, ".files")
	}
	return err
}

func (w *writer) add(name string, data []byte, at time.Time) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if err := w.tar.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600, ModTime: at}); err != nil {
		return err
	}
	_, err := w.tar.Write(data)
	return err
}

func (w *writer) addDir(name string) error {
	return w.tar.WriteHeader(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o700, ModTime: time.Now()})
}

// mailboxes saves the messages of a team that are not saved yet, and what else lies in
// the mailboxes.
func (w *writer) mailboxes(t *teams.Team, others ...string) error {
	boxes, err := t.Boxes()
	for _, box := range boxes {
		if err == nil {
			err = w.messages(box)
		}
		for _, sub := range others {
			if err == nil {
				err = w.tree(t, string(box.Agent())+"/"+sub)
			}
		}
		if errors.Is(err, mailbox.ErrNoAgent) {
			err = nil // retired meanwhile: it is in the archive
		}
	}
	return err
}

func (w *writer) messages(box *mailbox.Box) error {
	box.TakeIn(w.ctx)
	ids, err := box.List(w.ctx)
	top := string(box.Address().Team) + "/" + string(box.Agent())
	if err == nil {
		err = w.addDir(top)
	}
	for _, id := range ids {
		key := top + "/" + string(id)
		if w.saved[key] || err != nil {
			continue
		}
		where, data, gone := box.Copy(id)
		if errors.Is(gone, mailbox.ErrNotFound) || errors.Is(gone, durable.ErrNotRegular) {
			w.total.Skipped++
			continue
		}
		if err = gone; err == nil {
			err = w.add(top+"/"+where, data, id.Time())
		}
		w.saved[key] = true
		w.total.Add(mailbox.Moved{Messages: 1, Bytes: int64(len(data))})
	}
	return err
}

// tree saves what lies at a path and belongs into a backup. What vanishes meanwhile has
// moved on.
func (w *writer) tree(t *teams.Team, name string) error {
	info, err := t.Dir().Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode().IsRegular() && files.MatchString(name) {
		return w.file(t, name)
	}
	if err != nil || !info.IsDir() {
		return err
	}
	if dirs.MatchString(name) {
		err = w.addDir(string(t.Name) + "/" + name)
	}
	names, e := t.Dir().Names(name)
	for err = errors.Join(err, e); len(names) > 0 && err == nil; names = names[1:] {
		below, isTemporary := name+"/"+names[0], strings.HasPrefix(names[0], ".")
		if !isTemporary && !holdsMessages(t, below) {
			err = w.tree(t, below)
		}
	}
	return err
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
func (w *writer) file(t *teams.Team, name string) error {
	f, err := t.Dir().Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrNotRegular) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: string(t.Name) + "/" + name, Size: info.Size(), Mode: 0o600, ModTime: info.ModTime()}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(w.tar, io.LimitReader(f, info.Size()))
	if err == nil && n < info.Size() {
		_, err = w.tar.Write(bytes.Repeat([]byte{'\n'}, int(info.Size()-n)))
	}
	return err
}
