package mailbox

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// Takings say who took an unread message under a lease, and who did before.
// There is one file a message, written and changed under the reader's lock,
// replaced whole, never synced: what a power cut takes of it leaves a message that
// is unread.
//
//	inbox/leases/<id>.lease   of a message in new
//	inbox/aside/<id>.lease    of one that was set aside: its history
//	inbox/leases/shared       there: other members may take from this inbox
//
// The message itself stays in new. So a lease that ran out, or a file that
// cannot be understood, hides nothing: the message is unread, as it always was.
//
//	{"takes":[{"by":"bob@main","key":"…","at":"…","renewed":"…","for":"10m0s","ended":"…","how":"given back"}]}
type Takings struct {
	Takes []Taking `json:"takes"`          // the oldest first
	Told  bool     `json:"told,omitempty"` // the sender knows that the message was set aside
}

// Taking is one taking of a message under a lease.
type Taking struct {
	By      wire.Address
	Key     wire.ID // tells it from every other
	At      time.Time
	Renewed time.Time
	For     time.Duration // from Renewed on

	// Showing says that the message is on its way out to the taker, who has not
	// got it yet: it holds for a moment, and is no try.
	Showing bool

	Ended time.Time // zero: nobody ended it
	How   string    // it ended: "given back", "exit status 3"
}

const (
	leasesDir  = "inbox/leases"
	asideDir   = "inbox/aside"
	leaseEnd   = ".lease"
	sharedFile = "shared"

	maxTakings = 64 << 10 // bytes of the file
	keptTakes  = 16
)

// MaxLease is the longest lease, and MaxTries how often a message is taken and
// not finished before it is set aside.
const (
	MaxLease = 24 * time.Hour
	MaxTries = 5
)

// showHolds is how long a message is kept from others while it is on its way
// out to its taker.
const showHolds = claimGoes

// wireTaking is a Taking on disk.
type wireTaking struct {
	By      string    `json:"by"`
	Key     string    `json:"key"`
	At      time.Time `json:"at"`
	Renewed time.Time `json:"renewed"`
	For     string    `json:"for"`
	Showing bool      `json:"showing,omitempty"`
	Ended   time.Time `json:"ended,omitzero"`
	How     string    `json:"how,omitempty"`
}

// MarshalJSON writes the taking as the file has it.
func (k Taking) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireTaking{k.By.String(), string(k.Key), k.At, k.Renewed, k.For.String(), k.Showing, k.Ended, k.How})
}

// UnmarshalJSON reads it. A length that nobody can have asked for is cut to
// MaxLease: nothing in a file keeps a message from others for good.
func (k *Taking) UnmarshalJSON(data []byte) error {
	var w wireTaking
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	by, err := wire.ParseAddress(w.By, "")
	if err != nil {
		return err
	}
	long, err := time.ParseDuration(w.For)
	switch {
	case err != nil:
		return err
	case long <= 0 || !wire.IsID(w.Key) || w.At.IsZero() || w.Renewed.IsZero():
		return errors.New("no taking")
	}
	*k = Taking{by, wire.ID(w.Key), w.At, w.Renewed, min(long, MaxLease), w.Showing, w.Ended, w.How}
	return nil
}

// decodeTakings reads a lease file; nil for what is none.
func decodeTakings(data []byte) *Takings {
	var t Takings
	if json.Unmarshal(data, &t) != nil || len(t.Takes) == 0 {
		return nil
	}
	t.Takes = t.Takes[max(0, len(t.Takes)-keptTakes):]
	return &t
}

func (t *Takings) encode() ([]byte, error) {
	data, err := json.Marshal(t)
	return append(data, '\n'), err
}

// Last is the newest taking, nil if there is none.
func (t *Takings) Last() *Taking {
	if t == nil || len(t.Takes) == 0 {
		return nil
	}
	return &t.Takes[len(t.Takes)-1]
}

// Holder is the taking that holds now, nil if none does.
func (t *Takings) Holder(now time.Time) *Taking {
	if k := t.Last(); k != nil && k.Holds(now) {
		return k
	}
	return nil
}

// Tries is how often the message was taken: those who were shown it, and got it.
func (t *Takings) Tries() (n int) {
	if t == nil {
		return 0
	}
	for i := range t.Takes {
		if !t.Takes[i].Showing {
			n++
		}
	}
	return n
}

// spent reports whether nobody holds the message and it was taken too often.
func (t *Takings) spent(now time.Time) bool { return t.Tries() >= MaxTries && t.Holder(now) == nil }

