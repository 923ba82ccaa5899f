package maildir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// moveBadTime is how long one look goes on moving files to bad. Tests change it.
var moveBadTime = time.Second

// maxAhead is how many bytes of further messages are opened. Their texts are not kept.
const maxAhead = 16 << 20

// ReadOptions select the unread messages of a batch.
type ReadOptions struct {
	IDs       []wire.ID                // these only; nil: all
	Match     func(*Item) bool         // nil: all
	Current   bool                     // skip expired messages
	Limit     int                      // 0: none
	MaxBytes  int64                    // the message with which the files have as many ends the batch; 0: none does
	Skip      map[wire.ID]bool         // none of these
	Batch     wire.ID                  // of the batches that are one read; "": a new id
	Fits      func(*wire.Message) bool // called in order, once per message; the first false ends the batch; nil: all fit
	LookAhead int                      // how many further messages to open at most, since they may replace or follow others

	countsAll      bool // count every message beyond LookAhead as More without opening it
	changesNothing bool // moves nothing to bad
}

// Batch is what one Read shows.
type Batch struct {
	Items    []*Item
	Ahead    []*Item // further unread messages, up to LookAhead, without their texts
	More     int     // unread messages that match and are not in the batch; those behind a cut count without a look
	IsCut    bool    // by MaxBytes, and there are more
	SetAside int     // files that are not messages, moved to bad just now; if there are many, a later look moves the rest
	Bad      int     // files that BadFiles lists

	Unreadable []error // why files that may be messages could not be read; they are skipped
	MarkErr    error   // why messages that are shown stay unread, as on a read-only or full disk; Read returns it too
	LogErr     error   // why the event could not be logged
}

// Sender returns whom a program may name as the sender of all of it: atm, if several are; "" if it is empty.
func (b *Batch) Sender() string {
	if len(b.Items) == 0 {
		return ""
	}
	from := b.Items[0].From.Agent
	if slices.ContainsFunc(b.Items, func(it *Item) bool { return it.From.Agent != from }) {
		return "atm"
	}
	return string(from)
}

// Peek selects messages as Read does, but moves none. Dropped files are ingested first. A message requested by id is
// shown even if it is claimed.
func (b *Box) Peek(ctx context.Context, opt ReadOptions) (Batch, error) {
	opt.changesNothing = true
	return b.look(ctx, opt, opt.IDs != nil)
}

// Read selects unread messages, calls show to write them, and then marks the first ones as read: as many as show
// reports as received, also if show fails; Read returns its error, and an *UnmarkedError if it could not mark some. No lock is held during show. So another reader may
// show the same messages at the same time; what was moved or claimed meanwhile stays as it is.
//
// Messages that a runner is typing or that are leased are skipped. Those that a hook has handed to a session are not.
//
// On a read-only disk the messages are shown but not marked, and MarkErr says why to show.
func (b *Box) Read(ctx context.Context, opt ReadOptions, show func(Batch) (received int, err error)) (batch Batch, err error) {
	if batch, err = b.look(ctx, opt, false); err != nil {
		return batch, err
	}
	if len(batch.Items) > 0 {
		batch.MarkErr = b.checkMovable(batch.Items)
	}
	received, err := show(batch)
	if received == 0 || batch.MarkErr != nil {
		return batch, withUnmarked(err, batch.MarkErr)
	}
	ctx = context.WithoutCancel(ctx) // the messages were received
	var events []wire.Event
	lockErr := b.update(ctx, func(t *tx) error {
		events = t.markReceived(&batch, received, cmp.Or(opt.Batch, wire.NewID()))
		return nil
	})
	batch.MarkErr = cmp.Or(lockErr, batch.MarkErr)
	batch.LogErr = b.logEvents(ctx, events...)
	return batch, withUnmarked(err, batch.MarkErr)
}

// UnmarkedError says that messages that were shown are still unread.
type UnmarkedError struct{ error }

func (e *UnmarkedError) Error() string { return fmt.Sprintf("not marked as read: %v", e.error) }
func (e *UnmarkedError) Unwrap() error { return e.error }

func withUnmarked(err, markErr error) error {
	switch {
	case markErr == nil:
		return err
	case err == nil:
		return &UnmarkedError{markErr}
	}
	return errors.Join(err, &UnmarkedError{markErr})
}

