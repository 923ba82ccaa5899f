package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

const (
	sessionsDir = ".sessions"
	extension   = ".json"
	sweepAfter  = time.Hour // what a change that was killed has left
)

// ErrNotFound is wrapped by the error for a session that is not there.
var ErrNotFound = errors.New("no such session")

// ManyError says that what people quote of an id means several sessions.
type ManyError struct {
	Fragment string
	IDs      []wire.UUID
}

func (e *ManyError) Error() string {
	return fmt.Sprintf("%q fits %d sessions", e.Fragment, len(e.IDs))
}

// Store is the sessions of a team.
type Store struct {
	Mail *mailbox.Store // the team's
}

// Options say what a new session is about.
type Options struct {
	Agent   wire.Name
	Goal    wire.UUID // "": NoGoal
	Channel string    // "": DefaultChannel
	ID      wire.UUID // "": one is made

	run tenure
}

// DefaultChannel is the channel of a session for which none is named.
const DefaultChannel = "cli:tty0"

// New begins a session. Its agent must be there, else mailbox.ErrNoAgent; a
// given id that is taken is mailbox.ErrExists.
func (st *Store) New(ctx context.Context, o Options) (*Session, error) {
	box := st.Mail.Box(o.Agent)
	if err := box.Present(); err != nil {
		return nil, err
	}
	s := &Session{}
	s.SessionID, s.GoalID, s.ChannelID, s.AgentID = o.ID, o.Goal, o.Channel, string(o.Agent)
	if s.SessionID == "" {
		s.SessionID = wire.UUID(wire.NewID())
	}
	if s.GoalID == "" {
		s.GoalID = NoGoal
	}
	if s.ChannelID == "" {
		s.ChannelID = DefaultChannel
	}
	// What cannot be read back is not written.
	for _, id := range []wire.UUID{s.SessionID, s.GoalID} {
		if canonical, err := wire.ParseUUID(string(id)); err != nil || canonical != id {
			return nil, &wire.SessionError{Reason: fmt.Sprintf("%q is no UUID in lower case with hyphens", id)}
		}
	}
	s.ChannelID = strings.ToValidUTF8(s.ChannelID, "\uFFFD")
	unlock, err := st.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := box.Present(); err != nil {
		return nil, err
	}
	dir, err := st.Mail.Dir().Make(sessionsDir)
	if err != nil {
		return nil, fmt.Errorf("begin a session: %w", err)
	}
	defer dir.Close()
	sweep(dir)
	name := string(s.SessionID) + extension
	if has, err := dir.Has(name); err != nil {
		return nil, err
	} else if has {
		return nil, fmt.Errorf("session %s: %w", s.SessionID, mailbox.ErrExists)
	}
	// After the lock: what comes from now on is the session's.
	if s.seq, err = box.LastSeq(); err != nil {
		return nil, err
	}
	s.State, s.run = wire.SessionActive, o.run
	s.CreatedAt = time.Now().UTC().Round(0)
	s.UpdatedAt = s.CreatedAt
	if err := dir.Replace(name, append(s.Encode(), '\n'), true); err != nil {
		return nil, err
	}
	// The directory itself may be new.
	return s, st.Mail.Dir().Sync()
}

