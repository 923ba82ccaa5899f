package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
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
	rows, unreadable := presence.LocalRows(ctx, b.Team, b.Host)
	if _, isPart := errors.AsType[*teamdir.UnreadableError](unreadable); unreadable != nil && !isPart {
		return unreadable
	}
	content, _ := json.Marshal(rows)
	e := &Envelope{Kind: KindRows, ID: wire.NewID(), Team: b.Team.Name, FromHost: b.Host, At: rows.At, Content: content}
	if err := b.way.publishRows(ctx, e.Sign(b.key)); err != nil {
		return fmt.Errorf("publish the members' states: %w", err)
	}
	return unreadable
}

// saveRows saves the rows that came under a host's key. It warns once of those that it does not accept.
func (b *Bridge) saveRows(key string, data []byte, at time.Time) {
	err := b.acceptRows(key, data, at)
	if err == nil {
		b.rowsErrors.Delete(key)
	} else if last, _ := b.rowsErrors.Swap(key, err.Error()); last != err.Error() {
		b.warn("%s: %v", key, err)
	}
}

// acceptRows saves the rows of a host if it has signed them and they are newer than the saved ones.
func (b *Bridge) acceptRows(key string, data []byte, at time.Time) error {
	e, err := Open(data, b.keys().Key)
	if err != nil {
		return err
	}
	if e.Kind != KindRows || e.Team != b.Team.Name || key != rowsKey(e.FromHost) {
		return fmt.Errorf("it is %s of host %s and team %s", e.Kind, e.FromHost, e.Team)
	}
	var rows presence.Rows
	if err := json.Unmarshal(e.Content, &rows); err != nil {
		return err
	}
	rows.Host, rows.At, rows.ReceivedAt = e.FromHost, e.At, at.UTC()
	return presence.SaveRows(b.Team, rows)
}
