package mailbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// job is posts that are delivered in one go.
type job struct {
	ctx    context.Context
	posts  []*Post
	desks  map[boxKey]*desk
	order  []*desk    // as the posts first name them
	drafts [][]*draft // by post and recipient; nil where there is none
	all    []*draft
}

type boxKey struct {
	store *Store
	agent wire.Name
}

// desk is a mailbox that a job delivers to.
type desk struct {
	box      *Box
	standing *standing
	tmp      *atomicfile.Dir // nil: not looked at yet
	items    []item          // what is to be linked
	room     *room           // where it was linked
}

// item is a recipient of a post.
type item struct{ post, at int }

// draft is a file written for some recipients of a post.
type draft struct {
	*atomicfile.Draft
	home *atomicfile.Dir // whose rights it has
	err  error
}

func (j *job) close() {
	for _, d := range j.all {
		if d.Draft != nil {
			d.Close()
		}
	}
	for _, d := range j.order {
		d.standing.leave()
	}
}

func (j *job) desk(b *Box) *desk {
	key := boxKey{b.store, b.agent}
	d := j.desks[key]
	if d == nil {
		if j.desks == nil {
			j.desks = map[boxKey]*desk{}
		}
		d = &desk{box: b, standing: b.stand()}
		j.desks[key], j.order = d, append(j.order, d)
	}
	return d
}

// openTmp returns the recipient's tmp, looked at once a job. Only for creating
// drafts: no lock is held, so nothing looked at here counts later.
func (d *desk) openTmp() (*atomicfile.Dir, error) {
	if d.tmp != nil {
		return d.tmp, nil
	}
	t, stale, err := d.standing.openTmp(d.box.openTmp)
	if stale {
		d.standing.retire()
		d.standing.leave()
		d.standing = d.box.stand()
		t, _, err = d.standing.openTmp(d.box.openTmp)
	}
	if err == nil {
		d.tmp = t
	}
	return t, err
}

func (b *Box) openTmp() (*atomicfile.Dir, error) {
	t, err := b.store.dir.Walk(string(b.agent), "inbox", "tmp")
	if atomicfile.Absent(err) {
		if err := b.seen(); err != nil {
			return nil, err
		}
		t, err = b.store.makeBelow([]string{string(b.agent), "inbox"}, []string{"tmp"})
	}
	if err != nil {
		return nil, b.absent(err)
	}
	if !t.Readable() {
		t.Close()
		return nil, ErrUnreadable
	}
	return t, nil
}

// write writes a draft for every post and every owner among its recipients.
func (j *job) write() {
	j.drafts = make([][]*draft, len(j.posts))
	for n, p := range j.posts {
		p.Outcomes = make([]Outcome, len(p.To))
		j.drafts[n] = make([]*draft, len(p.To))
		data, err := encode(p.Message)
		for i, b := range p.To {
			o := &p.Outcomes[i]
			o.Box = b
			if o.Err = err; err != nil {
				continue
			}
			d := j.desk(b)
			tmp, e := d.openTmp()
			if e != nil {
				o.Err = e
				continue
			}
			j.drafts[n][i] = j.shared(n, tmp, data)
			d.items = append(d.items, item{n, i})
		}
	}
}

// shared is a post's draft for a recipient whose entries get tmp's owner: one
// that an earlier recipient has, or a new one.
func (j *job) shared(post int, tmp *atomicfile.Dir, data []byte) *draft {
	for _, d := range j.drafts[post] {
		if d != nil && d.err == nil && d.home.SameOwner(tmp) {
			return d
		}
	}
	return j.draft(post, tmp, data)
}

// draft writes a draft of a post.
func (j *job) draft(post int, tmp *atomicfile.Dir, data []byte) *draft {
	d := &draft{home: tmp}
	j.all = append(j.all, d)
	name := string(j.posts[post].Message.ID) + "." + strconv.Itoa(os.Getpid()) + "." + strconv.Itoa(len(j.all))
	if d.Draft, d.err = tmp.Draft(name); d.err == nil {
		_, d.err = d.Write(data)
	}
	return d
}

