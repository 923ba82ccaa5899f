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

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// addOutboxDirs watches the outboxes, and the directory where the first message for a host makes its outbox.
func (b *Bridge) addOutboxDirs(w *watcher.Dirs) {
	w.Add(b.Team.Dir().Join(maildir.BridgeDir))
	hosts, _ := b.keys().Hosts() // send reports the error
	for _, host := range hosts {
		path := b.Team.Outbox(wire.Address{Host: host}).Path()
		w.Add(path, path+"/new")
	}
}

// send publishes the mail in the outboxes of trusted hosts. After an error it goes on with the other messages. It
// returns only the first error, since a full stream gives the same one for all.
func (b *Bridge) send(ctx context.Context) error {
	b.room.next()
	hosts, err := b.keys().Hosts()
	for _, host := range hosts {
		box := b.Team.Outbox(wire.Address{Host: host})
		mayAct := b.Team.BeforeLook()
		ids, e := box.Outgoing()
		if e == nil && len(ids) > 0 {
			e = mayAct(ctx)
		}
		if err = cmp.Or(err, e); e != nil {
			continue
		}
		for batch := range slices.Chunk(ids, batchSize) {
			err = cmp.Or(err, b.sendBatch(ctx, host, box, batch))
		}
	}
	return err
}

// sendBatch publishes messages of one outbox, and removes those that the server has acknowledged.
func (b *Bridge) sendBatch(ctx context.Context, host wire.Name, box *maildir.Box, ids []wire.ID) error {
	items, err := box.TakeOutgoing(ctx, ids)
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
		err = cmp.Or(err, box.RemoveOutgoing(sent...))
	}
	return err
}

// publishMail stores a message's attachments, and publishes the message.
func (b *Bridge) publishMail(ctx context.Context, host wire.Name, m *wire.Message) (acked func() error) {
	m.ReplaceHost("", b.Host)
	content, err := m.MarshalJSON()
	for _, a := range m.Attachments {
		var f *os.File
		if err == nil {
			f, err = b.Team.Attachment(a)
		}
		if err == nil {
			err = b.putObject(ctx, a.SHA256, f)
			f.Close()
		}
	}
	if err != nil {
		return func() error { return err }
	}
	return b.publish(ctx, &Envelope{Kind: KindMail, ID: m.ID, ToHost: host, Content: content})
}

// publish signs an envelope and publishes it. acked waits until the server has stored it, and returns any error.
func (b *Bridge) publish(ctx context.Context, e *Envelope) (acked func() error) {
	e.Team, e.FromHost, e.At = b.Team.Name, b.Host, time.Now()
	e.Object = len(e.Content) > min(maxInline, int(b.conn.MaxPayload())-2*maxHeader)
	data, err := e.Sign(b.key), error(nil)
	if e.Object {
		err = b.putObject(ctx, e.SHA256, bytes.NewReader(e.Content))
	}
	if err == nil {
		err = b.reserve(ctx, e.ToHost, len(data)+overhead)
	}
	if err != nil {
		return func() error { return b.explainLimit(err) }
	}
	ack, err := b.js.PublishMsgAsync(&nats.Msg{Subject: b.subject(e.ToHost), Data: data},
		jetstream.WithMsgID(string(e.ID)+"/"+string(e.ToHost)+"/"+e.SHA256), jetstream.WithExpectStream(b.stream()))
	return func() error {
		defer b.room.settle(len(data) + overhead)
		if err != nil {
			return b.explainLimit(err)
		}
		select {
		case <-ack.Ok():
			return nil
		case err := <-ack.Err():
			return b.explainLimit(err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// explainLimit rewords the server's error for a stream or bucket that is full or takes no such message.
func (b *Bridge) explainLimit(err error) error {
	api, ok := errors.AsType[*jetstream.APIError](err)
	switch {
	case !ok:
		return err
	case strings.HasPrefix(api.Description, "maximum "):
		return fmt.Errorf("%s is full on the server (%s): the message waits in the outbox", b.stream(), api.Description)
	}
	return fmt.Errorf("%s does not take it on the server (%s): the message waits in the outbox", b.stream(), api.Description)
}

// putObject stores content under its SHA-256, unless the store has it whole. A Put that failed may have left the name
// without its chunks, and anybody may have stored something else under it.
func (b *Bridge) putObject(ctx context.Context, sha256 string, content io.Reader) error {
	info, err := b.files.GetInfo(ctx, sha256)
	if err == nil && b.isStored(ctx, info, sha256) {
		return nil
	}
	if err == nil || errors.Is(err, jetstream.ErrObjectNotFound) {
		_, err = b.files.Put(ctx, jetstream.ObjectMeta{Name: sha256}, content)
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", sha256, b.explainLimit(err))
	}
	return nil
}

func (b *Bridge) isStored(ctx context.Context, info *jetstream.ObjectInfo, sha256 string) bool {
	subject, state := "$O."+info.Bucket+".C."+info.NUID, &jetstream.StreamInfo{}
	stream, err := b.js.Stream(ctx, "OBJ_"+info.Bucket)
	if err == nil {
		state, err = stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	}
	sum, _ := jetstream.DecodeObjectDigest(info.Digest)
	return err == nil && state.State.Subjects[subject] == uint64(info.Chunks) && hex.EncodeToString(sum) == sha256
}
