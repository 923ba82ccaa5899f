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
	leaseDead  = 30 * time.Second // after the last renewal
)

type lease struct {
	Machine string    `json:"machine"`
	PID     int       `json:"pid"`
	Run     wire.ID   `json:"run"` // pids of two containers may be equal
	Root    string    `json:"root"`
	At      time.Time `json:"at"`
}

// LeaseError says that another bridge runs as this host.
type LeaseError struct {
	Host  wire.Name
	Other lease
	Seen  time.Duration // since the other one renewed its lease
}

func (e *LeaseError) Error() string {
	return fmt.Sprintf("another bridge already runs as host %s: on %s (pid %d, root %s), seen %s ago",
		e.Host, e.Other.Machine, e.Other.PID, e.Other.Root, e.Seen.Round(time.Second))
}

// takeLease takes or renews the lease of this host. It takes over a lease that is dead, or whose bridge ran in this
// root, since we hold the root's lock. Any other lease is a *LeaseError.
func (s *natsServer) takeLease(ctx context.Context) error {
	s.runID = cmp.Or(s.runID, wire.NewID())
	machine, _ := os.Hostname()
	mine := lease{Machine: machine, PID: os.Getpid(), Run: s.runID, Root: s.Root.Path, At: time.Now().UTC()}
	value, _ := json.Marshal(mine)
	key := "lease." + string(s.Host)
	entry, err := s.bucket.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		s.leaseRevision, err = s.bucket.Create(ctx, key, value)
	case err == nil:
		if err := s.checkTakeover(ctx, entry, mine); err != nil {
			return err
		}
		s.leaseRevision, err = s.bucket.Update(ctx, key, value, max(entry.Revision(), s.leaseRevision))
	}
	if err != nil {
		return fmt.Errorf("take the lease of host %s: %w", s.Host, err)
	}
	return nil
}

// checkTakeover returns nil if the lease is ours or has no holder any more.
func (s *natsServer) checkTakeover(ctx context.Context, entry jetstream.KeyValueEntry, mine lease) error {
	var other lease
	json.Unmarshal(entry.Value(), &other)          // an invalid value counts as another bridge's
	isOurs := other.Run == mine.Run                // perhaps by a renewal whose answer was lost
	isBehind := entry.Revision() < s.leaseRevision // this server replicates late: Update will tell if the lease is ours
	wasKilled := s.leaseRevision == 0 && other.Machine == mine.Machine && other.Root == mine.Root
	if isOurs || isBehind || wasKilled {
		return nil
	}
	now, err := s.serverTime(ctx)
	if age := now.Sub(entry.Created()); err == nil && age < leaseDead {
		return &LeaseError{s.Host, other, age}
	}
	return err
}

// serverTime returns the time by the server's clock. Those of the hosts differ.
func (s *natsServer) serverTime(ctx context.Context) (time.Time, error) {
	probe := "now." + string(s.Host)
	_, err := s.bucket.Put(ctx, probe, nil)
	now, err2 := s.bucket.Get(ctx, probe)
	if err = cmp.Or(err, err2); err != nil {
		return time.Time{}, err
	}
	return now.Created(), nil
}

// releaseLease deletes the lease, so that another bridge need not wait until it is dead.
func (s *natsServer) releaseLease() {
	ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
	defer cancel()
	if s.leaseRevision > 0 {
		s.bucket.Delete(ctx, "lease."+string(s.Host), jetstream.LastRevision(s.leaseRevision))
		s.leaseRevision = 0
	}
}
