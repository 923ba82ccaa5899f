package teams

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/tarball"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// A backup is a tar of the root, without locks and tmp: the messages first
// listed and then copied, so that it may be taken while others send. (Not
// compressed: compress/flate and its kin cost every start of atm more than the
// little that mail shrinks is worth.)

// maxEntry is the largest file that restore takes out of a backup.
const maxEntry = 8 << 30

// Backup writes the whole root to w. tick is told of each file.
func (r *Root) Backup(ctx context.Context, w io.Writer, tick func()) (mailbox.Moved, error) {
	var total mailbox.Moved
	b := &backup{ctx: ctx, w: tarball.NewWriter(w), tick: tick}
	names, err := r.Teams()
	if err != nil {
		return total, err
	}
	if err := b.bytes(formatFile, []byte("1\n"), time.Now()); err != nil {
		return total, err
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
	return b.total, b.w.Close()
}

type backup struct {
	ctx   context.Context
	w     *tarball.Writer
	tick  func()
	total mailbox.Moved
	saved map[string]bool // messages, by mailbox and id

	listed map[string]bool // directories of the archive whose messages box saves
}

func (b *backup) bytes(name string, data []byte, at time.Time) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if b.tick != nil {
		b.tick()
	}
	if err := b.w.Header(tarball.Header{Name: name, Size: int64(len(data)), ModTime: at}); err != nil {
		return err
	}
	_, err := b.w.Write(data)
	return err
}

// dir notes a directory: what is empty comes back as well.
func (b *backup) dir(name string) error {
	return b.w.Header(tarball.Header{Name: name + "/", Kind: tarball.Dir, ModTime: time.Now()})
}

func (b *backup) team(t *Team) error {
	top := string(t.Name)
	b.saved, b.listed = map[string]bool{}, map[string]bool{}
	if err := b.dir(top); err != nil {
		return err
	}
	if err := b.boxes(t, top, true); err != nil {
		return err
	}
	if err := b.file(t.Dir(), "team.toml", top+"/team.toml"); err != nil {
		return err
	}
	for _, n := range []string{".sessions", ".files", ".archive"} {
		if err := b.sub(t.Dir(), n, top+"/"+n, nil); err != nil {
			return err
		}
	}
	// What came back from the archive while it was copied, or came anew.
	return b.boxes(t, top, false)
}

// boxes backs up the mailboxes of a team: all of it, or only messages that
// have not been saved yet.
func (b *backup) boxes(t *Team, top string, all bool) error {
	boxes, err := t.Boxes()
	if err != nil {
		return err
	}
	for _, box := range boxes {
		err := b.box(top+"/"+string(box.Agent()), box, all)
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) { // retired meanwhile: it is in the archive
			return err
		}
	}
	return nil
}

// box backs one mailbox up: its messages by a listing under its lock, and then
// everything else that lies in it.
func (b *backup) box(top string, box *mailbox.Box, all bool) error {
	box.TakeIn(b.ctx)
	entries, err := box.List(b.ctx)
	if err != nil {
		return err
	}
	if err := b.dir(top); err != nil {
		return err
	}
	b.listed[string(box.Address().Team)+"/.archive/"+string(box.Agent())+"/done"] = true
	for i := range entries {
		e := &entries[i]
		key := top + "/" + string(e.ID)
		if b.saved[key] {
			continue
		}
		data, err := box.Copy(e)
		if errors.Is(err, mailbox.ErrNotFound) || errors.Is(err, atomicfile.ErrNotRegular) {
			b.total.Skipped++
			continue
		}
		if err != nil {
			return err
		}
		if err := b.bytes(top+"/"+e.Path, data, e.ID.Time()); err != nil {
			return err
		}
		b.saved[key] = true
		b.total.Messages++
		b.total.Bytes += int64(len(data))
	}
	if !all {
		return nil
	}
	d, err := box.Store().Dir().Sub(string(box.Agent()))
	if atomicfile.Absent(err) {
		return nil // retired meanwhile
	}
	if err != nil {
		return err
	}
	defer d.Close()
	for _, sub := range []string{"sent", "events"} {
		if err := b.sub(d, sub, top+"/"+sub, nil); err != nil {
			return err
		}
	}
	// Of what was set aside the history; the messages are saved.
	inbox, err := d.Sub("inbox")
	if err != nil {
		return err
	}
	defer inbox.Close()
	if err := b.sub(inbox, "aside", top+"/inbox/aside", func(n string) bool { return strings.HasSuffix(n, ".json") }); err != nil {
		return err
	}
	return b.tree(inbox, top+"/inbox", func(n string) bool {
		return slices.Contains([]string{"new", "aside", "cur", "done", "withdrawn", "tmp"}, n)
	})
}

