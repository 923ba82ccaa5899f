package teams

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
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/wire"
)

// A backup is a tar of the root, without locks and tmp, which may be taken while others
// send. What tells how an agent is run is not in it. These are the files of a team that
// it holds, and the only ones that restore writes; the directories are those that come
// back when they are empty; messages are restored one by one.
var (
	backupFiles = regexp.MustCompile(`^(team\.toml|\.(files|sessions)/[^/]+|\.archive/[a-z0-9_-]+/(done|events|drops)/.+|` +
		`([a-z0-9_-]+|\.archive/retired/[^/]+)/(shared|(inbox|sent|events)/.+))$`)
	backupDirs     = regexp.MustCompile(`^(\.files|\.sessions|\.archive(/[^/]+){0,2}|\.archive/retired/[^/]+/(inbox|sent|events)(/.+)?)$`)
	backupMessages = regexp.MustCompile(`^inbox/(new|aside|cur|withdrawn|done/[^/]+)/([^/]+)\.json$`)
)

type backup struct {
	ctx   context.Context
	tar   *tar.Writer
	total mailbox.Moved
	saved map[string]bool // messages, by team, agent and id
}

// Backup writes the whole root to w.
func (r *Root) Backup(ctx context.Context, w io.Writer) (mailbox.Moved, error) {
	b := &backup{ctx: ctx, tar: tar.NewWriter(w), saved: map[string]bool{}}
	names, err := r.Teams()
	if err == nil {
		err = b.add(formatFile, []byte("1\n"), time.Now())
	}
	for _, n := range names {
		t, e := r.Team(n)
		if err == nil && e == nil {
			e = b.team(t)
		}
		err = cmp.Or(err, e)
	}
	return b.total, cmp.Or(err, b.tar.Close())
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

func (b *backup) addDir(name string) error {
	return b.tar.WriteHeader(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o700, ModTime: time.Now()})
}

func (b *backup) team(t *Team) error {
	if err := b.addDir(string(t.Name)); err != nil {
		return err
	}
	if err := b.boxes(t, "sent", "events", "shared", "inbox"); err != nil {
		return err
	}
	for _, name := range []string{config.File, ".sessions", ".files", ".archive"} {
		if err := b.tree(t, name); err != nil {
			return err
		}
	}
	return b.boxes(t) // what came back from the archive while it was copied, or came anew
}

// boxes backs up the messages of a team that are not saved yet, each mailbox by a
// listing under its lock, and what else lies in the mailboxes.
func (b *backup) boxes(t *Team, others ...string) error {
	boxes, err := t.Boxes()
	for _, box := range boxes {
		if err == nil {
			err = b.messages(box)
		}
		for _, sub := range others {
			if err == nil {
				err = b.tree(t, string(box.Agent())+"/"+sub)
			}
		}
		if errors.Is(err, mailbox.ErrNoAgent) {
			err = nil // retired meanwhile: it is in the archive
		}
	}
	return err
}

func (b *backup) messages(box *mailbox.Box) error {
	box.TakeIn(b.ctx)
	ids, err := box.List(b.ctx)
	if err != nil {
		return err
	}
	top := string(box.Address().Team) + "/" + string(box.Agent())
	if err := b.addDir(top); err != nil {
		return err
	}
	for _, id := range ids {
		key := top + "/" + string(id)
		if b.saved[key] {
			continue
		}
		where, data, err := box.Copy(id)
		if errors.Is(err, mailbox.ErrNotFound) || errors.Is(err, durable.ErrNotRegular) {
			b.total.Skipped++
			continue
		}
		if err == nil {
			err = b.add(top+"/"+where, data, id.Time())
		}
		if err != nil {
			return err
		}
		b.saved[key] = true
		b.total.Add(mailbox.Moved{Messages: 1, Bytes: int64(len(data))})
	}
	return nil
}

// tree backs up what lies at a path and belongs into a backup. What vanishes meanwhile
// has moved on.
func (b *backup) tree(t *Team, name string) error {
	info, err := t.Dir().Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode().IsRegular() && backupFiles.MatchString(name) {
		return b.file(t, name)
	}
	if err != nil || !info.IsDir() {
		return err
	}
	if backupDirs.MatchString(name) {
		if err := b.addDir(string(t.Name) + "/" + name); err != nil {
			return err
		}
	}
	names, err := t.Dir().Names(name)
	for _, n := range names {
		below := name + "/" + n
		isTemporary := strings.HasPrefix(n, ".")
		if err == nil && !isTemporary && !holdsMessages(t, below) {
			err = b.tree(t, below)
		}
	}
	return err
}

