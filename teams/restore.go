package teams

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// maxEntry is the largest file that restore takes out of a backup.
const maxEntry = 8 << 30

// restore is a backup that is being brought back.
type restore struct {
	ctx   context.Context
	root  *Root
	tar   *tar.Reader
	total mailbox.Moved
	ours  map[wire.Address]bool // whether the event log is ours to restore
}

// Restore brings back what a backup holds. A message whose id is there already stays as
// it is; an event log is restored only where there is none; any other file only where
// it is missing. What no backup holds is skipped: whatever the file says, nothing else
// is written.
func (r *Root) Restore(ctx context.Context, from io.Reader) (mailbox.Moved, error) {
	s := &restore{ctx: ctx, root: r, tar: tar.NewReader(from), ours: map[wire.Address]bool{}}
	h, err := s.tar.Next()
	if err != nil || h.Name != formatFile {
		return s.total, fmt.Errorf("not a backup of atm: it does not begin with %s", formatFile)
	}
	data, err := io.ReadAll(io.LimitReader(s.tar, 64))
	if err == nil && strings.TrimSpace(string(data)) != "1" {
		err = errors.New("the backup was made by a newer atm")
	}
	for err == nil {
		if h, err = s.tar.Next(); err == io.EOF {
			return s.total, nil
		}
		if err != nil {
			return s.total, fmt.Errorf("not a backup of atm, or a damaged one: %w", err)
		}
		if err = errors.Join(ctx.Err(), s.entry(h)); err != nil {
			err = fmt.Errorf("restore %s: %w", letter.Escape(h.Name), err)
		}
	}
	return s.total, err
}

// entry restores one file or directory.
func (s *restore) entry(h *tar.Header) error {
	teamName, name, _ := strings.Cut(path.Clean(h.Name), "/")
	team, err := wire.ParseName(teamName)
	if err != nil {
		return err
	}
	isDir := h.Typeflag == tar.TypeDir
	if !isDir && h.Typeflag != tar.TypeReg || h.Size > maxEntry || !fs.ValidPath(path.Join(name, ".")) || name != "" && !inBackup(name, isDir) {
		s.total.Skipped++
		return nil
	}
	if _, err := s.root.CreateTeam(team); err != nil {
		return err
	}
	t, err := s.root.Team(team)
	if err != nil || name == "" {
		return err
	}
	first, below, _ := strings.Cut(name, "/")
	if !wire.IsName(first) { // .files, .archive, .sessions, team.toml
		if isDir {
			return t.Dir().MkdirAll(name)
		}
		return restoreFile(t, name, s.tar)
	}
	box := t.Box(wire.Name(first))
	err = box.Present()
	if errors.Is(err, mailbox.ErrNoAgent) {
		err = t.Create(s.ctx, box.Agent())
	}
	if err != nil || isDir {
		return err
	}
	if state, ok := stateAt(below); ok {
		return s.message(t, box, state, path.Base(below))
	}
	if strings.HasPrefix(below, "events/") {
		return s.events(t, box, name)
	}
	return restoreFile(t, name, s.tar)
}

// message restores a message, or what was to be one to bad.
func (s *restore) message(t *Team, box *mailbox.Box, state mailbox.State, file string) error {
	data, err := io.ReadAll(io.LimitReader(s.tar, wire.MaxFile+1))
	if err != nil {
		return err
	}
	if _, err := wire.Decode(data); err != nil {
		s.total.Skipped++
		return restoreFile(t, string(box.Agent())+"/inbox/bad/"+file, bytes.NewReader(data))
	}
	put, err := box.Put(s.ctx, state, data)
	if put {
		s.total.Add(mailbox.Moved{Messages: 1, Bytes: int64(len(data))})
	} else {
		s.total.Skipped++
	}
	return err
}

// events restores a segment of an event log where there was none.
func (s *restore) events(t *Team, box *mailbox.Box, name string) error {
	ours, known := s.ours[box.Address()]
	if !known {
		seq, err := box.Log().LastSeq()
		if err != nil {
			return err
		}
		ours = seq == 0
		s.ours[box.Address()] = ours
	}
	if !ours {
		return nil
	}
	return restoreFile(t, name, s.tar)
}

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

// stateAt says which state a message file below an agent's directory has. The first
// generation had messages aside, which are unread.
func stateAt(below string) (mailbox.State, bool) {
	id, ok := strings.CutSuffix(path.Base(below), ".json")
	if !ok || !wire.IsID(id) {
		return "", false
	}
	dir := strings.Split(path.Dir(below), "/")
	states := map[string]mailbox.State{
		"new": mailbox.Unread, "aside": mailbox.Unread, "cur": mailbox.Owed, "done": mailbox.Done, "withdrawn": mailbox.Withdrawn,
	}
	if len(dir) < 2 || dir[0] != "inbox" || (len(dir) == 3) != (dir[1] == "done") {
		return "", false
	}
	state, ok := states[dir[1]]
	return state, ok
}
