package bridge

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// addOutboxDirs watches the outboxes, and the directory where the first message for a host makes its outbox.
func (b *Bridge) addOutboxDirs(w *watcher.Dirs) {
	w.Add(b.Team.Dir().Join(maildir.BridgeDir))
	hosts, _ := b.hosts() // send reports the error
	for _, host := range hosts {
		path := b.Team.Store.Outbox(wire.Address{Host: host}).Path()
		w.Add(path, path+"/new")
	}
}

// send publishes the mail in the outboxes of trusted hosts. After an error it goes on with the other messages. It
// returns only the first error, since a full stream gives the same one for all.
func (b *Bridge) send(ctx context.Context) error {
	b.sending.Lock()
	defer b.sending.Unlock()
	b.way.beginPass()
	hosts, err := b.hosts()
	for _, host := range hosts {
		box := b.Team.Store.Outbox(wire.Address{Host: host})
		ids, e := claim.Outgoing(box)
		if e == nil && len(ids) > 0 {
			e = b.Team.Store.MayAct(ctx)
		}
		if e == nil {
			for batch := range slices.Chunk(ids, batchSize) {
				e = cmp.Or(e, b.sendBatch(ctx, host, box, batch))
			}
		}
		b.noteHeld(ctx, host, e)
		err = cmp.Or(err, e)
	}
	return err
}

// noteHeld notes why the mail for a host is not sent, for commands to tell. The caller holds sending.
func (b *Bridge) noteHeld(ctx context.Context, host wire.Name, err error) {
	reason := ""
	if err != nil {
		reason = letter.Clip(err.Error(), 300)
	}
	if last, isKnown := b.held[host]; ctx.Err() != nil || isKnown && last == reason {
		return
	}
	if presence.NoteHeld(b.Team, host, reason) == nil { // on a full disk the next pass notes it
		if b.held == nil {
			b.held = map[wire.Name]string{}
		}
		b.held[host] = reason
	}
}

// noteAllHeld notes why no mail can be sent. What a stranger calls itself says nothing of the host of that name.
func (b *Bridge) noteAllHeld(ctx context.Context, err error) {
	if b.isStranger {
		return
	}
	b.sending.Lock()
	defer b.sending.Unlock()
	hosts, _ := b.hosts()
	for _, host := range hosts {
		b.noteHeld(ctx, host, err)
	}
}

// sendBatch publishes messages of one outbox, and removes those that the server has acknowledged.
func (b *Bridge) sendBatch(ctx context.Context, host wire.Name, box *maildir.Box, ids []wire.ID) error {
	items, err := claim.TakeOutgoing(ctx, box, ids)
	var acks []func() error // called once all messages are published
	var sent []wire.ID
	for _, it := range items {
		id, m := it.ID, it.Message // publishMail gives an ack another id
		acked := b.publishMail(ctx, host, m)
		acks = append(acks, func() error {
			if err := acked(); err != nil {
				return fmt.Errorf("send %s to %s: %w", id.Short(6), host, err)
			}
			var to []string
			for _, a := range m.To {
				if a.Host == host {
					to = append(to, b.display(a))
				}
			}
			sent = append(sent, id)
			b.reportMail("sent", m, host, strings.Join(to, ", "), "")
			return nil
		})
	}
	for _, acked := range acks {
		err = cmp.Or(err, acked())
	}
	if len(sent) > 0 {
		err = cmp.Or(err, claim.RemoveOutgoing(box, sent...))
	}
	return err
}

// publishMail stores a message's attachments, and publishes the message.
func (b *Bridge) publishMail(ctx context.Context, host wire.Name, m *wire.Message) (acked func() error) {
	m.To = slices.DeleteFunc(slices.Clone(m.To), func(a wire.Address) bool { return !b.isKnownAt(host, a) })
	m.ReplaceHost("", b.Host)
	content, err := m.MarshalJSON()
	for _, a := range m.Attachments {
		if err == nil {
			err = b.way.offer(ctx, a.SHA256, func() (io.ReadCloser, error) { return filestore.Open(b.Team.Dir(), a) })
		}
	}
	if err != nil {
		return func() error { return err }
	}
	e := &Envelope{Kind: KindMail, ID: m.ID, ToHost: host, Content: content}
	if b.peer != "" {
		e.At = m.SentAt // so that it is the same envelope when it is sent again, however late
	}
	return b.publish(ctx, e)
}

// isKnownAt reports whether an address means the same on another host. What a link calls a root is its name only here.
func (b *Bridge) isKnownAt(host wire.Name, a wire.Address) bool {
	return a.Host == "" || a.Host == host || !b.Root.IsLink(a.Host)
}

// publish signs an envelope and publishes it. acked waits until it is stored elsewhere, and returns any error.
func (b *Bridge) publish(ctx context.Context, e *Envelope) (acked func() error) {
	e.Team, e.FromHost = b.Team.Name, b.Host
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.Object = len(e.Content) > b.way.maxInline()
	return b.way.publish(ctx, e, e.Sign(b.key))
}
