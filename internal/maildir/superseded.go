package maildir

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// A superseded mark is an empty file that says that one message replaces another, also after the new one was read:
//
//	inbox/superseded/<old id>/<new id>
//
// It is made before the new message is delivered, or, if another program has put the message into new, when the message
// is read or its runner sees it. A mark is only a hint: it counts if the new message is there, not withdrawn, and from
// the same sender; a dropped file replaces only dropped files.

func (b *Box) supersededMarks(old wire.ID) string { return b.in("inbox/superseded", string(old)) }

// NoteSuperseded durably makes the mark for a message that replaces another.
func (b *Box) NoteSuperseded(m *wire.Message) error {
	if m.Supersedes == "" || b.host != "" {
		return nil
	}
	root, dir := b.store.root, b.supersededMarks(m.Supersedes)
	file := dir + "/" + string(m.ID)
	there, err := root.Exists(file)
	if there || err != nil {
		return err
	}
	for range 2 { // gc may remove an empty directory
		if err = b.mkdir(dir); err == nil {
			err = root.Create(file, nil)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return cmp.Or(root.Sync(dir), root.Sync(path.Dir(dir)))
}

// removeSupersededMarks removes the marks of messages from days before limit that are not in the inbox: they were
// withdrawn, archived or never delivered. The caller holds the reader lock.
func (b *Box) removeSupersededMarks(limit string) {
	for old := range b.marked() {
		p, isThere, err := b.locate(old)
		isKept := isThere && b.isInInbox(p, old) || old.Day() >= limit
		if err != nil || isKept {
			continue
		}
		dir := b.supersededMarks(old)
		for _, id := range b.replacing(old) {
			b.store.root.Remove(dir + "/" + string(id))
		}
		b.store.root.Remove(dir)
	}
}

// marked returns the messages that have marks. If that cannot be read, nothing is superseded.
func (b *Box) marked() map[wire.ID]bool {
	names, _ := b.store.root.Names(b.in("inbox/superseded"))
	marked := map[wire.ID]bool{}
	for _, name := range names {
		if wire.IsID(name) {
			marked[wire.ID(name)] = true
		}
	}
	return marked
}

// replacing returns the messages that, by their marks, replace another.
func (b *Box) replacing(old wire.ID) (ids []wire.ID) {
	names, _ := b.store.root.Names(b.supersededMarks(old))
	for _, name := range names {
		if wire.IsID(name) && wire.ID(name) != old {
			ids = append(ids, wire.ID(name))
		}
	}
	return ids
}

// setSuperseded sets SupersededBy of an item to one of those that replace it, by their marks. It clears its Supersedes if
// that names another sender's message.
func (b *Box) setSuperseded(it *Item, replacing []wire.ID) {
	for _, id := range replacing {
		by, err := b.openAnywhere(id)
		if err == nil && mayReplace(by.Message, it.Message) && by.Supersedes == it.ID && by.State != Withdrawn {
			it.SupersededBy = cmp.Or(it.SupersededBy, id)
		}
	}
	if it.Supersedes == "" {
		return
	}
	if old, err := b.openAnywhere(it.Supersedes); err == nil && !mayReplace(it.Message, old.Message) {
		it.Supersedes = ""
	}
}

func mayReplace(new, old *wire.Message) bool {
	return new.From == old.From && (old.IsDropped() || !new.IsDropped())
}

// Flags returns, for each item that is shown, what replaces it and how many newer messages of the same sender are
// behind it. Both lists are sorted by id. Replacements are looked up in the lists too, since a message that another
// program put into new had no mark when the one that it replaces was opened.
func Flags(shown, behind []*Item) []letter.Flags {
	flags := make([]letter.Flags, len(shown))
	index, newest := map[wire.ID]int{}, map[wire.Address]int{} // into shown; the newest of each sender
	for i, it := range shown {
		flags[i].SupersededBy = it.SupersededBy
		index[it.ID], newest[it.From] = i, i
	}
	for _, it := range slices.Concat(shown, behind) {
		if i, ok := index[it.Supersedes]; ok && mayReplace(it.Message, shown[i].Message) && shown[i] != it {
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
