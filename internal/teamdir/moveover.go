package teamdir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
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
	for _, name := range names { // their locks are enough: of two that do this at once one finds nothing left
		b := t.Box(name)
		if err := b.Locked(ctx, "reader", func() error { return moveClaims(b) }); err != nil {
			return err
		}
	}
	if err := t.Sessions().ArchiveEnded(ctx); err != nil {
		return err
	}
	err = MoveLater(ctx, t)
	if errors.Is(err, maildir.ErrNoMailbox) || errors.Is(err, ErrNoTeam) { // what nobody can get stays there
		err = nil
	}
	return err
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
	if !slices.Contains([]holder.Kind{holder.Session, holder.Push, holder.Lease}, holder.Kind(kind)) {
		kind = string(holder.Runner) // which is dead, or somebody of no known kind
	}
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
			if !wire.IsID(string(id)) {
				continue
			}
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

// oldLater is where roots of before v0.1.0 have messages to be sent later: <due>.<sender>.<id>.json, or
// ….after.json of one that waits for those in meta.atm.after. sent_at is when it is due.
const oldLater = ".later"

// MoveLater delivers what waits in oldLater, as what waits in its recipient's inbox, and removes it there. After a kill it is
// done again: nobody gets it twice. What cannot be delivered to all stays, with an error.
func MoveLater(ctx context.Context, t *Team) (errs error) {
	names, err := t.Dir().Names(oldLater)
	errs = err
	for _, name := range names {
		if strings.HasSuffix(name, ".json") {
			if err := moveLater(ctx, t, oldLater+"/"+name); err != nil {
				errs = errors.Join(errs, fmt.Errorf("%s: %w", t.Dir().Join(oldLater+"/"+name), err))
			}
		}
	}
	errs = errors.Join(errs, t.Dir().RemoveAll(oldLater+"/after"))
	t.Dir().Remove(oldLater) // if nothing is left in it
	return errs
}

func moveLater(ctx context.Context, t *Team, file string) error {
	data, err := t.Dir().ReadFile(file, wire.MaxFile)
	if err != nil {
		return err
	}
	m, err := wire.Decode(data)
	if err != nil {
		return err
	}
	var meta struct{ ATM struct{ After []wire.ID } }
	json.Unmarshal(m.Meta, &meta)
	m.NotBefore, m.SentAt, m.Needs = m.SentAt, m.ID.Time().UTC(), meta.ATM.After
	post := &maildir.Post{Message: m, Given: true}
	if sender := t.Box(m.From.Agent); sender.Exists() {
		post.Sender = sender
	}
	for _, a := range m.To {
		box, unknown := t.root.Mailbox(a)
		if _, isHost := errors.AsType[*UnknownHostError](unknown); isHost { // it waits in the outbox
			unknown = nil
		}
		if err = errors.Join(err, unknown); unknown == nil {
			post.To = append(post.To, box)
		}
	}
	maildir.Deliver(ctx, post)
	for _, out := range post.Outcomes {
		err = errors.Join(err, out.Err)
	}
	if err == nil {
		err = t.Dir().Remove(file)
	}
	return err
}
