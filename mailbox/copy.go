package mailbox

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// Entry names a message file of a mailbox, for a backup.
type Entry struct {
	ID    wire.ID
	State State
	Path  string // below the agent's directory, with slashes: inbox/done/2026-01-02/<id>.json
}

// List names every message of the mailbox: new, aside, cur, done, withdrawn and the
// archive, in this order, under the reader's lock, so that none is missed or
// named twice.
func (b *Box) List(ctx context.Context) ([]Entry, error) {
	unlock, err := b.lock(ctx, "reader", lockfile.Exclusive)
	if err != nil && !readOnly(err) {
		return nil, err
	}
	if err == nil {
		defer unlock()
	}
	r, err := b.enter()
	if err != nil {
		return nil, err
	}
	defer r.close()
	days, err := r.days("inbox/done")
	if err != nil {
		return nil, err
	}
	paths := []place{{placeNew, "inbox/new"}, {placeAside, asideDir}, {placeCur, "inbox/cur"}}
	for _, d := range days {
		paths = append(paths, place{placeDone, "inbox/done/" + d})
	}
	paths = append(paths, place{placeWithdrawn, "inbox/withdrawn"})
	if days, err = r.days("archive/done"); err != nil {
		return nil, err
	}
	for _, d := range days {
		paths = append(paths, place{placeArchive, "archive/done/" + d})
	}
	var out []Entry
	for _, p := range paths {
		d, err := r.dir(p.path, false)
		if err != nil {
			return nil, err
		}
		if err := ids(d, func(id wire.ID) {
			out = append(out, Entry{id, stateOf(p.name), strings.Replace(p.path, "archive/", "inbox/", 1) + "/" + string(id) + ".json"})
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Copy reads a message file that List named. One that has moved meanwhile is
// looked for further on, and its entry corrected.
func (b *Box) Copy(e *Entry) ([]byte, error) {
	r, err := b.enter()
	if err != nil {
		return nil, err
	}
	defer r.close()
	name := string(e.ID) + ".json"
	for range 2 {
		for _, p := range placesOf(e.ID) {
			d, err := r.dir(p.path, false)
			if err != nil {
				return nil, err
			}
			if d == nil {
				continue
			}
			data, err := d.ReadFile(name, wire.MaxFile)
			if atomicfile.Absent(err) {
				continue
			}
			if err == nil {
				e.State = stateOf(p.name)
				e.Path = p.path + "/" + name
				if p.name == placeArchive {
					e.Path = "inbox/done/" + e.ID.Day() + "/" + name
				}
			}
			return data, err
		}
	}
	return nil, fmt.Errorf("%s: %w", e.ID, ErrNotFound)
}

// Put puts a message back where a backup found it, durably, unless one of its
// id is anywhere in the mailbox. It reports whether it did.
func (b *Box) Put(ctx context.Context, state State, data []byte) (bool, error) {
	m, err := wire.Decode(data)
	if err != nil {
		return false, err
	}
	at := map[State]place{
		Unread: {placeNew, "inbox/new"}, Aside: {placeAside, asideDir}, Owed: {placeCur, "inbox/cur"},
		Done: {placeDone, "inbox/done/" + m.ID.Day()}, Withdrawn: {placeWithdrawn, "inbox/withdrawn"},
	}[state]
	if at.name == "" {
		return false, fmt.Errorf("a message cannot be put back as %q", state)
	}
	unlock, err := b.lock(ctx, "inbox", lockfile.Exclusive)
	if err != nil {
		return false, err
	}
	defer unlock()
	r, err := b.enter()
	if err != nil {
		return false, err
	}
	defer r.close()
	if _, there, err := r.locate(m.ID); there || err != nil {
		return false, err
	}
	tmp, err := r.dir("inbox/tmp", true)
	if err != nil {
		return false, err
	}
	to, err := r.dir(at.path, true)
	if err != nil {
		return false, err
	}
	d, err := tmp.Draft(fmt.Sprintf("%s.%d", m.ID, os.Getpid()))
	if err != nil {
		return false, err
	}
	defer d.Close()
	if _, err := d.Write(data); err != nil {
		return false, err
	}
	if err := d.Sync(); err != nil {
		return false, err
	}
	// What was read and overdue when the backup was made was told of then.
	if state != Withdrawn && (state != Done || m.DueAt.After(b.store.now())) {
		if err := r.note(m); err != nil {
			return false, err
		}
	}
	if err := d.Link(to, string(m.ID)+".json"); err != nil {
		return false, err
	}
	return true, to.Sync()
}
