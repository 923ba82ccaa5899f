package teams

import (
	"archive/tar"
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

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/wire"
)

// A backup is a tar of the root, without locks and tmp: the messages first listed and
// then copied, so that it may be taken while others send.

// The largest file that restore takes out of a backup, and the largest segment of
// an event log, which it reads into memory: segments are rotated at 16 MiB.
const (
	maxEntry   = 8 << 30
	maxSegment = 64 << 20
)

// Backup writes the whole root to w. tick is told of each file.
func (r *Root) Backup(ctx context.Context, w io.Writer, tick func()) (mailbox.Moved, error) {
	b := &backup{ctx: ctx, tar: tar.NewWriter(w), tick: tick}
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

// backup is a backup that is being written. Names in it have slashes and begin with
// the team's.
type backup struct {
	ctx   context.Context
	tar   *tar.Writer
	tick  func()
	total mailbox.Moved

	saved  map[string]bool // messages, by mailbox and id
	listed map[string]bool // directories of the archive whose messages box saves
}

func (b *backup) header(h *tar.Header) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if b.tick != nil {
		b.tick()
	}
	return b.tar.WriteHeader(h)
}

func (b *backup) add(name string, data []byte, at time.Time) error {
	if err := b.header(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600, ModTime: at}); err != nil {
		return err
	}
	_, err := b.tar.Write(data)
	return err
}

// dir notes a directory: what is empty comes back as well.
func (b *backup) dir(name string) error {
	return b.header(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o700, ModTime: time.Now()})
}

func (b *backup) team(t *Team) error {
	top := string(t.Name)
	b.saved, b.listed = map[string]bool{}, map[string]bool{}
	if err := b.dir(top); err != nil {
		return err
	}
	if err := b.boxes(t, true); err != nil {
		return err
	}
	for _, name := range []string{config.File, ".sessions", ".files", ".archive"} {
		if err := b.tree(t, name, nil); err != nil {
			return err
		}
	}
	// What came back from the archive while it was copied, or came anew.
	return b.boxes(t, false)
}

// boxes backs up the mailboxes of a team: all of it, or only messages that have not
// been saved yet.
func (b *backup) boxes(t *Team, all bool) error {
	boxes, err := t.Boxes()
	if err != nil {
		return err
	}
	for _, box := range boxes {
		err := b.box(t, box, all)
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) { // retired meanwhile: it is in the archive
			return err
		}
	}
	return nil
}

// box backs one mailbox up: its messages by a listing under its lock, and then
// everything else that lies in it.
func (b *backup) box(t *Team, box *mailbox.Box, all bool) error {
	box.TakeIn(b.ctx)
	entries, err := box.List(b.ctx)
	if err != nil {
		return err
	}
	agent := string(box.Agent())
	top := string(t.Name) + "/" + agent
	if err := b.dir(top); err != nil {
		return err
	}
	b.listed[".archive/"+agent+"/done"] = true
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
		if err != nil {
			return err
		}
		if err := b.add(top+"/"+e.Path, data, e.ID.Time()); err != nil {
			return err
		}
		b.saved[key] = true
		b.total.Messages++
		b.total.Bytes += int64(len(data))
	}
	if !all {
		return nil
	}
	for _, sub := range []string{"sent", "events", "shared"} {
		if err := b.tree(t, agent+"/"+sub, nil); err != nil {
			return err
		}
	}
	return b.tree(t, agent+"/inbox", []string{"new", "cur", "done", "withdrawn", "tmp"})
}

// tree backs up what lies at a path: a regular file, or a directory with all below it
// but the names to be skipped. What vanishes meanwhile has moved on.
func (b *backup) tree(t *Team, name string, skip []string) error {
	info, err := t.Dir().Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().IsRegular():
		return b.file(t, name)
	case !info.IsDir() || b.listed[name]: // its messages are saved one by one
		return nil
	}
	if err := b.dir(string(t.Name) + "/" + name); err != nil {
		return err
	}
	names, err := t.Dir().Names(name)
	for _, n := range names {
		below := strings.Split(name+"/"+n, "/")
		if len(below) == 4 && below[1] == "retired" && !inMailbox(below[3:]) {
			continue
		}
		if slices.Contains(skip, n) || strings.HasPrefix(n, ".") && name != ".archive" {
			continue // hidden files are being written
		}
		if err := b.tree(t, name+"/"+n, nil); err != nil {
			return err
		}
	}
	return err
}

