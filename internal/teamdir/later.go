package teamdir

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
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// LaterDir has the messages of a team's members that are to be sent later. When one is due, whatever runs in the team
// delivers it (DeliverLater) under the id that it has, so a process that is killed then makes no second message.
//
//	.later/<time>.<sender>.<id>.json    due at that time: names alone say whether anything is
//	.later/withdrawn/                   taken back before it was sent
//	.later/bad/                         could not be delivered; <name>.reason says why
const LaterDir = ".later"

// The states of a message that its sender wanted to be sent later. A third is maildir.Withdrawn.
const (
	ToBeSent    maildir.State = "later"
	Undelivered maildir.State = "undelivered"
)

var laterDirs = map[maildir.State]string{
	ToBeSent: LaterDir, Undelivered: LaterDir + "/bad", maildir.Withdrawn: LaterDir + "/withdrawn",
}

// laterTime is the time in a name: sorted names are in its order.
const laterTime = "20060102T150405.000Z"

// Later is a message that is to be sent later, by its file's name.
type Later struct {
	At    time.Time
	From  wire.Name
	ID    wire.ID
	State maildir.State
}

func (l Later) name() string {
	return l.At.UTC().Format(laterTime) + "." + string(l.From) + "." + string(l.ID) + ".json"
}

func (l Later) file() string { return path.Join(laterDirs[l.State], l.name()) }

func parseLater(name string, state maildir.State) (l Later, ok bool) {
	if len(name) <= len(laterTime) || name[len(laterTime)] != '.' {
		return l, false
	}
	at, bad := time.Parse(laterTime, name[:len(laterTime)])
	from, rest, _ := strings.Cut(name[len(laterTime)+1:], ".")
	id, isJSON := strings.CutSuffix(rest, ".json")
	return Later{at, wire.Name(from), wire.ID(id), state}, bad == nil && isJSON && wire.IsName(from) && wire.IsID(id)
}

// Later lists the messages in one of the states, by their times.
func (t *Team) Later(state maildir.State) (all []Later, err error) {
	names, err := t.Dir().Names(laterDirs[state])
	for _, name := range names {
		if l, ok := parseLater(name, state); ok {
			all = append(all, l)
		}
	}
	return all, err
}

// HasLater reports whether a file of that name is there in any of the states: a backup must not bring one back to another.
func (t *Team) HasLater(name string) bool {
	for _, dir := range laterDirs {
		if isThere, err := t.Dir().Exists(dir + "/" + name); isThere || err != nil {
			return true
		}
	}
	return false
}

// LaterStray lists the files among the messages to be sent later that are none.
func (t *Team) LaterStray() (files []string) {
	names, _ := t.Dir().Names(LaterDir)
	for _, name := range names {
		_, isOurs := parseLater(name, ToBeSent)
		if file := LaterDir + "/" + name; !isOurs && name[0] != '.' && file != laterDirs[Undelivered] && file != laterDirs[maildir.Withdrawn] {
			files = append(files, file)
		}
	}
	return files
}

