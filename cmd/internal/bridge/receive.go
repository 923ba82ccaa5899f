package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

const (
	maxAttachment = 1 << 30                // bytes of one
	maxFetches    = 4                      // from the object store at a time
	minRate       = 128 << 10 / maxFetches // bytes a second of each fetch; a slower one times out
)

type incoming struct {
	*Envelope
	data    []byte
	msg     delivery  // nil: it is retried from the directory bad
	badName string    // its file there
	tries   uint64    // with this one
	stored  time.Time // when the server got it, by its clock; zero: not known
	isTaken bool      // it was taken before
	err     error     // why it was not accepted

	message *wire.Message  // nil: it is not mail
	boxes   []*maildir.Box // of the recipients here
	post    *maildir.Post  // the delivery
}

// badError says that an envelope can never be accepted.
type badError struct{ error }

func bad(format string, args ...any) error { return badError{fmt.Errorf(format, args...)} }

// receive ingests what the server has for this host, and under Run also what comes later, until the connection fails.
// Objects are fetched in the background.
func (b *Bridge) receive(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var fetching sync.WaitGroup
	defer fetching.Wait()
	slots := make(chan struct{}, maxFetches)
	fetch := func(in *incoming) { fetching.Go(func() { b.fetchInBackground(ctx, in, slots) }) }
	for {
		n, err := b.way.receive(ctx, func(group []delivery) {
			var batch []*incoming
			for _, d := range group {
				batch = append(batch, newIncoming(d))
			}
			b.ingest(ctx, batch, fetch)
		})
		if err != nil {
			cancel()
			if lost := (lostError{}); errors.As(err, &lost) {
				return err
			}
			return fmt.Errorf("receive from %s: %w", b.way, err)
		}
		if n == 0 && !b.isContinuous {
			return nil
		}
	}
}

func newIncoming(d delivery) *incoming {
	in := &incoming{msg: d, data: d.Data()}
	in.tries, in.stored = d.meta()
	return in
}

// ingest opens envelopes and finishes them. It passes those with something in the object store to fetch.
func (b *Bridge) ingest(ctx context.Context, batch []*incoming, fetch func(*incoming)) {
	var whole []*incoming
	for _, in := range batch {
		in.err = b.openEnvelope(in)
		if in.err == nil && !in.isTaken && (in.Object || in.message != nil && len(in.message.Attachments) > 0) {
			fetch(in)
		} else {
			whole = append(whole, in)
		}
	}
	b.finish(ctx, whole)
}

// openEnvelope opens an envelope for this host and team, and the mail in it.
func (b *Bridge) openEnvelope(in *incoming) error {
	e, err := Open(in.data, b.keys().Key)
	switch {
	case err != nil:
		return badError{err}
	case e.Team != b.Team.Name || e.ToHost != b.Host:
		return bad("it is for host %q of team %q", e.ToHost, e.Team)
	case b.peer != "" && e.FromHost != b.peer && in.msg != nil:
		return bad("host %s handed over an envelope of host %s", b.peer, e.FromHost)
	case e.Kind != KindMail && e.Kind != KindStage:
		return bad("an envelope of kind %q, which this atm does not know", e.Kind)
	}
	in.Envelope = e
	if in.badName == "" { // else a person has it tried again
		late := in.stored.Sub(e.At)
		if in.isTaken, err = b.taken.has(b, e); in.isTaken || err != nil {
			return err
		}
		if !in.stored.IsZero() && late > maxDelay {
			return bad("signed %s before the server got it: somebody has sent it again, or a clock is wrong", letter.Span(late))
		}
	}
	if e.Kind == KindMail && !e.Object {
		return b.openMail(in)
	}
	return nil
}

func (b *Bridge) openMail(in *incoming) error {
	m, err := wire.Decode(in.Content)
	if err == nil {
		err = post.CheckID(m.ID)
	}
	switch {
	case err != nil:
		return badError{err}
	case m.ID != in.ID:
		return bad("the message inside is %s", m.ID)
	case m.From.Host != in.FromHost, m.From.Team != b.Team.Name:
		return bad("host %s signed a message from %s", in.FromHost, m.From)
	}
	for i, a := range m.To {
		if a.Host == b.Host && a.Team == b.Team.Name && !slices.Contains(m.To[:i], a) {
			in.boxes = append(in.boxes, b.Team.Box(a.Agent))
		}
	}
	if len(in.boxes) == 0 {
		return bad("none of its recipients is here")
	}
	m.ReplaceHost(b.Host, "")
	in.message = m
	return nil
}

// fetchInBackground fetches once a slot is free. Until it has, it keeps the server from delivering the envelope again.
func (b *Bridge) fetchInBackground(ctx context.Context, in *incoming, slots chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for app.Sleep(ctx, ackWait/2) {
			in.msg.InProgress()
		}
	}()
	slots <- struct{}{}
	b.fetch(ctx, in)
	<-slots
}

