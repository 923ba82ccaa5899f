// Package bridge carries the mail of a team between its machines, through NATS JetStream.
//
//	<team>/.bridge/<host>/new/<id>.json       mail for a host, which can still be withdrawn
//	<team>/.bridge/<host>/cur/<id>.json       being sent, until the server has acknowledged it
//	<team>/.bridge/<host>/withdrawn/          mail that was withdrawn
//	<team>/.bridge/received/<id>.<agent>      receipts: mail of other hosts whose progress is reported to the sender
//	<team>/.bridge/received/<day>.taken       which envelopes signed on that day were taken
//	<team>/.bridge/rows/<host>.json           the states of another host's members
//	<team>/.bridge/bad/<sha256>               rejected envelopes, with <sha256>.reason
//	.locks/bridge                             held while a bridge runs
//
//	stream atm_<team>        subject atm.<team>.mail.<host>; a durable consumer named by each host
//	objects atm_<team>_files large contents and attachments, named by their SHA-256
//	keys atm_<team>          lease.<host>: the bridge that runs as a host; rows.<host>: the states of its members
//
// A message leaves the outbox after the server has acknowledged it, and is acknowledged to the server after its
// delivery: it is always durable on one side. It may come twice, with the same id, which the mailbox deduplicates. The
// same envelope is taken once, even if its message is gone since. No part of an envelope is used before its signature is
// checked, and none is ever used as a path.
package bridge

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

const (
	batchSize  = 100              // messages at a time, in either direction
	pollEvery  = 3 * time.Second  // for changes without an event: a key that is trusted now, an envelope to retry
	maxPause   = 30 * time.Second // between retries
	ackWait    = 20 * time.Second // after which the server delivers again
	maxTries   = 10               // per message; then it goes to bad
	apiTimeout = 5 * time.Second
)

// Bridge is this machine's end for one team. Only one goroutine may call Run or Once.
type Bridge struct {
	Root     *teamdir.Root // its Keys are read at each use, so that a new trusted key counts at once
	Team     *teamdir.Team
	Host     wire.Name // this machine's name
	URL      string    // of the server; of several, with commas between
	Creds    string    // a file of credentials; "": none
	Replicas int       // of each store made on the server; 0: one

	Report func(Transfer)    // gets each transfer; several goroutines call it
	Warn   func(line string) // gets news of the connection, and each error once until it is over; likewise

	key           ed25519.PrivateKey // this host's
	conn          *nats.Conn
	js            jetstream.JetStream
	consumer      jetstream.Consumer
	files         jetstream.ObjectStore
	bucket        jetstream.KeyValue
	runID         wire.ID           // of this process, in the lease
	leaseRevision uint64            // 0: we do not hold the lease
	isContinuous  bool              // under Run, not Once
	reconnected   chan struct{}     // to the server
	rowsErrors    map[string]string // the last error with each host's rows, by key
	unfinished    atomic.Int32      // envelopes that the server will deliver again
	fetching      [16]sync.Mutex    // by the first digit of an attachment: each is fetched once at a time
	taken         taken
	room          room
}

// Transfer is one thing that was sent or received, or was rejected.
type Transfer struct {
	Kind   string    `json:"kind"` // sent, received, returned, stage, bad
	ID     wire.ID   `json:"id,omitempty"`
	Host   wire.Name `json:"host,omitempty"` // the other one
	From   string    `json:"from,omitempty"`
	To     string    `json:"to,omitempty"`
	Title  string    `json:"title,omitempty"`
	Reason string    `json:"reason,omitempty"` // why it is bad or returned
}

// String renders it for people.
func (t Transfer) String() string {
	switch t.Kind {
	case "bad":
		return "bad: " + t.Title + ": " + t.Reason + ": atm doctor"
	case "stage":
		return t.ID.Short(6) + ": " + t.Title + " at " + t.To
	case "returned":
		t.Title = "returned: " + t.Reason
	}
	return t.From + " → " + t.To + ": " + t.Title
}

func (b *Bridge) reportMail(kind string, m *wire.Message, host wire.Name, to, reason string) {
	b.Report(Transfer{Kind: kind, ID: m.ID, Host: host, From: b.display(m.From), To: to, Title: letter.Clip(cmp.Or(m.Title(), string(m.Type)), 100), Reason: reason})
}

