package maildir

import (
	"cmp"
	"context"
	"slices"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/wire"
)

// withdrawReplaced withdraws the unread message that m, which has just been delivered, replaces. A sender that is killed
// before leaves both, and so does one that is not due before the other. One that is being typed or is leased stays, and so
// does an outbox's, which may be for others too: the other machine withdraws it.
func (b *Box) withdrawReplaced(ctx context.Context, m *wire.Message) {
	if m.Supersedes == "" || b.host != "" {
		return
	}
	if old, err := b.OpenAnywhere(m.Supersedes); err == nil && old.ID != m.ID && old.Lease == nil && mayReplace(m, old.Message) && (b.IsDue(m) || !b.IsDue(old.Message)) {
		b.Withdraw(ctx, old.ID, m.From)
	}
}

// forgetReplaced clears an item's Supersedes if that names another sender's message.
func (b *Box) forgetReplaced(it *wire.Item) {
	if it.Supersedes == "" {
		return
	}
	if old, err := b.OpenAnywhere(it.Supersedes); err == nil && !mayReplace(it.Message, old.Message) {
		it.Supersedes = ""
	}
}

// mayReplace reports whether a message can replace another: both are from one sender, and a dropped file, which says
// itself who it is from, replaces only dropped files.
func mayReplace(new, old *wire.Message) bool {
	return new.From == old.From && (old.IsDropped() || !new.IsDropped())
}

// Flags returns, for each item that is shown, what replaces it and how many newer messages of the same sender are
// behind it. Both lists are sorted by id.
func Flags(shown, behind []*wire.Item) []letter.Flags {
	flags := make([]letter.Flags, len(shown))
	index, newest := map[wire.ID]int{}, map[wire.Address]int{} // into shown; the newest of each sender
	for i, it := range shown {
		index[it.ID], newest[it.From] = i, i
	}
	for _, it := range slices.Concat(shown, behind) {
		if i, ok := index[it.Supersedes]; ok && mayReplace(it.Message, shown[i].Message) && shown[i] != it {
			flags[i].SupersededBy = cmp.Or(flags[i].SupersededBy, it.ID)
		}
	}
	for _, it := range behind {
		if i, ok := newest[it.From]; ok && it.ID > shown[i].ID {
			flags[i].Newer++
		}
	}
	return flags
}
