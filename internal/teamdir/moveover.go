package teamdir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

// ErrOlderRuns says that a root cannot be brought to this format yet: a runner of an older atm is alive in it.
var ErrOlderRuns = errors.New("runs with an older atm")

// moveOver brings a root of an older format to this one. One that may not act, or in which nothing can be written, stays as it
// is: its mail can be read. It may be killed at any point, and goes on the next time.
func (r *Root) moveOver(ctx context.Context) error {
	if r.MayAct(ctx) != nil || r.dir.Writable(".") != nil {
		return nil
	}
	names, err := r.Teams()
	for _, name := range names {
		t, failed := r.Team(name)
		if failed == nil {
			failed = t.moveOver(ctx)
		}
		err = cmp.Or(err, failed)
	}
	if err == nil {
		err = r.dir.Replace(rootdir.FormatFile, []byte(rootdir.Format+"\n"), true)
	}
	return err
}

func (t *Team) moveOver(ctx context.Context) error {
	names, err := t.Store.Agents()
	if err != nil {
		return err
	}
	for _, name := range names {
		if b := t.Box(name); b.IsRunning() {
			run, _ := runinfo.Read(t.Dir(), name)
			return fmt.Errorf("bring %s to the format of this atm: %s %w (process %d)", t.root.Path, name, ErrOlderRuns, run.Runner)
		}
	}
	unlock, err := t.Store.Lock(ctx, "team", lockfile.Exclusive, nil)
	if err != nil {
		return err
	}
	defer unlock()
	for _, name := range names {
		b := t.Box(name)
		if err := b.Locked(ctx, "reader", func() error { return moveClaims(b) }); err != nil {
			return err
		}
	}
	return nil
}

// formerClaim is an entry of run/claims.json, which said who had which unread message.
type formerClaim struct {
	Owner     string // kind:who
	IDs       []wire.ID
	At, Until time.Time
	Times     int
	Call      string
	Offered   bool
}

func (c formerClaim) holder() holder.Holder {
	kind, who, _ := strings.Cut(c.Owner, ":")
	h := holder.New(holder.Kind(kind), who, c.Call, c.At)
	h.Times = max(1, c.Times)
	if c.Offered || h.Kind == holder.Lease {
		return h.Shown(c.Until)
	}
	return h.Ended()
}

// moveClaims has those who had messages by run/claims.json hold them.
func moveClaims(b *maildir.Box) error {
	file := b.In("run/claims.json")
	data, err := b.Store().Dir().ReadFile(file, 8<<20)
	var all []formerClaim
	if durable.IsAbsent(err) {
		return nil
	}
	if err == nil && json.Unmarshal(data, &all) != nil {
		all = nil // they were only advice
	}
	for _, c := range all {
		for _, id := range c.IDs {
			if moved := b.HandTo(id, holder.Holder{}, c.holder()); !errors.Is(moved, maildir.ErrNotFound) {
				err = cmp.Or(err, moved)
			}
		}
	}
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return b.Store().Dir().RemoveAll(file)
}