// sub backs up a directory in d, if it is there.
func (b *backup) sub(d *atomicfile.Dir, name, as string, skip func(string) bool) error {
	s, err := d.Sub(name)
	if atomicfile.Absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	return b.tree(s, as, skip)
}

// tree backs up what lies in a directory: regular files and directories. What
// vanishes meanwhile has moved on.
func (b *backup) tree(d *atomicfile.Dir, top string, skip func(string) bool) error {
	var names []string
	if err := d.Names(func(n []string) bool { names = append(names, n...); return true }); err != nil {
		return err
	}
	slices.Sort(names)
	for _, n := range names {
		if skip != nil && skip(n) {
			continue
		}
		info, err := d.Lstat(n)
		switch {
		case atomicfile.Absent(err):
		case err != nil:
			return err
		case info.IsDir():
			if b.listed[top+"/"+n] {
				continue // its messages are saved one by one
			}
			if err := b.dir(top + "/" + n); err != nil {
				return err
			}
			if err := b.sub(d, n, top+"/"+n, nil); err != nil {
				return err
			}
		case info.Mode().IsRegular():
			if err := b.file(d, n, top+"/"+n); err != nil {
				return err
			}
		}
	}
	return nil
}

// file copies a file as long as it is now: a log may grow meanwhile.
func (b *backup) file(d *atomicfile.Dir, name, as string) error {
	f, err := d.Open(name)
	if atomicfile.Absent(err) || errors.Is(err, atomicfile.ErrNotRegular) {
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
	if b.tick != nil {
		b.tick()
	}
	if err := b.w.Header(tarball.Header{Name: as, Size: info.Size(), ModTime: info.ModTime()}); err != nil {
		return err
	}
	n, err := io.Copy(b.w, io.LimitReader(f, info.Size()))
	if err == nil && n < info.Size() {
		// Cut back while it was read: filled up, and cut off again by the
		// reader of the log.
		_, err = io.CopyN(b.w, zeros{}, info.Size()-n)
	}
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}

// Restore brings back what a backup holds. A message whose id is there already
// stays as it is; an event log is restored only where there is none; any other
// file only where it is missing. Nothing outside the root is written whatever
// the backup says.
func (r *Root) Restore(ctx context.Context, from io.Reader, tick func()) (mailbox.Moved, error) {
	var total mailbox.Moved
	in := tarball.NewReader(bufio.NewReaderSize(from, 1<<20))
	logs := map[string]bool{} // agents whose event log is ours to restore
	for {
		h, err := in.Next()
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, fmt.Errorf("no backup of atm, or a damaged one: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return total, err
		}
		if tick != nil {
			tick()
		}
		m, err := r.restoreEntry(ctx, h, in, logs)
		total.Add(m)
		if err != nil {
			return total, fmt.Errorf("restore %s: %w", letter.Escape(h.Name), err)
		}
	}
}

func (r *Root) restoreEntry(ctx context.Context, h tarball.Header, in io.Reader, logs map[string]bool) (mailbox.Moved, error) {
	name := path.Clean(strings.TrimSuffix(h.Name, "/"))
	parts := strings.Split(name, "/")
	if name == formatFile {
		data, err := io.ReadAll(io.LimitReader(in, 64))
		if err == nil && strings.TrimSpace(string(data)) != "1" {
			err = fmt.Errorf("it was made by a newer atm")
		}
		return mailbox.Moved{}, err
	}
	for _, p := range parts {
		if p == "" || p == "." || p == ".." {
			return mailbox.Moved{}, errors.New("a path that leads out of the root")
		}
	}
	team, err := wire.ParseName(parts[0])
	if err != nil {
		return mailbox.Moved{}, err
	}
	if _, err := r.CreateTeam(team); err != nil {
		return mailbox.Moved{}, err
	}
	t, err := r.Team(team)
	if err != nil || len(parts) < 2 {
		return mailbox.Moved{}, err
	}
	isDir := h.Kind == tarball.Dir
	if h.Kind == tarball.Other || h.Size > maxEntry {
		return mailbox.Moved{Skipped: 1}, nil
	}
	agent, err := wire.ParseName(parts[1])
	if err != nil { // .files, .archive, .sessions, team.toml
		switch {
		case !slices.Contains([]string{".files", ".archive", ".sessions", "team.toml"}, parts[1]):
			return mailbox.Moved{Skipped: 1}, nil
		case isDir:
			d, err := t.Dir().Make(parts[1:]...)
			if err == nil {
				d.Close()
			}
			return mailbox.Moved{}, err
		case archivedElsewhere(t, parts):
			return mailbox.Moved{Skipped: 1}, nil
		}
		return mailbox.Moved{}, restoreFile(t.Dir(), parts[1:], h.Size, in)
	}
	box := t.Box(agent)
	if err := box.Present(); err != nil {
		if !errors.Is(err, mailbox.ErrNoAgent) {
			return mailbox.Moved{}, err
		}
		if err := t.Create(ctx, agent); err != nil && !errors.Is(err, mailbox.ErrExists) {
			return mailbox.Moved{}, err
		}
	}
	rest := parts[2:]
	if len(rest) == 0 || isDir {
		return mailbox.Moved{}, nil
	}
	if state, ok := stateAt(rest); ok {
		data, err := io.ReadAll(io.LimitReader(in, wire.MaxFile+1))
		if err != nil {
			return mailbox.Moved{}, err
		}
		if _, err := wire.Decode(data); err != nil {
			return mailbox.Moved{Skipped: 1}, restoreFile(t.Dir(), append(parts[1:3:3], "bad", rest[len(rest)-1]), int64(len(data)), bytes.NewReader(data))
		}
		put, err := box.Put(ctx, state, data)
		if put {
			return mailbox.Moved{Messages: 1, Bytes: int64(len(data))}, err
		}
		return mailbox.Moved{Skipped: 1}, err
	}
	if rest[0] == "events" && len(rest) == 2 {
		return mailbox.Moved{}, r.restoreEvents(t, box, parts, h.Size, in, logs)
	}
	return mailbox.Moved{}, restoreFile(t.Dir(), parts[1:], h.Size, in)
}

// restoreEvents restores a segment of an event log where there was none, or
// where what there is came from this backup: a restore that was cut off goes
// on.
func (r *Root) restoreEvents(t *Team, box *mailbox.Box, parts []string, size int64, in io.Reader, logs map[string]bool) error {
	key := parts[0] + "/" + parts[1]
	ours, known := logs[key]
	if !known {
		seq, err := box.LastSeq()
		if err != nil {
			return err
		}
		ours = seq == 0
	}
	d, err := t.Dir().Make(parts[1:3]...)
	if err != nil {
		return err
	}
	defer d.Close()
	data, err := io.ReadAll(io.LimitReader(in, size))
	if err != nil {
		return err
	}
	there, err := d.ReadFile(parts[3], 1<<30)
	if atomicfile.Absent(err) {
		logs[key] = ours
		if !ours {
			return nil
		}
		return restoreFile(t.Dir(), parts[1:], int64(len(data)), bytes.NewReader(data))
	}
	logs[key] = err == nil && bytes.Equal(there, data)
	return err
}

// archivedElsewhere reports whether an archived message of a backup is in its
// mailbox here already, archived or not.
func archivedElsewhere(t *Team, parts []string) bool {
	if len(parts) != 6 || parts[1] != ".archive" || parts[3] != "done" {
		return false
	}
	agent, err := wire.ParseName(parts[2])
	id, ok := strings.CutSuffix(parts[5], ".json")
	if err != nil || !ok || !wire.IsID(id) {
		return false
	}
	_, err = t.Box(agent).Get(wire.ID(id))
	return err == nil
}

// stateAt says which state a message file below an agent's directory has.
func stateAt(rest []string) (mailbox.State, bool) {
	if len(rest) < 3 || rest[0] != "inbox" {
		return "", false
	}
	id, ok := strings.CutSuffix(rest[len(rest)-1], ".json")
	if !ok || !wire.IsID(id) {
		return "", false
	}
	switch {
	case rest[1] == "new" && len(rest) == 3:
		return mailbox.Unread, true
	case rest[1] == "aside" && len(rest) == 3:
		return mailbox.Aside, true
	case rest[1] == "cur" && len(rest) == 3:
		return mailbox.Owed, true
	case rest[1] == "done" && len(rest) == 4:
		return mailbox.Done, true
	case rest[1] == "withdrawn" && len(rest) == 3:
		return mailbox.Withdrawn, true
	}
	return "", false
}

// restoreFile writes a file below a directory unless it is there.
func restoreFile(top *atomicfile.Dir, parts []string, size int64, in io.Reader) error {
	last := len(parts) - 1
	d, err := top.Make(parts[:last]...)
	if err != nil {
		return err
	}
	if last > 0 {
		defer d.Close()
	}
	if has, err := d.Has(parts[last]); has || err != nil {
		return err
	}
	draft, err := d.Draft(".restoring." + string(wire.NewID()))
	if err != nil {
		return err
	}
	defer draft.Close()
	if _, err := io.CopyN(draft, in, size); err != nil {
		return err
	}
	if err := draft.Sync(); err != nil {
		return err
	}
	if err := draft.Link(d, parts[last]); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.Sync()
}