// holdsMessages reports whether messages of a mailbox lie there, which are saved one by
// one, or what is about to become some.
func holdsMessages(t *Team, name string) bool {
	if agent, dir, _ := strings.Cut(strings.TrimPrefix(name, ".archive/"), "/"); strings.HasPrefix(name, ".archive/") {
		return dir == "done" && wire.IsName(agent) && t.Box(wire.Name(agent)).Exists()
	}
	first, last := path.Split(name)
	return strings.HasSuffix(first, "/inbox/") && strings.Contains(" new cur done withdrawn tmp ", " "+last+" ")
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
	h := &tar.Header{Name: string(t.Name) + "/" + name, Size: info.Size(), Mode: 0o600, ModTime: info.ModTime()}
	if err := b.tar.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(b.tar, io.LimitReader(f, info.Size()))
	if err == nil && n < info.Size() {
		_, err = b.tar.Write(bytes.Repeat([]byte{'\n'}, int(info.Size()-n)))
	}
	return err
}

type restore struct {
	ctx   context.Context
	root  *Root
	tar   *tar.Reader
	total mailbox.Moved
	isNew map[wire.Address]bool // there was no event log
}

// Restore brings back what a backup holds. A message whose id is there already stays as
// it is; an event log is restored only where there is none; any other file only where
// it is missing. What no backup holds is skipped: whatever the file says, nothing else
// is written.
func (r *Root) Restore(ctx context.Context, from io.Reader) (mailbox.Moved, error) {
	s := &restore{ctx: ctx, root: r, tar: tar.NewReader(from), isNew: map[wire.Address]bool{}}
	h, err := s.tar.Next()
	if err != nil || h.Name != formatFile {
		return s.total, fmt.Errorf("not a backup of atm: it does not begin with %s", formatFile)
	}
	data, err := io.ReadAll(io.LimitReader(s.tar, 64))
	if err == nil && strings.TrimSpace(string(data)) != "1" {
		return s.total, errors.New("the backup was made by a newer atm")
	}
	for {
		h, err := s.tar.Next()
		if err == io.EOF {
			return s.total, nil
		}
		if err != nil {
			return s.total, fmt.Errorf("not a backup of atm, or a damaged one: %w", err)
		}
		if err := errors.Join(ctx.Err(), s.entry(h)); err != nil {
			return s.total, fmt.Errorf("restore %s: %w", letter.Escape(h.Name), err)
		}
	}
}

func (s *restore) entry(h *tar.Header) error {
	teamName, name, _ := strings.Cut(path.Clean(h.Name), "/")
	first, below, _ := strings.Cut(name, "/")
	isAgent := wire.IsName(first)
	isDir := h.Typeflag == tar.TypeDir && (name == "" || isAgent && below == "" || backupDirs.MatchString(name))
	isFile := h.Typeflag == tar.TypeReg && backupFiles.MatchString(name)
	isOurs := wire.IsName(teamName) && (isAgent || name == "" || name == config.File || name[0] == '.')
	if !isDir && !isFile || !isOurs || !fs.ValidPath(path.Clean(h.Name)) {
		if h.Typeflag != tar.TypeDir {
			s.total.Skipped++
		}
		return nil
	}
	team := wire.Name(teamName)
	if _, err := s.root.CreateTeam(team); err != nil {
		return err
	}
	t, err := s.root.Team(team)
	if err != nil || name == "" {
		return err
	}
	if !isAgent && isDir {
		return t.Dir().MkdirAll(name)
	}
	if !isAgent {
		return s.file(t, name, s.tar)
	}
	box := t.Box(wire.Name(first))
	if err = box.Present(); errors.Is(err, mailbox.ErrNoAgent) {
		err = t.Create(s.ctx, box.Agent())
	}
	if err != nil || isDir {
		return err
	}
	if m := backupMessages.FindStringSubmatch(below); m != nil && wire.IsID(m[2]) {
		return s.message(t, box, m[1], m[2])
	}
	isNew, known := s.isNew[box.Address()]
	if !known {
		seq, err := box.Log().LastSeq()
		if err != nil {
			return err
		}
		isNew = seq == 0
		s.isNew[box.Address()] = isNew
	}
	if strings.HasPrefix(below, "events/") && !isNew {
		return nil
	}
	return s.file(t, name, s.tar)
}

// message restores a message, or what was to be one to bad. The first generation had
// messages aside, which are unread.
func (s *restore) message(t *Team, box *mailbox.Box, dir, id string) error {
	data, err := io.ReadAll(io.LimitReader(s.tar, wire.MaxFile+1))
	if err != nil {
		return err
	}
	if _, err := wire.Decode(data); err != nil {
		s.total.Skipped++
		return s.file(t, string(box.Agent())+"/inbox/bad/"+id+".json", bytes.NewReader(data))
	}
	dir, _, _ = strings.Cut(dir, "/")
	state := map[string]mailbox.State{
		"new": mailbox.Unread, "aside": mailbox.Unread, "cur": mailbox.Owed, "done": mailbox.Done, "withdrawn": mailbox.Withdrawn,
	}[dir]
	put, err := box.Put(s.ctx, state, data)
	if put {
		s.total.Add(mailbox.Moved{Messages: 1, Bytes: int64(len(data))})
	} else {
		s.total.Skipped++
	}
	return err
}

// file writes a file below a team unless it is there.
func (s *restore) file(t *Team, name string, from io.Reader) error {
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