// look ingests dropped files and selects messages, unless a runner is typing them or they are leased (evenClaimed: also
// such).
func (b *Box) look(ctx context.Context, opt ReadOptions, evenClaimed bool) (batch Batch, err error) {
	ingested, _ := b.ingestUnlessMail(ctx) // what cannot be ingested now stays where it is
	if err := b.CheckPresent(); err != nil {
		return batch, err
	}
	if opt.IDs == nil {
		opt.IDs = ingested.unread
	}
	all, hidden := b.claims(), claims(nil)
	if !evenClaimed {
		hidden = b.hiddenFromReaders(all)
	}
	batch, err = b.choose(opt, all, hidden)
	batch.Bad = b.countBad(ingested)
	return batch, err
}

// markReceived moves the first items of a batch, which were received, unless somebody has claimed them meanwhile, and
// returns the events that say so.
func (t *tx) markReceived(batch *Batch, received int, batchID wire.ID) (events []wire.Event) {
	hidden := t.hiddenFromReaders(t.claims)
	for _, it := range batch.Items[:min(received, len(batch.Items))] {
		if _, isHidden := hidden[it.ID]; isHidden {
			continue
		}
		err := t.move(it.ID, t.unread(), t.afterRead(it.Message))
		if err == nil {
			events = append(events, t.readEvent(it, batchID))
		} else if !errors.Is(err, ErrNotFound) {
			batch.MarkErr = err
		}
	}
	return events
}

// checkMovable returns why the items cannot be marked, if that is known before they are shown: a read-only disk, or a
// file in place of a directory.
func (b *Box) checkMovable(items []*Item) error {
	dirs := map[string]bool{"inbox/new": true}
	for _, it := range items {
		dirs["inbox/cur"] = dirs["inbox/cur"] || it.RequiresAck
		dirs["inbox/done"] = dirs["inbox/done"] || !it.RequiresAck
	}
	for dir, isNeeded := range dirs {
		err := b.store.root.Writable(b.in(dir))
		if isNeeded && err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// choose selects the batch from the unread messages, which have these claims, but for those in skipped. Unless
// opt.changesNothing it moves files that are not messages to bad.
func (b *Box) choose(opt ReadOptions, all, skipped claims) (batch Batch, err error) {
	list := slices.Clone(opt.IDs)
	if opt.IDs == nil {
		if list, err = b.list(b.unread()); err != nil {
			return batch, err
		}
	}
	list = slices.DeleteFunc(list, func(id wire.ID) bool { _, ok := skipped[id]; return ok || opt.Skip[id] })
	isFull, now := false, time.Now()
	isBad := func(bad *BadError) {
		if bad.Unreadable != nil {
			batch.Unreadable = append(batch.Unreadable, bad)
		} else if !opt.changesNothing && time.Since(now) < moveBadTime && b.moveBadMessage(b.unread(), bad) {
			batch.SetAside++
		}
	}
	var bytes, ahead int64
	looksAhead := func() bool { return len(batch.Ahead) < opt.LookAhead && ahead < maxAhead }
	for i, it := range b.openEach(b.unread(), list, all, 1, nil, isBad) {
		isWanted := opt.wants(it, now)
		isFull = isFull || isWanted && opt.Fits != nil && !opt.Fits(it.Message)
		if isWanted && isFull {
			batch.More++
		}
		if isWanted && !isFull {
			batch.Items = append(batch.Items, it)
			bytes += it.size
			isFull = len(batch.Items) == opt.Limit
			batch.IsCut = !isFull && opt.MaxBytes > 0 && bytes >= opt.MaxBytes
			isFull = isFull || batch.IsCut
		} else if looksAhead() {
			batch.Ahead = append(batch.Ahead, it.withoutText())
			ahead += it.size
		}
		countsRest := opt.Match == nil && !opt.Current || opt.countsAll || batch.IsCut
		if isFull && countsRest && !looksAhead() {
			batch.More += len(list) - i - 1
			break
		}
	}
	batch.IsCut = batch.IsCut && batch.More > 0
	return batch, err
}

func (opt *ReadOptions) wants(it *Item, now time.Time) bool {
	return !(opt.Current && it.Expired(now)) && (opt.Match == nil || opt.Match(it))
}

// LastBatch returns the messages that the last Read marked, oldest first, but for those that are gone or cannot be
// read.
func (b *Box) LastBatch() (items []*Item, err error) {
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
