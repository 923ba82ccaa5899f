package maildir_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
)

var ctx = context.Background()

// past is an id from a past day.
const past = wire.ID("01900000-0000-7000-8000-0000000000aa")

// tb is the common part of testing.T and rapid.T.
type tb interface {
	Helper()
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
}

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newStore makes a team with some agents in a directory of its own.
func newStore(t testing.TB, agents ...wire.Name) *maildir.Store {
	t.Helper()
	return faultyStore(t, nil, agents...)
}

func faultyStore(t testing.TB, fault durable.Fault, agents ...wire.Name) *maildir.Store {
	t.Helper()
	return openStore(t, testtree.Memory(t), fault, agents...)
}

// openStore opens a team's directory and makes agents in it.
func openStore(t testing.TB, path string, fault durable.Fault, agents ...wire.Name) *maildir.Store {
	t.Helper()
	s, err := open(path, fault)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	for _, a := range agents {
		must(t, s.Create(ctx, a))
	}
	return s
}

func open(path string, fault durable.Fault) (*maildir.Store, error) {
	if err := os.MkdirAll(filepath.Join(path, ".locks"), 0o700); err != nil {
		return nil, err
	}
	root, err := durable.OpenFaulty(path, fault)
	if err != nil {
		return nil, err
	}
	return maildir.NewStore(root, "main"), nil
}

func newBob(t testing.TB) *maildir.Box {
	t.Helper()
	return newStore(t, "bob").Box("bob")
}

func addr(agent wire.Name) wire.Address { return wire.Address{Agent: agent, Team: "main"} }

func message(body string) *wire.Message {
	return &wire.Message{ID: wire.NewID(), From: addr("alice"), Body: body}
}

func withAck(m *wire.Message) *wire.Message { m.RequiresAck = true; return m }

func withID(id wire.ID, m *wire.Message) *wire.Message { m.ID = id; return m }

func encoded(t tb, m *wire.Message) []byte {
	t.Helper()
	data, err := m.Encode()
	must(t, err)
	return data
}

// post delivers one message to one mailbox.
func post(b *maildir.Box, m *wire.Message, given bool) maildir.Outcome {
	p := &maildir.Post{Message: m, To: []*maildir.Box{b}, Given: given}
	maildir.Deliver(ctx, p)
	return p.Outcomes[0]
}

// deliver delivers messages and fails the test if that fails.
func deliver(t tb, b *maildir.Box, all ...*wire.Message) (ids []wire.ID) {
	t.Helper()
	for _, m := range all {
		if o := post(b, m, false); o.Err != nil {
			t.Fatal(o.Err)
		}
		ids = append(ids, m.ID)
	}
	return ids
}

// deliverN delivers n messages, with the bodies 0, 1, ...
func deliverN(t tb, b *maildir.Box, n int) (ids []wire.ID) {
	t.Helper()
	for i := range n {
		ids = append(ids, deliver(t, b, message(fmt.Sprint(i)))...)
	}
	return ids
}

// put writes a message's file without waiting for a disk.
func put(t tb, b *maildir.Box, where string, m *wire.Message) {
	t.Helper()
	write(t, filepath.Join(b.Path(), where, nameOf(m.ID)), string(encoded(t, m)))
}

// nameOf returns the name of a message's file.
func nameOf(id wire.ID) string { return string(id) + ".json" }

