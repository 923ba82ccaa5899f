// Package bridge carries the mail of a team between its machines, through NATS JetStream or over ssh.
//
//	<team>/.bridge/<host>/new/<id>.json       mail for a host, which can still be withdrawn
//	<team>/.bridge/<host>/cur/<id>.json       being sent, until the server has acknowledged it
//	<team>/.bridge/<host>/withdrawn/          mail that was withdrawn
//	<team>/.bridge/received/<id>.<agent>      receipts: mail of other hosts whose progress is reported to the sender
//	<team>/.bridge/received/<day>.taken       which envelopes signed on that day were taken
//	<team>/.bridge/rows/<host>.json           the states of another host's members
//	<team>/.bridge/held/<host>                why mail for a host was not sent at the last try
//	<team>/.bridge/bad/<sha256>               rejected envelopes, with <sha256>.reason
//	.locks/bridge                             held while a bridge runs; shared by those to one host each
//	.locks/.bridge.<host>.link                held while a bridge to this host alone runs
//
// A message leaves the outbox after it is safe elsewhere: at the server, or at the other host of a link. It is
// acknowledged there after its delivery, so it is always durable on one side. It may come twice, with the same id, which
// the mailbox deduplicates. The same envelope is taken once, even if its message is gone since. No part of an envelope is
// used before its signature is checked, and none is ever used as a path.
package bridge

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
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
	lookTime   = time.Second // for the lock: whoever looks whether a bridge runs holds it for an instant
)

// Bridge is this machine's end for one team. Only one goroutine may call Run or Once.
type Bridge struct {
	Root   *teamdir.Root // its Keys are read at each use, so that a new trusted key counts at once
	Team   *teamdir.Team
	Host   wire.Name          // this machine's name
	NewKey ed25519.PrivateKey // of a host that has none yet: kept once another one has answered

	Report func(Transfer)    // gets each transfer; several goroutines call it
	Warn   func(line string) // gets news of the connection, and each error once until it is over; likewise

	way          transport            // to the other hosts
	peer         wire.Name            // the only one that it leads to; "": all that are trusted
	isStranger   bool                 // the peer has called, and has not proved that it is the host whose name it says
	key          ed25519.PrivateKey   // this host's
	isContinuous bool                 // under Run, not Once
	reconnected  chan struct{}        // to the server
	rowsErrors   sync.Map             // the last error with each host's rows, by key
	unfinished   atomic.Int32         // envelopes that come again
	fetching     [16]sync.Mutex       // by the first digit of an attachment: each is fetched once at a time
	sending      sync.Mutex           // held while mail is sent
	held         map[wire.Name]string // what was noted of a host's mail, under sending
	reporting    sync.Mutex           // held while stages are sent
	taken        taken
}

// A transport carries envelopes to other hosts and from them. It may carry one more than once, and only loses those
// whose arrival it did not confirm.
type transport interface {
	// String says where it leads, for people.
	String() string
	// connect connects, unless it is connected. No other method is called meanwhile, nor while close runs.
	connect(ctx context.Context) error
	close()
	// keep proves that this bridge is there. It is called every renewEvery.
	keep(ctx context.Context) error
	// maxInline is how many bytes of content may be in an envelope. The content of others is an object.
	maxInline() int
	// beginPass says that some envelopes are about to be published.
	beginPass()
	// publish hands over a signed envelope. acked waits until it is safe elsewhere, and returns any error.
	publish(ctx context.Context, e *Envelope, data []byte) (acked func() error)
	// offer makes an object available to other hosts.
	offer(ctx context.Context, sha256 string, open func() (io.ReadCloser, error)) error
	// object returns an object's content, which the caller checks.
	object(ctx context.Context, sha256 string) (io.ReadCloser, error)
	// receive hands over what has come, in groups; under Run it waits for some.
	receive(ctx context.Context, handle func([]delivery)) (n int, err error)
	// publishRows hands over the states of this host's members; receiveRows calls saveRows for those of others.
	publishRows(ctx context.Context, data []byte) error
	receiveRows(ctx context.Context) error
}