// sync makes all drafts durable, several at once.
func (j *job) sync() {
	todo := slices.DeleteFunc(slices.Clone(j.all), func(d *draft) bool { return d.err != nil })
	if len(todo) > 1 {
		for _, d := range todo {
			d.Flush()
		}
	}
	parallel(len(todo), func(i int) { todo[i].err = todo[i].Sync() })
}

// publish links the drafts into place, a mailbox at a time under its lock, and
// makes the directories durable, all at once.
func (j *job) publish() {
	given := slices.ContainsFunc(j.posts, func(p *Post) bool { return p.Given })
	for _, d := range j.order {
		d.items = slices.DeleteFunc(d.items, func(it item) bool {
			err := j.drafts[it.post][it.at].err
			if err == nil {
				err = d.box.noteDates(j.posts[it.post])
			}
			j.outcome(it).Err = err
			return err != nil
		})
	}
	todo := slices.DeleteFunc(slices.Clone(j.order), func(d *desk) bool { return len(d.items) == 0 })
	for _, d := range todo {
		mode := lockfile.Shared
		if given && slices.ContainsFunc(d.items, func(it item) bool { return j.posts[it.post].Given }) {
			mode = lockfile.Exclusive
		}
		unlock, err := d.box.lock(j.ctx, "inbox", mode)
		if err == nil {
			if d.room, err = d.standing.enter(); err == nil {
				j.link(d, d.room)
			}
			unlock()
		}
		if err != nil {
			for _, it := range d.items {
				j.outcome(it).Err = err
			}
		}
	}
	parallel(len(todo), func(n int) {
		if d := todo[n]; d.room != nil {
			j.synced(d, d.sync())
			d.room.close()
		}
	})
}

// sync makes what was linked durable, together with what others of this process
// have linked.
func (d *desk) sync() error {
	if d.room.lent {
		return d.standing.sync()
	}
	return d.room.fresh.Sync()
}

func (j *job) outcome(it item) *Outcome { return &j.posts[it.post].Outcomes[it.at] }

// synced notes the outcome of making a mailbox's new entries durable.
func (j *job) synced(d *desk, err error) {
	for _, it := range d.items {
		if o := j.outcome(it); err != nil && o.Err == nil {
			o.Err = &NotDurableError{j.posts[it.post].Message.ID, err}
		}
	}
}

// link publishes what a mailbox gets; its inbox lock is held.
func (j *job) link(d *desk, r *room) {
	for _, it := range d.items {
		o := j.outcome(it)
		o.Stored, o.Known, o.Err = j.linkOne(r, it)
	}
}

func (j *job) linkOne(r *room, it item) (stored, known bool, err error) {
	p := j.posts[it.post]
	if p.Given {
		if _, there, err := r.locate(p.Message.ID); there || err != nil {
			if there {
				r.supersedeAgain(p.Message)
			}
			return there, there, err
		}
	}
	name := string(p.Message.ID) + ".json"
	err = j.drafts[it.post][it.at].Link(r.fresh, name)
	if errors.Is(err, atomicfile.ErrNoLinks) {
		err = j.again(r, it.post, name)
	}
	if errors.Is(err, fs.ErrExist) {
		r.supersedeAgain(p.Message)
		return true, true, nil
	}
	if err == nil {
		r.supersede(p.Message)
	}
	return err == nil, false, err
}

// again writes a file of its own for a recipient, where an earlier one has
// taken the file that all were to share.
func (j *job) again(r *room, post int, name string) error {
	data, err := j.posts[post].Message.Encode()
	if err != nil {
		return err
	}
	tmp, err := r.dir("inbox/tmp", true)
	if err != nil {
		return err
	}
	d := j.draft(post, tmp, data)
	if d.err == nil {
		d.err = d.Sync()
	}
	if d.err != nil {
		return d.err
	}
	return d.Link(r.fresh, name)
}

// index notes what was sent in the sender's own directory. It is a convenience
// that doctor can rebuild: not synced, and its failures are nobody's.
func (j *job) index() {
	for n, p := range j.posts {
		at := slices.IndexFunc(p.Outcomes, func(o Outcome) bool { return o.Stored })
		if p.Sender != nil && at >= 0 {
			p.Sender.noteSent(p.Message, j.drafts[n][at])
		}
	}
}
