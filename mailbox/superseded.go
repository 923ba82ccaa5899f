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

// A superseded mark is an empty file that says that one message replaces another, also after the new one was read:
//
//	inbox/superseded/<old id>.<new id>
//
// It is made before the new message is delivered, or, if another program has put the message into new, when the message
// is read or its runner sees it. A mark is only a hint: it counts if the new message is there, not withdrawn, and from
// the same sender; a dropped file replaces only dropped files.

func (b *Box) supersededMark(old, new wire.ID) string {
	return b.in("inbox/superseded", string(old)+"."+string(new))
}

// NoteSuperseded durably makes the mark for a message that replaces another.
func (b *Box) NoteSuperseded(m *wire.Message) error {
	if m.Supersedes == "" || b.host != "" {
		return nil
	}
	file := b.supersededMark(m.Supersedes, m.ID)
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

// removeSupersededMarks removes the marks of messages from days before limit that are not in the inbox: they were
// withdrawn, archived or never delivered. The caller holds the reader lock.
func (b *Box) removeSupersededMarks(limit string) {
	for old, ids := range b.replacements() {
		p, isThere, err := b.locate(old)
		isKept := isThere && b.isInInbox(p, old) || old.Day() >= limit
		if err != nil || isKept {
			continue
		}
		for _, id := range ids {
			b.store.root.Remove(b.supersededMark(old, id))
		}
	}
}

// replacements maps a message to those that, by their marks, replace it.
type replacements map[wire.ID][]wire.ID

// replacements reads the marks. If that fails, nothing is superseded.
func (b *Box) replacements() replacements {
	names, _ := b.store.root.Names(b.in("inbox/superseded"))
	all := replacements{}
	for _, name := range names {
		old, id, _ := strings.Cut(name, ".")
		if wire.IsID(old) && wire.IsID(id) && old != id {
			all[wire.ID(old)] = append(all[wire.ID(old)], wire.ID(id))
		}
	}
	return all
}

// setSuperseded sets SupersededBy of an item, and clears its Supersedes if that names another sender's message.
func (b *Box) setSuperseded(it *Item, all replacements) {
	for _, id := range all[it.ID] {
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
