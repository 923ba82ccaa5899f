// Package mailbox delivers messages to agents and reads theirs: one mailbox, which is the directory of an agent in its
// team's directory, such as .atm/main/bob. atm's own programs work in the same directory at the same time, and some by this
// package; docs/format.md says what its files are.
//
// A delivery is whole or absent, and once Deliver has returned without an error it survives a power cut. A message that
// is unread is never deleted. Read shows messages first and marks them afterwards: a reader that is killed sees a message
// again, and never loses one.
//
// A message is data from somebody else: show it as text, and do nothing that it says by itself. Who writes in the
// directory decides what is in it, so open only one that nobody can write to whom you do not trust.
//
// All functions may be called concurrently, and by several processes. Events of an agent are in package eventlog, below;
// package wire has the messages themselves.
//
// Begin with Open, or Create for a new one; of a member of an open team with teams.Team.Mailbox. Read is for who shows
// messages, HandOver for who gives them to another program.
package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Errors that callers tell apart, with errors.Is. Packages teams, session and watcher return them too.
var (
	ErrNoMailbox  = maildir.ErrNoMailbox // the agent is no member of the team, or was retired
	ErrExists     = maildir.ErrExists    // the mailbox
	ErrNotFound   = maildir.ErrNotFound
	ErrIDTaken    = maildir.ErrIDTaken
	ErrNotDurable = maildir.ErrNotDurable
)

// Mailbox is an open mailbox.
type Mailbox maildir.Box // so packages teams and ptyrun convert one

func (m *Mailbox) box() *maildir.Box { return (*maildir.Box)(m) }

// Open opens the mailbox in a directory, or returns ErrNoMailbox.
func Open(dir string) (*Mailbox, error) {
	team, agent, err := split(dir)
	m := (*Mailbox)(nil)
	if err == nil {
		m, err = open(team, agent, func(b *maildir.Box) error { return b.CheckPresent() })
	}
	if err != nil {
		return nil, fmt.Errorf("open mailbox %s: %w", dir, err)
	}
	return m, nil
}

// Create makes a mailbox in a directory, and its team's directory above if that is missing. If there is one, the error is
// ErrExists. Packages teams and ptyrun, and atm itself, need the root above as well: teams.Create makes it, before or after.
func Create(ctx context.Context, dir string) (*Mailbox, error) {
	team, agent, err := split(dir)
	if err == nil {
		err = os.MkdirAll(filepath.Join(team, ".locks"), 0o700)
	}
	m := (*Mailbox)(nil)
	if err == nil {
		m, err = open(team, agent, func(b *maildir.Box) error { return b.Store().Create(ctx, agent) })
	}
	if err != nil {
		return nil, fmt.Errorf("create mailbox %s: %w", dir, err)
	}
	return m, nil
}

// split returns the team's directory and the agent of a mailbox's directory, both with names that messages can have.
func split(dir string) (team string, agent wire.Name, err error) {
	if dir == "" {
		return "", "", errors.New("the directory has no name")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", "", err
	}
	team = filepath.Dir(dir)
	agent, err = wire.ParseName(filepath.Base(dir))
	if err == nil {
		_, err = wire.ParseName(filepath.Base(team))
	}
	return team, agent, err
}

func open(team string, agent wire.Name, check func(*maildir.Box) error) (*Mailbox, error) {
	root, err := durable.Open(team)
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%s: %w", team, ErrNoMailbox)
	}
	if err != nil {
		return nil, err
	}
	store := maildir.NewStore(root, wire.Name(filepath.Base(team)))
	box := store.Box(agent)
	if err := check(box); err != nil {
		store.Close()
		return nil, err
	}
	return (*Mailbox)(box), nil
}

// Close closes the mailbox's directory. That of a mailbox of an open team stays open until the team is closed.
func (m *Mailbox) Close() error {
	if m.box().Store().IsOfRoot {
		return nil
	}
	return m.box().Store().Close()
}

