package bridge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// hosts are the other hosts whose keys are trusted.
func (b *Bridge) hosts() ([]wire.Name, error) {
	hosts, err := b.Root.Keys.Hosts()
	return slices.DeleteFunc(hosts, func(h wire.Name) bool { return h == b.Host }), err
}

// outbox is where mail for a host lies.
func outbox(host wire.Name) string { return path.Join(mailbox.BridgeDir, string(host), "new") }

func (b *Bridge) watchOutbox(w *watcher.Dirs) {
	w.Add(b.Team.Dir().Path(), b.Team.Dir().Join(mailbox.BridgeDir))
	hosts, _ := b.hosts() // where they cannot be read, send says so
	for _, host := range hosts {
		w.Add(b.Team.Dir().Join(path.Join(mailbox.BridgeDir, string(host))), b.Team.Dir().Join(outbox(host)))
	}
}

// send publishes what lies in the outboxes. What is wrong with one message keeps back no other.
func (b *Bridge) send(ctx context.Context) error {
	hosts, err := b.hosts()
	for _, host := range hosts {
		box := b.Team.Outbox(wire.Address{Host: host})
		ids, e := box.Outgoing()
		err = errors.Join(err, e)
		for some := range slices.Chunk(ids, batchSize) {
			err = errors.Join(err, b.sendSome(ctx, host, box, some))
		}
	}
	return err
}

// sendSome publishes messages of one outbox, side by side, and removes those that the server has acknowledged.
func (b *Bridge) sendSome(ctx context.Context, host wire.Name, box *mailbox.Box, ids []wire.ID) error {
	items, err := box.TakeOutgoing(ctx, ids)
	futures := make([]jetstream.PubAckFuture, len(items))
	fail := func(it *mailbox.Item, e error) {
		err = errors.Join(err, fmt.Errorf("send %s to %s: %w", it.ID.Short(6), host, e))
	}
	local := make([]wire.ID, len(items)) // an ack gets another id for its way
	for i, it := range items {
		var e error
		local[i] = it.ID
		if futures[i], e = b.publishMail(ctx, host, it.Message); e != nil {
			fail(it, e)
		}
	}
	var sent []wire.ID
	for i, it := range items {
		if futures[i] == nil {
			continue
		}
		if e := b.acknowledged(ctx, futures[i]); e != nil {
			fail(it, e)
			continue
		}
		sent = append(sent, local[i])
		b.report(Transfer{Kind: "sent", ID: it.ID, Host: host, From: b.who(it.From), To: b.all(it.To, host), Title: it.Title()})
	}
	if len(sent) > 0 {
		err = errors.Join(err, box.RemoveOutgoing(sent...))
	}
	return err
}

// all are the recipients of a message that are on a host, as they are shown.
func (b *Bridge) all(to []wire.Address, host wire.Name) string {
	var names []string
	for _, a := range to {
		if a.Host == host {
			names = append(names, b.who(a))
		}
	}
	return strings.Join(names, ", ")
}

// publishMail publishes a message for the members of a host, and first what it needs in the object store.
func (b *Bridge) publishMail(ctx context.Context, host wire.Name, m *wire.Message) (jetstream.PubAckFuture, error) {
	m.AddHost(b.Host)
	content, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	for _, a := range m.Attachments {
		f, err := b.Team.Attachment(a)
		if err == nil {
			err = b.putObject(ctx, a.SHA256, f)
			f.Close()
		}
		if err != nil {
			return nil, err
		}
	}
	return b.publish(ctx, &Envelope{Kind: KindMail, ID: m.ID, ToHost: host, Content: content})
}

// publish signs an envelope and publishes it. What it returns tells of the server's acknowledgement.
func (b *Bridge) publish(ctx context.Context, e *Envelope) (jetstream.PubAckFuture, error) {
	key, err := b.Root.Keys.Private(b.Host)
	if err != nil {
		return nil, err
	}
	e.Team, e.FromHost, e.At = b.Team.Name, b.Host, time.Now()
	e.Object = len(e.Content) > min(maxInline, int(b.conn.MaxPayload())-2*maxHeader)
	data := e.Sign(key)
	if e.Object {
		if err := b.putObject(ctx, e.SHA256, bytes.NewReader(e.Content)); err != nil {
			return nil, err
		}
	}
	return b.js.PublishMsgAsync(&nats.Msg{Subject: b.subject(e.ToHost), Data: data},
		jetstream.WithMsgID(string(e.ID)+"/"+string(e.ToHost)), jetstream.WithExpectStream(b.stream()))
}

// acknowledged waits until the server has stored what was published.
func (b *Bridge) acknowledged(ctx context.Context, f jetstream.PubAckFuture) error {
	select {
	case <-f.Ok():
		return nil
	case err := <-f.Err():
		return b.explain(err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// explain says in our words that the stream or a bucket is full.
func (b *Bridge) explain(err error) error {
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) && strings.HasPrefix(api.Description, "maximum ") {
		return fmt.Errorf("the stream %s is at its limit (%s); it waits in the outbox: nats stream edit %[1]s", b.stream(), api.Description)
	}
	return err
}

// digest is what the object store says of content with this SHA-256.
func digest(sha256 string) string {
	sum, _ := hex.DecodeString(sha256)
	return "SHA-256=" + base64.URLEncoding.EncodeToString(sum)
}

// putObject stores content under the name of its SHA-256, unless it is there.
func (b *Bridge) putObject(ctx context.Context, sha256 string, content io.Reader) error {
	info, err := b.files.GetInfo(ctx, sha256)
	if err == nil && info.Digest == digest(sha256) {
		return nil
	}
	if _, err = b.files.Put(ctx, jetstream.ObjectMeta{Name: sha256}, content); err != nil {
		return fmt.Errorf("store %s: %w", sha256, b.explain(err))
	}
	return nil
}