// write writes a file, and makes the directories above it.
func write(t tb, path, content string) {
	t.Helper()
	os.MkdirAll(filepath.Dir(path), 0o700)
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

// dropFile puts a file into a mailbox that was written elsewhere a while ago, so it is taken in at once.
func dropFile(t tb, b *maildir.Box, where, name, content string) {
	t.Helper()
	from, written := b.Store().Dir().Join(".dropping"), time.Now().Add(-2*time.Second)
	write(t, from, content)
	must(t, os.Chtimes(from, written, written))
	must(t, os.Rename(from, filepath.Join(b.Path(), where, name)))
}

func takeIn(t tb, b *maildir.Box) drop.Ingested {
	t.Helper()
	taken, err := drop.Ingest(ctx, b, 0)
	must(t, err)
	return taken
}

// settleDrops calls Ingest until no file waits.
func settleDrops(t testing.TB, b *maildir.Box) {
	t.Helper()
	in, err := drop.Ingest(ctx, b, time.Minute)
	must(t, err)
	if !in.Again.IsZero() {
		t.Fatal("files wait and wait")
	}
}

// moveTo moves an unread message to a later place.
func moveTo(b *maildir.Box, id wire.ID, place string) (err error) {
	switch place {
	case "cur", "done", "archive":
		err = b.MarkRead(ctx, id)
	case "withdrawn":
		_, err = b.WithdrawRead(ctx, id, addr("alice"), nil)
	}
	if place == "archive" {
		_, e := keep.GC(ctx, b, keep.GCOptions{Before: time.Now().AddDate(0, 0, 2)})
		err = errors.Join(err, e)
	}
	return err
}

func receiveAll(b inbox.Batch) (int, error) { return len(b.Items), nil }

// read reads all unread messages.
func read(t tb, b *maildir.Box) []wire.ID {
	t.Helper()
	batch, err := inbox.Read(ctx, b, inbox.ReadOptions{}, receiveAll)
	must(t, err)
	return idsOf(batch.Items)
}

func idsOf(items []*wire.Item) (ids []wire.ID) {
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	return ids
}

// equal fails the test unless two lists are the same.
func equal[T any](t tb, what string, got []T, want ...T) {
	t.Helper()
	if len(got)+len(want) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// daysAgo returns an id that is so many days old.
func daysAgo(days int) wire.ID {
	now := wire.NewID()
	hex := fmt.Sprintf("%012x", now.Time().AddDate(0, 0, -days).UnixMilli())
	return wire.ID(hex[:8]+"-"+hex[8:]) + now[13:]
}

// census says where everything in a mailbox is. It uses nothing of the package but the decoder.
type census struct {
	places map[wire.ID][]string // the directories of each message
	texts  map[wire.ID]*wire.Message
	torn   []string // files that have a message's name but are not that message
	bad    []string // without the reasons
	tmp    []string
	inbox  []string // files in the inbox itself
	drops  []string // originals kept in the archive
}

func takeCensus(t tb, b *maildir.Box) census {
	t.Helper()
	return censusAt(t, b, b.Path())
}

// censusAt is takeCensus of a mailbox in another directory, as a retired one.
func censusAt(t tb, b *maildir.Box, home string) census {
	t.Helper()
	archive := b.Store().Dir().Join(b.Archived())
	c := census{places: map[wire.ID][]string{}, texts: map[wire.ID]*wire.Message{}}
	for _, top := range []string{home + "/inbox/new", home + "/inbox/held", home + "/inbox/cur", home + "/inbox/done", home + "/inbox/withdrawn", archive + "/done"} {
		filepath.WalkDir(top, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || !maildir.IsMessageFile(e.Name()) {
				return nil
			}
			id := wire.ID(strings.TrimSuffix(e.Name(), ".json"))
			c.places[id] = append(c.places[id], filepath.Dir(path))
			data, err := os.ReadFile(path)
			must(t, err)
			if m, err := wire.Decode(data); err == nil && m.ID == id {
				c.texts[id] = m
			} else {
				c.torn = append(c.torn, path)
			}
			return nil
		})
	}
	files := func(dir string) []string { return filesIn(t, dir) }
	c.bad = slices.DeleteFunc(files(home+"/inbox/bad"), func(n string) bool { return strings.HasSuffix(n, ".reason") || n[0] == '.' })
	c.tmp, c.inbox, c.drops = files(home+"/inbox/tmp"), files(home+"/inbox"), files(archive+"/drops")
	return c
}

// filesIn lists the files of a directory, without the directories.
func filesIn(t tb, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range list {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// sound fails the test if a message is torn or in two places.
func (c census) sound(t tb) {
	t.Helper()
	for _, path := range c.torn {
		t.Errorf("torn: %s", path)
	}
	for id, in := range c.places {
		if len(in) != 1 {
			t.Errorf("%s is in %d places: %q", id, len(in), in)
		}
	}
}

// place returns where a message is: new (also if it is held), cur, done, withdrawn, archive; "" is nowhere.
func (c census) place(id wire.ID) string {
	if len(c.places[id]) == 0 {
		return ""
	}
	dir := filepath.ToSlash(c.places[id][0])
	i := strings.LastIndex(dir, "/inbox/")
	if i < 0 {
		return "archive"
	}
	kind, _, _ := strings.Cut(dir[i+len("/inbox/"):], "/")
	if kind == "held" {
		return "new"
	}
	return kind
}

// ids returns all messages, sorted.
func (c census) ids() (ids []wire.ID) {
	for id := range c.places {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// is fails the test unless each message is in the given place.
func (c census) is(t tb, want map[wire.ID]string) {
	t.Helper()
	c.sound(t)
	got := map[wire.ID]string{}
	for id := range c.places {
		got[id] = c.place(id)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got)\n%s", diff)
	}
}

// eventsOf reads the whole log and fails the test if events are missing.
func eventsOf(t tb, b *maildir.Box) (events []wire.Event) {
	t.Helper()
	c := b.Log().Follow(0)
	defer c.Close()
	for {
		e, err := c.Next()
		if err != nil {
			return events
		}
		if want := uint64(len(events) + 1); e.Seq != want {
			t.Errorf("events of %s: %d in the place of %d", b.Agent(), e.Seq, want)
		}
		events = append(events, e)
	}
}

// logged returns the events of a mailbox as kind and message.
func logged(t tb, b *maildir.Box) (out []string) {
	t.Helper()
	for _, e := range eventsOf(t, b) {
		out = append(out, e.Kind+" "+string(e.MessageID()))
	}
	return out
}