// A delivery is an envelope that has come. It comes again unless it is accepted.
type delivery interface {
	Data() []byte
	// meta says how often it has come, and when the server got it, by its clock; zero: not known.
	meta() (tries uint64, stored time.Time)
	// InProgress keeps it from coming again for a while.
	InProgress() error
	accept() error
	refuse(err error, delay time.Duration) error
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

// isFor reports whether this bridge is the one to a host.
func (b *Bridge) isFor(host wire.Name) bool { return b.peer == "" || b.peer == host }

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
			b.noteAllHeld(ctx, err)
			return err
		}
		for _, step := range []func(context.Context) error{b.send, b.receive, b.retryBad, b.sendStages, b.send, b.sendRows, b.way.receiveRows} {
			err = cmp.Or(err, step(ctx)) // after an error the other steps still run
		}
		if n := b.unfinished.Load(); err == nil && n > 0 {
			err = fmt.Errorf("%d received messages are not stored yet: they come again within 30 seconds", n)
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
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	b.rowsErrors.Clear()
	if err := presence.PruneTaken(b.Team); err != nil {
		return err
	}
	err = f()
	b.way.close()
	return err
}

// lock takes the lock bridge, which a bridge to one host shares with those to others: they have a lock for each host.
func (b *Bridge) lock(ctx context.Context) (unlock func(), err error) {
	mode := lockfile.Exclusive
	if b.peer != "" {
		mode = lockfile.Shared
	}
	all, err := b.Team.Locks().Lock(ctx, "bridge", mode, lookTime, nil)
	if err != nil || b.peer == "" {
		return func() { all.Unlock() }, err
	}
	one, err := b.Team.Locks().Lock(ctx, presence.BridgeLock(b.peer), lockfile.Exclusive, lookTime, nil)
	if err != nil {
		all.Unlock()
		return nil, err
	}
	return func() { one.Unlock(); all.Unlock() }, nil
}

// repeat calls f at once, at each change, and at least as often as every says, until the context ends or f returns a
// *LeaseError or a finalError. It reports an error once, and retries with exponential backoff, which begins anew after a
// connection that has lasted.
func (b *Bridge) repeat(ctx context.Context, changed <-chan struct{}, every time.Duration, f func(context.Context) error) error {
	for backoff, reported := time.Second, ""; ; {
		wait, reconnected := every, (chan struct{})(nil)
		err := f(ctx)
		other, isFinal, lost := (*LeaseError)(nil), finalError{}, lostError{}
		if ctx.Err() != nil || errors.As(err, &other) || errors.As(err, &isFinal) {
			return errors.Join(ctx.Err(), err)
		}
		if errors.As(err, &lost) {
			if reported = ""; lost.after > every {
				backoff = time.Second
			}
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
		b.noteAllHeld(ctx, err)
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
		func() error { return b.repeat(ctx, nil, 0, b.way.receiveRows) },
		func() error { return b.repeat(ctx, nil, renewEvery, b.way.keep) },
	} {
		all.Go(func() { cancel(loop()) })
	}
	all.Wait()
	return context.Cause(ctx)
}

// connect connects, unless it is connected.
func (b *Bridge) connect(ctx context.Context) (err error) {
	b.key, err = b.keys().Private(b.Host)
	if errors.Is(err, hostkey.ErrNoKey) && b.NewKey != nil {
		b.key, err = b.NewKey, nil
	}
	if err != nil {
		return err
	}
	return b.way.connect(ctx)
}

// hosts are those that mail can be sent to.
func (b *Bridge) hosts() ([]wire.Name, error) {
	hosts, err := b.keys().Hosts()
	return slices.DeleteFunc(hosts, func(h wire.Name) bool { return !b.isFor(h) }), err
}
