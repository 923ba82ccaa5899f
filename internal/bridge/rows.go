package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

const (
	rowsEvery  = 15 * time.Second
	rowsGather = 100 * time.Millisecond // what changes together is told together
	rowsPause  = time.Second            // after they were told
	rowsAnew   = time.Minute            // after which it is asked anew how the clocks differ
)

func rowsKey(host wire.Name) string { return "rows." + string(host) }

// addMembers watches what rows and stages are made of. What is no file is looked at every rowsEvery: a killed runner.
func (b *Bridge) addMembers(w *watcher.Dirs) {
	boxes, _ := b.Team.Boxes() // where they cannot be listed, sendRows says so
	w.Add(b.Team.Dir().Path(), b.Team.Dir().Join(receivedDir))
	for _, box := range boxes {
		w.Add(box.Path()+"/inbox", box.Path()+"/inbox/new", box.Path()+"/inbox/cur", box.Path()+"/events")
	}
}

func (b *Bridge) sendRows(ctx context.Context) error {
	rows, unreadable := b.Team.LocalRows(ctx, b.Host)
	if _, isPart := errors.AsType[*teams.UnreadableError](unreadable); unreadable != nil && !isPart {
		return unreadable
	}
	content, _ := json.Marshal(rows)
	if len(content) > maxInline {
		return fmt.Errorf("tell of the members: %d bytes are more than %d", len(content), maxInline)
	}
	e := &Envelope{Kind: KindRows, ID: wire.NewID(), Team: b.Team.Name, FromHost: b.Host, At: rows.At, Content: content}
	if _, err := b.bucket.Put(ctx, rowsKey(b.Host), e.Sign(b.key)); err != nil {
		return fmt.Errorf("tell of the members: %w", err)
	}
	return unreadable
}

// receiveRows takes in what other hosts have told of their members, and in a bridge that stays for a minute what
// they tell.
func (b *Bridge) receiveRows(ctx context.Context) error {
	// A row may have lain on the server for long: it is as old as that says, by our own clock.
	asked := time.Now()
	now, err := b.serverTime(ctx)
	if err != nil {
		return err
	}
	ahead := now.Sub(asked)
	w, err := b.bucket.Watch(ctx, "rows.*", jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("receive rows: %w", err)
	}
	defer w.Stop()
	for over := time.After(rowsAnew); ; {
		select {
		case entry, ok := <-w.Updates():
			switch {
			case !ok:
				return errors.New("receive rows: the subscription ended")
			case entry == nil && b.again == nil: // that was all
				return nil
			case entry == nil || entry.Key() == rowsKey(b.Host):
				continue
			}
			err := b.takeRows(entry, entry.Created().Add(-ahead))
			if told, _ := b.rowsTold.Swap(entry.Key(), fmt.Sprint(err)); err != nil && told != err.Error() {
				b.say("%s: %v", entry.Key(), err)
			}
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// takeRows keeps the rows of a host if they are signed by it and newer than what it told before.
func (b *Bridge) takeRows(entry jetstream.KeyValueEntry, at time.Time) error {
	e, err := Open(entry.Value(), b.Root.Keys.Key)
	if err != nil {
		return err
	}
	if e.Kind != KindRows || e.Object || e.Team != b.Team.Name || entry.Key() != rowsKey(e.FromHost) {
		return fmt.Errorf("it is %s of host %s and team %s", e.Kind, e.FromHost, e.Team)
	}
	var rows teams.Rows
	if err := json.Unmarshal(e.Content, &rows); err != nil {
		return err
	}
	rows.Host, rows.At, rows.ReceivedAt = e.FromHost, e.At, at.UTC()
	return b.Team.SaveRows(rows)
}
