package mailbox

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// A claim says that unread messages are in somebody's hands. There is one file
// an agent, written and changed under the reader's lock, never synced: what a
// power cut takes of it is shown once more.
//
//	run/claim.json   {"ids":["…"],"at":"…","run":"…"}        a runner types them
//	                 {"ids":["…"],"at":"…","session":"…", …} handed to a session by a hook
//
// Where there are several, a runner's stands in the file and the rest in its
// "others", so that who knows of one claim only finds that one.
type claim struct {
	IDs     []wire.ID `json:"ids"`
	At      time.Time `json:"at"`
	Session string    `json:"session,omitempty"` // "": a runner's

	Ended bool      `json:"ended,omitempty"` // the session, or the runner, ended after it
	Again []wire.ID `json:"again,omitempty"` // of IDs: handed over before, in vain

	Run   string `json:"run,omitempty"`   // a runner's: which hold of its lock it was made under
	Call  string `json:"call,omitempty"`  // a hook's: which call of the session's it was
	Going bool   `json:"going,omitempty"` // a hook's: its answer is not known to be out

	Others []claim `json:"others,omitempty"`
}

const (
	runDir    = "run"
	claimFile = "claim.json"
	maxClaim  = 1 << 20
)

// How long a claim of a session holds without a sign from it, how long its
// answer may be on its way out, and how far apart the calls are of hooks that
// are installed twice.
const (
	claimHolds = 10 * time.Minute
	claimGoes  = 10 * time.Second
	atOnce     = 2 * time.Second
)

// ErrBeingTyped says that a runner is typing the message to its agent just now.
var ErrBeingTyped = errors.New("is being typed")

// claims reads what is claimed. A file that cannot be understood claims
// nothing: its messages are unread, and are handed over as such.
func (r *room) claims() ([]claim, error) {
	d, err := r.dir(runDir, false)
	if d == nil || err != nil {
		return nil, err
	}
	data, err := d.ReadFile(claimFile, maxClaim)
	if atomicfile.Absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var first claim
	if json.Unmarshal(data, &first) != nil {
		return nil, nil
	}
	all := append([]claim{first}, first.Others...)
	all[0].Others = nil
	for i := range all {
		// They become names of files.
		all[i].IDs = slices.DeleteFunc(all[i].IDs, func(id wire.ID) bool { return !wire.IsID(string(id)) })
	}
	return slices.DeleteFunc(all, func(c claim) bool { return len(c.IDs) == 0 }), nil
}

// setClaims writes what is claimed, without what is no longer unread.
func (r *room) setClaims(all []claim) error {
	d, err := r.dir(runDir, true)
	if err != nil {
		return err
	}
	var left []claim
	for _, c := range all {
		if r.forgetRead(&c); len(c.IDs) > 0 {
			left = append(left, c)
		}
	}
	if len(left) == 0 {
		return d.Remove(claimFile)
	}
	slices.SortStableFunc(left, func(a, b claim) int {
		switch {
		case a.typed() && !b.typed():
			return -1
		case !a.typed() && b.typed():
			return 1
		}
		return b.At.Compare(a.At)
	})
	first := left[0]
	first.Others = left[1:]
	data, err := json.Marshal(&first)
	if err != nil {
		return err
	}
	return d.Replace(claimFile, append(data, '\n'), false)
}

// forgetRead takes out of a claim what is no longer unread, and reports whether
// there was any.
func (r *room) forgetRead(c *claim) bool {
	n := len(c.IDs)
	c.IDs = slices.DeleteFunc(slices.Clone(c.IDs), func(id wire.ID) bool {
		has, err := r.fresh.Has(string(id) + ".json")
		return err == nil && !has
	})
	c.Again = slices.DeleteFunc(slices.Clone(c.Again), func(id wire.ID) bool { return !slices.Contains(c.IDs, id) })
	return len(c.IDs) < n
}

// typed reports whether a claim is of a runner that is not known to be dead.
func (c *claim) typed() bool { return c.Session == "" && !c.Ended }

// holds reports whether a claim counts: a runner's while the runner runs, a
// session's for some minutes unless it ended.
func (c *claim) holds(now time.Time, running bool) bool {
	age := now.Sub(c.At).Abs() // also when the clock was set back
	switch {
	case c.Ended:
		return false
	case c.Session == "":
		return running
	case c.Going:
		return age < claimGoes
	}
	return age < claimHolds
}

// inHands tells which unread messages a runner types just now, and which were
// handed to a session that has not shown yet that it took them.
func (r *room) inHands(now time.Time) (typed, handed map[wire.ID]bool, err error) {
	all, err := r.claims()
	if len(all) == 0 || err != nil {
		return nil, nil, err
	}
	running := false
	if slices.ContainsFunc(all, func(c claim) bool { return c.typed() }) {
		if running, err = r.box.store.Running(r.box.agent); err != nil {
			return nil, nil, err
		}
	}
	typed, handed = map[wire.ID]bool{}, map[wire.ID]bool{}
	for _, c := range all {
		if !c.holds(now, running) {
			continue
		}
		of := handed
		if c.Session == "" {
			of = typed
		}
		for _, id := range c.IDs {
			of[id] = true
		}
	}
	return typed, handed, nil
}