// Address returns the owner's address.
func (m *Mailbox) Address() wire.Address { return m.box().Address() }

// Log returns the events of the owner.
func (m *Mailbox) Log() *eventlog.Log { return m.box().Log() }

// Deliver delivers a message. It needs From, and Body or a Payload or Attachments. Without an ID it gets a new one, without
// To or SentAt the mailbox's address and the time, and an address without a Team the mailbox's team. With an ID it is
// delivered once, however often Deliver is called: after a kill, call it again. Under the ID of a message that says something
// else it is ErrIDTaken. A sender with a mailbox in this team has it among the sent mail then.
//
// Errors: ErrNoMailbox if the agent was retired, ErrIDTaken, ErrNotDurable, or why the content cannot be sent.
func (m *Mailbox) Deliver(ctx context.Context, message wire.Message) (wire.Receipt, error) {
	post := &maildir.Post{Message: &message, To: []*maildir.Box{m.box()}, Given: message.ID != ""}
	var err error
	if message.ID == "" {
		message.ID = wire.NewID()
	} else {
		message.ID, err = wire.ParseID(string(message.ID))
	}
	if err == nil && message.Body == "" && message.Payload == nil && message.Attachments == nil {
		err = errors.New("the message is empty")
	}
	if err != nil {
		return wire.Receipt{}, fmt.Errorf("deliver to %s: %w", m.Address(), err)
	}
	message.From, message.To = m.withTeam(message.From), slices.Clone(message.To)
	for i, to := range message.To {
		message.To[i] = m.withTeam(to)
	}
	if message.To == nil {
		message.To = []wire.Address{m.Address()}
	}
	if message.SentAt.IsZero() {
		message.SentAt = time.Now().UTC()
	}
	if message.Origin == nil {
		message.Origin = &wire.Origin{Via: "mailbox"}
	}
	if from := message.From; from.Team == m.Address().Team && from.Host == "" {
		if sender := m.box().Store().Box(from.Agent); sender.Exists() {
			post.Sender = sender
		}
	}
	maildir.Deliver(ctx, post)
	out := post.Outcomes[0].Receipt
	if err = out.Err; err != nil {
		err = fmt.Errorf("deliver to %s: %w", m.Address(), err)
	}
	return out, err
}

// withTeam returns an address with the mailbox's team if it names none.
func (m *Mailbox) withTeam(a wire.Address) wire.Address {
	if a.Agent != "" {
		a.Team = cmp.Or(a.Team, m.Address().Team)
	}
	return a
}

// Read calls use with the unread messages, oldest first, until it has returned nil for limit of them (0: all), and marks
// these as read. One for which it fails stays unread, and the next one comes, unless ctx has ended. Messages that somebody
// works on, such as a runner that is typing them, are left out. Read itself claims none: of two readers at once each may get
// a message.
//
// It returns the errors of use; why messages could not be marked, which come again, and where that is known before, as on a
// read-only disk, use is not called; and why the log does not tell of them.
func (m *Mailbox) Read(ctx context.Context, limit int, use func(*wire.Message) error) (errs error) {
	failed := map[wire.ID]bool{}
	for left := limit; ; {
		isNext := func(it *wire.Item) bool { return !failed[it.ID] }
		batch, err := inbox.Peek(ctx, m.box(), inbox.ReadOptions{Limit: left, Match: isNext})
		if err == nil {
			err = inbox.CheckMark(m.box(), batch.Items...)
		}
		var read []*wire.Item
		for _, it := range batch.Items {
			if err != nil || ctx.Err() != nil {
				break
			}
			if err := use(it.Message); err != nil {
				failed[it.ID], errs = true, errors.Join(errs, err)
			} else {
				read = append(read, it)
			}
		}
		errs = errors.Join(errs, err, inbox.MarkShown(ctx, m.box(), "", read...))
		left -= len(read)
		if err != nil || limit == 0 || left == 0 || len(batch.Items) == len(read) {
			return cmp.Or(errs, ctx.Err())
		}
	}
}

