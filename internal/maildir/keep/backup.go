package keep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// ListAll lists every message of the mailbox under the reader lock, so that none is missed.
func ListAll(ctx context.Context, b *maildir.Box) (all []wire.ID, err error) {
	list := func() (err error) {
		all, err = b.IDs(maildir.Everywhere)
		return err
	}
	if err = b.Locked(ctx, "reader", list); maildir.IsUnwritable(err) {
		err = list()
	}
	return all, err
}

// ReadRaw reads a message's file wherever it is by now. where is its path below the agent's directory; for an archived
// message the path before it was archived, as in inbox/done/2026-01-02/<id>.json.
func ReadRaw(b *maildir.Box, id wire.ID) (where string, data []byte, err error) {
	err = b.Find(id, func(d maildir.Folder) (err error) {
		if data, err = b.Store().Dir().ReadFile(d.File(id), wire.MaxFile); durable.IsAbsent(err) {
			return maildir.ErrNotFound
		}
		switch d.State {
		case maildir.Done:
			d = b.Done(id)
		case maildir.Unread: // what somebody has now is nobody's in a backup
			d = b.Unread()
		}
		where = strings.TrimPrefix(d.File(id), b.In()+"/")
		return err
	})
	return where, data, err
}

// Restoration is a message of a backup, and what became of it.
type Restoration struct {
	Dir        string // of the inbox: new, cur, done or withdrawn
	Data       []byte // the message's file
	IsRestored bool   // otherwise the mailbox had a message with its id, or there is an error
	Err        error

	id   wire.ID
	dir  string // its directory in the inbox
	temp string // the file that becomes the message, in the inbox
}

// RestoreMessages restores messages durably, as maildir.Deliver delivers: their files are written and synced side by side, and each
// directory once.
func RestoreMessages(ctx context.Context, b *maildir.Box, all []*Restoration) {
	inbox, err := b.OpenInbox()
	if err != nil {
		for _, r := range all {
			r.Err = err
		}
		return
	}
	defer inbox.Close()
	maildir.InParallel(all, func(r *Restoration) {
		if r.Err = ctx.Err(); r.Err == nil { // a batch may take longer than somebody waits after Ctrl-C
			r.Err = r.write(b, inbox)
		}
	})
	moved := map[string][]*Restoration{} // by directory
	unlock, lockErr := inbox.Lock(ctx, lockfile.Exclusive)
	if lockErr == nil {
		present := findPresent(b, all)
		for _, r := range all {
			if r.Err = cmp.Or(r.Err, ctx.Err()); r.Err == nil && r.temp != "" && !present[r.id] {
				r.Err = moveRestored(b, inbox, r, moved[r.dir] == nil)
				present[r.id] = true
			}
			if r.IsRestored {
				moved[r.dir] = append(moved[r.dir], r)
			}
		}
		unlock()
	}
	for dir, those := range moved {
		err := inbox.Sync(dir)
		for _, r := range those {
			r.Err = err
		}
	}
	for _, r := range all {
		r.Err = cmp.Or(r.Err, lockErr)
		if r.temp != "" && !r.IsRestored {
			inbox.Remove(r.temp)
		}
	}
}

// write finds out where the message belongs, and writes it to tmp unless it is there.
func (r *Restoration) write(b *maildir.Box, inbox *maildir.Inbox) error {
	m, err := wire.Decode(r.Data)
	if err != nil {
		return err
	}
	if r.id, r.dir = m.ID, r.Dir; r.Dir == "done" {
		r.dir += "/" + m.ID.Day()
	} else if r.Dir == "new" {
		r.dir = b.PlaceFor(m)
	} else if !slices.Contains([]string{"cur", "withdrawn"}, r.Dir) {
		return fmt.Errorf("a message cannot be restored into %q", r.Dir)
	}
	isThere, err := inbox.Exists(r.dir + "/" + maildir.FileName(r.id))
	if err != nil || isThere {
		return err
	}
	r.temp = "tmp/" + string(r.id) + "." + string(wire.NewID())
	return inbox.Create(r.temp, r.Data)
}

// findPresent returns which of the messages the mailbox has, wherever. The inbox lock is held. It opens each directory
// once, since a path below the team costs system calls for each element.
func findPresent(b *maildir.Box, all []*Restoration) map[wire.ID]bool {
	present, at := map[wire.ID]bool{}, map[string][]*Restoration{}
	for _, r := range all {
		if r.Err == nil && r.temp != "" {
			folders, err := b.FoldersOf(r.id)
			r.Err = err
			for _, p := range folders {
				at[p.Dir] = append(at[p.Dir], r)
			}
		}
	}
	for dir, those := range at {
		sub, err := b.Store().Dir().Sub(dir)
		if durable.IsAbsent(err) || errors.Is(err, durable.ErrNotDirectory) {
			continue
		}
		for _, r := range those {
			isThere, failed := false, err
			if err == nil {
				isThere, failed = sub.Exists(maildir.FileName(r.id))
			}
			present[r.id] = present[r.id] || isThere
			r.Err = cmp.Or(r.Err, failed)
		}
		if err == nil {
			sub.Close()
		}
	}
	return present
}

// moveRestored moves a message to its place. The inbox lock is held.
func moveRestored(b *maildir.Box, inbox *maildir.Inbox, r *Restoration, isFirst bool) (err error) {
	if isFirst {
		err = b.Mkdir(b.In("inbox", r.dir))
	}
	if err == nil {
		err = inbox.Move(r.temp, r.dir+"/"+maildir.FileName(r.id))
	}
	r.IsRestored = err == nil
	return err
}