// Get reads a session: ErrNotFound when there is none, a *FileError when what
// lies there is none.
func (st *Store) Get(id wire.UUID) (*Session, error) {
	dir, err := st.Mail.Dir().Walk(sessionsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("session %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return read(dir, id)
}

func read(dir *atomicfile.Dir, id wire.UUID) (*Session, error) {
	if canonical, err := wire.ParseUUID(string(id)); err != nil || canonical != id {
		return nil, fmt.Errorf("session %q: %w", id, ErrNotFound)
	}
	name := string(id) + extension
	data, err := dir.ReadFile(name, MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("session %s: %w", id, ErrNotFound)
	case errors.Is(err, atomicfile.ErrTooLarge), errors.Is(err, atomicfile.ErrNotRegular):
		return nil, &FileError{dir.Path() + "/" + name, bare(err)}
	case err != nil:
		return nil, err
	}
	s, err := Decode(data)
	if err == nil && s.SessionID != id {
		err = fmt.Errorf("its session_id is %s", s.SessionID)
	}
	if err == nil && !wire.IsName(s.AgentID) {
		err = fmt.Errorf("its agent_id %q is no agent's name", s.AgentID)
	}
	if err != nil {
		return nil, &FileError{dir.Path() + "/" + name, err}
	}
	return s, nil
}

func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// List reads all sessions, the oldest first. Files that are none hide no other:
// they are in bad.
func (st *Store) List() (list []*Session, bad []*FileError, err error) {
	dir, err := st.Mail.Dir().Walk(sessionsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	ids, err := idsIn(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		s, err := read(dir, id)
		var file *FileError
		switch {
		case errors.As(err, &file):
			bad = append(bad, file)
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return nil, bad, err
		default:
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b *Session) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return list, bad, nil
}

// idsIn are the names of sessions in the directory, sorted. Other names are
// nobody's business here.
func idsIn(dir *atomicfile.Dir) (ids []wire.UUID, err error) {
	err = dir.Names(func(names []string) bool {
		for _, n := range names {
			stem, ok := strings.CutSuffix(n, extension)
			if id, err := wire.ParseUUID(stem); ok && err == nil && string(id) == stem {
				ids = append(ids, id)
			}
		}
		return true
	})
	slices.Sort(ids)
	return ids, err
}

// Find is the id of the session that people mean by a full id, or by four or
// more digits of its beginning or end. ErrNotFound for none, a *ManyError for
// several.
func (st *Store) Find(word string) (wire.UUID, error) {
	if id, err := wire.ParseUUID(strings.ToLower(strings.TrimSpace(word))); err == nil {
		_, err := st.Get(id)
		return id, err
	}
	f, err := wire.ParseFragment(word)
	if err != nil {
		return "", fmt.Errorf("session %q: %w", word, ErrNotFound)
	}
	dir, err := st.Mail.Dir().Walk(sessionsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("session %s: %w", word, ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	defer dir.Close()
	ids, err := idsIn(dir)
	if err != nil {
		return "", err
	}
	ids = slices.DeleteFunc(ids, func(id wire.UUID) bool { return !f.Matches(wire.ID(id)) })
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("session %s: %w", word, ErrNotFound)
	case 1:
		return ids[0], nil
	}
	return "", &ManyError{word, ids}
}

// Change reads a session under the team's lock, takes in what its agent's
// events say since, has f change it, and writes it durably if anything is new;
// not if f returned an error, which leaves all as it was and is returned. A nil f
// is for the events alone. The Session that comes back is the one that lies on
// disk now.
//
// (Durably in any case: of a file that was replaced and not synced, a power cut
// may leave nothing, and the session would be lost.)
func (st *Store) Change(ctx context.Context, id wire.UUID, f func(*Session) error) (*Session, error) {
	unlock, err := st.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	dir, err := st.Mail.Dir().Walk(sessionsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("session %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	s, err := read(dir, id)
	if err != nil {
		return nil, err
	}
	before := s.Encode()
	if s.State.Alive() {
		if err := s.CatchUp(ctx, st.Mail.Box(wire.Name(s.AgentID))); err != nil {
			return nil, err
		}
	}
	if f != nil {
		if err := f(s); err != nil {
			return nil, err
		}
	}
	after := s.Encode()
	if string(after) == string(before) {
		return s, nil
	}
	// What cannot be read back would be lost to everybody.
	if _, err := Decode(after); err != nil {
		return nil, fmt.Errorf("session %s cannot be written: %w", id, err)
	}
	return s, dir.Replace(string(id)+extension, append(after, '\n'), true)
}

// Look is the session as it would be after Change, without writing anything: for
// a disk that is full or read-only, and for who only looks.
func (st *Store) Look(ctx context.Context, id wire.UUID) (*Session, error) {
	s, err := st.Get(id)
	if err != nil || !s.State.Alive() {
		return s, err
	}
	return s, s.CatchUp(ctx, st.Mail.Box(wire.Name(s.AgentID)))
}

// Exclusive calls f under the team's lock, which no other method here may then
// be asked for.
func (st *Store) Exclusive(ctx context.Context, f func() error) error {
	unlock, err := st.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return f()
}

// lock takes the team's lock.
func (st *Store) lock(ctx context.Context) (unlock func(), err error) {
	locks, err := lockfile.Open(st.Mail.Dir(), st.Mail.Dir().Path())
	if err != nil {
		return nil, err
	}
	wait := st.Mail.LockTimeout
	if wait <= 0 {
		wait = mailbox.DefaultLockTimeout
	}
	l, err := locks.Lock(ctx, "team", lockfile.Exclusive, wait, nil)
	if err != nil {
		locks.Close()
		return nil, err
	}
	return func() { l.Unlock(); locks.Close() }, nil
}

// sweep removes what changes that were killed have left under dot names.
func sweep(dir *atomicfile.Dir) {
	var old []string
	dir.Names(func(names []string) bool {
		for _, n := range names {
			info, err := dir.Lstat(n)
			if strings.HasPrefix(n, ".") && err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > sweepAfter {
				old = append(old, n)
			}
		}
		return true
	})
	for _, n := range old {
		if err := dir.Remove(n); errors.Is(err, os.ErrPermission) {
			return
		}
	}
}