// Until is when the taking's lease runs out.
func (k *Taking) Until() time.Time { return k.Renewed.Add(k.length()) }

func (k *Taking) length() time.Duration {
	if k.Showing {
		return min(k.For, showHolds)
	}
	return k.For
}

// Holds reports whether the taking holds the message: nobody ended it, and its
// lease has not run out, by a clock that may have been set back meanwhile.
func (k *Taking) Holds(now time.Time) bool {
	return k.Ended.IsZero() && now.Sub(k.Renewed).Abs() < k.length()
}

// is reports whether the taking is somebody's; a key names the very one.
func (k *Taking) is(by wire.Address, key wire.ID) bool {
	return k.By == by && (key == "" || k.Key == key)
}

// Open reports whether the taking is one's to end: nobody ended it, and nobody
// took over what ran out.
func (k *Taking) Open() bool { return k != nil && k.Ended.IsZero() }

// End says how the taking ended, as far as it has: "lease ran out" where nobody
// ended it.
func (k *Taking) End() string {
	switch {
	case k.How != "":
		return k.How
	case !k.Ended.IsZero():
		return "given back"
	}
	return "lease ran out"
}

// takings reads the lease file of a message; nil where there is none that can be
// understood. An error says that it cannot be told who holds the message.
func (r *room) takings(dir string, id wire.ID) (*Takings, error) {
	d, err := r.dir(dir, false)
	if d == nil || err != nil {
		return nil, err
	}
	data, err := d.ReadFile(string(id)+leaseEnd, maxTakings)
	switch {
	case atomicfile.Absent(err), errors.Is(err, atomicfile.ErrNotRegular), errors.Is(err, atomicfile.ErrTooLarge):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return decodeTakings(data), nil
}

// setTakings replaces the lease file of a message; nil, or one without a taking,
// removes it.
func (r *room) setTakings(dir string, id wire.ID, t *Takings) error {
	d, err := r.dir(dir, t.Last() != nil)
	if d == nil || err != nil {
		return err
	}
	name := string(id) + leaseEnd
	write := func() error { return d.Remove(name) }
	if t.Last() != nil {
		data, err := t.encode()
		if err != nil {
			return err
		}
		write = func() error { return d.Replace(name, data, false) }
	}
	if err = write(); err == nil {
		return nil
	}
	// A directory under the name would be in the way of every taker.
	if info, e := d.Lstat(name); e != nil || !info.IsDir() {
		return err
	}
	return errors.Join(r.toBad(d, name, "a directory in the place of a lease file"), write())
}

// leased lists the messages that have a lease file in a directory.
func (r *room) leased(dir string) (out []wire.ID, err error) {
	d, err := r.dir(dir, false)
	r.unleased = dir == leasesDir && d == nil && err == nil
	if d == nil || err != nil {
		return nil, err
	}
	err = d.Names(func(names []string) bool {
		for _, n := range names {
			if id, ok := strings.CutSuffix(n, leaseEnd); ok && wire.IsID(id) {
				out = append(out, wire.ID(strings.Clone(id)))
			}
		}
		return true
	})
	slices.Sort(out)
	return out, err
}

// held are the unread messages that somebody holds under a lease just now, for
// the owner's own looking: of what cannot be told nothing is hidden.
func (r *room) held(now time.Time) map[wire.ID]bool {
	held, unknown, _ := r.holders(now)
	for id := range unknown {
		delete(held, id)
	}
	return held
}

// holders are the unread messages that somebody holds just now, and those of
// which that cannot be told, with the reason: for who hands messages out they
// are held too, since nobody else may get them.
func (r *room) holders(now time.Time) (held map[wire.ID]bool, unknown map[wire.ID]error, err error) {
	ids, err := r.leased(leasesDir)
	if err != nil || len(ids) == 0 {
		return nil, nil, err
	}
	held = map[wire.ID]bool{}
	for _, id := range ids {
		t, err := r.takings(leasesDir, id)
		if err != nil {
			if unknown == nil {
				unknown = map[wire.ID]error{}
			}
			unknown[id] = err
		}
		if err != nil || t.Holder(now) != nil {
			held[id] = true
		}
	}
	return held, unknown, nil
}

// history adds to an item that is unread, or was set aside, who took it.
func (r *room) history(it *Item) *Item {
	if it == nil || it.State != Unread && it.State != Aside {
		return it
	}
	dir := leasesDir
	if it.State == Aside {
		dir = asideDir
	}
	it.Takings, _ = r.takings(dir, it.ID)
	return it
}
