package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentteammail/atm/wire"
)

const (
	renewEvery = 10 * time.Second
	leaseDead  = 30 * time.Second // without being renewed
)

// lease says who speaks as a host.
type lease struct {
	Machine string    `json:"machine"`
	PID     int       `json:"pid"`
	Root    string    `json:"root"`
	At      time.Time `json:"at"`

	revision uint64 // of the key, as this process has written it; 0: it has not
}

// LeaseError says that another bridge speaks as this host.
type LeaseError struct {
	Host    wire.Name
	Machine string
	PID     int
	Root    string
	Seen    time.Duration // how long ago it renewed its lease
}

func (e *LeaseError) Error() string {
	return fmt.Sprintf("host %s is taken: a bridge on %s (pid %d, root %s) speaks as it, seen %s ago",
		e.Host, e.Machine, e.PID, e.Root, e.Seen.Round(time.Second))
}

func (b *Bridge) leaseKey() string { return "lease." + string(b.Host) }

// takeLease takes the lease of this host, or renews it. *LeaseError while somebody else has it.
func (b *Bridge) takeLease(ctx context.Context) error {
	mine := lease{PID: os.Getpid(), Root: b.Team.Root().Path, At: time.Now().UTC()}
	mine.Machine, _ = os.Hostname()
	value, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	if b.lease.revision > 0 {
		mine.revision, err = b.keys.Update(ctx, b.leaseKey(), value, b.lease.revision)
	} else {
		mine.revision, err = b.keys.Create(ctx, b.leaseKey(), value)
	}
	if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		b.lease.revision = 0 // where the server has lost it, the next try makes it
		mine.revision, err = b.inherit(ctx, mine, value)
	}
	if err != nil {
		return fmt.Errorf("take the lease of host %s: %w", b.Host, err)
	}
	b.lease = mine
	return nil
}

// inherit takes over a lease that is there: one of this root, whose lock we hold, or one that is dead. Its age is
// the server's to say: clocks differ.
func (b *Bridge) inherit(ctx context.Context, mine lease, value []byte) (revision uint64, err error) {
	entry, err := b.keys.Get(ctx, b.leaseKey())
	if err != nil {
		return 0, err
	}
	var other lease
	json.Unmarshal(entry.Value(), &other) // who it is is only said
	if other.Machine != mine.Machine || other.Root != mine.Root {
		now, err := b.serverTime(ctx)
		if err != nil {
			return 0, err
		}
		if age := now.Sub(entry.Created()); age < leaseDead {
			return 0, &LeaseError{b.Host, other.Machine, other.PID, other.Root, age}
		}
	}
	return b.keys.Update(ctx, b.leaseKey(), value, entry.Revision())
}

// serverTime is the time by the server's clock.
func (b *Bridge) serverTime(ctx context.Context) (time.Time, error) {
	probe := "now." + string(b.Host)
	if _, err := b.keys.Put(ctx, probe, nil); err != nil {
		return time.Time{}, err
	}
	now, err := b.keys.Get(ctx, probe)
	if err != nil {
		return time.Time{}, err
	}
	return now.Created(), nil
}

// keepLease renews the lease until the context ends, or it cannot: who cannot reach the server sends and receives
// nothing either, and looks again when it can.
func (b *Bridge) keepLease(ctx context.Context) error {
	for {
		select {
		case <-time.After(renewEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := b.takeLease(ctx); err != nil {
			return err
		}
	}
}

// releaseLease gives the lease back, so that another may have it at once.
func (b *Bridge) releaseLease() {
	if b.lease.revision == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
	defer cancel()
	b.keys.Delete(ctx, b.leaseKey(), jetstream.LastRevision(b.lease.revision)) // else it dies of age
	b.lease.revision = 0
}