// file copies a file as long as it is now: a log may grow meanwhile.
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
	if err := b.header(&tar.Header{Name: string(t.Name) + "/" + name, Size: info.Size(), Mode: 0o600, ModTime: info.ModTime()}); err != nil {
		return err
	}
	n, err := io.Copy(b.tar, io.LimitReader(f, info.Size()))
	if err == nil && n < info.Size() {
		// Cut back while it was read: filled up, and cut off again by the reader of the
		// log.
		_, err = b.tar.Write(bytes.Repeat([]byte{'\n'}, int(info.Size()-n)))
	}
	return err
}

// restore is a backup that is being brought back.
type restore struct {
	ctx  context.Context
	root *Root
	tar  *tar.Reader

	ours map[string]bool // by team and agent: whether the event log is ours to restore
}

// Restore brings back what a backup holds. A message whose id is there already stays as
// it is; an event log is restored only where there is none; any other file only where
// it is missing. What no backup holds is skipped: whatever the file says, nothing else
// is written.
func (r *Root) Restore(ctx context.Context, from io.Reader, tick func()) (mailbox.Moved, error) {
	var total mailbox.Moved
	s := &restore{ctx: ctx, root: r, tar: tar.NewReader(bufio.NewReaderSize(from, 1<<20)), ours: map[string]bool{}}
	h, err := s.tar.Next()
	if err != nil || h.Name != formatFile {
		return total, fmt.Errorf("not a backup of atm: %w", errors.Join(err, fmt.Errorf("it does not begin with %s", formatFile)))
	}
	data, err := io.ReadAll(io.LimitReader(s.tar, 64))
	if err == nil && strings.TrimSpace(string(data)) != "1" {
		err = errors.New("the backup was made by a newer atm")
	}
	for err == nil {
		if h, err = s.tar.Next(); err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, fmt.Errorf("not a backup of atm, or a damaged one: %w", err)
		}
		if err = ctx.Err(); err != nil {
			break
		}
		if tick != nil {
			tick()
		}
		var m mailbox.Moved
		if m, err = s.entry(h); err != nil {
			err = fmt.Errorf("restore %s: %w", letter.Escape(h.Name), err)
		}
		total.Add(m)
	}
	return total, err
}

// entry restores one file or directory.
func (s *restore) entry(h *tar.Header) (mailbox.Moved, error) {
	skipped := mailbox.Moved{Skipped: 1}
	name := path.Clean(h.Name)
	teamName, name, _ := strings.Cut(name, "/")
	team, err := wire.ParseName(teamName)
	if err != nil {
		return mailbox.Moved{}, err
	}
	isDir := h.Typeflag == tar.TypeDir
	if !isDir && h.Typeflag != tar.TypeReg || h.Size > maxEntry || !fs.ValidPath(path.Join(name, ".")) || name != "" && !inBackup(name, isDir) {
		return skipped, nil
	}
	if _, err := s.root.CreateTeam(team); err != nil {
		return mailbox.Moved{}, err
	}
	t, err := s.root.Team(team)
	if err != nil || name == "" {
		return mailbox.Moved{}, err
	}
	first, below, _ := strings.Cut(name, "/")
	if !wire.IsName(first) { // .files, .archive, .sessions, team.toml
		if isDir {
			return mailbox.Moved{}, t.Dir().MkdirAll(name)
		}
		if isArchivedElsewhere(t, name) {
			return skipped, nil
		}
		return mailbox.Moved{}, s.file(t, name)
	}
	box := t.Box(wire.Name(first))
	err = box.Present()
	if errors.Is(err, mailbox.ErrNoAgent) {
		if err = t.Create(s.ctx, box.Agent()); errors.Is(err, mailbox.ErrExists) {
			err = nil
		}
	}
	if err != nil || isDir {
		return mailbox.Moved{}, err
	}
	if state, ok := stateAt(below); ok {
		return s.message(t, box, state, path.Base(below))
	}
	if strings.HasPrefix(below, "events/") {
		if h.Size > maxSegment {
			return skipped, nil
		}
		return mailbox.Moved{}, s.events(t, box, name)
	}
	return mailbox.Moved{}, s.file(t, name)
}

