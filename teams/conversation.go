package teams

import (
	"slices"

	"github.com/agentteammail/atm/wire"
)

// The server of Codex has the conversations (threads) that its programs show. atm-codex follows one for a member and
// gives it the mail; see package cmd/internal/follow.

// FollowLock is the lock that atm-codex holds for a member.
func FollowLock(name wire.Name) string { return string(name) + ".follow" }

// IsFollowed reports whether a process gives the mail to a member's conversation.
func (t *Team) IsFollowed(name wire.Name) bool {
	held, err := t.Locks().Held(FollowLock(name))
	return held && err == nil
}

// Conversation returns the program that shows a member's conversation. One that has ended shows none.
func (t *Team) Conversation(name wire.Name, session string) (p Program, ok bool) {
	all := t.Programs(name)
	i := slices.IndexFunc(all, func(p Program) bool { return p.Session == session })
	if i < 0 {
		return p, false
	}
	return all[i], true
}
