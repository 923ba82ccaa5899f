package session

import (
	"bytes"
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
	"github.com/agentteammail/atm/wire/foreign"
)

const (
	sessionsDir = ".sessions"
	archiveDir  = ".archive/sessions" // of those that are over
	extension   = ".json"

	// maxFile is the longest file that is read: atm once kept up to a MiB of messages in it.
	maxFile = 16 << 20
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

	isOwned bool
}

// DefaultChannel is the channel of a session for which none is named.
const DefaultChannel = "cli:tty0"

// New begins a session. The error is mailbox.ErrNoMailbox if the agent does not exist.
func (st *Store) New(ctx context.Context, o Options) (s *Session, err error) {
	root := st.mail.Dir()
	err = st.locked(ctx, func() (err error) {
		if err := st.mail.Box(o.Agent).CheckPresent(); err != nil {
			return err
		}
		others, err := st.Of(o.Agent)
		switch {
		case o.Alone && err != nil:
			return err
		case o.Alone && len(others) > 0:
			return &SessionExistsError{others[0]}
		}
		// Read under the lock: later events are the session's.
		after, err := st.mail.Box(o.Agent).Log().LastSeq()
		if err := cmp.Or(err, root.Mkdir(sessionsDir)); err != nil {
			return err
		}
		s = &Session{Notes: Notes{Owned: o.isOwned, After: after}}
		s.SessionID, s.GoalID = wire.UUID(wire.NewID()), cmp.Or(o.Goal, NoGoal)
		s.ChannelID, s.AgentID = cmp.Or(o.Channel, DefaultChannel), string(o.Agent)
		s.State, s.CreatedAt = Active, now()
		s.UpdatedAt = s.CreatedAt
		return errors.Join(st.write(s, nil), root.Sync(".")) // the directory may be new
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (st *Store) box(s *Session) *maildir.Box { return st.mail.Box(wire.Name(s.AgentID)) }

func fileIn(dir string, id wire.UUID) string { return dir + "/" + string(id) + extension }

// Get reads a session, also one that is over. The error wraps ErrNotFound, or is a *FileError for a file that holds no
// session.
func (st *Store) Get(id wire.UUID) (*Session, error) {
	s, _, err := st.get(id)
	return s, err
}

// get is Get with the file's content.
func (st *Store) get(id wire.UUID) (s *Session, data []byte, err error) {
	for _, dir := range []string{sessionsDir, archiveDir} {
		s, data, err = st.read(dir, id)
		if !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return s, data, err
}

func (st *Store) read(dir string, id wire.UUID) (*Session, []byte, error) {
	data, err := st.mail.Dir().ReadFile(fileIn(dir, id), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("session %s: %w", id, ErrNotFound)
	}
	s := &Session{}
	if err == nil {
		err = s.UnmarshalJSON(data)
	}
	if err == nil && s.SessionID != id {
		err = fmt.Errorf("its session_id is %s", s.SessionID)
	}
	if err == nil && !wire.IsName(s.AgentID) {
		err = fmt.Errorf("its agent_id %q is not a name", s.AgentID)
	}
	if err != nil {
		return nil, nil, &FileError{st.mail.Dir().Join(fileIn(dir, id)), err}
	}
	return s, data, nil
}

// write replaces the file of a session unless it has this content, and syncs it: a power cut may empty an unsynced file.
func (st *Store) write(s *Session, before []byte) error {
	said := s.Messages
	s.Messages = nil // they are in the log and in the inbox
	data, err := wire.Marshal(s)
	s.Messages = said
	if data = append(data, '\n'); err == nil && !bytes.Equal(data, before) {
		err = st.mail.Dir().Replace(fileIn(sessionsDir, s.SessionID), data, true)
	}
	if err == nil && !s.State.Alive() {
		err = st.archive(s.SessionID)
	}
	if err != nil {
		return fmt.Errorf("write session %s: %w", s.SessionID, err)
	}
	return nil
}

// archive moves the file of a session that is over, which changes no more.
func (st *Store) archive(id wire.UUID) error {
	root := st.mail.Dir()
	if err := root.MkdirAll(archiveDir); err != nil {
		return err
	}
	return root.MoveOver(fileIn(sessionsDir, id), fileIn(archiveDir, id))
}

// List reads the sessions that go on, the oldest first. bad are the files that hold none.
func (st *Store) List() (list []*Session, bad []*FileError, err error) {
	list, bad, err = st.list(sessionsDir)
	return slices.DeleteFunc(list, func(s *Session) bool { return !s.State.Alive() }), bad, err
}

// Ended reads the sessions that are over, the oldest first. bad are the files that hold none.
func (st *Store) Ended() (list []*Session, bad []*FileError, err error) {
	late, _, err := st.list(sessionsDir) // not archived yet
	list, bad, archiveErr := st.list(archiveDir)
	list = append(slices.DeleteFunc(late, func(s *Session) bool { return s.State.Alive() }), list...)
	return list, bad, errors.Join(err, archiveErr)
}

// CountEnded counts the sessions that are over, and opens none.
func (st *Store) CountEnded() int {
	ids, _ := st.ids(archiveDir)
	return len(ids)
}

// Of lists the sessions of an agent that go on, the oldest first. What cannot be read holds up nobody.
func (st *Store) Of(agent wire.Name) ([]*Session, error) {
	list, _, err := st.List()
	return slices.DeleteFunc(list, func(s *Session) bool { return s.AgentID != string(agent) }), err
}

func (st *Store) list(dir string) (list []*Session, bad []*FileError, err error) {
	ids, err := st.ids(dir)
	for _, id := range ids {
		s, _, err := st.read(dir, id)
		if err == nil {
			list = append(list, s)
		} else if broken, ok := errors.AsType[*FileError](err); ok { // else it has just been archived
			bad = append(bad, broken)
		}
	}
	slices.SortStableFunc(list, func(a, b *Session) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return list, bad, err
}

// ids lists the ids of the session files in a directory, sorted. Other files are ignored.
func (st *Store) ids(dir string) (ids []wire.UUID, err error) {
	names, err := st.mail.Dir().Names(dir)
	for _, name := range names {
		word, isJSON := strings.CutSuffix(name, extension)
		if id, err := wire.ParseUUID(word); isJSON && err == nil && string(id) == word {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// Find returns the session whose id begins or ends with the quoted digits, four or more: one that goes on, else one that
// is over. The error wraps ErrNotFound, or is a *AmbiguousError for several.
func (st *Store) Find(word string) (wire.UUID, error) {
	f, err := wire.ParseFragment(word)
	if err != nil {
		return "", fmt.Errorf("session %q: %w", word, ErrNotFound)
	}
	for _, dir := range []string{sessionsDir, archiveDir} {
		ids, err := st.ids(dir)
		ids = slices.DeleteFunc(ids, func(id wire.UUID) bool { return !f.Matches(wire.ID(id)) })
		switch {
		case err != nil:
			return "", err
		case len(ids) == 1:
			return ids[0], nil
		case len(ids) > 1:
			return "", &AmbiguousError{word, ids}
		}
	}
	return "", fmt.Errorf("session %q: %w", word, ErrNotFound)
}

// Change reads a session under the team's lock, calls f to change it, and writes it if it differs. After an error of f
// nothing is written. Change returns the session as it is on disk now. f must not read what grows, nor change another
// session.
func (st *Store) Change(ctx context.Context, id wire.UUID, f func(*Session) error) (s *Session, err error) {
	var moves []Move
	err = st.locked(ctx, func() error {
		found, before, err := st.get(id)
		if err != nil {
			return err
		}
		s = found
		wasAlive, had := s.State.Alive(), len(s.Notes.Moves)
		if err = f(s); err != nil || !wasAlive { // one that is over stays as it is
			return err
		}
		moves = s.Notes.Moves[had:]
		return st.write(s, before)
	})
	if err == nil {
		err = st.announce(ctx, s, moves)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// announce emits how a session's state changed, for who follows its channel. Its log has that from the session.
func (st *Store) announce(ctx context.Context, s *Session, moves []Move) error {
	for _, m := range moves {
		events, err := Events(s.SessionID, foreign.SessionEvent{Kind: wire.StatusUpdate, Message: m.String()})
		if err == nil {
			err = st.box(s).Log().Append(ctx, events[0].With(fieldMove, string(m.To)))
		}
		if err != nil && !errors.Is(err, maildir.ErrNoMailbox) { // a retired agent's session can be aborted
			return fmt.Errorf("session %s is %s, but its channel does not say so: %w", s.SessionID, s.State, err)
		}
	}
	return nil
}

// ArchiveEnded archives the sessions that are over and still lie beside the others, as an older atm leaves them: each look reads
// those.
func (st *Store) ArchiveEnded(ctx context.Context) error {
	return st.locked(ctx, func() error { return nil })
}

// locked calls f under the team's lock. It archives what is over and still lies beside the others: an older atm left it
// there, or one that was killed.
func (st *Store) locked(ctx context.Context, f func() error) error {
	beside, _, _ := st.list(sessionsDir)
	unlock, err := st.mail.Lock(ctx, "team", lockfile.Exclusive, nil)
	if err != nil {
		return err
	}
	defer unlock()
	for _, s := range beside {
		if !s.State.Alive() {
			st.archive(s.SessionID) // else the next change does
		}
	}
	return f()
}
