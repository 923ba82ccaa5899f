package mailbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// machine is a mailbox beside a model of it: where each message is, and what
// the event log says.
type machine struct {
	s      *Store
	bob    *Box
	place  map[wire.ID]string
	ack    map[wire.ID]bool
	log    []string // "kind id"
	pool   []wire.ID
	home   string // where the mailbox lies: moved when it is retired
	drops  int
	kept   int // originals in the archive
	events int
}

func newMachine(t *rapid.T, path string) *machine {
	m := &machine{place: map[wire.ID]string{}, ack: map[wire.ID]bool{}}
	d, err := openDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if m.s, err = OpenStore(d, "main"); err == nil {
		err = m.s.Create(ctx, "bob")
	}
	if err != nil {
		t.Fatal(err)
	}
	m.bob = m.s.Box("bob")
	m.home = m.bob.Path()
	for i := range 6 {
		m.pool = append(m.pool, oldID(i%4))
	}
	return m
}

func (m *machine) retired() bool { return m.home != m.bob.Path() }

// in lists the messages of a place, oldest first.
func (m *machine) in(places ...string) (out []wire.ID) {
	for id, p := range m.place {
		if slices.Contains(places, p) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// some is one of the messages, or one that is nowhere.
func (m *machine) some(t *rapid.T) wire.ID {
	all := append(m.in(placeNew, placeCur, placeDone, placeWithdrawn, placeArchive), wire.NewID())
	return rapid.SampledFrom(all).Draw(t, "message")
}

func (m *machine) message(id wire.ID, ack bool) *wire.Message {
	return &wire.Message{ID: id, From: wire.Address{Agent: "alice", Team: "main"}, Body: "body of " + string(id), RequiresAck: ack}
}

// gone checks the error of an operation on a retired mailbox.
func (m *machine) gone(t *rapid.T, err error) bool {
	if m.retired() != errors.Is(err, ErrNoAgent) {
		t.Fatalf("retired: %v, and the error is %v", m.retired(), err)
	}
	return m.retired()
}

func (m *machine) post(t *rapid.T, posts ...*Post) {
	Deliver(ctx, posts...)
	for _, p := range posts {
		id, o := p.Message.ID, p.Outcomes[0]
		if m.gone(t, o.Err) {
			continue
		}
		was := m.place[id]
		if o.Err != nil || !o.Stored || o.Known != (was != "") {
			t.Fatalf("%s, which was in %q: %+v", id, was, o)
		}
		if was == "" {
			m.place[id], m.ack[id] = placeNew, p.Message.RequiresAck
		}
	}
}

func (m *machine) Deliver(t *rapid.T) {
	m.post(t, &Post{Message: m.message(wire.NewID(), rapid.Bool().Draw(t, "ack")), To: []*Box{m.bob}})
}

func (m *machine) DeliverGiven(t *rapid.T) {
	id := rapid.SampledFrom(m.pool).Draw(t, "id")
	p := func() *Post {
		return &Post{Message: m.message(id, id[35]%2 == 0), To: []*Box{m.bob}, Given: true}
	}
	posts := []*Post{p()}
	if rapid.Bool().Draw(t, "twice") {
		posts = append(posts, p())
	}
	m.post(t, posts...)
}

func (m *machine) Read(t *rapid.T) {
	unread := m.in(placeNew)
	limit := rapid.IntRange(0, 4).Draw(t, "limit")
	take := rapid.IntRange(0, 4).Draw(t, "take")
	want := unread
	if limit > 0 {
		want = want[:min(limit, len(want))]
	}
	batch, err := m.bob.Read(ctx, ReadOptions{Limit: limit, LookAhead: limit % 3}, func(b Batch) (int, error) { return min(take, len(b.Items)), nil })
	if m.gone(t, err) {
		return
	}
	if err := errors.Join(err, batch.Unmarked, batch.Unlogged); err != nil {
		t.Fatal(err)
	}
	m.shows(t, batch, want, len(unread))
	for _, it := range batch.Items[:min(take, len(batch.Items))] {
		m.read(it.ID)
	}
}

// read notes that a message was taken by a reader.
func (m *machine) read(id wire.ID) {
	m.place[id] = placeDone
	if m.ack[id] {
		m.place[id] = placeCur
	}
	m.log = append(m.log, wire.EventRead+" "+string(id))
}

func (m *machine) shows(t *rapid.T, b Batch, want []wire.ID, unread int) {
	var got []wire.ID
	for _, it := range b.Items {
		got = append(got, it.ID)
		if it.Body != "body of "+string(it.ID) && it.From.Agent != "drop" {
			t.Fatalf("%s has the body %q", it.ID, it.Body)
		}
	}
	if !slices.Equal(got, want) || b.More != unread-len(got) {
		t.Fatalf("shown: %v and %d more of %d, want %v", got, b.More, unread, want)
	}
}

func (m *machine) Peek(t *rapid.T) {
	limit := rapid.IntRange(0, 3).Draw(t, "limit")
	batch, err := m.bob.Peek(ctx, ReadOptions{Limit: limit})
	if m.gone(t, err) {
		return
	}
	want := m.in(placeNew)
	unread := len(want)
	if limit > 0 {
		want = want[:min(limit, len(want))]
	}
	m.shows(t, batch, want, unread)
}

func (m *machine) Take(t *rapid.T) {
	id := m.some(t)
	moved, err := m.bob.Take(ctx, id)
	if m.gone(t, err) {
		return
	}
	if err != nil || moved != (m.place[id] == placeNew) {
		t.Fatal(m.place[id], moved, err)
	}
	if moved {
		m.read(id)
	}
}

func (m *machine) Settle(t *rapid.T) {
	id := m.some(t)
	err := m.bob.Settle(ctx, id, rapid.Bool().Draw(t, "delivered"))
	if m.gone(t, err) {
		return
	}
	was := m.place[id]
	if (was == "") != errors.Is(err, ErrNotFound) || was != "" && err != nil {
		t.Fatal(was, err)
	}
	switch was {
	case placeNew:
		m.log = append(m.log, wire.EventRead+" "+string(id))
		fallthrough
	case placeCur:
		m.log = append(m.log, wire.EventAcked+" "+string(id))
		m.place[id] = placeDone
	}
}

func (m *machine) Unread(t *rapid.T) {
	id := m.some(t)
	moved, err := m.bob.Unread(ctx, id)
	if m.gone(t, err) {
		return
	}
	switch was := m.place[id]; was {
	case "":
		if !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	case placeWithdrawn:
		if !errors.Is(err, ErrSettled) {
			t.Fatal("a withdrawn message came back: ", err)
		}
	default:
		if err != nil || moved != (was != placeNew) {
			t.Fatal(was, moved, err)
		}
		m.place[id] = placeNew
	}
}

func (m *machine) Withdraw(t *rapid.T) {
	id := m.some(t)
	state, err := m.bob.Withdraw(ctx, id, wire.Address{Agent: "alice", Team: "main"})
	if m.gone(t, err) {
		return
	}
	was := m.place[id]
	if (was == "") != errors.Is(err, ErrNotFound) || state != stateOf(was) {
		t.Fatal(was, state, err)
	}
	if was == placeNew || was == placeCur {
		m.place[id] = placeWithdrawn
		m.log = append(m.log, wire.EventWithdrawn+" "+string(id))
	}
}

// GC moves whole days that hold none of the newest messages.
func (m *machine) GC(t *rapid.T) {
	opt := GCOptions{
		Before:   time.Now().AddDate(0, 0, rapid.IntRange(-3, 1).Draw(t, "days")),
		KeepLast: rapid.IntRange(0, 3).Draw(t, "keep"),
	}
	dry := opt
	dry.DryRun = true
	would, err := m.bob.GC(ctx, dry)
	if m.gone(t, err) {
		return
	}
	did, err := m.bob.GC(ctx, opt)
	if err != nil || did != would {
		t.Fatal(did, would, err)
	}
	done := m.in(placeDone)
	kept := map[string]bool{}
	for i, id := range slices.Backward(done) {
		if len(done)-i <= opt.KeepLast {
			kept[id.Day()] = true
		}
	}
	n := 0
	for _, id := range done {
		if !kept[id.Day()] && id.Day() < opt.Before.UTC().Format(time.DateOnly) {
			m.place[id] = placeArchive
			n++
		}
	}
	if did.Messages != n || did.Skipped != len(done)-n {
		t.Fatalf("moved %d and skipped %d of %d, want %d moved", did.Messages, did.Skipped, len(done), n)
	}
}

func (m *machine) Retire(t *rapid.T) {
	where, err := m.s.Retire(ctx, "bob")
	if m.gone(t, err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.home = filepath.Join(teamPath(m.s), where)
}

func (m *machine) Restore(t *rapid.T) {
	err := m.s.Restore(ctx, "bob")
	if m.retired() != (err == nil) || err != nil && !errors.Is(err, ErrExists) {
		t.Fatal(m.retired(), err)
	}
	m.home = m.bob.Path()
}

// Drop drops a file and has it taken in, by looking or on purpose.
func (m *machine) Drop(t *rapid.T) {
	if m.retired() {
		t.Skip("nowhere to drop it")
	}
	m.drops++
	name, text := fmt.Sprintf("note %d", m.drops), fmt.Sprintf("dropped %d", m.drops)
	var own wire.ID
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 1:
		own = rapid.SampledFrom(m.pool).Draw(t, "id")
		name += ".json"
		text = fmt.Sprintf(`{"id":%q,"body":"body of %s","requires_ack":%v}`, own, own, own[35]%2 == 0)
	case 2:
		name += ".json"
		text = fmt.Sprintf(`{"kind":"turn_started","turn_id":"%d"}`, m.drops)
		m.log = append(m.log, "turn_started ")
	}
	drop(t, m.bob, rapid.SampledFrom([]string{"inbox", "inbox/new"}).Draw(t, "where"), name, []byte(text))
	if rapid.Bool().Draw(t, "by looking") {
		if _, err := m.bob.Count(ctx); err != nil {
			t.Fatal(err)
		}
	} else {
		takeIn(t, m.bob)
	}
	switch {
	case own != "" && m.place[own] != "":
		m.kept++
	case own != "":
		m.place[own], m.ack[own] = placeNew, own[35]%2 == 0
	case !strings.HasSuffix(name, ".json"):
		c := takeCensus(t, teamPath(m.s), "bob")
		var made []wire.ID
		for id, it := range c.texts {
			if it.Subject == name && it.Body == text && m.place[id] == "" {
				made = append(made, id)
			}
		}
		if len(made) != 1 {
			t.Fatalf("the dropped %q became %d messages", name, len(made))
		}
		m.place[made[0]] = placeNew
	}
}

func (m *machine) Append(t *rapid.T) {
	n := rapid.IntRange(0, 3).Draw(t, "n")
	var events []wire.Event
	for i := range n {
		events = append(events, wire.Event{Kind: fmt.Sprintf("k%d", i), EventID: fmt.Sprint(m.events, i)})
	}
	m.events++
	again := rapid.Bool().Draw(t, "again")
	for range 2 {
		err := m.bob.Append(ctx, AppendOptions{}, events...)
		if n > 0 && m.gone(t, err) {
			return
		}
		if !again {
			break
		}
	}
	for i := range n {
		m.log = append(m.log, fmt.Sprintf("k%d ", i))
	}
}

func (m *machine) Check(t *rapid.T) {
	c := censusOf(t, teamPath(m.s), m.home, filepath.Join(teamPath(m.s), ".archive", "bob"))
	c.sound(t)
	got := map[wire.ID]string{}
	for id := range c.places {
		got[id] = c.place(id)
	}
	if diff := cmp.Diff(m.place, got); diff != "" {
		t.Fatal("(-model +disk)\n" + diff)
	}
	if len(c.bad)+len(c.tmp)+len(c.inbox) > 0 || len(c.drops) != m.kept {
		t.Fatalf("bad %q, tmp %q, inbox %q, drops %q", c.bad, c.tmp, c.inbox, c.drops)
	}
	if m.retired() {
		return
	}
	var log []string
	for _, e := range eventsOf(t, m.bob) {
		log = append(log, e.Kind+" "+string(e.MessageID()))
	}
	if diff := cmp.Diff(m.log, log); diff != "" {
		t.Fatal("events (-model +disk)\n" + diff)
	}
	n, err := m.bob.Count(ctx)
	if want := (Counts{Unread: len(m.in(placeNew)), Owed: len(m.in(placeCur))}); err != nil || n != want {
		t.Fatalf("counted %+v, want %+v: %v", n, want, err)
	}
}

// Whatever is done to a mailbox, in whatever order, every message is where it
// should be, and the event log has no gap.
func TestMachine(t *testing.T) {
	top := scratch(t)
	rapid.Check(t, func(t *rapid.T) {
		path, err := os.MkdirTemp(top, "machine-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(path)
		m := newMachine(t, path)
		defer m.s.Close()
		t.Repeat(rapid.StateMachineActions(m))
	})
}
