package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// Settle settles what earlier calls gave to the program: what this one proves received is read, and what may be lost is
// handed over once more, also what a session has whose program has ended (isGone). It returns the
// events message_read for the caller to append. Without such mail no lock is taken, unless the call shows some.
func (c *Call) Settle(ctx context.Context, isGone func(session string) bool) ([]wire.Event, error) {
	return claim.Settle(ctx, c.Box, len(c.Shown) > 0, func(g claim.Given) delivery.Effect {
		_, effect := delivery.Next(delivery.Sent, c.eventOf(g, isGone))
		return effect
	})
}

// HandOver claims unread mail for the call. The Claim is never nil; without mail no lock is taken.
func (c *Call) HandOver(ctx context.Context, opt inbox.ReadOptions) (*claim.Claim, error) {
	return claim.HandOver(ctx, c.Box, c.recipient(), c.IsAmbiguous, opt)
}

func (c *Call) recipient() holder.Holder {
	kind := holder.Session
	if c.IsPush {
		kind = holder.Push
	}
	return holder.New(kind, c.Session, c.Name, c.Now)
}

// eventOf returns what the call says of a message that an earlier one gave to the program; "": nothing.
func (c *Call) eventOf(g claim.Given, isGone func(session string) bool) delivery.Event {
	switch {
	case !g.To.IsSession(c.Session):
		if g.IsLive(c.Now) && isGone(g.To.Session()) {
			return delivery.Ended
		}
	case g.IsOf(c.recipient(), c.IsAmbiguous): // this call gave it
	case c.mayLose(g):
		return delivery.Ended
	case c.shows(g.ID):
		return delivery.Receipt
	case c.ProvesReceipt:
		isAnswer := g.To.IsShown() && g.To.Kind == holder.Session // of a hook, which has no other receipt
		hasIt, isKnown := c.records(g, isAnswer && len(c.EndEvents) > 0)
		switch {
		case hasIt, isAnswer && !isKnown:
			return delivery.Receipt
		case isAnswer && c.Now.Sub(g.To.Since) >= delivery.Patience: // lost on its way, as of a hook that was killed
			return delivery.Ended
		}
	}
	return ""
}

// records reports whether the program's record has a message since it was given, if it has a record. At the end of a turn, when
// no later call may come, it waits a moment (waits) for what the program is about to write.
func (c *Call) records(g claim.Given, waits bool) (hasIt, isKnown bool) {
	if !filepath.IsAbs(c.Record) {
		return false, false
	}
	if c.flushedBy.IsZero() {
		c.flushedBy = time.Now().Add(flushTime)
	}
	for {
		tail := Tail(c.Record, maxRecord)
		for line := range bytes.Lines(tail) {
			if hasFrame(line, g.ID) && !isBefore(line, g.To.Since) {
				return true, true
			}
		}
		if len(tail) <= 1 || !waits || time.Now().After(c.flushedBy) {
			return false, len(tail) > 1
		}
		time.Sleep(flushTime / 20)
	}
}

const flushTime = time.Second // Claude Code writes its record some 100 ms later

const maxRecord = 32 << 20 // bytes of a record, from its end

// recordedFrame is frame in a line of JSON.
var recordedFrame = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:\\n|")\[atm ([0-9a-f]{6,32}) from `) })

func hasFrame(line []byte, id wire.ID) bool {
	for _, match := range recordedFrame().FindAllSubmatch(line, -1) {
		if id.Short(len(match[1])) == string(match[1]) {
			return true
		}
	}
	return false
}

// isBefore reports whether a line of a record says that it was written before a time.
func isBefore(line []byte, t time.Time) bool {
	var o struct{ Timestamp time.Time }
	return json.Unmarshal(line, &o) == nil && !o.Timestamp.IsZero() && o.Timestamp.Before(t.Add(-time.Second))
}

// Tail returns the last bytes of a file, behind a line feed if that is all of it. One that cannot be read has none.
func Tail(path string, most int64) []byte {
	tail := []byte{'\n'}
	f, err := durable.OpenRegular(path, os.O_RDONLY)
	if err != nil {
		return tail
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return tail
	}
	from := max(0, info.Size()-most)
	data, _ := io.ReadAll(io.NewSectionReader(f, from, most))
	if from > 0 {
		return data
	}
	return append(tail, data...)
}

func (c *Call) shows(id wire.ID) bool {
	return slices.ContainsFunc(c.Shown, func(short string) bool { return id.Short(len(short)) == short })
}

// mayLose reports whether the call says that its session may have lost the message.
func (c *Call) mayLose(g claim.Given) bool {
	isForgotten := c.Forgets != "" && strings.HasPrefix(g.To.Call, c.Forgets)
	return c.EndsSession || isForgotten || c.IsNewProgram && !(g.To.Kind == holder.Push && c.KeepsPushed)
}
