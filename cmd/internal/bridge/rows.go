package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

const (
	rowsEvery  = 15 * time.Second
	rowsGather = 100 * time.Millisecond // changes within it are sent together
	rowsPause  = time.Second            // after sending
	clockEvery = time.Minute            // how often the clocks are compared
)

func rowsKey(host wire.Name) string { return "rows." + string(host) }

// addMemberDirs watches the files that rows and stages are made of. A killed runner changes no file: that shows within
// rowsEvery.
func (b *Bridge) addMemberDirs(w *watcher.Dirs) {
	boxes, _ := b.Team.Boxes() // sendRows reports the error
	paths := []string{b.Team.Dir().Path(), b.Team.Dir().Join(teamdir.ReceivedDir)}
	for _, box := range boxes {
		paths = append(paths, box.Path()+"/inbox", box.Path()+"/inbox/new", box.Path()+"/inbox/cur", box.Path()+"/events")
	}
	w.Add(paths...)
}

func (b *Bridge) sendRows(ctx context.Context) error {
	rows, unreadable := b.Team.LocalRows(ctx, b.Host)
	if _, isPart := errors.AsType[*teamdir.UnreadableError](unreadable); unreadable != nil && !isPart {
		return unreadable
	}
	content, _ := json.Marshal(rows)
	e := &Envelope{Kind: KindRows, ID: wire.NewID(), Team: b.Team.Name, FromHost: b.Host, At: rows.At, Content: content}
	if _, err := b.bucket.Put(ctx, rowsKey(b.Host), e.Sign(b.key)); err != nil {
		return fmt.Errorf("publish the members' states: %w", err)
	}
	return unreadable
}

// receiveRows saves the rows of other hosts, and under Run also those that come within clockEvery. Their age counts
// from when the server stored them, converted to our clock.
func (b *Bridge) receiveRows(ctx context.Context) error {
	began := time.Now()
	now, err := b.serverTime(ctx)
	if err != nil {
		return err
	}
	ahead := now.Sub(began)
	w, err := b.bucket.Watch(ctx, "rows.*", jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("receive rows: %w", err)
	}
	defer w.Stop()
	for timeout := time.After(clockEvery); ; {
		select {
		case entry, ok := <-w.Updates():
			switch {
			case !ok:
				return errors.New("receive rows: the subscription ended")
			case entry == nil && !b.isContinuous: // these were all
				return nil
			case entry == nil || entry.Key() == rowsKey(b.Host):
				continue
			}
			if err := b.saveRows(entry, entry.Created().Add(-ahead)); err == nil {
				delete(b.rowsErrors, entry.Key())
			} else if err.Error() != b.rowsErrors[entry.Key()] {
				b.rowsErrors[entry.Key()] = err.Error()
				b.warn("%s: %v", entry.Key(), err)
			}
		case <-timeout:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// saveRows saves the rows of a host if it has signed them and they are newer than the saved ones.
func (b *Bridge) saveRows(entry jetstream.KeyValueEntry, at time.Time) error {
	e, err := Open(entry.Value(), b.keys().Key)
	if err != nil {
		return err
	}
	if e.Kind != KindRows || e.Team != b.Team.Name || entry.Key() != rowsKey(e.FromHost) {
		return fmt.Errorf("it is %s of host %s and team %s", e.Kind, e.FromHost, e.Team)
	}
	var rows teamdir.Rows
	if err := json.Unmarshal(e.Content, &rows); err != nil {
		return err
	}
	rows.Host, rows.At, rows.ReceivedAt = e.FromHost, e.At, at.UTC()
	return b.Team.SaveRows(rows)
}