// fetch fetches what an envelope has in the object store, and finishes the envelope.
func (b *Bridge) fetch(ctx context.Context, in *incoming) {
	if in.Object {
		in.err = b.fetchObject(ctx, in.SHA256, in.Size, func(r io.Reader) (err error) {
			if in.Content, err = io.ReadAll(r); err == nil {
				err = in.checkContent()
			}
			return err
		})
		if in.err == nil && in.Kind == KindMail {
			in.err = b.openMail(in)
		}
	}
	if in.message != nil {
		for _, a := range in.message.Attachments {
			if in.err == nil {
				in.err = b.fetchAttachment(ctx, a)
			}
		}
	}
	b.finish(ctx, []*incoming{in})
}

// fetchObject calls f with an object's content, of which it reads one byte more than size at most. f checks the
// content.
func (b *Bridge) fetchObject(ctx context.Context, sha256 string, size int64, f func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*apiTimeout+time.Duration(size/minRate)*time.Second)
	defer cancel()
	object, err := b.way.object(ctx, sha256)
	if err == nil {
		defer object.Close()
		err = f(io.LimitReader(object, size+1))
	}
	if err != nil {
		return fmt.Errorf("fetch %s: %w", sha256, err)
	}
	return nil
}

func (b *Bridge) fetchAttachment(ctx context.Context, a wire.Attachment) error {
	if a.Size > maxAttachment {
		return bad("attachment %q: more than %d bytes", a.Name, maxAttachment)
	}
	lock := &b.fetching[a.SHA256[0]%16]
	lock.Lock()
	defer lock.Unlock()
	f, err := filestore.Open(b.Team.Dir(), a)
	if err == nil {
		return f.Close()
	}
	return b.fetchObject(ctx, a.SHA256, a.Size, func(r io.Reader) error { return filestore.AddKnown(b.Team.Dir(), a, r) })
}

// finish delivers mail and records stages. It acknowledges each envelope that is done or was moved aside as bad, and
// lets the server deliver the others again.
func (b *Bridge) finish(ctx context.Context, batch []*incoming) {
	ofKind := map[string][]*incoming{}
	for _, in := range batch {
		if in.err == nil && !in.isTaken {
			ofKind[in.Kind] = append(ofKind[in.Kind], in)
		}
	}
	b.deliver(ctx, ofKind[KindMail])
	b.recordStages(ctx, ofKind[KindStage])
	for _, in := range batch {
		_, isBad := errors.AsType[badError](in.err)
		switch {
		case in.err == nil && in.badName != "":
			b.Team.Dir().Remove(path.Join(teamdir.BadEnvelopes, in.badName))
		case in.err == nil || ctx.Err() != nil:
		case isBad || in.tries >= maxTries:
			in.err = b.moveAside(in)
		}
	}
	b.noteTaken(batch)
	for _, in := range batch {
		if in.err != nil && ctx.Err() == nil {
			b.warn("receive: %v", in.err)
		}
		if in.msg != nil && in.tries > 1 {
			b.unfinished.Add(-1) // it was counted at the last try
		}
		switch {
		case in.msg == nil:
		case in.err == nil:
			in.msg.accept() // if it gets lost, the envelope comes again and is deduplicated
		default:
			b.unfinished.Add(1)
			in.msg.refuse(in.err, min(time.Second<<min(in.tries, 10), maxPause))
		}
	}
}

// noteTaken notes the envelopes that are done or were moved aside. One that cannot be noted comes again.
func (b *Bridge) noteTaken(batch []*incoming) {
	var all []*Envelope
	for _, in := range batch {
		if in.err == nil && in.Envelope != nil && !in.isTaken {
			all = append(all, in.Envelope)
		}
	}
	if err := b.taken.add(b, all); err != nil {
		for _, in := range batch {
			in.err = cmp.Or(in.err, err)
		}
	}
}

// deliver delivers a batch of mail at once, so that the files share the disk's flushes.
func (b *Bridge) deliver(ctx context.Context, mail []*incoming) {
	var posts []*maildir.Post
	for _, in := range mail {
		in.post = &maildir.Post{Message: in.message, Given: true}
		if isOneWay(in.message) && len(in.boxes) == 1 { // its id is derived, and another message may have it
			m := in.message
			in.post.Derived = func(old *wire.Message) bool {
				return old.Kind() == m.Kind() && old.From == m.From && old.InReplyTo == m.InReplyTo
			}
		}
		if in.post.To, in.err = b.applyAnswers(ctx, in); in.err == nil {
			posts = append(posts, in.post)
		}
	}
	maildir.Deliver(ctx, posts...)
	for _, in := range mail {
		var unknown []*maildir.Box
		for _, o := range in.post.Outcomes { // none if it was not delivered
			if errors.Is(o.Err, mailbox.ErrNoMailbox) {
				unknown = append(unknown, o.Box)
				continue
			}
			in.err = cmp.Or(in.err, b.finishDelivery(in.message, o))
		}
		if len(unknown) > 0 {
			in.err = cmp.Or(in.err, b.returnMail(ctx, in.message, unknown))
		}
	}
}