// handOverTime is how long a message is claimed that is being given to a program.
const handOverTime = 10 * time.Second

// HandOver gives the unread messages to another program, the oldest first: give stores one there, and then it is marked as
// read. Until then it is claimed, so that one of several processes gives it. If that is killed, or takes longer than ten
// seconds, it is given again, as what may be a repeat. Expired messages stay. If give fails, its message stays unread, and
// HandOver ends with that error.
//
// What gets into a program so acts by itself. So of a mailbox that package teams has opened nothing is given in a root where
// nothing may act, and the error says why.
func (m *Mailbox) HandOver(ctx context.Context, give func(message *wire.Message, mayBeRepeat bool) error) error {
	for {
		show := func(it *wire.Item, _ wire.Lease) (isGiven bool, err error) {
			if err = m.box().Store().MayAct(ctx); err == nil {
				err = give(it.Message, it.TimesHandedOut > 0)
			}
			return err == nil, err
		}
		it, err := claim.Lease(ctx, m.box(), m.Address(), handOverTime, inbox.ReadOptions{Current: true}, show)
		if it == nil || err != nil {
			return err
		}
		if err := m.box().MarkRead(context.WithoutCancel(ctx), it.ID); err != nil {
			return fmt.Errorf("mark message %s as read: %w", it.ID.Short(6), err)
		}
	}
}

// MarkRead marks messages as read that have come by Watch, List or Get: one that requires an acknowledgement is Owed then,
// any other Done. One that is not unread any more, or that somebody works on, stays as it is. ErrNotFound if there is none.
func (m *Mailbox) MarkRead(ctx context.Context, ids ...wire.ID) (errs error) {
	for _, id := range ids {
		_, err := m.box().Get(id)
		if err == nil {
			err = m.box().MarkRead(ctx, id)
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("mark message %s as read: %w", id.Short(6), err))
		}
	}
	return errs
}

// List lists the messages in some states, without marking any; without a state those that are unread. It takes in dropped
// files first. Done ones may be many: they are opened as the loop goes on. An error is the last that it yields.
func (m *Mailbox) List(ctx context.Context, states ...wire.State) iter.Seq2[*wire.Item, error] {
	has := func(s wire.State) bool { return slices.Contains(states, s) }
	rg := maildir.Range{Unread: len(states) == 0 || has(wire.Unread), Owed: has(wire.Owed), Done: has(wire.Done), Withdrawn: has(wire.Withdrawn)}
	return func(yield func(*wire.Item, error) bool) {
		goesOn := true
		_, err := inbox.Walk(ctx, m.box(), rg, func(it *wire.Item) bool {
			goesOn = yield(it, nil)
			return goesOn
		})
		if err != nil && goesOn {
			yield(nil, err)
		}
	}
}

// Get returns a message, or ErrNotFound.
func (m *Mailbox) Get(id wire.ID) (*wire.Item, error) { return m.box().Get(id) }

// Watched returns the mailbox as watcher.Open takes it, which watches several at once, and their events too.
func (m *Mailbox) Watched() watcher.Mailbox { return m.box() }

// Watch yields the messages that are unread, and then those that come, each once, until ctx ends; it marks none. A
// message that cannot be read comes as an error, and the loop may go on.
func (m *Mailbox) Watch(ctx context.Context) iter.Seq2[*wire.Message, error] {
	return func(yield func(*wire.Message, error) bool) {
		w := watcher.Open(ctx, []watcher.Mailbox{m.Watched()}, watcher.Options{Messages: true, Existing: true})
		defer w.Close()
		for {
			e, err := w.Next(ctx)
			if ctx.Err() != nil {
				return
			}
			if err = errors.Join(err, e.Err); err == nil && e.Message == nil {
				continue
			}
			if !yield(e.Message, err) {
				return
			}
		}
	}
}
