package letter

import (
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Flags is what a header says about a message beyond the message's own fields.
type Flags struct {
	SupersededBy wire.ID
	Withdrawn    bool
	Newer        int  // further unread messages of the same sender
	Repeat       bool // handed over before, and perhaps seen

	TimesTaken int          // how often it was given out under a lease
	TakenBy    wire.Address // who has it under a lease now; zero: nobody
	TakenUntil time.Time    // when that lease runs out
}

// FlagsOf finds what replaces each of the messages that are shown, and how many
// newer ones of the same sender are behind them. Both lists are sorted by id.
func FlagsOf(shown, behind []*wire.Message) []Flags {
	type key struct {
		from wire.Address
		id   wire.ID
	}
	replacement := map[key]wire.ID{}
	for _, m := range slices.Concat(shown, behind) {
		if m.ID > m.Supersedes {
			replacement[key{m.From, m.Supersedes}] = m.ID
		}
	}
	flags := make([]Flags, len(shown))
	newest := map[wire.Address]int{} // of each sender, among those shown
	for i, m := range shown {
		flags[i].SupersededBy = replacement[key{m.From, m.ID}]
		newest[m.From] = i
	}
	for _, m := range behind {
		if i, ok := newest[m.From]; ok && m.ID > shown[i].ID {
			flags[i].Newer++
		}
	}
	return flags
}
