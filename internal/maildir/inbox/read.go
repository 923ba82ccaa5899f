package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/wire"
)

// moveBadTime is how long one look goes on moving files to bad. Tests change it.
var moveBadTime = time.Second

// ReadOptions select the unread messages of a batch.
type ReadOptions struct {
	IDs      []wire.ID                // these only; nil: all
	listed   *maildir.Listing         // all, as listed just now; nil: they are listed
	Match    func(*wire.Item) bool    // nil: all
	Current  bool                     // skip expired messages
	Limit    int                      // 0: none
	MaxBytes int64                    // the message with which the files have as many ends the batch; 0: none does
	Fits     func(*wire.Message) bool // called in order, once per message; the first false ends the batch; nil: all fit

	CountsAll bool // count every message behind the batch as More without opening it
}

// Batch is a list of unread messages.
type Batch struct {
	Items []*wire.Item
	More  int  // unread messages that match and are not in the batch; those behind a cut count without a look
	IsCut bool // by MaxBytes, and there are more
	Bad   int  // files that are not messages, or cannot be read
}

// Sender returns whom a program may name as the sender of all of it: atm, if several are; "" if it is empty.
func (b *Batch) Sender() string {
	if len(b.Items) == 0 {
		return ""
	}
	from := b.Items[0].From.Agent
	if slices.ContainsFunc(b.Items, func(it *wire.Item) bool { return it.From.Agent != from }) {
		return "atm"
	}
	return string(from)
}

// Peek lists unread messages, and marks none. Dropped files are ingested first, for which it waits until they are settled, and
// files that are not messages move to bad. Messages that a runner is typing or that are leased are skipped. Those that a hook has
// handed to a session are not.
func Peek(ctx context.Context, b *maildir.Box, opt ReadOptions) (batch Batch, err error) {
	ingested, _ := drop.Ingest(ctx, b, drop.Patience) // what cannot be ingested now stays where it is
	if err := b.CheckPresent(); err != nil {
		return batch, err
	}
	held, err := b.Held()
	if err != nil {
		return batch, err
	}
	opt.listed = ingested.Unread
	batch, err = Choose(b, opt, held, hiddenFromReaders(b, held))
	bad, _ := drop.CountBad(b, ingested) // doctor reports a directory that cannot be read
	batch.Bad += bad
	return batch, err
}

// Read lists messages as Peek does, calls use with them, and marks the first ones as read: as many as use reports as
// received, also if it fails. It returns the errors of all three. If it is known before that the messages cannot be marked,
// use is not called.
func Read(ctx context.Context, b *maildir.Box, opt ReadOptions, use func(Batch) (received int, err error)) (Batch, error) {
	batch, err := Peek(ctx, b, opt)
	if err == nil {
		err = CheckMark(b, batch.Items...)
	}
	if err != nil {
		return batch, err
	}
	received, err := use(batch)
	marked := MarkShown(ctx, b, "", batch.Items[:min(received, len(batch.Items))]...)
	return batch, errors.Join(err, marked)
}

// MarkShown marks messages as read that were shown, also if ctx has ended. One that was moved or claimed meanwhile stays as
// it is. batch is the id of those that LastBatch returns together; "": a new one. It returns an *UnmarkedError if it could
// not mark some, and an *UnloggedError if it could not log it of those that it has marked.
func MarkShown(ctx context.Context, b *maildir.Box, batch wire.ID, items ...*wire.Item) error {
	if len(items) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	batch = cmp.Or(batch, wire.NewID())
	var events []wire.Event
	var unmarked error
	err := b.Locked(ctx, "reader", func() error {
		held, err := b.Held()
		if err != nil {
			return err
		}
		hidden := hiddenFromReaders(b, held)
		for _, it := range items {
			if _, isHidden := hidden[it.ID]; isHidden {
				continue
			}
			err := b.Move(it.ID, b.HeldBy(held[it.ID]), b.AfterRead(it.Message))
			if err == nil {
				events = append(events, b.ReadEvent(it, batch))
			} else if !errors.Is(err, maildir.ErrNotFound) {
				unmarked = err
			}
		}
		return nil
	})
	if err = cmp.Or(err, unmarked); err != nil {
		err = &UnmarkedError{err}
	}
	return errors.Join(err, b.LogEvents(ctx, events...))
}

