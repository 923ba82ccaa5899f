// Package bridge carries the mail of a team between its machines, through NATS JetStream, which does the replicating.
//
//	<team>/.bridge/<host>/new/<id>.json       mail for a host, that can be withdrawn
//	<team>/.bridge/<host>/cur/<id>.json       being sent, until the server has acknowledged it
//	<team>/.bridge/<host>/withdrawn/          what will not be sent
//	<team>/.bridge/received/<id>.<agent>      mail of other hosts whose way the sender is told of
//	<team>/.bridge/rows/<host>.json           how another host's members are
//	<team>/.bridge/bad/<sha256>               envelopes that were not accepted, with <sha256>.reason
//	.locks/bridge                             held while a bridge runs
//
//	stream atm_<team>        subject atm.<team>.mail.<host>; a durable consumer named by each host
//	objects atm_<team>_files large contents and attachments, named by their SHA-256
//	keys atm_<team>          lease.<host>: who speaks as a host; rows.<host>: how its members are
//
// A message leaves the outbox after the server's acknowledgement, and is acknowledged to the server after its
// delivery: it is always durable on one side. It may come twice, with the same id, which the mailbox knows. Nothing
// of an envelope is looked at before its signature was checked, and nothing in it is ever a path.
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

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

const (
	batchSize  = 100              // messages at a time, in either direction
	lookEvery  = 3 * time.Second  // where no change is told of: a key that is trusted now, an envelope to try again
	maxPause   = 30 * time.Second // between tries of what fails
	ackWait    = 20 * time.Second // after which the server delivers again
	maxTries   = 10               // of one message; then it goes to bad
	apiTimeout = 5 * time.Second
)

// Bridge is this machine's end for one team. Run or Once may be called by one goroutine.
type Bridge struct {
	Root     *teams.Root // whose Keys are read anew each time: what is trusted now counts now
	Team     *teams.Team
	Host     wire.Name // what this machine is called
	URL      string    // of the server, or several with commas between
	Creds    string    // a file of credentials; "": none
	Replicas int       // of what is made on the server; 0: one

	Report func(Transfer)    // is told what was carried over
	Say    func(line string) // is told of the connection, and what goes wrong, once for as long as it does

	key      ed25519.PrivateKey // this host's; there is never another
	conn     *nats.Conn
	js       jetstream.JetStream
	consumer jetstream.Consumer
	files    jetstream.ObjectStore
	bucket   jetstream.KeyValue
	run      wire.ID       // this process's, in the lease
	leased   uint64        // the lease's revision; 0: we do not have it
	again    chan struct{} // the connection is there again; nil in Once
	rowsTold sync.Map      // what is wrong with a host's rows
	left     atomic.Int32  // envelopes that the server is to deliver again
}

// Transfer is one thing that was carried over, or was not accepted.
type Transfer struct {
	Kind   string    `json:"kind"` // sent, received, returned, stage, bad
	ID     wire.ID   `json:"id,omitempty"`
	Host   wire.Name `json:"host,omitempty"` // the other one
	From   string    `json:"from,omitempty"`
	To     string    `json:"to,omitempty"`
	Title  string    `json:"title,omitempty"`
	Reason string    `json:"reason,omitempty"` // why it is bad or returned
}

// String says it to people.
func (t Transfer) String() string {
	switch t.Kind {
	case "bad":
		return "bad: " + t.Title + ": " + t.Reason
	case "stage":
		return t.ID.Short(6) + ": " + t.Title + " at " + t.To
	case "returned":
		t.Title = "returned: " + t.Reason
	}
	return t.From + " → " + t.To + ": " + t.Title
}

func (b *Bridge) reportMail(kind string, m *wire.Message, host wire.Name, to, reason string) {
	b.Report(Transfer{Kind: kind, ID: m.ID, Host: host, From: b.who(m.From), To: to, Title: letter.Clip(m.Title(), 100), Reason: reason})
}

func (b *Bridge) say(format string, args ...any) { b.Say(fmt.Sprintf(format, args...)) }

// who is an address of a whole message as it is shown here.
func (b *Bridge) who(a wire.Address) string {
	if a.Host == b.Host {
		a.Host = ""
	}
	return (&letter.Renderer{Team: b.Team.Name}).Who(a)
}

// Once sends and fetches what is there.
func (b *Bridge) Once(ctx context.Context) error {
	return b.locked(ctx, func() error {
		err := b.connect(ctx)
		if err != nil {
			return err
		}
		if known, err := b.consumer.Info(ctx); err == nil {
			b.left.Store(int32(known.NumAckPending)) // of earlier tries
		}
		for _, step := range []func(context.Context) error{b.send, b.receive, b.takeAgain, b.sendStages, b.send, b.sendRows, b.receiveRows} {
			err = cmp.Or(err, step(ctx)) // one that fails keeps back no other
		}
		if n := b.left.Load(); err == nil && n > 0 {
			err = fmt.Errorf("%d of what has come could not be stored: the server keeps it", n)
		}
		return err
	})
}

// Run carries over what comes until the context ends. Where the server is away it is tried again.
func (b *Bridge) Run(ctx context.Context) error {
	b.again = make(chan struct{}, 8) // one for each that may wait
	return b.locked(ctx, func() error { return b.repeat(ctx, b.again, maxPause, b.serve) })
}

