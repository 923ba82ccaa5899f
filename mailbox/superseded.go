package mailbox

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// What says that it supersedes a message leaves an empty file at its recipient, before it is delivered, or, where
// another program has put it into new, when it is first opened there:
//
//	inbox/superseded/<old id>.<new id>
//
// So the old one is known for what it is when the new one was read long ago. The file is a hint: what counts
// is the new message, if it is there, not withdrawn, and of the same sender.

func (b *Box) superseded(old, new wire.ID) string {
	return b.in("inbox/superseded", string(old)+"."+string(new))
}

// noteSuperseded leaves that file, durably.
func (b *Box) noteSuperseded(m *wire.Message) error {
	if m.Supersedes == "" || b.host != "" {
		return nil
	}
	file := b.superseded(m.Supersedes, m.ID)
	if there, err := b.store.root.Exists(file); there || err != nil {
		return err
	}
	err := b.mkdir(path.Dir(file))
	if err == nil {
		err = b.store.root.Create(file, nil)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return b.store.root.Sync(path.Dir(file))
}

// forgetSuperseded removes these files for messages of days before a limit that are not in the inbox: they
// were withdrawn or archived, or never came. The reader's lock is held.
func (b *Box) forgetSuperseded(limit string) {
	for old, ids := range b.newer() {
		at, there, err := b.locate(old)
		isInInbox := there && slices.Contains([]place{b.unread(), b.owed(), b.done(old)}, at)
		if err != nil || isInInbox || old.Day() >= limit {
			continue
		}
		for _, id := range ids {
			b.store.root.Remove(b.superseded(old, id))
		}
	}
}

// newer are the ids of the messages that say that they supersede others, by the ids of these.
type newer map[wire.ID][]wire.ID

// newer reads the hints. What cannot be read supersedes nothing.
func (b *Box) newer() newer {
	names, _ := b.store.root.Names(b.in("inbox/superseded"))
	all := newer{}
	for _, name := range names {
		old, id, _ := strings.Cut(name, ".")
		if wire.IsID(old) && wire.IsID(id) && old != id {
			all[wire.ID(old)] = append(all[wire.ID(old)], wire.ID(id))
		}
	}
	return all
}

// addNewer says what replaces a message. What it says itself of somebody else's message does not count.
func (b *Box) addNewer(it *Item, all newer) {
	for _, id := range all[it.ID] {
		b.find(id, func(p place) error {
			by, err := b.open(p, id, nil)
			if err == nil && by.From == it.From && by.Supersedes == it.ID && p.state != Withdrawn {
				it.SupersededBy = cmp.Or(it.SupersededBy, id)
			}
			return err
		})
	}
	if it.Supersedes == "" {
		return
	}
	b.find(it.Supersedes, func(p place) error {
		old, err := b.open(p, it.Supersedes, nil)
		if err == nil && old.From != it.From {
			it.Supersedes = ""
		}
		return err
	})
}

// Flags finds what replaces each of the items that are shown, and how many newer ones of the same sender are
// behind them. Both lists are sorted by id. What others have put into new by hand, and is opened first now, is known for
// what it is beside what it replaces.
func Flags(shown, behind []*Item) []letter.Flags {
	flags := make([]letter.Flags, len(shown))
	at, newest := map[wire.ID]int{}, map[wire.Address]int{} // where each is, and the newest of each sender
	for i, it := range shown {
		flags[i].SupersededBy = it.SupersededBy
		at[it.ID], newest[it.From] = i, i
	}
	for _, it := range slices.Concat(shown, behind) {
		if i, ok := at[it.Supersedes]; ok && shown[i].From == it.From && shown[i] != it {
			flags[i].SupersededBy = cmp.Or(shown[i].SupersededBy, it.ID)
		}
	}
	for _, it := range behind {
		if i, ok := newest[it.From]; ok && it.ID > shown[i].ID {
			flags[i].Newer++
		}
	}
	return flags
}
