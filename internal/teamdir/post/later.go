package post

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/wire"
)

// The states of a message that its sender wanted to be sent later. A third is maildir.Withdrawn.
const (
	ToBeSent    maildir.State = "later"
	Undelivered maildir.State = "undelivered"
)

var laterDirs = map[maildir.State]string{
	ToBeSent: teamdir.LaterDir, Undelivered: teamdir.LaterDir + "/bad", maildir.Withdrawn: teamdir.LaterDir + "/withdrawn",
}

// laterTime is the time in a name: sorted names are in its order.
const laterTime = "20060102T150405.000Z"

// Later is a message that is to be sent later, by its file's name.
type Later struct {
	At    time.Time
	From  wire.Name
	ID    wire.ID
	State maildir.State
	Waits bool // for other messages: no time makes it due
}

// waitingSuffix ends the name of a message that waits for others.
const waitingSuffix = ".after.json"

func (l Later) name() string {
	suffix := ".json"
	if l.Waits {
		suffix = waitingSuffix
	}
	return l.At.UTC().Format(laterTime) + "." + string(l.From) + "." + string(l.ID) + suffix
}

func (l Later) file() string { return path.Join(laterDirs[l.State], l.name()) }

func parseLater(name string, state maildir.State) (l Later, ok bool) {
	if len(name) <= len(laterTime) || name[len(laterTime)] != '.' {
		return l, false
	}
	at, bad := time.Parse(laterTime, name[:len(laterTime)])
	from, rest, _ := strings.Cut(name[len(laterTime)+1:], ".")
	id, waits := strings.CutSuffix(rest, waitingSuffix)
	isJSON := waits
	if !waits {
		id, isJSON = strings.CutSuffix(rest, ".json")
	}
	return Later{at, wire.Name(from), wire.ID(id), state, waits}, bad == nil && isJSON && wire.IsName(from) && wire.IsID(id)
}

// ListLater lists the messages in one of the states, by their times.
func ListLater(t *teamdir.Team, state maildir.State) (all []Later, err error) {
	names, err := t.Dir().Names(laterDirs[state])
	for _, name := range names {
		if l, ok := parseLater(name, state); ok {
			all = append(all, l)
		}
	}
	return all, err
}

// HasLater reports whether a file of that name, as RestoredName returns it, is there in any of the states: a backup must
// not bring one back to another.
func HasLater(t *teamdir.Team, name string) bool {
	files := []string{teamdir.LaterDir + "/" + strings.TrimSuffix(name, ".json") + waitingSuffix}
	for _, dir := range laterDirs {
		files = append(files, dir+"/"+name)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		isThere, err := t.Dir().Exists(file)
		return isThere || err != nil
	})
}

// RestoredName is the name under which a file that was to be sent later is restored. What waited for others is due: whoever
// looks at it marks again what it waits for.
func RestoredName(name string) string {
	if due, waits := strings.CutSuffix(name, waitingSuffix); waits {
		return due + ".json"
	}
	return name
}

// LaterStray lists the files among the messages to be sent later that are none.
func LaterStray(t *teamdir.Team) (files []string) {
	names, _ := t.Dir().Names(teamdir.LaterDir)
	for _, name := range names {
		_, isOurs := parseLater(name, ToBeSent)
		file := teamdir.LaterDir + "/" + name
		if !isOurs && name[0] != '.' && !slices.Contains([]string{laterDirs[Undelivered], laterDirs[maildir.Withdrawn], afterDir}, file) {
			files = append(files, file)
		}
	}
	return files
}

// LaterOf finds a message of this root among those that are to be sent later, or were; nil: it was sent.
func LaterOf(r *teamdir.Root, m *wire.Message) *Later {
	t, err := r.Team(m.From.Team)
	if err != nil || m.From.Host != "" {
		return nil
	}
	l, _ := FindLater(t, m.ID) // nil also if it cannot be read
	return l
}

// FindLater finds the message with an id in any of the states; nil: there is none.
func FindLater(t *teamdir.Team, id wire.ID) (*Later, error) {
	names, errs := t.Dir().Names(teamdir.LaterDir)
	if len(names) == 0 {
		return nil, errs
	}
	for range 2 { // it may be tried again, and is then back where was looked before
		for _, state := range []maildir.State{ToBeSent, Undelivered, maildir.Withdrawn} {
			all, err := ListLater(t, state)
			if i := slices.IndexFunc(all, func(l Later) bool { return l.ID == id }); i >= 0 {
				return &all[i], nil
			}
			errs = errors.Join(errs, err)
		}
	}
	return nil, errs
}