// keys are those of the hosts that this user trusts.
func (b *Bridge) keys() hostkey.Dir { return hostkey.Dir(b.Root.KeysDir) }

func (b *Bridge) warn(format string, args ...any) { b.Warn(fmt.Sprintf(format, args...)) }

// display renders an address, which names its host, as people here see it.
func (b *Bridge) display(a wire.Address) string {
	if a.Host == b.Host {
		a.Host = ""
	}
	return (&letter.Renderer{Team: b.Team.Name}).Who(a)
}

// Once sends and receives all that there is now.
func (b *Bridge) Once(ctx context.Context) error {
	return b.withLock(ctx, func() error {
		err := b.connect(ctx)
		if err != nil {
			return err
		}
		if known, err := b.consumer.Info(ctx); err == nil {
			b.unfinished.Store(int32(known.NumAckPending)) // of earlier runs
		}
		for _, step := range []func(context.Context) error{b.send, b.receive, b.retryBad, b.sendStages, b.send, b.sendRows, b.receiveRows} {
			err = cmp.Or(err, step(ctx)) // after an error the other steps still run
		}
		if n := b.unfinished.Load(); err == nil && n > 0 {
			err = fmt.Errorf("%d received messages are not stored yet: the server sends them again within 30 seconds", n)
		}
		return err
	})
}

// Run sends and receives until the context ends. While there is no server, it retries.
func (b *Bridge) Run(ctx context.Context) error {
	b.isContinuous, b.reconnected = true, make(chan struct{}, 8) // one for each loop that may wait for it
	return b.withLock(ctx, func() error { return b.repeat(ctx, b.reconnected, maxPause, b.serve) })
}

// withLock calls f under the lock that a running bridge holds, and then disconnects.
func (b *Bridge) withLock(ctx context.Context, f func() error) error {
	lock, err := b.Team.Locks().Lock(ctx, "bridge", lockfile.Exclusive, 0, nil)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	b.rowsErrors = map[string]string{}
	if err := b.Team.PruneTaken(); err != nil {
		return err
	}
	err = f()
	if b.conn != nil {
		if b.conn.IsConnected() {
			b.releaseLease()
			b.conn.FlushTimeout(apiTimeout)
		}
		b.conn.Close()
	}
	return err
}

