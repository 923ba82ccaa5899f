package bridge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// addOutboxes watches the outboxes. An outbox is made by the first message for its host.
func (b *Bridge) addOutboxes(w *watcher.Dirs) {
	w.Add(b.Team.Dir().Join(mailbox.BridgeDir))
	hosts, _ := b.Root.Keys.Hosts() // where they cannot be read, send says so
	for _, host := range hosts {
		path := b.Team.Outbox(wire.Address{Host: host}).Path()
		w.Add(path, path+"/new")
	}
}

// send publishes what lies in the outboxes of hosts that are trusted. What is wrong with one message keeps back no
// other; the error is the first, since a stream at its limit has the same for all.
func (b *Bridge) send(ctx context.Context) error {
	hosts, err := b.Root.Keys.Hosts()
	for _, host := range hosts {
		box := b.Team.Outbox(wire.Address{Host: host})
		ids, e := box.Outgoing()
		err = cmp.Or(err, e)
		for some := range slices.Chunk(ids, batchSize) {
			err = cmp.Or(err, b.sendSome(ctx, host, box, some))
		}
	}
	return err
}

// sendSome publishes messages of one outbox, and removes those that the server has acknowledged.
func (b *Bridge) sendSome(ctx context.Context, host wire.Name, box *mailbox.Box, ids []wire.ID) error {
	items, err := box.TakeOutgoing(ctx, ids)
	var acks []func() error // waiting for one after the other, all are under way
	var sent []wire.ID
	for _, it := range items {
		id, m := it.ID, it.Message // an ack gets another id for its way
		acked := b.publishMail(ctx, host, m)
		acks = append(acks, func() error {
			if err := acked(); err != nil {
				return fmt.Errorf("send %s to %s: %w", id.Short(6), host, err)
			}
			var to []string
			for _, a := range m.To {
				if a.Host == host {
					to = append(to, b.who(a))
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
		err = cmp.Or(err, box.RemoveOutgoing(sent...))
	}
	return err
}

// publishMail publishes a message, and first what it needs in the object store.
func (b *Bridge) publishMail(ctx context.Context, host wire.Name, m *wire.Message) (acked func() error) {
	m.ReplaceHost("", b.Host)
	content, err := m.MarshalJSON()
	for _, a := range m.Attachments {
		var f *os.File
		if err == nil {
			f, err = b.Team.Attachment(a)
		}
		if err == nil {
			err = b.putObject(ctx, a.SHA256, a.Size, f)
			f.Close()
		}
	}
	if err != nil {
		return func() error { return err }
	}
	return b.publish(ctx, &Envelope{Kind: KindMail, ID: m.ID, ToHost: host, Content: content})
}

// publish signs an envelope and publishes it. acked waits until the server has stored it, and says what went wrong.
func (b *Bridge) publish(ctx context.Context, e *Envelope) (acked func() error) {
	e.Team, e.FromHost, e.At = b.Team.Name, b.Host, time.Now()
	e.Object = len(e.Content) > min(maxInline, int(b.conn.MaxPayload())-2*maxHeader)
	data, err := e.Sign(b.key), error(nil)
	if e.Object {
		err = b.putObject(ctx, e.SHA256, e.Size, bytes.NewReader(e.Content))
	}
	var ack jetstream.PubAckFuture
	if err == nil {
		ack, err = b.js.PublishMsgAsync(&nats.Msg{Subject: b.subject(e.ToHost), Data: data},
			jetstream.WithMsgID(string(e.ID)+"/"+string(e.ToHost)), jetstream.WithExpectStream(b.stream()))
	}
	return func() error {
		if err != nil {
			return b.explain(err)
		}
		select {
		case <-ack.Ok():
			return nil
		case err := <-ack.Err():
			return b.explain(err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// explain says in our words that the stream or a bucket is full.
func (b *Bridge) explain(err error) error {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && strings.HasPrefix(api.Description, "maximum ") {
		return fmt.Errorf("%s is at its limit on the server (%s), and the message waits in the outbox", b.stream(), api.Description)
	}
	return err
}

// putObject stores content under the name of its SHA-256, unless it is there, whole: a Put that fails takes back its
// chunks, and may leave the object's name behind; and anybody may have stored something else.
func (b *Bridge) putObject(ctx context.Context, sha256 string, size int64, content io.Reader) error {
	info, err := b.files.GetInfo(ctx, sha256)
	if err == nil && b.isWhole(ctx, info, sha256, size) {
		return nil
	}
	if err == nil || errors.Is(err, jetstream.ErrObjectNotFound) {
		_, err = b.files.Put(ctx, jetstream.ObjectMeta{Name: sha256}, content)
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", sha256, b.explain(err))
	}
	return nil
}

func (b *Bridge) isWhole(ctx context.Context, info *jetstream.ObjectInfo, sha256 string, size int64) bool {
	subject, state := "$O."+info.Bucket+".C."+info.NUID, &jetstream.StreamInfo{}
	stream, err := b.js.Stream(ctx, "OBJ_"+info.Bucket)
	if err == nil {
		state, err = stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	}
	sum, _ := jetstream.DecodeObjectDigest(info.Digest)
	return err == nil && state.State.Subjects[subject] == uint64(info.Chunks) && hex.EncodeToString(sum) == sha256 && info.Size == uint64(size)
}