// inBackup reports whether a backup holds such a path below a team.
func inBackup(name string, isDir bool) bool {
	parts := strings.Split(name, "/")
	switch parts[0] {
	case config.File:
		return len(parts) == 1 && !isDir
	case ".files", ".sessions":
		return isDir && len(parts) == 1 || !isDir && len(parts) == 2
	case ".archive":
		switch {
		case len(parts) < 3:
			return isDir
		case parts[1] == "retired":
			return len(parts) == 3 && isDir || len(parts) > 3 && inMailbox(parts[3:])
		}
		return slices.Contains([]string{"done", "events", "drops"}, parts[2])
	}
	return wire.IsName(parts[0]) && (len(parts) == 1 && isDir || len(parts) > 1 && inMailbox(parts[1:]))
}

// inMailbox reports whether a backup holds such a path of a mailbox: what tells how an
// agent is run stays where it is.
func inMailbox(parts []string) bool {
	return slices.Contains([]string{"inbox", "sent", "events"}, parts[0]) || len(parts) == 1 && parts[0] == "shared"
}

// message restores a message, or what was to be one to bad.
func (s *restore) message(t *Team, box *mailbox.Box, state mailbox.State, file string) (mailbox.Moved, error) {
	data, err := io.ReadAll(io.LimitReader(s.tar, wire.MaxFile+1))
	if err != nil {
		return mailbox.Moved{}, err
	}
	if _, err := wire.Decode(data); err != nil {
		return mailbox.Moved{Skipped: 1}, restoreFile(t, string(box.Agent())+"/inbox/bad/"+file, bytes.NewReader(data))
	}
	put, err := box.Put(s.ctx, state, data)
	if !put {
		return mailbox.Moved{Skipped: 1}, err
	}
	return mailbox.Moved{Messages: 1, Bytes: int64(len(data))}, err
}

// events restores a segment of an event log where there was none, or where what there
// is came from this backup: a restore that was cut off goes on.
func (s *restore) events(t *Team, box *mailbox.Box, name string) error {
	key := box.Address().String()
	ours, known := s.ours[key]
	if !known {
		seq, err := box.Log().LastSeq()
		if err != nil {
			return err
		}
		ours = seq == 0
	}
	data, err := io.ReadAll(s.tar)
	if err != nil {
		return err
	}
	there, err := t.Dir().ReadFile(name, maxSegment)
	if !errors.Is(err, fs.ErrNotExist) {
		s.ours[key] = err == nil && bytes.Equal(there, data)
		return err
	}
	s.ours[key] = ours
	if !ours {
		return nil
	}
	return restoreFile(t, name, bytes.NewReader(data))
}

func (s *restore) file(t *Team, name string) error { return restoreFile(t, name, s.tar) }

// restoreFile writes a file below a team unless it is there.
func restoreFile(t *Team, name string, from io.Reader) error {
	if there, err := t.Dir().Exists(name); there || err != nil {
		return err
	}
	dir := path.Dir(name)
	if err := t.Dir().MkdirAll(dir); err != nil {
		return err
	}
	temp := dir + "/.restoring." + string(wire.NewID()) + ".tmp"
	err := t.Dir().CreateFrom(temp, func(w io.Writer) error {
		_, err := io.Copy(w, from)
		return err
	})
	if err != nil {
		return err
	}
	defer t.Dir().Remove(temp)
	if err := t.Dir().Link(temp, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return t.Dir().Sync(dir)
}

// isArchivedElsewhere reports whether an archived message of a backup is in its mailbox
// here already, archived or not.
func isArchivedElsewhere(t *Team, name string) bool {
	parts := strings.Split(name, "/") // .archive/<agent>/done/<day>/<id>.json
	if len(parts) != 5 || parts[2] != "done" || !wire.IsName(parts[1]) {
		return false
	}
	id, ok := strings.CutSuffix(parts[4], ".json")
	if !ok || !wire.IsID(id) {
		return false
	}
	_, err := t.Box(wire.Name(parts[1])).Get(wire.ID(id))
	return err == nil
}

// stateAt says which state a message file below an agent's directory has. The first
// generation had messages aside, which are unread.
func stateAt(below string) (mailbox.State, bool) {
	id, ok := strings.CutSuffix(path.Base(below), ".json")
	if !ok || !wire.IsID(id) {
		return "", false
	}
	switch dir := path.Dir(below); {
	case dir == "inbox/new", dir == "inbox/aside":
		return mailbox.Unread, true
	case dir == "inbox/cur":
		return mailbox.Owed, true
	case path.Dir(dir) == "inbox/done":
		return mailbox.Done, true
	case dir == "inbox/withdrawn":
		return mailbox.Withdrawn, true
	}
	return "", false
}