// LaterMessage reads a message that is to be sent later: maildir.ErrNotFound if it is not there any more, and a
// *maildir.BadError if the file is not that message.
func LaterMessage(t *teamdir.Team, l Later) (*wire.Message, error) {
	data, err := t.Dir().ReadFile(l.file(), wire.MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("%s: %w", l.ID, maildir.ErrNotFound)
	case errors.Is(err, durable.ErrNotRegular), errors.Is(err, durable.ErrTooLarge):
		return nil, &maildir.BadError{Name: l.name(), Reason: err.Error()}
	case err != nil:
		return nil, &maildir.BadError{Name: l.name(), Reason: err.Error(), Unreadable: err}
	}
	m, err := wire.Decode(data)
	switch sender := t.Box(l.From).Address(); {
	case err != nil:
	case m.ID != l.ID:
		err = fmt.Errorf("the message inside has the id %s", m.ID)
	case m.From != sender:
		err = fmt.Errorf("the message inside is from %s", m.From)
	case len(m.To) == 0:
		err = errors.New("the message inside is to nobody")
	}
	if err != nil {
		return nil, &maildir.BadError{Name: l.name(), Reason: err.Error()}
	}
	return m, nil
}

// LaterReason returns why a message could not be delivered.
func LaterReason(t *teamdir.Team, l Later) string {
	reason, err := t.Dir().ReadFile(l.file()+presence.ReasonSuffix, 4096)
	if err != nil {
		return "no reason recorded"
	}
	return strings.TrimSpace(string(reason))
}

// lockLater takes the lock under which messages that are to be sent later come and go. With a timeout of 0 it tries once.
func lockLater(ctx context.Context, t *teamdir.Team, timeout time.Duration) (*lockfile.Lock, error) {
	return t.Locks().Lock(ctx, "later", lockfile.Exclusive, timeout, nil)
}

// SendLater is Send for a message that nobody gets before a time. It is complete then and durable, and its files are
// stored. If a recipient is unknown, nothing is done. A message with the same id that is to be sent later, or was, stays
// as it is. One that waits for others (SetAfter) goes out when these are done as well: see checkNeeds.
func SendLater(ctx context.Context, r *teamdir.Root, o *Outgoing, at time.Time) (*Sent, error) {
	o.Message.SentAt = at.UTC().Truncate(time.Millisecond)
	post, unknown, err := Prepare(r, o)
	for _, to := range unknown {
		err = cmp.Or(err, to.Err)
	}
	if err == nil && len(post.To) == 0 {
		err = errors.New("send a message: it has no recipient")
	}
	if err != nil {
		return nil, err
	}
	t, err := r.Team(o.From.Address().Team)
	if err == nil {
		err = checkNeeds(t, o.Message)
	}
	if err != nil {
		return nil, err
	}
	sent, err := putLater(ctx, t, o.Message, post)
	if len(After(o.Message)) > 0 && err == nil && !sent.WasLater {
		DeliverSome(ctx, t) // it is held, if it is due
	}
	if err == nil && sent.Later != nil && !sent.WasLater {
		replaceLater(ctx, r, o.Message)
	}
	return sent, err
}

// sentLater says what became of a message whose id its sender has used for one that was to be sent later; nil: it is
// another, or was delivered.
func sentLater(r *teamdir.Root, m *wire.Message, post *maildir.Post) (*Sent, error) {
	t, err := r.Team(m.From.Team)
	if err != nil || !post.Given || post.Derived != nil {
		return nil, err
	}
	before, err := FindLater(t, m.ID)
	if before == nil || err != nil {
		return nil, err
	}
	if is, err := LaterMessage(t, *before); err == nil {
		if err := maildir.CheckSame(is, m); err != nil {
			return nil, err
		}
	}
	sent := &Sent{Later: before, WasLater: true}
	for _, box := range post.To {
		sent.To = append(sent.To, Recipient{Address: box.Address()})
	}
	return sent, nil
}