// UnmarkedError says that messages that were shown, or would be, are still unread.
type UnmarkedError struct{ error }

func (e *UnmarkedError) Error() string { return fmt.Sprintf("not marked as read: %v", e.error) }
func (e *UnmarkedError) Unwrap() error { return e.error }

// CheckMark returns an *UnmarkedError if it is known beforehand that the items cannot be marked: a read-only disk, or a
// file in place of a directory.
func CheckMark(b *maildir.Box, items ...*wire.Item) error {
	if len(items) == 0 {
		return nil
	}
	dirs := map[string]bool{"inbox/new": true}
	for _, it := range items {
		dirs["inbox/cur"] = dirs["inbox/cur"] || it.RequiresAck
		dirs["inbox/done"] = dirs["inbox/done"] || !it.RequiresAck
	}
	for dir, isNeeded := range dirs {
		err := b.Store().Dir().Writable(b.In(dir))
		if isNeeded && err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &UnmarkedError{err}
		}
	}
	return nil
}

// Choose selects the batch from the unread messages, which have these holders, but for those in skipped. It moves files
// that are not messages to bad.
func Choose(b *maildir.Box, opt ReadOptions, held, skipped maildir.Held) (batch Batch, err error) {
	rg := maildir.Range{Unread: true, Listed: opt.listed}
	if opt.IDs != nil {
		rg.Listed = b.Only(b.Unread(), opt.IDs)
	}
	if len(skipped) > 0 {
		rg.Wants = func(id wire.ID) bool { _, ok := skipped[id]; return !ok }
	}
	now := time.Now()
	rg.Bad = func(bad *maildir.BadError) {
		if bad.Unreadable != nil {
			batch.Bad++
		} else if time.Since(now) < moveBadTime {
			b.MoveBadMessage(b.HeldBy(held[bad.ID()]), bad)
		}
	}
	isFull, bytes := false, int64(0)
	isLast := false
	found, err := b.Walk(rg, func(it *wire.Item) bool {
		if isWanted := opt.wants(it, now); isWanted && (isFull || opt.Fits != nil && !opt.Fits(it.Message)) {
			isFull = true
			batch.More++
		} else if isWanted {
			batch.Items = append(batch.Items, it)
			bytes += it.Size
			isFull = len(batch.Items) == opt.Limit
			batch.IsCut = !isFull && opt.MaxBytes > 0 && bytes >= opt.MaxBytes
			isFull = isFull || batch.IsCut
		}
		countsRest := opt.Match == nil && !opt.Current || opt.CountsAll || batch.IsCut
		isLast = isFull && countsRest
		return !isLast
	})
	if isLast {
		batch.More += found.More
	}
	batch.IsCut = batch.IsCut && batch.More > 0
	return batch, err
}

func (opt *ReadOptions) wants(it *wire.Item, now time.Time) bool {
	return it.State != wire.Later && !(opt.Current && it.Expired(now)) && (opt.Match == nil || opt.Match(it))
}

// LastBatch returns the messages that the last Read marked, oldest first, but for those that are gone or cannot be
// read.
func LastBatch(b *maildir.Box) (items []*wire.Item, err error) {
	batch, ids := "", []wire.ID(nil)
	_, err = b.Log().Tail(func(e *wire.Event) bool {
		if e.Kind != wire.EventRead {
			return false
		}
		batch = cmp.Or(batch, e.Field("batch"))
		isEarlier := e.Field("batch") != batch
		if !isEarlier {
			ids = append(ids, e.MessageID())
		}
		return isEarlier
	})
	for _, id := range slices.Backward(ids) {
		if it, err := b.Get(id); err == nil {
			items = append(items, it)
		}
	}
	return items, err
}

// hiddenFromReaders returns the messages that readers skip: a runner or a lease has them.
func hiddenFromReaders(b *maildir.Box, held maildir.Held) maildir.Held {
	if len(held) == 0 {
		return nil
	}
	hidden := held.Live(time.Now(), b.IsRunning())
	maps.DeleteFunc(hidden, func(_ wire.ID, h holder.Holder) bool { return h.Session() != "" })
	return hidden
}
