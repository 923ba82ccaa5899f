package bridge

import (
	"cmp"
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

type lease struct {
	Machine string    `json:"machine"`
	PID     int       `json:"pid"`
	Run     wire.ID   `json:"run"` // a pid may be the same in two containers
	Root    string    `json:"root"`
	At      time.Time `json:"at"`
}

// LeaseError says that another bridge speaks as this host.
type LeaseError struct {
	Host  wire.Name
	Other lease
	Seen  time.Duration // since it renewed its lease
}

func (e *LeaseError) Error() string {
	return fmt.Sprintf("host %s is taken: a bridge on %s (pid %d, root %s) speaks as it, seen %s ago",
		e.Host, e.Other.Machine, e.Other.PID, e.Other.Root, e.Seen.Round(time.Second))
}

// takeLease takes the lease of this host, or renews it. One that is there is taken over if it is dead, or if its
// bridge ran in this root, whose lock we hold. A *LeaseError else.
func (b *Bridge) takeLease(ctx context.Context) error {
	b.run = cmp.Or(b.run, wire.NewID())
	machine, _ := os.Hostname()
	mine := lease{Machine: machine, PID: os.Getpid(), Run: b.run, Root: b.Root.Path, At: time.Now().UTC()}
	value, _ := json.Marshal(mine)
	key := "lease." + string(b.Host)
	entry, err := b.bucket.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		b.leased, err = b.bucket.Create(ctx, key, value)
	case err == nil:
		if err := b.mayTakeOver(ctx, entry, mine); err != nil {
			return err
		}
		b.leased, err = b.bucket.Update(ctx, key, value, max(entry.Revision(), b.leased))
	}
	if err != nil {
		return fmt.Errorf("take the lease of host %s: %w", b.Host, err)
	}
	return nil
}

// mayTakeOver is nil for a lease that is ours, or nobody's any more.
func (b *Bridge) mayTakeOver(ctx context.Context, entry jetstream.KeyValueEntry, mine lease) error {
	var other lease
	json.Unmarshal(entry.Value(), &other)   // what is no lease is another's
	isOurs := other.Run == mine.Run         // perhaps renewed without our knowing
	isBehind := entry.Revision() < b.leased // the server that was asked: Update says whether it is ours still
	wasKilled := b.leased == 0 && other.Machine == mine.Machine && other.Root == mine.Root
	if isOurs || isBehind || wasKilled {
		return nil
	}
	now, err := b.serverTime(ctx)
	if age := now.Sub(entry.Created()); err == nil && age < leaseDead {
		return &LeaseError{b.Host, other, age}
	}
	return err
}

// serverTime is the time by the server's clock: others differ.
func (b *Bridge) serverTime(ctx context.Context) (time.Time, error) {
	probe := "now." + string(b.Host)
	_, err := b.bucket.Put(ctx, probe, nil)
	now, err2 := b.bucket.Get(ctx, probe)
	if err = cmp.Or(err, err2); err != nil {
		return time.Time{}, err
	}
	return now.Created(), nil
}

// releaseLease gives the lease back, so that another may have it at once; else it dies of age.
func (b *Bridge) releaseLease() {
	ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
	defer cancel()
	if b.leased > 0 {
		b.bucket.Delete(ctx, "lease."+string(b.Host), jetstream.LastRevision(b.leased))
		b.leased = 0
	}
}
