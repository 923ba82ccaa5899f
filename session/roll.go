package session

import (
	"errors"
	"io/fs"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// Roll is the state of an agent's sessions, looked at again and again: for a
// runner, which must see that people have paused or ended one. A look at what
// has not changed is one system call; only files that changed are read. The zero
// value but Store and Agent is ready. It is not for concurrent use.
type Roll struct {
	Store *Store
	Agent wire.Name

	at    fs.FileInfo // of the directory
	read  time.Time
	files map[wire.UUID]entry
}

// entry is a session's file as it was read.
type entry struct {
	info    fs.FileInfo
	session *Session // nil: another agent's, or none that can be read
}

// settled is how long ago a directory must have changed for its time to tell it
// from how it is now: clocks of file systems tick every some milliseconds.
const settled = 100 * time.Millisecond

// Changed reports whether a look may show something new.
func (r *Roll) Changed() bool {
	info, err := r.Store.Mail.Dir().Lstat(sessionsDir)
	if err != nil {
		return r.at != nil && errors.Is(err, fs.ErrNotExist)
	}
	return r.at == nil || !same(info, r.at) || r.read.Sub(info.ModTime()) < settled
}

func same(a, b fs.FileInfo) bool {
	return atomicfile.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// Look reads what has changed. It returns the agent's sessions, in no order:
// alive ones, and those that it has seen alive. One that cannot be read counts
// as it was before.
func (r *Roll) Look() ([]*Session, error) {
	now := time.Now()
	dir, err := r.Store.Mail.Dir().Walk(sessionsDir)
	if errors.Is(err, fs.ErrNotExist) {
		r.at, r.files = nil, nil
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	at, err := r.Store.Mail.Dir().Lstat(sessionsDir)
	if err != nil {
		return nil, err
	}
	ids, err := idsIn(dir)
	if err != nil {
		return nil, err
	}
	files := make(map[wire.UUID]entry, len(ids))
	var out []*Session
	var errs []error
	for _, id := range ids {
		before, known := r.files[id]
		info, err := dir.Lstat(string(id) + extension)
		if err != nil {
			continue // it is being replaced by somebody who does so by hand, or gone
		}
		e := entry{info: info, session: before.session}
		if !known || !same(info, before.info) {
			s, err := read(dir, id)
			switch {
			case err != nil:
				errs = append(errs, err)
			case s.AgentID != string(r.Agent), !s.State.Alive() && before.session == nil:
				e.session = nil
			default:
				s.Messages, s.kept = nil, nil // nobody here asks for them
				e.session = s
			}
		}
		files[id] = e
		if e.session != nil {
			out = append(out, e.session)
		}
	}
	r.at, r.read, r.files = at, now, files
	return out, errors.Join(errs...)
}

// Waits says why an input is kept from the agent for now, "" when it is not, and
// the session, if there is one, that keeps it since it is paused. mute is whether
// nobody talks to agents in sessions at all. That is the one table for all ways
// by which input gets to an agent unasked: a runner, and hooks. Who reads its mail
// gets it.
func Waits(m *wire.Message, of []*Session, mute bool) (why string, paused wire.UUID) {
	in, ok := InputOf(m)
	switch {
	case !ok || in.Kind == "abort":
		return "", ""
	case mute:
		return "nobody talks to agents in sessions here", ""
	}
	for _, s := range of {
		if !in.For(s.SessionID) {
			continue
		}
		switch s.State {
		case wire.SessionActive:
			return "", ""
		case wire.SessionPaused:
			paused = s.SessionID
		}
	}
	if paused != "" {
		why = "session " + wire.ID(paused).Short(6) + " is paused"
	}
	return why, paused
}