// FindLater finds the message with an id in any of the states; nil: there is none.
func (t *Team) FindLater(id wire.ID) (*Later, error) {
	names, errs := t.Dir().Names(LaterDir)
	if len(names) == 0 {
		return nil, errs
	}
	for range 2 { // it may be tried again, and is then back where was looked before
		for _, state := range []maildir.State{ToBeSent, Undelivered, maildir.Withdrawn} {
			all, err := t.Later(state)
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
func (t *Team) LaterMessage(l Later) (*wire.Message, error) {
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
func (t *Team) LaterReason(l Later) string {
	reason, err := t.Dir().ReadFile(l.file()+ReasonSuffix, 4096)
	if err != nil {
		return "no reason recorded"
	}
	return strings.TrimSpace(string(reason))
}

// lockLater takes the lock under which messages that are to be sent later come and go. With a timeout of 0 it tries once.
func (t *Team) lockLater(ctx context.Context, timeout time.Duration) (*lockfile.Lock, error) {
	return t.Locks().Lock(ctx, "later", lockfile.Exclusive, timeout, nil)
}

func (t *Team) lockTimeout() time.Duration { return cmp.Or(t.LockTimeout, lockfile.DefaultTimeout) }

// SendLater is Send for a message that nobody gets before a time. It is complete then and durable, and its files are
// stored. If a recipient is unknown, nothing is done. A message with the same id that is to be sent later, or was, stays
// as it is.
func (r *Root) SendLater(ctx context.Context, o *Outgoing, at time.Time) (*Sent, error) {
	o.Message.SentAt = at.UTC().Truncate(time.Millisecond)
	post, unknown, err := r.prepare(o)
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
	if err != nil {
		return nil, err
	}
	sent, err := t.putLater(ctx, o.Message, post)
	if err == nil && sent.Later != nil && !sent.WasLater {
		r.replaceLater(ctx, o.Message)
	}
	return sent, err
}

// sentLater says what became of a message whose id its sender has used for one that was to be sent later; nil: it is
// another, or was delivered.
func (r *Root) sentLater(m *wire.Message, post *maildir.Post) (*Sent, error) {
	t, err := r.Team(m.From.Team)
	if err != nil || !post.Given || post.Derived != nil {
		return nil, err
	}
	before, err := t.FindLater(m.ID)
	if before == nil || err != nil {
		return nil, err
	}
	sent := &Sent{Later: before, WasLater: true}
	for _, box := range post.To {
		sent.To = append(sent.To, Recipient{Address: box.Address()})
	}
	return sent, nil
}

// putLater writes the file of a message that is to be sent later, unless its id was used before.
func (t *Team) putLater(ctx context.Context, m *wire.Message, post *maildir.Post) (*Sent, error) {
	dir, l := t.Dir(), Later{m.SentAt, m.From.Agent, m.ID, ToBeSent}
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	lock, err := t.lockLater(ctx, t.lockTimeout())
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	if sent, err := t.root.sentLater(m, post); sent != nil || err != nil {
		return sent, err
	}
	if sent := sentBefore(m, post); sent != nil {
		return sent, nil
	}
	if dir.IsDir(LaterDir) != nil {
		if err := cmp.Or(dir.MkdirAll(LaterDir), dir.Sync(".")); err != nil {
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
	if err := dir.Sync(LaterDir); err != nil {
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
		if _, err := box.Get(m.ID); !errors.Is(err, maildir.ErrNotFound) {
			out := maildir.Outcome{Box: box, Err: err, Stored: err == nil, AlreadyStored: err == nil}
			sent.To = append(sent.To, Recipient{Address: box.Address(), Outcome: out})
		}
	}
	if len(sent.To) == 0 {
		return nil
	}
	return sent
}

// replaceLater withdraws the message that another one replaces if that is still to be sent.
func (r *Root) replaceLater(ctx context.Context, m *wire.Message) {
	if m.Supersedes != "" {
		r.WithdrawLater(ctx, m.From, m.Supersedes)
	}
}

// WithdrawLater withdraws a member's message that is to be sent later, or could not be delivered to all, and returns it as
// it was; nil: there is none. If it was due, some recipients may have it.
func (r *Root) WithdrawLater(ctx context.Context, from wire.Address, id wire.ID) (was *Later, err error) {
	t, err := r.Team(from.Team)
	if err != nil || from.Host != "" {
		return nil, err
	}
	find := func() (*Later, error) {
		l, err := t.FindLater(id)
		if l != nil && l.From != from.Agent {
			l = nil
		}
		return l, err
	}
	if was, err = find(); was == nil {
		return nil, err
	}
	lock, err := t.lockLater(ctx, t.lockTimeout())
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	if was, err = find(); was == nil || was.State == maildir.Withdrawn {
		return was, err
	}
	if m, err := t.LaterMessage(*was); err == nil {
		t.Box(from.Agent).NoteSent(m) // from now on it is found there; doctor says what is missing
	}
	return was, t.moveLater(*was, maildir.Withdrawn)
}

// MayBeSent reports whether recipients may have the message.
func (l Later) MayBeSent() bool {
	return l.State == Undelivered || l.State == ToBeSent && !l.At.After(time.Now())
}

// moveLater durably moves a message to another state. The lock is held.
func (t *Team) moveLater(l Later, state maildir.State) error {
	dir, to := t.Dir(), l
	to.State = state
	if err := dir.MkdirAll(laterDirs[state]); err != nil {
		return err
	}
	if err := dir.Move(l.file(), to.file()); err != nil {
		return err
	}
	if l.State == Undelivered {
		dir.Remove(l.file() + ReasonSuffix)
	}
	return cmp.Or(dir.Sync(laterDirs[state]), dir.Sync(laterDirs[l.State]), dir.Sync(LaterDir))
}

const (
	atOnce      = 100             // how many messages are delivered at once
	atOnceSize  = 16 << 20        // their bytes, but for the last one
	deliverTime = 2 * time.Second // for which a call of DeliverLater goes on
	laterEvery  = 3 * time.Second // how often KeepDelivering looks at least, since clocks jump
)

// KeepDelivering delivers what is due to be sent, and tells of killed runners (TellKilled), until the context ends. While
// nothing is due, it costs a look into two directories every three seconds.
func (t *Team) KeepDelivering(ctx context.Context) {
	for ctx.Err() == nil {
		t.TellKilled(ctx)
		next, err := t.DeliverLater(ctx)
		pause := laterEvery
		if until := time.Until(next); err == nil && !next.IsZero() && until < pause {
			pause = max(until, time.Millisecond)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// DeliverLater delivers the messages that are due, unless another process does that now, or nothing in the store may act.
// While nothing is due, it costs one look into a directory. next is when the next one is due; zero: none is known.
//
// What cannot be delivered now, as on a full disk, stays and is tried again. What can not be delivered at all is set
// aside, and its sender gets a notice.
func (t *Team) DeliverLater(ctx context.Context) (next time.Time, err error) {
	due, next, err := t.dueLater()
	if err != nil || len(due) == 0 {
		return next, err
	}
	lock, err := t.lockLater(ctx, 0)
	if _, isHeld := errors.AsType[*lockfile.HeldError](err); isHeld {
		return time.Time{}, nil
	}
	if err != nil {
		return next, err
	}
	posts, err := t.deliverDue(ctx)
	lock.Unlock()
	t.root.pushAll(ctx, posts)
	if err == nil {
		if due, next, err = t.dueLater(); len(due) > 0 {
			next = due[0].At
		}
	}
	return next, err
}

// dueLater lists the messages that are due, and returns the time of the next one.
func (t *Team) dueLater() (due []Later, next time.Time, err error) {
	all, err := t.Later(ToBeSent)
	n, now := len(all), time.Now()
	if first := slices.IndexFunc(all, func(l Later) bool { return l.At.After(now) }); first >= 0 {
		n, next = first, all[first].At
	}
	return all[:n], next, err
}

// deliverDue delivers what is due, and goes on after an error. The lock is held.
func (t *Team) deliverDue(ctx context.Context) (posts []*maildir.Post, errs error) {
	due, _, err := t.dueLater()
	if err != nil {
		return nil, err
	}
	for began := time.Now(); len(due) > 0 && ctx.Err() == nil && time.Since(began) < deliverTime; {
		n, some, err := t.deliverSome(ctx, due)
		due, posts, errs = due[n:], append(posts, some...), errors.Join(errs, err)
	}
	return posts, errs
}

// leaving is a message that is being delivered when it is due.
type leaving struct {
	Later
	post    *maildir.Post
	unknown []error // why recipients cannot get it, until somebody does something about it
	err     error   // why it cannot be delivered now
}

// deliverSome delivers the first of some messages side by side, and returns how many are over with for now. The lock is
// held.
func (t *Team) deliverSome(ctx context.Context, due []Later) (n int, posts []*maildir.Post, errs error) {
	mayAct := t.BeforeLook()
	var all []*leaving
	bad, size := map[Later]string{}, 0
	for n < min(len(due), atOnce) && size < atOnceSize {
		l := due[n]
		n++
		m, err := t.LaterMessage(l)
		wrong, isBad := errors.AsType[*maildir.BadError](err)
		switch {
		case err == nil:
			out := t.prepareLeaving(l, m)
			all, posts = append(all, out), append(posts, out.post)
			size += len(m.Body) + len(m.Payload) + len(m.Meta) + len(m.Extra)
		case isBad && wrong.Unreadable == nil:
			bad[l] = wrong.Reason
		case !errors.Is(err, maildir.ErrNotFound):
			errs = errors.Join(errs, err)
		}
	}
	if err := mayAct(ctx); err != nil {
		return len(due), nil, err
	}
	for l, reason := range bad {
		errs = errors.Join(errs, t.setLaterAside(l, nil, reason))
	}
	maildir.Deliver(ctx, posts...)
	for _, out := range all {
		errs = errors.Join(errs, t.finishLeaving(ctx, out))
	}
	return n, posts, errors.Join(errs, t.Dir().Sync(LaterDir))
}

func (t *Team) prepareLeaving(l Later, m *wire.Message) *leaving {
	out := &leaving{Later: l, post: &maildir.Post{Message: m, Given: true}}
	if sender := t.Box(l.From); sender.Exists() {
		out.post.Sender = sender
	}
	for _, a := range unique(m.To) {
		switch box, err := t.root.recipient(m.From, a); {
		case err == nil:
			out.post.To = append(out.post.To, box)
		case isFinal(err):
			out.unknown = append(out.unknown, err)
		default:
			out.err = cmp.Or(out.err, err)
		}
	}
	return out
}

// LaterObstacle returns why a message cannot be delivered now to a recipient who may get it later; nil: nothing is known.
func (t *Team) LaterObstacle(l Later) error {
	m, err := t.LaterMessage(l)
	if err != nil {
		return nil
	}
	return t.prepareLeaving(l, m).err
}

// isFinal reports whether an error says that a recipient cannot get a message until somebody does something about it. Which
// hosts are trusted may depend on the environment of a process: another one may know this one.
func isFinal(err error) bool {
	if _, isHost := errors.AsType[*UnknownHostError](err); isHost {
		return false
	}
	_, isTaken := errors.AsType[*maildir.IDTakenError](err)
	_, isContent := errors.AsType[*maildir.ContentError](err)
	return isTaken || isContent || errors.Is(err, maildir.ErrNoAgent) || errors.Is(err, ErrNoTeam)
}

// finishLeaving removes a message that all recipients have, or sets it aside for those that cannot get it. Otherwise it
// stays, and is tried again: those that have it do not get it twice.
func (t *Team) finishLeaving(ctx context.Context, out *leaving) error {
	for _, o := range out.post.Outcomes {
		if isFinal(o.Err) {
			out.unknown = append(out.unknown, o.Err)
		} else {
			out.err = cmp.Or(out.err, o.Err)
		}
	}
	m := out.post.Message
	switch {
	case out.err != nil:
		return out.err
	case len(out.unknown) == 0:
		return t.Dir().Remove(out.file())
	}
	reason := (&UnreadableError{errors.Join(out.unknown...)}).Error()
	if sender := out.post.Sender; sender != nil {
		notice := &wire.Message{
			ID: wire.Derive("undelivered", m.ID, m.From), Type: wire.TypeNotice, From: m.From, To: []wire.Address{m.From},
			InReplyTo: m.ID, Thread: m.ThreadID(), ReplyWanted: "no", SentAt: time.Now().UTC(), Origin: orCommand(nil),
			Subject: "not delivered: " + letter.OneLine(m.Title(), 200),
			Body:    fmt.Sprintf("Your message %s was not delivered: %s. To try again: atm retry %s", m.ID.Short(6), reason, m.ID.Short(6)),
		}
		post := &maildir.Post{Message: notice, To: []*maildir.Box{sender}, Derived: IsNoticeFrom(m.From)}
		if maildir.Deliver(ctx, post); post.Outcomes[0].Err != nil && !isFinal(post.Outcomes[0].Err) {
			return post.Outcomes[0].Err
		}
	}
	return t.setLaterAside(out.Later, m, reason)
}

// setLaterAside moves a message that cannot be delivered out of the way. m is nil if the file is no message. The lock is
// held.
func (t *Team) setLaterAside(l Later, m *wire.Message, reason string) error {
	to := l
	to.State = Undelivered
	if err := t.Dir().MkdirAll(laterDirs[Undelivered]); err != nil {
		return err
	}
	t.Dir().Replace(to.file()+ReasonSuffix, []byte(reason+"\n"), false) // for people, so an error does not matter
	if m != nil {
		t.Box(l.From).NoteSent(m)
	}
	return t.moveLater(l, Undelivered)
}
