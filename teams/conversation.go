package teams

import (
	"encoding/json"
	"slices"

	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/wire"
)

// The server of Codex has the conversations (threads) that its terminals show. atm-codex follows one for a member and
// gives it the mail; see package internal/push/codex/follow.

// FollowLock is the lock that atm-codex holds for a member.
func FollowLock(name wire.Name) string { return string(name) + ".follow" }

// IsFollowed reports whether a process gives the mail to a member's conversation.
func (t *Team) IsFollowed(name wire.Name) bool {
	held, err := t.Locks().Held(FollowLock(name))
	return held && err == nil
}

// Bound returns the program that a member's mail is given to; see bound.
func (t *Team) Bound(name wire.Name) (Program, bool) { return t.bound(name) }

// Conversation returns the program that was noted with a member's conversation, running or not.
func (t *Team) Conversation(name wire.Name, session string) (p Program, ok bool) {
	all := t.notedPrograms(name)
	i := slices.IndexFunc(all, func(p Program) bool { return p.Session == session })
	if i < 0 {
		return p, false
	}
	return all[i], true
}

// MoveConversation notes another process, server or ways for a conversation, as after a restart of the server that has
// it.
func (t *Team) MoveConversation(name wire.Name, p Program, server process.Info) error {
	before := p.PID
	p.PID, p.Start = server.PID, server.Start
	data, _ := json.Marshal(p) // as in NoteProgram
	err := t.Dir().Replace(programFile(name, p.PID), append(data, '\n'), false)
	if err == nil && before != p.PID {
		err = t.Dir().Remove(programFile(name, before))
	}
	return err
}

// ForgetConversation undoes NoteProgram when a conversation ends.
func (t *Team) ForgetConversation(name wire.Name, session string) {
	if p, ok := t.Conversation(name, session); ok {
		t.Dir().Remove(programFile(name, p.PID))
	}
}