// repeat calls f at once, at each change, and at least as often as every says, until the context ends or f returns a
// *LeaseError. It reports an error once, and retries with exponential backoff.
func (b *Bridge) repeat(ctx context.Context, changed <-chan struct{}, every time.Duration, f func(context.Context) error) error {
	for backoff, reported := time.Second, ""; ; {
		wait, reconnected := every, (chan struct{})(nil)
		err := f(ctx)
		if other := (*LeaseError)(nil); ctx.Err() != nil || errors.As(err, &other) {
			return errors.Join(ctx.Err(), err)
		}
		if err == nil {
			backoff, reported = time.Second, ""
		}
		if err != nil {
			if err.Error() != reported {
				reported = err.Error()
				b.warn("%s", line(err))
			}
			wait, reconnected, backoff = backoff, b.reconnected, min(2*backoff, maxPause)
			app.Sleep(ctx, time.Second) // changes make it retry no more often than this
		}
		select {
		case <-changed:
		case <-reconnected:
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// watch repeats f at changes in the directories that add adds before each call. It gathers changes for a while before
// it calls f, and rests afterwards.
func (b *Bridge) watch(ctx context.Context, every, gather, rest time.Duration, add func(*watcher.Dirs), f func(context.Context) error) error {
	dirs, err := watcher.OpenDirs()
	if err != nil { // polling is enough, only slower
		return b.repeat(ctx, nil, pollEvery, f)
	}
	defer dirs.Close()
	return b.repeat(ctx, dirs.Changed(), every, func(ctx context.Context) error {
		add(dirs)
		app.Sleep(ctx, gather)
		defer app.Sleep(ctx, rest)
		return f(ctx)
	})
}

// serve connects, and sends and receives until one of its seven goroutines fails.
func (b *Bridge) serve(ctx context.Context) error {
	if err := b.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, loop := range []func() error{
		func() error { return b.receive(ctx) },
		func() error { return b.watch(ctx, pollEvery, 0, 0, b.addOutboxDirs, b.send) },
		func() error { return b.watch(ctx, pollEvery, stagesGather, 0, b.addMemberDirs, b.sendStages) },
		func() error { return b.watch(ctx, rowsEvery, rowsGather, rowsPause, b.addMemberDirs, b.sendRows) },
		func() error { return b.repeat(ctx, nil, pollEvery, b.retryBad) },
		func() error { return b.repeat(ctx, nil, 0, b.receiveRows) },
		func() error { return b.repeat(ctx, nil, renewEvery, b.takeLease) },
	} {
		all.Go(func() { cancel(loop()) })
	}
	all.Wait()
	return context.Cause(ctx)
}

// connect connects to the server, unless it is connected, makes the team's stores there, and takes the lease.
func (b *Bridge) connect(ctx context.Context) (err error) {
	if b.key, err = b.keys().Private(b.Host); err != nil {
		return err
	}
	if b.conn == nil || b.conn.IsClosed() {
		options := []nats.Option{
			nats.Name("atm bridge " + string(b.Host)), nats.MaxReconnects(-1),
			nats.PingInterval(renewEvery), // a connection that died silently is noticed after three of them
			nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
				if err != nil {
					b.warn("lost the connection to %s: %v; mail waits in the outbox", b.server(), err)
				}
			}),
			nats.ReconnectHandler(func(*nats.Conn) {
				b.warn("reconnected to %s", b.server())
				for range cap(b.reconnected) - len(b.reconnected) {
					b.reconnected <- struct{}{}
				}
			}),
		}
		if b.Creds != "" {
			options = append(options, nats.UserCredentials(b.Creds))
		}
		if b.conn, err = nats.Connect(b.URL, options...); err != nil {
			return fmt.Errorf("connect to %s: %w", b.server(), explain(err))
		}
		if b.js, err = jetstream.New(b.conn, jetstream.WithDefaultTimeout(apiTimeout), jetstream.WithPublishAsyncTimeout(apiTimeout)); err != nil {
			return err
		}
	}
	isFirst := b.leaseRevision == 0 && b.isContinuous
	if err = b.openStores(ctx); err == nil {
		err = b.takeLease(ctx)
	}
	if _, isHeld := errors.AsType[*LeaseError](err); err != nil && !isHeld && ctx.Err() == nil {
		err = explain(err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", b.server(), err)
	}
	if isFirst {
		b.warn("connected to %s", b.server())
	}
	return nil
}

// openStores opens the team's stores on the server, and makes those that are missing. Existing ones keep their
// settings.
func (b *Bridge) openStores(ctx context.Context) error {
	name, replicas := b.stream(), max(1, b.Replicas)
	_, err := b.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = b.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: name, Subjects: []string{b.subject("*")}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
			Storage: jetstream.FileStorage, Replicas: replicas,
		})
	}
	if err == nil {
		b.consumer, err = b.js.Consumer(ctx, name, string(b.Host))
	}
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		b.consumer, err = b.js.CreateConsumer(ctx, name, jetstream.ConsumerConfig{
			Durable: string(b.Host), FilterSubject: b.subject(b.Host), AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: ackWait, MaxAckPending: 10 * batchSize, MaxDeliver: -1,
		})
	}
	if err == nil {
		b.files, err = b.js.ObjectStore(ctx, name+"_files")
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		b.files, err = b.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: name + "_files", Replicas: replicas})
	}
	if err == nil {
		b.bucket, err = b.js.KeyValue(ctx, name)
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		b.bucket, err = b.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, Replicas: replicas})
	}
	if err != nil {
		return fmt.Errorf("open the stream %s and its buckets: %w", name, err)
	}
	return nil
}

// The names of a team on the server. A name of atm's needs no encoding in a subject.
func (b *Bridge) stream() string { return "atm_" + string(b.Team.Name) }
func (b *Bridge) subject(host wire.Name) string {
	return string("atm." + b.Team.Name + ".mail." + host)
}

var credentials = regexp.MustCompile(`//[^/@,]*@`)

// server is the server's URL without a password.
func (b *Bridge) server() string {
	return credentials.ReplaceAllString(b.URL, "//")
}
