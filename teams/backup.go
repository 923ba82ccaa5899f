package teams

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/wire"
)

// A backup is a tar of the root, without locks and tmp: the messages first listed and
// then copied, so that it may be taken while others send.

// backup is a backup that is being written. Names in it begin with the team's.
type backup struct {
	ctx   context.Context
	tar   *tar.Writer
	total mailbox.Moved
	saved map[string]bool // messages, by mailbox and id
}

// Backup writes the whole root to w.
func (r *Root) Backup(ctx context.Context, w io.Writer) (mailbox.Moved, error) {
	b := &backup{ctx: ctx, tar: tar.NewWriter(w), saved: map[string]bool{}}
	names, err := r.Teams()
	if err != nil {
		return b.total, err
	}
	if err := b.add(formatFile, []byte("1\n"), time.Now()); err != nil {
		return b.total, err
	}
	for _, n := range names {
		t, err := r.Team(n)
		if err != nil {
			return b.total, err
		}
		if err := b.team(t); err != nil {
			return b.total, fmt.Errorf("back up team %s: %w", n, err)
		}
	}
	return b.total, b.tar.Close()
}

func (b *backup) add(name string, data []byte, at time.Time) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if err := b.tar.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600, ModTime: at}); err != nil {
		return err
	}
	_, err := b.tar.Write(data)
	return err
}

// dir notes a directory: what is empty comes back as well.
func (b *backup) dir(name string) error {
	return b.tar.WriteHeader(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o700, ModTime: time.Now()})
}

func (b *backup) team(t *Team) error {
	if err := b.dir(string(t.Name)); err != nil {
		return err
	}
	if err := b.boxes(t, []string{"sent", "events", "shared", "inbox"}); err != nil {
		return err
	}
	for _, name := range []string{config.File, ".sessions", ".files", ".archive"} {
		if err := b.tree(t, name); err != nil {
			return err
		}
	}
	// What came back from the archive while it was copied, or came anew.
	return b.boxes(t, nil)
}

// boxes backs up the messages of a team that are not saved yet, each mailbox by a
// listing under its lock, and what else lies in the mailboxes.
func (b *backup) boxes(t *Team, others []string) error {
	boxes, err := t.Boxes()
	if err != nil {
		return err
	}
	for _, box := range boxes {
		err := b.messages(box, string(t.Name)+"/"+string(box.Agent()))
		for _, sub := range others {
			if err == nil {
				err = b.tree(t, string(box.Agent())+"/"+sub)
			}
		}
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) { // retired meanwhile: it is in the archive
			return err
		}
	}
	return nil
}

func (b *backup) messages(box *mailbox.Box, top string) error {
	box.TakeIn(b.ctx)
	entries, err := box.List(b.ctx)
	if err != nil {
		return err
	}
	if err := b.dir(top); err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		key := top + "/" + string(e.ID)
		if b.saved[key] {
			continue
		}
		data, err := box.Copy(e)
		if errors.Is(err, mailbox.ErrNotFound) || errors.Is(err, durable.ErrNotRegular) {
			b.total.Skipped++
			continue
		}
		if err == nil {
			err = b.add(top+"/"+e.Path, data, e.ID.Time())
		}
		if err != nil {
			return err
		}
		b.saved[key] = true
		b.total.Add(mailbox.Moved{Messages: 1, Bytes: int64(len(data))})
	}
	return nil
}

// tree backs up what lies at a path and belongs into a backup: a regular file, or a
// directory with all below it. What vanishes meanwhile has moved on.
func (b *backup) tree(t *Team, name string) error {
	info, err := t.Dir().Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode().IsRegular() {
		return b.file(t, name)
	}
	if err != nil || !info.IsDir() {
		return err
	}
	if err := b.dir(string(t.Name) + "/" + name); err != nil {
		return err
	}
	names, err := t.Dir().Names(name)
	for _, n := range names {
		below := name + "/" + n
		isHidden := strings.HasPrefix(n, ".") && name != ".archive" // being written
		if isHidden || isSavedSingly(t, below) || !inBackup(below, false) && !inBackup(below, true) {
			continue
		}
		if err := b.tree(t, below); err != nil {
			return err
		}
	}
	return err
}

// isSavedSingly reports whether messages of a mailbox lie there, which are saved one by
// one, or what is about to become some.
func isSavedSingly(t *Team, name string) bool {
	agent, dir, _ := strings.Cut(strings.TrimPrefix(name, ".archive/"), "/")
	if strings.HasPrefix(name, ".archive/") {
		return dir == "done" && wire.IsName(agent) && t.Box(wire.Name(agent)).Exists()
	}
	return slices.Contains([]string{"inbox/new", "inbox/cur", "inbox/done", "inbox/withdrawn", "inbox/tmp"}, dir)
}

// file copies a file as long as it is now: a log may grow meanwhile, or be cut back.
func (b *backup) file(t *Team, name string) error {
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
	if err := b.tar.WriteHeader(&tar.Header{Name: string(t.Name) + "/" + name, Size: info.Size(), Mode: 0o600, ModTime: info.ModTime()}); err != nil {
		return err
	}
	n, err := io.Copy(b.tar, io.LimitReader(f, info.Size()))
	if err == nil && n < info.Size() {
		_, err = b.tar.Write(bytes.Repeat([]byte{'\n'}, int(info.Size()-n)))
	}
	return err
}

// inBackup reports whether a backup holds such a path below a team. What tells how an
// agent is run is not in it.
func inBackup(name string, isDir bool) bool {
	parts := strings.Split(name, "/")
	switch {
	case parts[0] == config.File:
		return len(parts) == 1 && !isDir
	case parts[0] == ".files" || parts[0] == ".sessions":
		return len(parts) == 1 && isDir || len(parts) == 2 && !isDir
	case parts[0] == ".archive" && len(parts) < 3:
		return isDir
	case parts[0] == ".archive" && parts[1] == "retired":
		return len(parts) == 3 && isDir || len(parts) > 3 && inMailbox(parts[3:])
	case parts[0] == ".archive":
		return slices.Contains([]string{"done", "events", "drops"}, parts[2])
	}
	return wire.IsName(parts[0]) && (len(parts) == 1 && isDir || len(parts) > 1 && inMailbox(parts[1:]))
}

func inMailbox(parts []string) bool {
	return slices.Contains([]string{"inbox", "sent", "events"}, parts[0]) || len(parts) == 1 && parts[0] == "shared"
}
