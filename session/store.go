package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

const (
	sessionsDir = ".sessions"
	extension   = ".json"
)

// ErrNotFound is wrapped by the error for a session that does not exist.
var ErrNotFound = errors.New("no such session")

// AmbiguousError says that a quoted part of an id matches several sessions.
type AmbiguousError struct {
	Fragment string
	IDs      []wire.UUID
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q matches %d sessions", e.Fragment, len(e.IDs))
}

// FileError says that a file with a session's name holds no session, or cannot be read. It is left as it is.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s is not a session: %v; left unchanged", e.Path, e.Err)
}
func (e *FileError) Unwrap() error { return e.Err }

// SessionExistsError says that the agent already has a session that goes on.
type SessionExistsError struct{ Other *Session }

func (e *SessionExistsError) Error() string { return e.Other.AgentID + " already has a session" }

// Store is the sessions of a team.
type Store struct {
	OpenOptions
	mail *maildir.Store
}

// OpenOptions say how a team's sessions are used.
type OpenOptions struct {
	// CheckInput returns why human input to an agent, such as an abort or a verdict on a draft, does not count. Nil: all
	// counts, but a verdict only if it was sent with a command or with package teams.
	CheckInput func(agent wire.Name, m *wire.Message) error

	LockTimeout time.Duration // how long to wait for a lock; 0: five seconds

	// MayAct returns why no dropped file that was just seen may become a message. Nil: each may.
	MayAct func(context.Context) error

	// Appended is called after events were appended to an agent's log, without a lock of it. Nil: nobody wants to know.
	Appended func(ctx context.Context, agent wire.Name, events []wire.Event)
}

