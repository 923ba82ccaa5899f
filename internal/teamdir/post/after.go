package post

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// Mail that waits for other mail (send --after) lies among the mail to be sent later. Whoever finds it due looks what it
// waits for, and holds it: each message that is not done gets a mark, in a directory with its id, and the file a name that
// no time makes due. Who acks one of those makes what waits for it due again, and then delivers the ack, under the lock
// that is held to look: so whoever looks next sees the ack, also if its process was killed. An ack for which nobody waits
// costs one look more.

// afterDir has the marks: <the id that is waited for>/<name of the message that waits, when it is due>.
const afterDir = teamdir.LaterDir + "/after"

// ErrWaitsForItself refuses a message that would wait for itself.
var ErrWaitsForItself = errors.New("would wait for itself")

// OutcomeWithdrawn is the outcome of a needed message that was withdrawn. The others are those of acks: wire.Outcomes.
const OutcomeWithdrawn = "withdrawn"

// Need is a message that another one waits for.
type Need struct {
	*wire.Message
	Outcome string        // of all its recipients if it is done, else what one of them says; "": nothing yet
	Ack     *wire.Message // that says so; nil: none does
}

// SetAfter has a message wait until others are acked as done.
func SetAfter(m *wire.Message, ids []wire.ID) {
	list, _ := json.Marshal(ids)
	m.SetMeta("after", list)
}

// After returns the messages that a message waits for, or has waited for.
func After(m *wire.Message) []wire.ID {
	var meta struct {
		ATM struct {
			After []wire.ID `json:"after"`
		} `json:"atm"`
	}
	if json.Unmarshal(m.Meta, &meta) != nil {
		return nil
	}
	return slices.DeleteFunc(meta.ATM.After, func(id wire.ID) bool { return !wire.IsID(string(id)) })
}

// Needs returns how far the messages are that a message waits for, and whether all are done. maildir.ErrNotFound: one of
// them is not there.
func Needs(t *teamdir.Team, m *wire.Message) (needs []Need, done bool, err error) {
	done = true
	for _, id := range After(m) {
		it, _, err := Find(t, nil, string(id))
		if err != nil {
			return needs, false, err
		}
		need := NeedFor(t, it.Message)
		done = done && need.Outcome == "done"
		needs = append(needs, need)
	}
	return needs, done, nil
}

// NeedFor returns how far a message is.
func NeedFor(t *teamdir.Team, m *wire.Message) Need {
	need, done := Need{Message: m}, len(m.To) > 0
	for _, a := range m.To {
		outcome, ack := "", (*wire.Message)(nil)
		if it, err := AckOf(t.Root(), m, a); err == nil {
			outcome, ack = it.Outcome(), it.Message
		} else if isWithdrawn(t, m, a) {
			outcome = OutcomeWithdrawn
		}
		if outcome != "done" && outcome != "" {
			return Need{m, outcome, ack}
		}
		if done = done && outcome == "done"; ack != nil {
			need.Ack = ack
		}
	}
	if done {
		need.Outcome = "done"
	}
	return need
}

func isWithdrawn(t *teamdir.Team, m *wire.Message, from wire.Address) bool {
	if box, err := t.Root().Mailbox(from); err == nil {
		if it, err := box.Get(m.ID); err == nil {
			return it.State == maildir.Withdrawn
		}
	}
	l, _ := FindLater(t, m.ID)
	return l != nil && l.State == maildir.Withdrawn
}

// reaches reports whether a message that is to be sent waits for another one, also through others.
func reaches(t *teamdir.Team, from, to wire.ID, seen map[wire.ID]bool) bool {
	if from == to || seen[from] {
		return from == to
	}
	seen[from] = true
	l, _ := FindLater(t, from)
	if l == nil {
		return false
	}
	m, err := LaterMessage(t, *l)
	return err == nil && slices.ContainsFunc(After(m), func(id wire.ID) bool { return reaches(t, id, to, seen) })
}

// checkNeeds refuses a message that waits for one that is not there (maildir.ErrNotFound) or for itself.
func checkNeeds(t *teamdir.Team, m *wire.Message) error {
	if _, _, err := Needs(t, m); err != nil {
		return err
	}
	for _, id := range After(m) {
		if reaches(t, id, m.ID, map[wire.ID]bool{}) || id == m.Supersedes {
			return fmt.Errorf("message %s %w", m.ID.Short(6), ErrWaitsForItself)
		}
	}
	return nil
}

func (l Later) mark(id wire.ID) string {
	l.Waits = false
	return afterDir + "/" + string(id) + "/" + l.name()
}

