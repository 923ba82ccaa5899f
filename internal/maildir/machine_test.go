package maildir_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
)

// machine is a mailbox and a model of it: where each message is, who has leased it, and what the event log has.
type machine struct {
	s     *maildir.Store
	bob   *maildir.Box
	home  string // the mailbox's directory, which changes while it is retired
	place map[wire.ID]string
	ack   map[wire.ID]bool
	body  map[wire.ID]string    // as it was delivered first
	held  map[wire.ID]wire.Name // who has leased it
	times map[wire.ID]int       // how often it was leased
	log   []string              // "kind id"
	pool  []wire.ID
	n     int // drops and events
	kept  int // originals of drops in the archive
}

func (m *machine) retired() bool { return m.home != m.bob.Path() }

// in lists the messages of some places, oldest first.
func (m *machine) in(places ...string) (ids []wire.ID) {
	for id, p := range m.place {
		if slices.Contains(places, p) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// free returns the unread messages that are not leased.
func (m *machine) free() []wire.ID {
	return slices.DeleteFunc(m.in("new"), func(id wire.ID) bool { return m.held[id] != "" })
}

// some returns one of the messages, or one that does not exist.
func (m *machine) some(t *rapid.T) wire.ID {
	return rapid.SampledFrom(append(m.in("new", "cur", "done", "withdrawn", "archive"), past)).Draw(t, "message")
}

func (m *machine) who(t *rapid.T) wire.Name {
	return rapid.SampledFrom([]wire.Name{"bob", "carol", "dave"}).Draw(t, "who")
}

// moves records that a message moved, which ends its lease.
func (m *machine) moves(id wire.ID, to string, log ...string) {
	m.place[id] = to
	delete(m.held, id)
	delete(m.times, id)
	for _, kind := range log {
		m.log = append(m.log, kind+" "+string(id))
	}
}

func (m *machine) reads(id wire.ID) {
	if m.ack[id] {
		m.moves(id, "cur", wire.EventRead)
	} else {
		m.moves(id, "done", wire.EventRead)
	}
}

// gone checks the error of an operation if the mailbox is retired.
func (m *machine) gone(t *rapid.T, err error) bool {
	if m.retired() != errors.Is(err, maildir.ErrNoMailbox) {
		t.Fatalf("retired: %v, and the error is %v", m.retired(), err)
	}
	return m.retired()
}

func (m *machine) Deliver(t *rapid.T) {
	id, given := wire.NewID(), rapid.Bool().Draw(t, "given")
	if given {
		id = rapid.SampledFrom(m.pool).Draw(t, "id")
	}
	msg := withID(id, message(fmt.Sprint("body ", rapid.IntRange(1, 2).Draw(t, "body"))))
	msg.RequiresAck = id[35]%2 == 0
	for range rapid.IntRange(1, 2).Draw(t, "times") {
		o := post(m.bob, msg, given)
		if m.gone(t, o.Err) {
			return
		}
		known := m.place[id] != ""
		if known && m.body[id] != msg.Body {
			if !errors.Is(o.Err, maildir.ErrIDTaken) || o.IsStored {
				t.Fatalf("%s, which has another text: %+v", id, o)
			}
			continue
		}
		if o.Err != nil || !o.IsStored || o.WasDelivered != known {
			t.Fatalf("%s, which was in %q: %+v", id, m.place[id], o)
		}
		if !known {
			m.place[id], m.ack[id], m.body[id] = "new", msg.RequiresAck, msg.Body
		}
	}
}

func (m *machine) Read(t *rapid.T) {
	want := m.free()
	unread := len(want)
	if limit := rapid.IntRange(0, 4).Draw(t, "limit"); limit > 0 {
		want = want[:min(limit, unread)]
	}
	n := rapid.IntRange(0, len(want)).Draw(t, "received")
	opt := inbox.ReadOptions{Limit: len(want)}
	batch, err := inbox.Peek(ctx, m.bob, opt)
	if rapid.Bool().Draw(t, "read") {
		batch, err = inbox.Read(ctx, m.bob, opt, func(b inbox.Batch) (int, error) { return n, nil })
	} else {
		n = 0
	}
	if m.gone(t, err) {
		return
	}
	must(t, err)
	if got := idsOf(batch.Items); !slices.Equal(got, want) || batch.More != unread-len(got) {
		t.Fatalf("shown: %v and %d more of %d, want %v", got, batch.More, unread, want)
	}
	for _, id := range want[:n] {
		m.reads(id)
	}
}

func (m *machine) MarkRead(t *rapid.T) {
	id := m.some(t)
	err := m.bob.MarkRead(ctx, id)
	if m.gone(t, err) {
		return
	}
	if err != nil {
		t.Fatal(m.place[id], m.held[id], err)
	}
	if m.place[id] == "new" && (m.held[id] == "" || m.held[id] == "bob") {
		m.reads(id)
	}
}

// refused checks the error for a member who has not leased a message.
func (m *machine) refused(t *rapid.T, id wire.ID, err error) {
	var leased *maildir.LeasedError
	if m.held[id] != "" && m.place[id] == "new" {
		if !errors.As(err, &leased) || leased.By != addr(m.held[id]) {
			t.Fatalf("%s holds it: %v", m.held[id], err)
		}
	} else if !errors.Is(err, maildir.ErrNotHeld) {
		t.Fatal("nobody holds it: ", err)
	}
}

func (m *machine) MarkAcked(t *rapid.T) {
	id, by := m.some(t), m.who(t)
	err := m.bob.MarkAcked(ctx, id, addr(by))
	if m.gone(t, err) {
		return
	}
	was := m.place[id]
	switch {
	case was == "":
		if !errors.Is(err, maildir.ErrNotFound) {
			t.Fatal(err)
		}
	case was == "new" && m.held[id] != by && (by != "bob" || m.held[id] != ""), was == "cur" && by != "bob":
		m.refused(t, id, err)
	case was == "withdrawn":
		if !errors.Is(err, maildir.ErrWithdrawn) {
			t.Fatal("a withdrawn message was acknowledged: ", err)
		}
	case err != nil:
		t.Fatal(was, err)
	case was == "new" && by == "bob":
		m.moves(id, "done", wire.EventRead, wire.EventAcked)
	case was == "new", was == "cur":
		m.moves(id, "done", wire.EventAcked)
	}
}

func (m *machine) MarkUnread(t *rapid.T) {
	id := m.some(t)
	err := m.bob.MarkUnread(ctx, id)
	if m.gone(t, err) {
		return
	}
	switch was := m.place[id]; was {
	case "":
		if !errors.Is(err, maildir.ErrNotFound) {
			t.Fatal(err)
		}
	case "withdrawn":
		if !errors.Is(err, maildir.ErrWithdrawn) {
			t.Fatal("a withdrawn message came back: ", err)
		}
	default:
		if err != nil {
			t.Fatal(was, err)
		}
		if was != "new" {
			m.moves(id, "new")
		}
	}
}

func (m *machine) Withdraw(t *rapid.T) {
	id := m.some(t)
	state, err := m.bob.WithdrawRead(ctx, id, addr("alice"), nil)
	if m.gone(t, err) {
		return
	}
	was := m.place[id]
	want := map[string]wire.State{"new": wire.Unread, "cur": wire.Owed, "done": wire.Done, "archive": wire.Done, "withdrawn": wire.Withdrawn}[was]
	if (was == "") != errors.Is(err, maildir.ErrNotFound) || state != want {
		t.Fatal(was, state, err)
	}
	if was == "new" || was == "cur" || was == "done" && !m.ack[id] {
		m.moves(id, "withdrawn", wire.EventWithdrawn)
	}
}

func (m *machine) Lease(t *rapid.T) {
	by, show := m.who(t), rapid.Bool().Draw(t, "received")
	var lease wire.Lease
	it, err := claim.Lease(ctx, m.bob, addr(by), time.Hour, inbox.ReadOptions{}, func(it *wire.Item, l wire.Lease) (bool, error) {
		lease = l
		if b, err := inbox.Peek(ctx, m.bob, inbox.ReadOptions{}); err != nil || slices.Contains(idsOf(b.Items), it.ID) {
			t.Fatal("free while it is shown: ", err)
		}
		return show, nil
	})
	if m.gone(t, err) {
		return
	}
	free := m.free()
	if want := show && len(free) > 0; err != nil || want != (it != nil) || want && (it.ID != free[0] || lease.By != addr(by) || it.TimesHandedOut != m.times[it.ID]) {
		t.Fatalf("%+v, %v, want one of %v: %v", it, lease, free, err)
	}
	if it != nil {
		m.held[it.ID] = by
		m.times[it.ID]++
	}
}

func (m *machine) EndLease(t *rapid.T) {
	id, by := m.some(t), m.who(t)
	end := func() error { return claim.EndLease(ctx, m.bob, id, addr(by)) }
	if rapid.Bool().Draw(t, "renew") {
		end = func() error { _, err := claim.RenewLease(ctx, m.bob, id, addr(by), time.Minute); return err }
	}
	err := end()
	if m.gone(t, err) {
		return
	}
	if m.place[id] != "new" || m.held[id] != by {
		m.refused(t, id, err)
	} else if err != nil {
		t.Fatal(err)
	} else if l := leaseOf(t, m.bob, id); !l.Until.After(time.Now()) {
		m.held[id] = ""
		m.log = append(m.log, "message_returned "+string(id))
	} else if l.By != addr(by) || time.Until(l.Until) < 59*time.Minute {
		t.Fatal("renewed, and shorter: ", l)
	}
}

// GC moves whole days that have none of the newest messages.
func (m *machine) GC(t *rapid.T) {
	opt := keep.GCOptions{Before: time.Now().AddDate(0, 0, rapid.IntRange(-3, 1).Draw(t, "days")), KeepLast: rapid.IntRange(0, 3).Draw(t, "keep"), DryRun: true}
	would, err := keep.GC(ctx, m.bob, opt)
	if m.gone(t, err) {
		return
	}
	opt.DryRun = false
	did, err := keep.GC(ctx, m.bob, opt)
	if err != nil || did != would {
		t.Fatal(did, would, err)
	}
	done, n := m.in("done"), 0
	kept := map[string]bool{}
	for i, id := range slices.Backward(done) {
		if len(done)-i <= opt.KeepLast {
			kept[id.Day()] = true
		}
	}
	for _, id := range done {
		if !kept[id.Day()] && id.Day() < opt.Before.UTC().Format(time.DateOnly) {
			m.place[id] = "archive"
			n++
		}
	}
	if did.Messages != n || did.Skipped != len(done)-n {
		t.Fatalf("moved %d and skipped %d of %d, want %d moved", did.Messages, did.Skipped, len(done), n)
	}
}

func (m *machine) Retire(t *rapid.T) {
	where, err := keep.Retire(ctx, m.s, "bob")
	if m.gone(t, err) {
		return
	}
	must(t, err)
	m.home = m.s.Dir().Join(where)
}

func (m *machine) Restore(t *rapid.T) {
	err := keep.Restore(ctx, m.s, "bob")
	if m.retired() != (err == nil) || err != nil && !errors.Is(err, maildir.ErrExists) {
		t.Fatal(m.retired(), err)
	}
	m.home = m.bob.Path()
}

// Drop drops a file that some operation ingests.
func (m *machine) Drop(t *rapid.T) {
	if m.retired() {
		t.Skip("nowhere to drop it")
	}
	m.n++
	name, text := fmt.Sprintf("note %d", m.n), fmt.Sprintf("dropped %d", m.n)
	body := fmt.Sprint(m.n)
	var own wire.ID
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 1:
		own = rapid.SampledFrom(m.pool).Draw(t, "id")
		name, text = name+".json", fmt.Sprintf(`{"id":%q,"from":"alice","body":%q,"requires_ack":%v}`, own, body, own[35]%2 == 0)
	case 2:
		name, text = name+".json", fmt.Sprintf(`{"kind":"turn_started","turn_id":"%d"}`, m.n)
		m.log = append(m.log, "turn_started ")
	}
	dropFile(t, m.bob, rapid.SampledFrom([]string{"inbox", "inbox/new"}).Draw(t, "where"), name, text)
	if rapid.Bool().Draw(t, "by looking") {
		if _, err := inbox.Count(ctx, m.bob); err != nil {
			t.Fatal(err)
		}
	} else {
		takeIn(t, m.bob)
	}
	if !strings.HasSuffix(name, ".json") {
		m.kept++
	}
	if own != "" || !strings.HasSuffix(name, ".json") {
		if own == "" {
			body = text
		}
		var made []wire.ID
		for id, it := range takeCensus(t, m.bob).texts {
			if (it.Subject == name || it.MetaString("id") == string(own)) && it.Body == body && m.place[id] == "" {
				made = append(made, id)
			}
		}
		if len(made) != 1 {
			t.Fatalf("the dropped %q became %d messages", name, len(made))
		}
		m.place[made[0]], m.ack[made[0]], m.body[made[0]] = "new", own != "" && own[35]%2 == 0, body
	}
}

func (m *machine) Check(t *rapid.T) {
	c := censusAt(t, m.bob, m.home)
	c.is(t, m.place)
	for id, body := range m.body {
		if c.texts[id].Body != body {
			t.Fatalf("%s says %q, and said %q", id, c.texts[id].Body, body)
		}
	}
	if len(c.bad)+len(c.tmp)+len(c.inbox) > 0 || len(c.drops) != m.kept {
		t.Fatalf("bad %q, tmp %q, inbox %q, drops %q", c.bad, c.tmp, c.inbox, c.drops)
	}
	if m.retired() {
		return
	}
	if diff := cmp.Diff(m.log, logged(t, m.bob)); diff != "" {
		t.Fatal("events (-model +disk)\n" + diff)
	}
	n, err := inbox.Count(ctx, m.bob)
	want := inbox.Counts{Unread: len(m.free()), Owed: len(m.in("cur"))}
	want.Leased = len(m.in("new")) - want.Unread
	if err != nil || n != want {
		t.Fatalf("counted %+v, want %+v: %v", n, want, err)
	}
	for _, id := range m.in("new") {
		it, err := m.bob.Get(id)
		if by := m.held[id]; err != nil || (by == "") != (it.Lease == nil) || by != "" && it.Lease.By != addr(by) || it.TimesHandedOut != m.times[id]-count(by != "") {
			t.Fatalf("%s is held by %+v, given out %d times; want %q, %d: %v", id, it.Lease, it.TimesHandedOut, by, m.times[id], err)
		}
	}
}

// Whatever is done to a mailbox, in whatever order, every message is where it should be and leased at most once, and
// the event log has no gap.
func TestMachine(t *testing.T) {
	top := testtree.Memory(t)
	testround.Check(t, 15, func(t *rapid.T) {
		path, err := os.MkdirTemp(top, "machine-")
		must(t, err)
		defer os.RemoveAll(path)
		s, err := open(path, nil)
		if err == nil {
			err = s.Create(ctx, "bob")
		}
		must(t, err)
		defer s.Close()
		m := &machine{s: s, bob: s.Box("bob"), home: s.Box("bob").Path(), place: map[wire.ID]string{}, ack: map[wire.ID]bool{}, body: map[wire.ID]string{}, held: map[wire.ID]wire.Name{}, times: map[wire.ID]int{}}
		for i := range 6 {
			m.pool = append(m.pool, daysAgo(i%4))
		}
		t.Repeat(rapid.StateMachineActions(m))
	})
}