// Open opens the sessions of a team by its directory, such as .atm/main. Who may write in it decides what is in them, as
// with package mailbox.
func Open(dir string, o OpenOptions) (*Store, error) {
	if dir == "" {
		return nil, errors.New("open sessions: the directory has no name")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := durable.Open(dir)
	if err != nil {
		return nil, err
	}
	mail := maildir.NewStore(root, wire.Name(filepath.Base(dir)))
	mail.LockTimeout, mail.Appended = o.LockTimeout, o.Appended
	if o.MayAct != nil {
		mail.MayAct = o.MayAct
	}
	return &Store{o, mail}, nil
}

// Close closes the team's directory.
func (st *Store) Close() error { return st.mail.Close() }

// Options describe a new session.
type Options struct {
	Agent   wire.Name
	Goal    wire.UUID // "": NoGoal
	Channel string    // "": DefaultChannel
	Alone   bool      // fail with a *SessionExistsError if the agent has a session that goes on

	runner Binding
}

// DefaultChannel is the channel of a session for which none is named.
const DefaultChannel = "cli:tty0"

// New begins a session. The error is mailbox.ErrNoMailbox if the agent does not exist.
func (st *Store) New(ctx context.Context, o Options) (*Session, error) {
	s := &Session{Notes: Notes{Runner: o.runner}}
	s.SessionID, s.GoalID = wire.UUID(wire.NewID()), cmp.Or(o.Goal, NoGoal)
	s.ChannelID, s.AgentID = cmp.Or(o.Channel, DefaultChannel), string(o.Agent)
	root := st.mail.Dir()
	err := st.Exclusive(ctx, func() (err error) {
		if err := st.box(s).CheckPresent(); err != nil {
			return err
		}
		if o.Alone {
			list, _, err := st.List()
			if err != nil {
				return err
			}
			if i := slices.IndexFunc(list, func(other *Session) bool { return other.isAliveOf(o.Agent) }); i >= 0 {
				return &SessionExistsError{list[i]}
			}
		}
		if err := root.Mkdir(sessionsDir); err != nil {
			return err
		}
		// Read under the lock: later events are the session's.
		if s.Notes.Seq, err = st.box(s).Log().LastSeq(); err != nil {
			return err
		}
		s.State, s.CreatedAt = Active, now()
		s.UpdatedAt = s.CreatedAt
		return errors.Join(st.write(s), root.Sync(".")) // the directory may be new
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// isAliveOf reports whether the session goes on and is the agent's.
func (s *Session) isAliveOf(agent wire.Name) bool {
	return s.AgentID == string(agent) && s.State.Alive()
}

func (st *Store) box(s *Session) *maildir.Box { return st.mail.Box(wire.Name(s.AgentID)) }

func fileOf(id wire.UUID) string { return sessionsDir + "/" + string(id) + extension }

// Get reads a session. The error wraps ErrNotFound, or is a *FileError for a file that holds no session.
func (st *Store) Get(id wire.UUID) (s *Session, err error) {
	data, err := st.mail.Dir().ReadFile(fileOf(id), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("session %s: %w", id, ErrNotFound)
	}
	if err == nil {
		s, err = decode(data)
	}
	if err == nil && s.SessionID != id {
		err = fmt.Errorf("its session_id is %s", s.SessionID)
	}
	if err != nil {
		return nil, &FileError{st.mail.Dir().Join(fileOf(id)), err}
	}
	return s, nil
}

// write replaces the file of a session and syncs it: a power cut may empty an unsynced file.
func (st *Store) write(s *Session) error {
	data, err := s.encode()
	if err == nil {
		_, err = decode(data) // a file that cannot be read back would lose the session
	}
	if err == nil {
		err = st.mail.Dir().Replace(fileOf(s.SessionID), append(data, '\n'), true)
	}
	if err != nil {
		return fmt.Errorf("write session %s: %w", s.SessionID, err)
	}
	return nil
}

// List reads all sessions, the oldest first. bad are the files that hold none.
func (st *Store) List() (list []*Session, bad []*FileError, err error) {
	ids, err := st.ids()
	for _, id := range ids {
		s, err := st.Get(id)
		if err == nil {
			list = append(list, s)
		} else if broken, ok := errors.AsType[*FileError](err); ok { // else it has just been removed
			bad = append(bad, broken)
		}
	}
	slices.SortStableFunc(list, func(a, b *Session) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return list, bad, err
}

// ids lists the ids of the session files, sorted. Other files are ignored.
func (st *Store) ids() (ids []wire.UUID, err error) {
	names, err := st.mail.Dir().Names(sessionsDir)
	for _, name := range names {
		word, isJSON := strings.CutSuffix(name, extension)
		if id, err := wire.ParseUUID(word); isJSON && err == nil && string(id) == word {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// Find returns the session whose id begins or ends with the quoted digits, four or more. The error wraps ErrNotFound,
// or is a *AmbiguousError for several.
func (st *Store) Find(word string) (wire.UUID, error) {
	f, err := wire.ParseFragment(word)
	if err != nil {
		return "", fmt.Errorf("session %q: %w", word, ErrNotFound)
	}
	ids, err := st.ids()
	ids = slices.DeleteFunc(ids, func(id wire.UUID) bool { return !f.Matches(wire.ID(id)) })
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", fmt.Errorf("session %q: %w", word, ErrNotFound)
	case len(ids) > 1:
		return "", &AmbiguousError{word, ids}
	}
	return ids[0], nil
}

// Change reads a session under the team's lock, folds its agent's new events, calls f (nil: nothing) to change it, and
// writes it if it differs. After an error of f nothing is written. Change returns the session as it is on disk now.
func (st *Store) Change(ctx context.Context, id wire.UUID, f func(*Session) error) (s *Session, err error) {
	// The inbox may be large, so it is read before the lock, under which only what has arrived since is opened.
	if s, err = st.Get(id); err != nil {
		return nil, err
	}
	known, err := st.readUnread(ctx, s)
	if err != nil && !errors.Is(err, maildir.ErrNoAgent) {
		return nil, err
	}
	err = st.Exclusive(ctx, func() error {
		if s, err = st.Get(id); err != nil {
			return err
		}
		before, err := s.encode()
		if err == nil {
			err = st.catchUp(ctx, s, known)
		}
		if err == nil && f != nil {
			err = f(s)
		}
		if err != nil {
			return err
		}
		after, err := s.encode()
		if err != nil || string(after) == string(before) {
			return err
		}
		return st.write(s)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Exclusive calls f under the team's lock. f must not call New, Change, Attach or Detach, which take that lock too.
func (st *Store) Exclusive(ctx context.Context, f func() error) error {
	l, err := st.mail.Locks().Lock(ctx, "team", lockfile.Exclusive, cmp.Or(st.mail.LockTimeout, lockfile.DefaultTimeout), nil)
	if err != nil {
		return err
	}
	defer l.Unlock()
	return f()
}
