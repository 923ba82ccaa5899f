package mailbox

import (
	"context"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/lockfile"
)

// The sessions of the agent's program that are its sub-agents', a line each:
// some programs say so only once.
//
//	run/children
const (
	childFile   = "children"
	maxChildren = 256 // the newest are kept
)

// Adopt notes that a session of the agent's program is a sub-agent's.
func (b *Box) Adopt(ctx context.Context, session string) error {
	if b.Adopted(session) {
		return nil
	}
	unlock, err := b.lock(ctx, "reader", lockfile.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := b.enter()
	if err != nil {
		return err
	}
	defer r.close()
	d, err := r.dir(runDir, true)
	if err != nil {
		return err
	}
	all := append(r.children(), session)
	all = all[max(0, len(all)-maxChildren):]
	return d.Replace(childFile, []byte(strings.Join(all, "\n")+"\n"), false)
}

// Adopted reports whether a session is known as a sub-agent's.
func (b *Box) Adopted(session string) bool {
	r, err := b.enter()
	if err != nil {
		return false
	}
	defer r.close()
	return slices.Contains(r.children(), session)
}

func (r *room) children() []string {
	d, err := r.dir(runDir, false)
	if d == nil || err != nil {
		return nil
	}
	data, err := d.ReadFile(childFile, maxClaim)
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}