// hold has a message that is due wait, unless all that it waits for is done. told are notices to its sender. The lock is
// held.
func hold(ctx context.Context, t *teamdir.Team, l Later, m *wire.Message) (isFree bool, told []*maildir.Post, err error) {
	dir := t.Dir()
	for _, id := range After(m) {
		if err := dir.MkdirAll(afterDir + "/" + string(id)); err != nil {
			return false, nil, err
		}
		if err := dir.Create(l.mark(id), nil); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, nil, err
		}
		if err := dir.Sync(afterDir + "/" + string(id)); err != nil {
			return false, nil, err
		}
	}
	if err := errors.Join(dir.Sync(afterDir), dir.Sync(teamdir.LaterDir)); err != nil {
		return false, nil, err
	}
	isFree, told, err = lookAtNeeds(ctx, t, l, m) // after the marks: an ack that comes now finds them
	if isFree || err != nil {
		return isFree, told, err
	}
	to := l
	to.Waits = true
	return false, told, dir.Move(l.file(), to.file())
}

// lookAtNeeds reports whether all that a message waits for is done, and tells its sender, once, of each that may never be.
func lookAtNeeds(ctx context.Context, t *teamdir.Team, l Later, m *wire.Message) (isFree bool, told []*maildir.Post, err error) {
	needs, done, err := Needs(t, m)
	for _, need := range needs {
		if need.Outcome == "" || need.Outcome == "done" {
			continue
		}
		id, purpose, what := need.ID.Short(6), need.Outcome+" "+string(need.ID), "was withdrawn"
		if need.Ack != nil {
			purpose += " " + string(need.Ack.ID)
			what = who(m, need.Ack.From) + " acked as " + need.Outcome
		}
		post, failed := tellSender(ctx, t, l, m, purpose, "waits: ",
			fmt.Sprintf("Your message %s waits for %s, which %s: atm trace %s. It goes out once that is acked as done; atm withdraw %s takes it back.",
				m.ID.Short(6), id, what, id, m.ID.Short(6)))
		if told, err = append(told, post...), errors.Join(err, failed); failed != nil {
			break
		}
	}
	return done && err == nil, told, err
}

// tellSender sends the sender of a message that nobody has yet a notice, once for each purpose.
func tellSender(ctx context.Context, t *teamdir.Team, l Later, m *wire.Message, purpose, subject, body string) ([]*maildir.Post, error) {
	sender := t.Box(l.From)
	if !sender.Exists() {
		return nil, nil
	}
	notice := &wire.Message{
		ID: wire.Derive(purpose, m.ID, m.From), Type: wire.TypeNotice, From: m.From, To: []wire.Address{m.From},
		InReplyTo: m.ID, Thread: m.ThreadID(), ReplyWanted: "no", SentAt: time.Now().UTC(), Origin: OrCommand(nil),
		Subject: subject + letter.OneLine(m.Title(), 200), Body: body,
	}
	post := &maildir.Post{Message: notice, To: []*maildir.Box{sender}, Derived: IsNoticeFrom(m.From)}
	maildir.Deliver(ctx, post)
	if err := post.Outcomes[0].Err; err != nil && !isFinal(err) {
		return nil, err
	}
	return []*maildir.Post{post}, nil
}

// letGo makes what waits for a message due, so that somebody looks at it again. If anything does, unlock is not nil: nobody
// looks until it is called.
func letGo(ctx context.Context, t *teamdir.Team, id wire.ID) (unlock func(), err error) {
	dir, marks := t.Dir(), afterDir+"/"+string(id)
	if names, err := dir.Names(marks); len(names) == 0 {
		return nil, err
	}
	lock, err := lockLater(ctx, t, t.LockWait())
	if err != nil {
		return nil, fmt.Errorf("look at what waits for message %s: %w", id.Short(6), err)
	}
	names, errs := dir.Names(marks) // others came or went before the lock
	for _, name := range names {
		due, isOurs := parseLater(name, ToBeSent)
		if waiting := due; isOurs {
			waiting.Waits = true
			if err := dir.Move(waiting.file(), due.file()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = errors.Join(errs, err)
				continue
			}
			dir.Remove(marks + "/" + name)
		}
	}
	if err := errors.Join(errs, dir.Sync(teamdir.LaterDir)); err != nil {
		lock.Unlock()
		return nil, err
	}
	dir.Remove(marks)
	return func() { lock.Unlock() }, nil
}

// LookAgain looks at what waits for a message of which there is something new: what waits for nothing any more is
// delivered, and the senders of the others are told.
func LookAgain(ctx context.Context, t *teamdir.Team, id wire.ID) error {
	unlock, err := letGo(ctx, t, id)
	if unlock == nil {
		return err
	}
	unlock()
	DeliverSome(ctx, t)
	return nil
}

// forget removes the marks of a message that does not wait any more. One that is left says nothing.
func forget(t *teamdir.Team, l Later, ids ...wire.ID) {
	for _, id := range ids {
		t.Dir().Remove(l.mark(id))
		t.Dir().Remove(afterDir + "/" + string(id)) // stays while it has others
	}
}