// returnMail sends the sender of a message one notice of the recipients who are not here.
func (b *Bridge) returnMail(ctx context.Context, m *wire.Message, unknown []*maildir.Box) error {
	var names []wire.Name
	var addresses []wire.Address
	for _, box := range unknown {
		names, addresses = append(names, box.Agent()), append(addresses, b.addressOf(box))
	}
	who := app.Join(names[:min(len(names), 20)])
	if more := len(names) - 20; more > 0 {
		who += fmt.Sprintf(" and %d more", more)
	}
	why := fmt.Sprintf("there is no %s on host %s", who, b.Host)
	if isOneWay(m) {
		return bad("%s", why)
	}
	notice := post.ReturnNotice(m.ID, addresses)
	notice.Subject, notice.Body = "not delivered: "+m.Title(), fmt.Sprintf("%s: your message %s was not delivered.", why, m.ID.Short(6))
	if len(names) > 1 {
		notice.Body = fmt.Sprintf("%s: your message %s was not delivered to them.", why, m.ID.Short(6))
	}
	return b.notifySender(ctx, m, unknown[0], notice, why)
}

// addressOf returns the address that a member here has on other hosts.
func (b *Bridge) addressOf(box *maildir.Box) wire.Address {
	a := box.Address()
	a.Host = b.Host // another host may return the same message
	return a
}

// finishDelivery records a receipt for a delivered message.
func (b *Bridge) finishDelivery(m *wire.Message, o maildir.Outcome) error {
	if taken, ok := errors.AsType[*maildir.IDTakenError](o.Err); ok {
		return bad("a message from %s already has its id", b.display(taken.By))
	}
	if o.Err != nil {
		return o.Err
	}
	if !o.WasDelivered {
		b.reportMail("received", m, m.From.Host, string(o.Box.Agent()), "")
	}
	return b.addReceipt(m, o.Box.Agent()) // after an error the message comes again and is deduplicated
}

// notifySender sends the sender of a message, on another host, a notice of what happened at a recipient here. The
// notice's id is derived from the event, so that it goes out once.
func (b *Bridge) notifySender(ctx context.Context, m *wire.Message, box *maildir.Box, notice *wire.Message, reason string) error {
	outbox, err := b.Root.Mailbox(m.From)
	if err != nil {
		return err
	}
	notice.Type, notice.From, notice.To, notice.InReplyTo = wire.TypeNotice, box.Address(), []wire.Address{m.From}, m.ID
	notice.Thread, notice.ReplyWanted, notice.SentAt = m.ThreadID(), "no", time.Now().UTC()
	post := &maildir.Post{Message: notice, To: []*maildir.Box{outbox}, Derived: post.IsNoticeFrom(box.Address())}
	maildir.Deliver(ctx, post)
	if post.Outcomes[0].Err == nil {
		b.reportMail("returned", m, m.From.Host, string(box.Agent()), reason)
	}
	return post.Outcomes[0].Err
}

// moveAside saves an envelope in the directory bad, with its error as the reason.
func (b *Bridge) moveAside(in *incoming) error {
	dir, file := b.Team.Dir(), path.Join(teamdir.BadEnvelopes, cmp.Or(in.badName, hashOf(in.data)))
	err := dir.MkdirAll(teamdir.BadEnvelopes)
	if err == nil && in.badName == "" {
		err = dir.Replace(file, in.data[:min(len(in.data), maxEnvelope+1)], true) // one byte too many proves that it was too large
	}
	if err == nil {
		err = dir.Replace(file+presence.ReasonSuffix, []byte(in.err.Error()+"\n"), true)
	}
	if err != nil {
		return fmt.Errorf("set aside an envelope (%w): %w", in.err, err)
	}
	b.Report(Transfer{Kind: "bad", Title: path.Base(file)[:12], Reason: in.err.Error()})
	return nil
}

// retryBad ingests the bad envelopes whose reason `atm bridge retry` has removed.
func (b *Bridge) retryBad(ctx context.Context) error {
	names, err := b.Team.Dir().Names(teamdir.BadEnvelopes)
	for _, name := range names {
		if len(name) != 64 || slices.Contains(names, name+presence.ReasonSuffix) {
			continue
		}
		data, e := b.Team.Dir().ReadFile(path.Join(teamdir.BadEnvelopes, name), maxEnvelope+1)
		err = errors.Join(err, e)
		if e == nil && b.isFor(signerOf(data, b.peer)) {
			b.ingest(ctx, []*incoming{{data: data, badName: name, tries: maxTries}}, func(in *incoming) { b.fetch(ctx, in) })
		}
	}
	return err
}
