package bridge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentteammail/atm/mailbox"
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

// receive takes in what the server has for this host, until something goes wrong with the connection.
func (b *Bridge) receive(ctx context.Context) error {
	arrived, failed := make(chan jetstream.Msg, batchSize), make(chan error, 1)
	consuming, err := b.consumer.Consume(func(m jetstream.Msg) {
		select {
		case arrived <- m:
		case <-ctx.Done():
		}
	}, jetstream.PullMaxMessages(batchSize), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		select {
		case failed <- err:
		default:
		}
	}))
	if err != nil {
		return fmt.Errorf("receive from %s: %w", b.server(), err)
	}
	defer consuming.Stop()
	for {
		select {
		case m := <-arrived:
			batch := []*incoming{{msg: m, data: m.Data()}}
			for len(batch) < batchSize && len(arrived) > 0 {
				m = <-arrived
				batch = append(batch, &incoming{msg: m, data: m.Data()})
			}
			b.takeIn(ctx, batch)
		case err := <-failed:
			return fmt.Errorf("receive from %s: %w", b.server(), err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fetch takes in what the server has for this host now.
func (b *Bridge) fetch(ctx context.Context) error {
	for {
		fetched, err := b.consumer.FetchNoWait(batchSize)
		if err != nil {
			return fmt.Errorf("receive from %s: %w", b.server(), err)
		}
		var batch []*incoming
		for m := range fetched.Messages() {
			batch = append(batch, &incoming{msg: m, data: m.Data()})
		}
		b.takeIn(ctx, batch)
		if err = fetched.Error(); err != nil || len(batch) == 0 || ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
	}
}

// takeIn does with envelopes what their kinds ask for, and then tells the server.
func (b *Bridge) takeIn(ctx context.Context, batch []*incoming) {
	byKind := map[string][]*incoming{}
	for _, in := range batch {
		if in.Envelope, in.err = b.accept(in.data); in.err != nil {
			in.err = badError{in.err}
		} else if in.Object {
			in.err = b.fetchContent(ctx, in.Envelope)
		}
		if in.err == nil {
			byKind[in.Kind] = append(byKind[in.Kind], in)
		}
	}
	for kind, some := range byKind {
		switch kind {
		case KindMail:
			b.deliver(ctx, some)
		case KindStage:
			b.noteStages(ctx, some)
		default:
			for _, in := range some {
				in.err = bad("an envelope of the kind %q, which this atm does not know", kind)
			}
		}
	}
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
	isBad := errors.As(in.err, new(badError)) || in.msg == nil
	tries := uint64(1)
	if in.msg != nil {
		if about, err := in.msg.Metadata(); err == nil {
			tries = about.NumDelivered
		}
	}
	if in.err != nil && ctx.Err() == nil && (isBad || tries >= maxTries) {
		if err := b.setAside(in); err != nil {
			b.warn(err)
		} else {
			in.err = nil
		}
	} else if in.err == nil && in.msg == nil {
		in.err = b.dropBad(in.bad)
	}
	switch {
	case in.msg == nil:
	case in.err == nil:
		in.msg.Ack() // what is lost comes again, and is known
	default:
		if ctx.Err() == nil {
			b.warn(fmt.Errorf("receive %s: %w", nameOf(in.data), in.err))
		}
		in.msg.NakWithDelay(min(time.Second<<min(tries, 10), maxPause))
	}
}

// fetchContent fetches the content of an envelope from the object store.
func (b *Bridge) fetchContent(ctx context.Context, e *Envelope) error {
	var content bytes.Buffer
	err := b.fetchObject(ctx, e.SHA256, e.Size, func(r io.Reader) error {
		_, err := content.ReadFrom(r)
		return err
	})
	if e.Content = content.Bytes(); err == nil {
		err = e.checkContent()
	}
	return err
}

// fetchObject calls f with an object if it is what its name says and has the size that was signed.
func (b *Bridge) fetchObject(ctx context.Context, sha256 string, size int64, f func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*apiTimeout+time.Duration(size/slowest)*time.Second)
	defer cancel()
	object, err := b.files.Get(ctx, sha256)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", sha256, err)
	}
	defer object.Close()
	if info, err := object.Info(); err != nil || info.Digest != digest(sha256) || info.Size != uint64(size) {
		return errors.Join(err, fmt.Errorf("fetch %s: the object of that name is another", sha256))
	}
	return f(io.LimitReader(object, size))
}

// deliver delivers mail into the mailboxes here, all of a batch as one: their syncs share the disk's flushes.
func (b *Bridge) deliver(ctx context.Context, mail []*incoming) {
	posts := map[*incoming]*mailbox.Post{}
	var all []*mailbox.Post
	for _, in := range mail {
		post, err := b.prepare(ctx, in)
		if in.err = err; err == nil {
			posts[in] = post
			all = append(all, post)
		}
	}
	mailbox.Deliver(ctx, all...)
	for _, in := range mail {
		post := posts[in]
		if post == nil {
			continue
		}
		for _, o := range post.Outcomes {
			name := o.Box.Agent()
			content := (*mailbox.ContentError)(nil)
			switch {
			case errors.Is(o.Err, mailbox.ErrNoAgent):
				in.err = cmp.Or(in.err, b.giveBack(ctx, in, name))
			case errors.As(o.Err, &content):
				in.err = badError{o.Err}
			case o.Err != nil:
				in.err = cmp.Or(in.err, o.Err)
			default:
				b.noteReceived(in.message, name)
				if !o.Known {
					b.report(Transfer{Kind: "received", ID: in.ID, Host: in.FromHost, From: b.who(in.message.From), To: string(name), Title: in.message.Title()})
				}
			}
		}
	}
}

// prepare checks a message, brings its attachments here, and says whom it is for.
func (b *Bridge) prepare(ctx context.Context, in *incoming) (*mailbox.Post, error) {
	m, err := wire.Decode(in.Content)
	switch {
	case err != nil:
		return nil, badError{err}
	case m.ID != in.ID:
		return nil, bad("the message inside is %s", m.ID)
	case m.From.Host != in.FromHost:
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
	m.RemoveHost(b.Host)
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
			err = fmt.Errorf("attachment %q: its content is not the one that was signed", a.Name)
		}
		return err
	})
}

