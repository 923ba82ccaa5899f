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
	"strings"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

// Restored is the result of Restore.
type Restored struct {
	mailbox.Moved
	Refused []string `json:"refused,omitempty"` // names that no backup contains: "../evil"
}

type restorer struct {
	ctx     context.Context
	root    *teams.Root
	tar     *tar.Reader
	total   Restored
	hadLogs map[wire.Address]bool // whether a mailbox had other events before the restore
}

// Check returns an error if a file is no backup or is cut off, and else goes back to its beginning. Without it a backup
// that was cut off between two files would pass for a whole one: a tar ends in zeros.
func Check(from io.ReadSeeker) error {
	if _, err := checkFormat(tar.NewReader(from)); err != nil {
		return err
	}
	_, err := from.Seek(-1024, io.SeekEnd)
	end, bad := io.ReadAll(from)
	if err = cmp.Or(err, bad); err == nil && len(bytes.Trim(end, "\x00")) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("the backup is damaged or cut off: %w", err)
	}
	_, err = from.Seek(0, io.SeekStart)
	return err
}

// checkFormat reads the first file of a backup, and reports whether the root has format 2 (see teams.Root.RaiseFormat).
func checkFormat(files *tar.Reader) (isRaised bool, err error) {
	h, err := files.Next()
	if err != nil || h.Name != rootdir.FormatFile {
		return false, fmt.Errorf("not an atm backup: it does not begin with %s", rootdir.FormatFile)
	}
	format, err := io.ReadAll(io.LimitReader(files, 64))
	isRaised = strings.TrimSpace(string(format)) == "2"
	if err == nil && !isRaised && strings.TrimSpace(string(format)) != "1" {
		return false, errors.New("the backup was made by a newer atm")
	}
	return isRaised, err
}

// Restore restores a backup. It replaces nothing: it skips messages whose id exists, the events of a mailbox that has
// some, and other files that exist. It refuses names that no backup contains, such as "../evil".
func Restore(ctx context.Context, root *teams.Root, from io.Reader) (Restored, error) {
	r := &restorer{ctx: ctx, root: root, tar: tar.NewReader(from), hadLogs: map[wire.Address]bool{}}
	isRaised, err := checkFormat(r.tar)
	if err == nil && isRaised {
		err = root.RaiseFormat()
	}
	if err != nil {
		return r.total, err
	}
	for {
		h, err := r.tar.Next()
		if err == io.EOF {
			return r.total, nil
		}
		if err != nil {
			return r.total, fmt.Errorf("the backup is damaged: %w", err)
		}
		if err := errors.Join(ctx.Err(), r.restoreEntry(h)); err != nil {
			return r.total, fmt.Errorf("restore %s: %w", letter.Escape(h.Name), err)
		}
	}
}

func (r *restorer) restoreEntry(h *tar.Header) error {
	teamName, name, _ := strings.Cut(path.Clean(h.Name), "/")
	first, below, _ := strings.Cut(name, "/")
	isAgent := wire.IsName(first)
	isDir := h.Typeflag == tar.TypeDir && (name == "" || isAgent && below == "" || dirs().MatchString(name))
	isFile := h.Typeflag == tar.TypeReg && files().MatchString(name)
	isSkipped := strings.Contains(name, "/.") || strings.HasPrefix(below, "inbox/tmp/") // as writeTree does
	isOurs := !isSkipped && wire.IsName(teamName) && (isAgent || name == "" || name == config.File || name[0] == '.')
	if !isDir && !isFile || !isOurs {
		if h.Typeflag != tar.TypeDir {
			r.total.Refused = append(r.total.Refused, h.Name)
		}
		return nil
	}
	t, err := r.root.CreateTeam(wire.Name(teamName))
	switch {
	case err != nil || name == "":
		return err
	case isAgent:
		return r.restoreMember(t, t.Box(wire.Name(first)), below)
	case isDir:
		return t.Dir().MkdirAll(name)
	}
	return r.restoreFile(t, name, r.tar)
}

func (r *restorer) restoreMember(t *teams.Team, box *mailbox.Box, below string) error {
	err := box.CheckPresent()
	if errors.Is(err, mailbox.ErrNoAgent) {
		if err = t.Create(r.ctx, box.Agent()); errors.Is(err, mailbox.ErrExists) {
			err = nil // another process was quicker
		}
	}
	if err != nil || below == "" {
		return err
	}
	if m := messages().FindStringSubmatch(below); m != nil && wire.IsID(m[2]) {
		return r.restoreMessage(t, box, m[1], m[2])
	}
	name, from := string(box.Agent())+"/"+below, io.Reader(r.tar)
	if strings.HasPrefix(below, "events/") {
		data, err := io.ReadAll(r.tar)
		seq, err2 := box.Log().LastSeq()
		if err = cmp.Or(err, err2); err != nil {
			return err
		}
		// Files that are equal were left by a restore that did not finish.
		existing, err := t.Dir().ReadFile(name, int64(len(data)))
		hadLog, isKnown := r.hadLogs[box.Address()]
		hadLog = hadLog || !bytes.Equal(existing, data) && (!errors.Is(err, fs.ErrNotExist) || !isKnown && seq > 0)
		r.hadLogs[box.Address()] = hadLog
		if hadLog {
			return nil
		}
		from = bytes.NewReader(data)
	}
	return r.restoreFile(t, name, from)
}

func (r *restorer) restoreMessage(t *teams.Team, box *mailbox.Box, dir, id string) error {
	data, err := io.ReadAll(io.LimitReader(r.tar, wire.MaxFile+1))
	if err != nil {
		return err
	}
	if _, err := wire.Decode(data); err != nil { // the next look at the mailbox moves it to bad, with the reason
		return r.restoreFile(t, fmt.Sprintf("%s/inbox/%s/%s.json", box.Agent(), dir, id), bytes.NewReader(data))
	}
	dir, _, _ = strings.Cut(dir, "/")
	put, err := box.RestoreMessage(r.ctx, dir, data)
	if put {
		r.total.Add(mailbox.Moved{Messages: 1, Bytes: int64(len(data))})
	} else {
		r.total.Skipped++
	}
	return err
}

func (r *restorer) restoreFile(t *teams.Team, name string, from io.Reader) error {
	if exists, err := t.Dir().Exists(name); exists || err != nil {
		return err
	}
	dir := path.Dir(name)
	if err := t.Dir().MkdirAll(dir); err != nil {
		return err
	}
	err := t.Dir().Publish(name, from, true)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return t.Dir().Sync(dir)
}