// putLater writes the file of a message that is to be sent later, unless its id was used before.
func putLater(ctx context.Context, t *teamdir.Team, m *wire.Message, post *maildir.Post) (*Sent, error) {
	dir, l := t.Dir(), Later{At: m.SentAt, From: m.From.Agent, ID: m.ID, State: ToBeSent}
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	lock, err := lockLater(ctx, t, t.LockWait())
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	if sent, err := sentLater(t.Root(), m, post); sent != nil || err != nil {
		return sent, err
	}
	if sent := sentBefore(m, post); sent != nil {
		return sent, nil
	}
	if dir.IsDir(teamdir.LaterDir) != nil {
		if err := cmp.Or(dir.MkdirAll(teamdir.LaterDir), dir.Sync(".")); err != nil {
			return nil, err
		}
	}
	if err := dir.Publish(l.file(), bytes.NewReader(data), true); err != nil {
		return nil, err
	}
	sent := &Sent{Later: &l}
	for _, box := range post.To {
		sent.To = append(sent.To, Recipient{Address: box.Address()})
	}
	if err := dir.Sync(teamdir.LaterDir); err != nil {
		return sent, &maildir.NotDurableError{ID: m.ID, Err: err}
	}
	return sent, nil
}

// sentBefore returns the recipients that have a message already, under an id that may have been used before; nil: none has.
func sentBefore(m *wire.Message, post *maildir.Post) *Sent {
	sent := &Sent{}
	for _, box := range post.To {
		if !post.Given {
			break
		}
		if it, err := box.Get(m.ID); !errors.Is(err, maildir.ErrNotFound) {
			if err == nil {
				err = maildir.CheckSame(it.Message, m)
			}
			out := maildir.Outcome{Box: box, Err: err, Stored: err == nil, AlreadyStored: err == nil}
			sent.To = append(sent.To, Recipient{Address: box.Address(), Outcome: out})
		}
	}
	if len(sent.To) == 0 {
		return nil
	}
	return sent
}

// replaceLater withdraws the message that another one replaces if that is still to be sent, and tells of it whoever sent
// what waits for it.
func replaceLater(ctx context.Context, r *teamdir.Root, m *wire.Message) {
	if m.Supersedes == "" {
		return
	}
	WithdrawLater(ctx, r, m.From, m.Supersedes)
	if t, err := r.Team(m.From.Team); err == nil {
		LookAgain(ctx, t, m.Supersedes)
	}
}

// WithdrawLater withdraws a member's message that is to be sent later, or could not be delivered to all, and returns it as
// it was; nil: there is none. If it was due, some recipients may have it.
func WithdrawLater(ctx context.Context, r *teamdir.Root, from wire.Address, id wire.ID) (was *Later, err error) {
	t, err := r.Team(from.Team)
	if err != nil || from.Host != "" {
		return nil, err
	}
	find := func() (*Later, error) {
		l, err := FindLater(t, id)
		if l != nil && l.From != from.Agent {
			l = nil
		}
		return l, err
	}
	if was, err = find(); was == nil {
		return nil, err
	}
	lock, err := lockLater(ctx, t, t.LockWait())
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	if was, err = find(); was == nil || was.State == maildir.Withdrawn {
		return was, err
	}
	m, noMessage := LaterMessage(t, *was)
	if noMessage == nil {
		t.Box(from.Agent).NoteSent(m) // from now on it is found there; doctor says what is missing
	}
	if err = moveLater(t, *was, maildir.Withdrawn); err == nil && noMessage == nil {
		forget(t, *was, After(m)...)
	}
	return was, err
}

// MayBeSent reports whether recipients may have the message.
func (l Later) MayBeSent() bool {
	return l.State == Undelivered || l.State == ToBeSent && !l.Waits && !l.At.After(time.Now())
}

// moveLater durably moves a message to another state. The lock is held.
func moveLater(t *teamdir.Team, l Later, state maildir.State) error {
	dir, to := t.Dir(), l
	to.State, to.Waits = state, false
	if err := dir.MkdirAll(laterDirs[state]); err != nil {
		return err
	}
	if err := dir.Move(l.file(), to.file()); err != nil {
		return err
	}
	if l.State == Undelivered {
		dir.Remove(l.file() + presence.ReasonSuffix)
	}
	return cmp.Or(dir.Sync(laterDirs[state]), dir.Sync(laterDirs[l.State]), dir.Sync(teamdir.LaterDir))
}
