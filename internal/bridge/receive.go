package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

const (
	maxAttachment = 1 << 30   // bytes of one
	slowest       = 128 << 10 // bytes a second at which an object comes, at least
)

// incoming is an envelope that has arrived.
type incoming struct {
	*Envelope
	data    []byte
	msg     jetstream.Msg // nil: it comes from bad, to be tried again
	bad     string        // its name there
	message *wire.Message // of mail
	err     error         // why it was not accepted, yet or at all
}

// badError says that an envelope cannot be accepted, however often it is tried.
type badError struct{ error }

func bad(format string, args ...any) error { return badError{fmt.Errorf(format, args...)} }

// receive takes in what the server has for this host, and in a bridge that stays what comes, until something goes
// wrong with the connection.
func (b *Bridge) receive(ctx context.Context) error {
	for n := 1; n > 0 || b.again != nil; {
		within, cancel := context.WithTimeout(ctx, apiTimeout)
		fetched, err := jetstream.MessageBatch(nil), error(nil)
		if b.again != nil {
			fetched, err = b.consumer.Fetch(batchSize, jetstream.FetchContext(within))
		} else {
			fetched, err = b.consumer.FetchNoWait(batchSize)
		}
		if n = 0; err == nil {
			n, err = b.takeAll(ctx, fetched), fetched.Error()
		}
		cancel()
		if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
			return fmt.Errorf("receive from %s: %w", b.server(), err)
		}
	}
	return nil
}

// takeAll takes in messages as they come, and says how many they were.
func (b *Bridge) takeAll(ctx context.Context, fetched jetstream.MessageBatch) (n int) {
	for m := range fetched.Messages() {
		batch := []*incoming{{msg: m, data: m.Data()}}
		for range len(fetched.Messages()) { // what is there by now
			m = <-fetched.Messages()
			batch = append(batch, &incoming{msg: m, data: m.Data()})
		}
		b.takeIn(ctx, batch)
		n += len(batch)
	}
	return n
}

// takeIn does with envelopes what their kinds ask for, and then tells the server.
func (b *Bridge) takeIn(ctx context.Context, batch []*incoming) {
	var mail, stages []*incoming
	for _, in := range batch {
		if in.Envelope, in.err = b.accept(in.data); in.err != nil {
			in.err = badError{in.err}
		} else if in.Object {
			in.err = b.fetchContent(ctx, in.Envelope)
		}
		switch {
		case in.err != nil:
		case in.Kind == KindMail:
			mail = append(mail, in)
		case in.Kind == KindStage:
			stages = append(stages, in)
		default:
			in.err = bad("an envelope of the kind %q, which this atm does not know", in.Kind)
		}
	}
	b.deliver(ctx, mail)
	b.noteStages(ctx, stages)
	for _, in := range batch {
		b.settle(ctx, in)
	}
}

// accept opens an envelope that is for this host and team.
func (b *Bridge) accept(data []byte) (*Envelope, error) {
	e, err := Open(data, b.Root.Keys.Key)
	if err == nil && (e.Team != b.Team.Name || e.ToHost != b.Host) {
		err = fmt.Errorf("it is for host %q of team %q", e.ToHost, e.Team)
	} else if err == nil && e.FromHost == b.Host {
		err = errors.New("it says that it comes from this host")
	}
	return e, err
}

// settle acknowledges what is done, sets aside what is bad, and leaves the rest to be delivered again.
func (b *Bridge) settle(ctx context.Context, in *incoming) {
	tries := uint64(maxTries) // of what was set aside before
	if in.msg != nil {
		if about, err := in.msg.Metadata(); err == nil {
			tries = about.NumDelivered
		}
	}
	if in.err != nil && ctx.Err() == nil {
		if errors.As(in.err, new(badError)) || tries >= maxTries {
			in.err = b.setAside(in)
		}
		if in.err != nil {
			b.say("receive: %v", in.err)
		}
	} else if in.bad != "" && in.err == nil {
		in.err = b.Team.Dir().Remove(path.Join(teams.BadEnvelopes, in.bad))
	}
	if in.msg != nil && in.err == nil {
		in.msg.Ack() // what is lost comes again, and is known
	} else if in.msg != nil {
		in.msg.NakWithDelay(min(time.Second<<min(tries, 10), maxPause))
	}
}

// fetchContent fetches the content of an envelope from the object store.
func (b *Bridge) fetchContent(ctx context.Context, e *Envelope) error {
	return b.fetchObject(ctx, e.SHA256, e.Size, func(r io.Reader) (err error) {
		if e.Content, err = io.ReadAll(r); err == nil {
			err = e.checkContent()
		}
		return err
	})
}

// fetchObject calls f with an object, or a little more than has the size that was signed. f checks the content.
func (b *Bridge) fetchObject(ctx context.Context, sha256 string, size int64, f func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*apiTimeout+time.Duration(size/slowest)*time.Second)
	defer cancel()
	object, err := b.files.Get(ctx, sha256)
	if err == nil {
		defer object.Close()
		err = f(io.LimitReader(object, size+1))
	}
	if err != nil {
		return fmt.Errorf("fetch %s: %w", sha256, err)
	}
	return nil
}