// locked calls f while it holds the lock of the bridge that runs here, and lets go of the server then.
func (b *Bridge) locked(ctx context.Context, f func() error) error {
	lock, err := b.Team.Locks().Lock(ctx, "bridge", lockfile.Exclusive, 0, nil)
	if err != nil {
		return err
	}
	defer lock.Unlock()
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

// repeat calls f now, when something has changed, and after every at the latest, until the context ends or f
// returns a *LeaseError. What goes wrong is said once, and tried again after a time that grows.
func (b *Bridge) repeat(ctx context.Context, changed <-chan struct{}, every time.Duration, f func(context.Context) error) error {
	for backoff, told := time.Second, ""; ; {
		began, wait, again := time.Now(), every, (chan struct{})(nil)
		err := f(ctx)
		if other := (*LeaseError)(nil); ctx.Err() != nil || errors.As(err, &other) {
			return errors.Join(ctx.Err(), err)
		}
		if err == nil || time.Since(began) > maxPause { // it went well for a while
			backoff, told = time.Second, ""
		}
		if err != nil {
			if err.Error() != told {
				told = err.Error()
				b.say("%v", err)
			}
			wait, again, backoff = backoff, b.again, min(2*backoff, maxPause)
			pause(ctx, time.Second) // what comes meanwhile may be all right, but is not tried more often
		}
		select {
		case <-changed:
		case <-again:
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// watch is repeat for a change in directories, which add names each time. f is called a while after the first change,
// and rests after it.
func (b *Bridge) watch(ctx context.Context, every, gather, rest time.Duration, add func(*watcher.Dirs), f func(context.Context) error) error {
	dirs, err := watcher.OpenDirs()
	if err != nil { // an event is only a hint
		return b.repeat(ctx, nil, lookEvery, f)
	}
	defer dirs.Close()
	return b.repeat(ctx, dirs.Changed(), every, func(ctx context.Context) error {
		add(dirs)
		pause(ctx, gather)
		defer pause(ctx, rest)
		return f(ctx)
	})
}

// serve connects, and carries over in both directions until something goes wrong with the connection.
func (b *Bridge) serve(ctx context.Context) error {
	if err := b.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, loop := range []func() error{
		func() error { return b.receive(ctx) },
		func() error { return b.watch(ctx, lookEvery, 0, 0, b.addOutboxes, b.send) },
		func() error { return b.watch(ctx, lookEvery, stagesGather, 0, b.addMembers, b.sendStages) },
		func() error { return b.watch(ctx, rowsEvery, rowsGather, rowsPause, b.addMembers, b.sendRows) },
		func() error { return b.repeat(ctx, nil, lookEvery, b.takeAgain) },
		func() error { return b.repeat(ctx, nil, 0, b.receiveRows) },
		func() error { return b.repeat(ctx, nil, renewEvery, b.takeLease) },
	} {
		all.Go(func() { cancel(loop()) })
	}
	all.Wait()
	return context.Cause(ctx)
}

// connect connects to the server, unless it is connected, makes what is missing there, and takes the lease.
func (b *Bridge) connect(ctx context.Context) (err error) {
	if b.key, err = b.Root.Keys.Private(b.Host); err != nil {
		return err
	}
	if b.conn == nil || b.conn.IsClosed() {
		options := []nats.Option{
			nats.Name("atm bridge " + string(b.Host)), nats.MaxReconnects(-1),
			nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
				if err != nil {
					b.say("the connection to %s is lost: %v; mail waits in the outbox", b.server(), err)
				}
			}),
			nats.ReconnectHandler(func(*nats.Conn) {
				b.say("connected to %s again", b.server())
				for range cap(b.again) - len(b.again) {
					b.again <- struct{}{}
				}
			}),
		}
		if b.Creds != "" {
			options = append(options, nats.UserCredentials(b.Creds))
		}
		if b.conn, err = nats.Connect(b.URL, options...); err != nil {
			return fmt.Errorf("connect to %s: %w", b.server(), err)
		}
		if b.js, err = jetstream.New(b.conn, jetstream.WithDefaultTimeout(apiTimeout), jetstream.WithPublishAsyncTimeout(apiTimeout)); err != nil {
			return err
		}
	}
	isFirst := b.leased == 0 && b.again != nil
	if err = b.open(ctx); err == nil {
		err = b.takeLease(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", b.server(), err)
	}
	if isFirst {
		b.say("connected to %s", b.server())
	}
	return nil
}

// open opens what the team has on the server, and makes what is missing. What is there stays as it was set.
func (b *Bridge) open(ctx context.Context) error {
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

// The names of a team on the server. A name of ours may stand in a subject as it is.
func (b *Bridge) stream() string { return "atm_" + string(b.Team.Name) }
func (b *Bridge) subject(host wire.Name) string {
	return string("atm." + b.Team.Name + ".mail." + host)
}

// server is the server's URL as it may be shown: without a password.
func (b *Bridge) server() string {
	return regexp.MustCompile(`//[^/@,]*@`).ReplaceAllString(b.URL, "//")
}
