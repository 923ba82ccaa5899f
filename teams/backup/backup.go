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
	"sync"
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
	files = pattern(`^(team\.toml|\.(files|sessions)/[^/]+|\.archive/[a-z0-9_-]+/(done|events|drops)/.+|\.bridge/([a-z0-9_-]+/(new|cur|withdrawn)|bad)/[^/]+|` +
		`([a-z0-9_-]+|\.archive/retired/[^/]+)/(shared|(inbox|sent|events)/.+))$`)
	dirs     = pattern(`^(\.files|\.sessions|\.archive(/[^/]+){0,2}|\.archive/retired/[^/]+/(inbox|sent|events)(/.+)?)$`)
	messages = pattern(`^inbox/(new|aside|cur|withdrawn|done/[^/]+)/([^/]+)\.json$`)
)

// pattern is compiled at its first use: no other command is to pay for it.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

type writer struct {
	ctx   context.Context
	tar   *tar.Writer
	total mailbox.Moved
	saved map[string]bool // messages, by team, agent and id

	missing []error
}

// Write writes a backup of the whole root. What cannot be read is not in it, and missing
// says so; with err there is no backup.
func Write(ctx context.Context, r *teams.Root, to io.Writer) (total mailbox.Moved, missing, err error) {
	w := &writer{ctx: ctx, tar: tar.NewWriter(to), saved: map[string]bool{}}
	names, err := r.Teams()
	w.miss("the root", err)
	format, err := r.Dir().ReadFile(rootdir.FormatFile, 20)
	if err == nil {
		err = w.add(rootdir.FormatFile, format, time.Now())
	}
	for _, n := range names {
		t, e := r.Team(n)
		w.miss(string(n), e)
		if e == nil && err == nil {
			err = w.team(t)
		}
	}
	if err == nil {
		err = cmp.Or(ctx.Err(), w.tar.Close())
	}
	if len(w.missing) > 0 {
		missing = errors.New(strings.ReplaceAll(errors.Join(w.missing...).Error(), "\n", "; "))
	}
	return w.total, missing, err
}

// miss notes that something could not be read, once.
func (w *writer) miss(what string, err error) {
	if err == nil || errors.Is(err, mailbox.ErrNoAgent) { // retired meanwhile: it is in the archive
		return
	}
	err = fmt.Errorf("not all of %s is in the backup: %w", what, err)
	if !slices.ContainsFunc(w.missing, func(e error) bool { return e.Error() == err.Error() }) {
		w.missing = append(w.missing, err)
	}
}

func (w *writer) team(t *teams.Team) error {
	err := w.addDir(string(t.Name))
	if err == nil {
		err = w.mailboxes(t, "sent", "events", "shared", "inbox")
	}
	names := []string{config.File, ".sessions", ".archive", mailbox.BridgeDir + "/bad"}
	outboxes, unreadable := t.Outboxes()
	w.miss(mailbox.BridgeDir, unreadable)
	for _, box := range outboxes {
		for _, dir := range []string{"/new", "/cur", "/withdrawn"} { // as messages move
			names = append(names, mailbox.BridgeDir+"/"+string(box.Address().Host)+dir)
		}
	}
	for _, name := range names {
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
	w.miss(string(t.Name), err)
	for _, box := range boxes {
		if err := w.messages(box); err != nil {
			return err
		}
		for _, sub := range others {
			if err := w.tree(t, string(box.Agent())+"/"+sub); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) messages(box *mailbox.Box) error {
	box.TakeIn(w.ctx)
	ids, err := box.List(w.ctx)
	if held := (*lockfile.HeldError)(nil); errors.As(err, &held) {
		return err // nothing is damaged: again is the way on
	}
	w.miss("the mailbox of "+string(box.Agent()), err)
	if errors.Is(err, mailbox.ErrNoAgent) {
		return nil
	}
	top := string(box.Address().Team) + "/" + string(box.Agent())
	if err := w.addDir(top); err != nil {
		return err
	}
	for _, id := range ids {
		key := top + "/" + string(id)
		if w.saved[key] {
			continue
		}
		where, data, err := box.Copy(id)
		if errors.Is(err, mailbox.ErrNotFound) || errors.Is(err, durable.ErrNotRegular) {
			w.total.Skipped++
			continue
		}
		if w.miss("the mailbox of "+string(box.Agent()), err); err != nil {
			continue
		}
		if err := w.add(top+"/"+where, data, id.Time()); err != nil {
			return err
		}
		w.saved[key] = true
		w.total.Add(mailbox.Moved{Messages: 1, Bytes: int64(len(data))})
	}
	return nil
}

// tree saves what lies at a path and belongs into a backup. What vanishes meanwhile has
// moved on.
func (w *writer) tree(t *teams.Team, name string) error {
	info, err := t.Dir().Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	w.miss(name, err)
	if err == nil && info.Mode().IsRegular() && files().MatchString(name) {
		return w.file(t, name)
	}
	if err != nil || !info.IsDir() {
		return nil
	}
	if dirs().MatchString(name) {
		err = w.addDir(string(t.Name) + "/" + name)
	}
	names, unreadable := t.Dir().Names(name)
	w.miss(name, unreadable)
	for ; len(names) > 0 && err == nil; names = names[1:] {
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
	if w.miss(name, err); err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if w.miss(name, err); err != nil {
		return nil
	}
	h := &tar.Header{Name: string(t.Name) + "/" + name, Size: info.Size(), Mode: 0o600, ModTime: info.ModTime()}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(w.tar, io.LimitReader(f, info.Size()))
	w.miss(name, err)
	if n < info.Size() { // where it was the backup that could not be written, this fails as well
		_, err = w.tar.Write(bytes.Repeat([]byte{'\n'}, int(info.Size()-n)))
		return err
	}
	return nil
}
