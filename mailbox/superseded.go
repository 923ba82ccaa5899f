package mailbox

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// What says that it supersedes a message leaves an empty file at its recipient, before it is delivered:
//
//	inbox/superseded/<old id>.<new id>
//
// So the old one is known for what it is when the new one was read long ago. The file is a hint: what counts
// is the new message, if it is there, not withdrawn, and of the same sender.

// noteSuperseded leaves that file, durably.
func (b *Box) noteSuperseded(m *wire.Message) error {
	if m.Supersedes == "" || b.host != "" {
		return nil
	}
	file := b.in("inbox/superseded", string(m.Supersedes)+"."+string(m.ID))
	err := b.mkdir(path.Dir(file))
	if err == nil {
		err = b.store.root.Create(file, nil)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return b.store.root.Sync(path.Dir(file))
}

// newer are the ids of the messages that say that they supersede others, by the ids of these.
type newer map[wire.ID][]wire.ID

// newer reads the hints. What cannot be read supersedes nothing.
func (b *Box) newer() newer {
	names, _ := b.store.root.Names(b.in("inbox/superseded"))
	all := newer{}
	for _, name := range names {
		old, id, _ := strings.Cut(name, ".")
		if wire.IsID(old) && wire.IsID(id) && old < id {
			all[wire.ID(old)] = append(all[wire.ID(old)], wire.ID(id))
		}
	}
	return all
}

// addNewer says of a message what supersedes it.
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
}
