package bridge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentteammail/atm/wire"
)

// room is how much the stream can take before the server drops mail that its host has not fetched. A stream that
// refuses what is above its limit takes anything; one that drops the oldest (discard old) must not be filled.
type room struct {
	mu       sync.Mutex
	host     wire.Name // the recipient's
	asked    time.Time
	messages int64
	bytes    int64
	full     error // why there is none; found out once in each pass

	sentMessages, sentBytes int64 // that the server has not acknowledged yet: it may count them or not
}

// next has the server asked again: a new pass begins.
func (r *room) next() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked, r.full = time.Time{}, nil
}

// reserve takes room for an envelope to a host, or says why there is none.
func (s *natsServer) reserve(ctx context.Context, host wire.Name, size int) error {
	r := &s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full != nil && r.host == host {
		return r.full
	}
	if r.host != host || r.messages < 1 || r.bytes < int64(size) || time.Since(r.asked) > renewEvery {
		unfetched, err := s.askForRoom(ctx, host)
		if err != nil {
			return err
		}
		if r.messages < 1 || r.bytes < int64(size) {
			const why = "%s is full on the server, which would drop the oldest mail, and %s has not fetched its own: the message waits in the outbox"
			r.full = fmt.Errorf(why, s.stream(), unfetched)
			return r.full
		}
	}
	r.messages, r.bytes = r.messages-1, r.bytes-int64(size)
	r.sentMessages, r.sentBytes = r.sentMessages+1, r.sentBytes+int64(size)
	return nil
}

// settle says that the server has acknowledged or refused an envelope for which there was room.
func (r *room) settle(size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sentMessages, r.sentBytes = r.sentMessages-1, r.sentBytes-int64(size)
}

// askForRoom finds out how much room there is. unfetched is a host that has mail there, "" if each has fetched its own:
// then all that is there may be dropped.
func (s *natsServer) askForRoom(ctx context.Context, host wire.Name) (unfetched wire.Name, err error) {
	r := &s.room
	r.host, r.asked, r.messages, r.bytes, r.full = host, time.Now(), math.MaxInt64, math.MaxInt64, nil
	stream, err := s.js.Stream(ctx, s.stream())
	if err != nil {
		return "", err
	}
	limits := stream.CachedInfo().Config
	isLimited := limits.MaxMsgs > 0 || limits.MaxBytes > 0 || limits.MaxMsgsPerSubject > 0
	if limits.Discard != jetstream.DiscardOld || !isLimited {
		return "", nil
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(s.subject("*")))
	if err != nil {
		return "", err
	}
	for subject := range info.State.Subjects {
		name := wire.Name(subject[strings.LastIndexByte(subject, '.')+1:])
		consumer, err := s.js.Consumer(ctx, s.stream(), string(name))
		switch {
		case errors.Is(err, jetstream.ErrConsumerNotFound): // it has never been there
			unfetched = name
		case err != nil:
			return "", err
		case consumer.CachedInfo().NumPending > 0 || consumer.CachedInfo().NumAckPending > 0:
			unfetched = name
		}
	}
	left := func(limit int64, used uint64) int64 {
		switch {
		case limit <= 0:
			return math.MaxInt64
		case unfetched == "":
			return limit
		}
		return limit - int64(used)
	}
	r.messages = min(left(limits.MaxMsgs, info.State.Msgs), left(limits.MaxMsgsPerSubject, info.State.Subjects[s.subject(host)])) - r.sentMessages
	r.bytes = left(limits.MaxBytes, info.State.Bytes) - r.sentBytes
	return unfetched, nil
}
