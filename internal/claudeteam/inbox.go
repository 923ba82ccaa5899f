package claudeteam

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

type entry struct {
	Type      string `json:"type"`
	From      string `json:"from"`
	Text      string `json:"text"`
	Timestamp string `json:"timestamp"`
	Summary   string `json:"summary"`
	MsgV      any    `json:"msgV"`
	MsgID     string `json:"msg_id"`
	Read      bool   `json:"read"`

	raw json.RawMessage
	bad error // why it is not understood
}

// decodeInbox takes an inbox file apart. It is empty for the moment between its making and its writing.
func decodeInbox(data []byte) (list []entry, err error) {
	var raws []json.RawMessage
	if len(bytes.TrimSpace(data)) > 0 {
		if err = wire.Unmarshal(data, &raws); err == nil && raws == nil {
			err = errors.New("null is no list")
		}
	}
	for _, raw := range raws {
		list = append(list, decodeEntry(raw))
	}
	return list, err
}

func decodeEntry(raw json.RawMessage) entry {
	e := entry{Type: "message"}
	err := wire.Unmarshal(raw, &e)
	e.raw = raw // now: a null has made it all empty
	switch {
	case err != nil:
		e.bad = err
	case e.From == "" || e.Text == "" || e.Timestamp == "":
		e.bad = errors.New("from, text or timestamp is missing or empty")
	case e.Type != "message":
		e.bad = fmt.Errorf("its type is %q", e.Type)
	case e.at().IsZero():
		e.bad = fmt.Errorf("its timestamp is %q", e.Timestamp)
	}
	return e
}

// encodeInbox writes entries as Claude Code does. Each keeps its fields as they were written.
func encodeInbox(list []entry) ([]byte, error) {
	raws := make([][]byte, len(list))
	for i, e := range list {
		raws[i] = e.raw
	}
	return indented(append(append([]byte{'['}, bytes.Join(raws, []byte{','})...), ']'))
}

func indented(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	err := json.Indent(&out, raw, "", "  ")
	return out.Bytes(), err
}

const milliseconds = "2006-01-02T15:04:05.000Z"

// at is when the entry was written; the zero time where that is not said.
func (e *entry) at() time.Time {
	t, err := time.Parse(time.RFC3339Nano, e.Timestamp)
	if year := t.UTC().Year(); err != nil || year < 1970 || year > 9999 {
		return time.Time{}
	}
	return t.UTC()
}

// idOf is the id of an entry as a message in a mailbox: the same entry always has the same.
func (s *Sync) idOf(e *entry, box *mailbox.Box) wire.ID {
	ms := e.at().UnixMilli()
	begun := wire.ID(fmt.Sprintf("%08x-%04x-7000-8000-000000000000", ms>>16, ms&0xffff))
	content := strings.Join([]string{"claude", filepath.Base(s.Dir), e.From, e.Timestamp, e.Text, e.MsgID}, "\x00")
	return wire.Derive(content, begun, box.Address())
}

// control is what Claude Code's program, and not its model, says to another: JSON within the text.
func control(text string) (o wire.Object) {
	o, _ = wire.ReadObject([]byte(trim(text)))
	return o
}

// trim trims as JavaScript does, and a little more.
func trim(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
}

// staleAfter is how old the lock of a process that was killed is when others break it. Tests shorten it.
var staleAfter = 10 * time.Second

// A fileLock is one as proper-lockfile takes it: a directory, which its owner knows again by its time. It is held for
// one rewrite and not refreshed: after half of staleAfter nothing is written any more.
type fileLock struct {
	path string
	made time.Time
}

// lock waits for the lock of a file. The error of a wait that is over is a *lockfile.HeldError.
func lock(ctx context.Context, file string, timeout time.Duration) (*fileLock, error) {
	path := file + ".lock"
	for end := time.Now().Add(timeout); ; {
		mkdirErr := os.Mkdir(path, 0o755)
		info, err := os.Lstat(path)
		switch {
		case mkdirErr == nil && err == nil:
			return &fileLock{path, info.ModTime()}, nil
		case mkdirErr != nil && !errors.Is(mkdirErr, fs.ErrExist):
			return nil, mkdirErr
		case err == nil && !info.IsDir():
			return nil, fmt.Errorf("%s is a file, where Claude Code makes a directory: remove it", path)
		case err == nil && time.Since(info.ModTime()) > staleAfter:
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("break a lock that was left: %w", err)
			}
		case time.Now().After(end):
			return nil, &lockfile.HeldError{Lock: path}
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// isHeld reports whether it is still ours, and younger than that.
func (l *fileLock) isHeld(age time.Duration) bool {
	now, err := os.Lstat(l.path)
	return err == nil && now.ModTime().Equal(l.made) && time.Since(l.made) < age
}

func (l *fileLock) release() {
	if l.isHeld(staleAfter) {
		os.Remove(l.path)
	}
}

// rewrite replaces a file of theirs under its lock by what change makes of it, durably; nil: it is left.
func (s *Sync) rewrite(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	file, dir := s.root.Join(name), path.Dir(name)
	held, err := lock(ctx, file, s.Team.LockTimeout)
	if err != nil {
		return err
	}
	defer held.release()
	info, err := s.root.Lstat(name)
	if err != nil {
		return err
	}
	old, err := s.root.ReadFile(name, maxFile)
	if err != nil {
		return err
	}
	data, err := change(old)
	if err != nil || data == nil { // what is there already may not be synced: its writer was killed
		return errors.Join(err, s.root.Sync(dir))
	}
	temp := path.Join(dir, tempPrefix+rand.Text())
	defer s.root.Remove(temp)
	if err := s.create(temp, data, info.Mode().Perm()); err != nil {
		return err
	}
	// Some of their writers take no lock; and while this process was stopped, another may have broken it.
	if now, err := s.root.ReadFile(name, maxFile); err != nil || !bytes.Equal(old, now) || !held.isHeld(staleAfter/2) {
		return cmp.Or(err, fmt.Errorf("%s was changed by others meanwhile, and is left for the next time", file))
	}
	return cmp.Or(os.Rename(s.root.Join(temp), file), s.root.Sync(dir))
}

// create makes a file with rights of its own.
func (s *Sync) create(name string, data []byte, mode fs.FileMode) error {
	err := s.root.Create(name, data)
	if err == nil {
		err = os.Chmod(s.root.Join(name), mode)
	}
	return err
}