// giveBack tells the sender that nobody of that name is here.
func (b *Bridge) giveBack(ctx context.Context, in *incoming, name wire.Name) error {
	m, nobody := in.message, wire.Address{Agent: name, Team: b.Team.Name}
	reason := fmt.Sprintf("there is no %s on host %s", name, b.Host)
	if m.Kind() == wire.TypeAck || m.Kind() == wire.TypeNotice {
		return bad("%s", reason) // nobody waits for an answer
	}
	body := fmt.Sprintf("%s: your message %s is not delivered there.", reason, m.ID.Short(6))
	if err := b.notify(ctx, m, nobody, "returned", "not delivered: "+m.Title(), body); err != nil {
		return err
	}
	b.report(Transfer{Kind: "returned", ID: m.ID, Host: in.FromHost, From: b.who(m.From), To: string(name), Title: m.Title(), Reason: reason})
	return nil
}

// notify sends the sender of a message on another host a notice about it, once.
func (b *Bridge) notify(ctx context.Context, m *wire.Message, from wire.Address, what, subject, body string) error {
	outbox, err := b.Root.Mailbox(m.From)
	if err != nil {
		return err
	}
	notice := &wire.Message{
		ID: wire.Derive(what, m.ID, from), Type: wire.TypeNotice, From: from, To: []wire.Address{m.From}, InReplyTo: m.ID,
		Thread: m.ThreadID(), Subject: subject, Body: body, ReplyWanted: "no", SentAt: time.Now().UTC(),
	}
	post := &mailbox.Post{Message: notice, To: []*mailbox.Box{outbox}, Given: true}
	mailbox.Deliver(ctx, post)
	return post.Outcomes[0].Err
}