// deliver delivers mail into the mailboxes here, all of a batch as one: their syncs share the disk's flushes.
func (b *Bridge) deliver(ctx context.Context, mail []*incoming) {
	var posts []*mailbox.Post
	for _, in := range mail {
		post, err := b.prepare(ctx, in)
		if in.err = err; err == nil {
			posts = append(posts, post)
		}
	}
	mailbox.Deliver(ctx, posts...)
	for _, in := range mail {
		if in.err != nil {
			continue
		}
		m, post := in.message, posts[0]
		posts = posts[1:]
		for _, o := range post.Outcomes {
			name := o.Box.Agent()
			if o.Known && o.Err == nil {
				var it *mailbox.Item
				if it, o.Err = o.Box.Get(m.ID); o.Err == nil && it.From != m.From {
					o.Err = bad("its id is taken by a message of %s", b.who(it.From))
				}
			}
			if content := (*mailbox.ContentError)(nil); errors.As(o.Err, &content) {
				o.Err = badError{o.Err}
			} else if errors.Is(o.Err, mailbox.ErrNoAgent) {
				o.Err = b.giveBack(ctx, m, name)
			} else if o.Err == nil {
				if !o.Known {
					b.report(Transfer{Kind: "received", ID: m.ID, Host: in.FromHost, From: b.who(m.From), To: string(name), Title: m.Title()})
				}
				o.Err = b.noteReceived(m, name) // else it comes again, and is known
			}
			in.err = cmp.Or(in.err, o.Err)
		}
	}
}

// prepare checks a message, brings its attachments here, and says whom it is for.
func (b *Bridge) prepare(ctx context.Context, in *incoming) (*mailbox.Post, error) {
	m, err := wire.Decode(in.Content)
	if err == nil {
		err = teams.GivenID(m.ID)
	}
	switch {
	case err != nil:
		return nil, badError{err}
	case m.ID != in.ID:
		return nil, bad("the message inside is %s", m.ID)
	case m.From.Host != in.FromHost, m.From.Team != b.Team.Name:
		return nil, bad("host %s signed a message from %s", in.FromHost, m.From)
	}
	post := &mailbox.Post{Message: m, Given: true}
	for i, a := range m.To {
		if a.Host == b.Host && a.Team == b.Team.Name && !slices.Contains(m.To[:i], a) {
			post.To = append(post.To, b.Team.Box(a.Agent))
		}
	}
	if len(post.To) == 0 {
		return nil, bad("nobody here is among its recipients")
	}
	for _, a := range m.Attachments {
		if err := b.fetchAttachment(ctx, a); err != nil {
			return nil, err
		}
	}
	m.ReplaceHost(b.Host, "")
	in.message = m
	post.To, err = b.answers(ctx, m, post.To)
	return post, err
}

// fetchAttachment stores the content of an attachment here, unless it is here.
func (b *Bridge) fetchAttachment(ctx context.Context, a wire.Attachment) error {
	if !wire.IsSHA256(a.SHA256) || a.Size < 0 || a.Size > maxAttachment {
		return bad("attachment %q: no hash, or more than %d bytes", a.Name, maxAttachment)
	}
	f, err := b.Team.Attachment(a)
	if err == nil {
		return f.Close()
	}
	return b.fetchObject(ctx, a.SHA256, a.Size, func(r io.Reader) error {
		stored, err := b.Team.Attach(a.Name, r)
		if err == nil && (stored.SHA256 != a.SHA256 || stored.Size != a.Size) {
			err = errors.New("its content is not the one that was signed")
		}
		return err
	})
}

// giveBack tells the sender that nobody of that name is here.
func (b *Bridge) giveBack(ctx context.Context, m *wire.Message, name wire.Name) error {
	nobody := wire.Address{Agent: name, Team: b.Team.Name}
	reason := fmt.Sprintf("there is no %s on host %s", name, b.Host)
	if m.Kind() == wire.TypeAck || m.Kind() == wire.TypeNotice {
		return bad("%s", reason) // nobody waits for an answer
	}
	body := fmt.Sprintf("%s: your message %s is not delivered there.", reason, m.ID.Short(6))
	if err := b.notify(ctx, m, nobody, "returned", "not delivered: "+m.Title(), body); err != nil {
		return err
	}
	b.report(Transfer{Kind: "returned", ID: m.ID, Host: m.From.Host, From: b.who(m.From), To: string(name), Title: m.Title(), Reason: reason})
	return nil
}

// notify sends the sender of a message on another host a notice about it, once.
func (b *Bridge) notify(ctx context.Context, m *wire.Message, from wire.Address, what, subject, body string) error {
	outbox, err := b.Root.Mailbox(m.From)
	if err != nil {
		return err
	}
	here := from
	here.Host = b.Host // two hosts may each return the same message
	notice := &wire.Message{
		ID: wire.Derive(what, m.ID, here), Type: wire.TypeNotice, From: from, To: []wire.Address{m.From}, InReplyTo: m.ID,
		Thread: m.ThreadID(), Subject: subject, Body: body, ReplyWanted: "no", SentAt: time.Now().UTC(),
	}
	post := &mailbox.Post{Message: notice, To: []*mailbox.Box{outbox}, Given: true}
	mailbox.Deliver(ctx, post)
	return post.Outcomes[0].Err
}
