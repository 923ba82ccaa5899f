package programs

import (
	"context"
	"net"
	"slices"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/wire"
)

// A server that programs share has the conversations (threads) that these show. A follower, which is a process, follows one
// for a member and gives it the mail; see package cmd/internal/follow.

// FollowLock is the lock that a follower holds for a member.
func FollowLock(name wire.Name) string { return string(name) + ".follow" }

// IsFollowed reports whether a process gives the mail to a member's conversation.
func IsFollowed(t *teamdir.Team, name wire.Name) bool {
	held, err := t.Locks().Held(FollowLock(name))
	return held && err == nil
}

// Follow starts a follower for a conversation that the shared server has, unless one gives it the mail already.
func Follow(t *teamdir.Team, name wire.Name, p Program) error {
	if t.Root().StartFollower == nil || slices.Contains(p.Opens, agents.ServerQueue) && IsFollowed(t, name) {
		return nil
	}
	return t.Root().StartFollower(t, name, p.Session, p.PID)
}

// FollowAgain is Follow, for a sender, if the process was killed that gave a program its mail. It returns the program with
// the way that is open then. A sender in a sandbox does not reach the server, and starts nothing that would not either.
func FollowAgain(ctx context.Context, t *teamdir.Team, name wire.Name, p Program) Program {
	if p.Server == "" || IsFollowed(t, name) || t.Root().StartFollower == nil {
		return p
	}
	socket, err := p.ServerSocket()
	if err == nil {
		var conn net.Conn
		lockfile.Waits("dial " + socket)
		if conn, err = (&net.Dialer{}).DialContext(ctx, "unix", socket); err == nil {
			conn.Close()
			err = t.Root().StartFollower(t, name, p.Session, p.PID)
		}
	}
	if err == nil && p.Shut == notFollowed { // else it had no way before it ended
		p.Opens = append(p.Opens, agents.ServerQueue)
	}
	return p
}

// NoteServer notes the server that gives a program's conversation its mail, or in a line why it does not. It notes nothing
// of a conversation that the program shows no more.
func NoteServer(t *teamdir.Team, name wire.Name, p Program, socket, shut string) error {
	lock, err := lockNotes(t, name)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	p, isShown := Conversation(t, name, p.Session)
	var opens []string
	if shut == "" {
		opens = []string{agents.ServerQueue}
	}
	shut = letter.OneLine(shut, maxShut)
	if !isShown || p.Server == socket && p.Shut == shut && slices.Equal(p.Opens, opens) {
		return nil
	}
	p.Server, p.Shut, p.Opens = socket, shut, opens
	return saveProgram(t, name, p)
}

// Conversation returns the program that shows a member's conversation. One that has ended shows none.
func Conversation(t *teamdir.Team, name wire.Name, session string) (p Program, ok bool) {
	all := RunningPrograms(t, name)
	i := slices.IndexFunc(all, func(p Program) bool { return p.Session == session })
	if i < 0 {
		return p, false
	}
	return all[i], true
}

// Bound returns the program that a member's mail is given to: of those that people sit before the one that was used last.
// A member that atm runs has none, since its runner gives it the mail.
func Bound(t *teamdir.Team, name wire.Name) (p Program, ok bool) {
	programs := slices.DeleteFunc(Of(t, name), func(p Program) bool { return !p.IsAttended() || p.Session == "" })
	if len(programs) == 0 {
		return p, false
	}
	if running, err := t.Running(name); running || err != nil {
		return p, false
	}
	p = slices.MaxFunc(programs, func(a, b Program) int { return a.At.Compare(b.At) })
	if slices.Contains(p.Opens, agents.ServerQueue) && !IsFollowed(t, name) { // who gave the mail to it is gone
		p.Opens = slices.DeleteFunc(p.Opens, func(by string) bool { return by == agents.ServerQueue })
		p.Shut = notFollowed
	}
	return p, true
}

// notFollowed is why there is no way to a conversation whose follower was killed.
const notFollowed = "the process that gave it the mail has ended; the next message or turn starts one"
