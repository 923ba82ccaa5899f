package maildir_test

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/wire"
)

// What is kept of headers answers as the files do, whatever other programs move, damage or set back meanwhile.
func TestHeadersSayWhatFilesSay(t *testing.T) {
	defer maildir.KeepHeadersOf(1, 1)()
	testround.Check(t, 12, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		must(t, err)
		s := openStore(t, dir, nil, "bob")
		defer s.Close()
		w := &moving{t: t, r: r, store: s, top: dir, clock: time.Now().Add(-100 * time.Hour)}
		acts := map[string]func(*rapid.T){
			"": func(*rapid.T) { w.compare() }, "deliver": w.deliver, "move": w.move, "damage": w.damage, "renew": w.renew, "touch": w.touch,
			"two looks": func(*rapid.T) {
				done := make(chan bool)
				go func() { w.look(maildir.Range{Unread: true, Done: true, With: headers.IsReply}); close(done) }()
				w.look(maildir.Everywhere)
				<-done
			},
		}
		r.Repeat(acts)
	})
}

// Where nothing can be kept, a look reads the messages each time.
func TestNothingIsKept(t *testing.T) {
	defer maildir.KeepHeadersOf(1, 1)()
	fault := func(op, name string) error {
		if strings.Contains(name, maildir.HeadersDir) {
			return syscall.EROFS
		}
		return nil
	}
	s := openStore(t, t.TempDir(), fault, "bob")
	defer s.Close()
	w := &moving{t: t, store: s}
	m := message("hello")
	m.DueAt = time.Now()
	deliver(t, s.Box("bob"), m)
	for range 2 {
		if all, bad := w.look(maildir.Range{Unread: true, With: headers.HasDue}); len(all) != 1 || bad > 0 {
			t.Error(all, bad)
		}
	}
	if _, err := os.Stat(s.Dir().Join(s.Box("bob").In(maildir.HeadersDir))); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Names and headers are read from what is kept, and no message is opened for what none of them has.
func TestHeadersAreAsked(t *testing.T) {
	var opened []string
	var mu sync.Mutex // guards opened
	fault := func(op, name string) error {
		if mu.Lock(); op == "open" || op == "list" {
			opened = append(opened, name)
		}
		mu.Unlock()
		return nil
	}
	s := openStore(t, t.TempDir(), fault, "bob")
	defer s.Close()
	b := s.Box("bob")
	for range 20 {
		deliver(t, b, message("hello"))
	}
	long := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(s.Dir().Join(b.In("inbox/new")), long, long))
	w := &moving{t: t, store: s}
	due := maildir.Range{Unread: true, With: headers.HasDue}
	w.look(due)
	opened = nil
	if all, _ := w.look(due); len(all) > 0 || len(opened) == 0 || slices.ContainsFunc(opened, func(name string) bool { return strings.Contains(name, "inbox/new") }) {
		t.Error(all, opened)
	}
}

// moving is a mailbox that other programs change.
type moving struct {
	t     *testing.T
	r     *rapid.T
	store *maildir.Store
	top   string
	clock time.Time // of the directories
	ids   []wire.ID // that were delivered, and may be anywhere
}

const aDay = "2026-01-02"

// parts are the folders of the mailbox in the order of a walk.
var parts = []struct {
	dir   string
	state wire.State
}{
	{"bob/inbox/new", wire.Unread}, {"bob/inbox/cur", wire.Owed}, {"bob/inbox/done/" + aDay, wire.Done},
	{"bob/inbox/withdrawn", wire.Withdrawn}, {".archive/bob/done/" + aDay, wire.Done},
}

func (w *moving) path(elem ...string) string {
	return filepath.Join(append([]string{w.top}, elem...)...)
}

// changed gives a directory the time of its last change: long ago, or, as it really is, just now.
func (w *moving) changed(dir string) {
	w.clock = w.clock.Add(time.Second)
	if rapid.IntRange(0, 5).Draw(w.r, "young") > 0 {
		must(w.t, os.Chtimes(w.path(dir), w.clock, w.clock))
	}
}

func (w *moving) deliver(r *rapid.T) {
	dir := rapid.SampledFrom(parts).Draw(r, "to").dir
	must(w.t, os.MkdirAll(w.path(dir), 0o700))
	for range rapid.IntRange(1, 3).Draw(r, "n") {
		m := message(rapid.SampledFrom([]string{"Hello Ünïcode", "long " + strings.Repeat("x", 1200) + " END", "", "two\nlines"}).Draw(r, "body"))
		m.ID, m.From, m.To = wire.NewID(), wire.Address{Agent: "alice", Team: "main"}, []wire.Address{{Agent: "bob", Team: "main"}}
		if len(w.ids) > 0 && rapid.Bool().Draw(r, "reply") {
			m.InReplyTo = rapid.SampledFrom(w.ids).Draw(r, "parent")
			m.Thread = rapid.SampledFrom(w.ids).Draw(r, "thread")
		}
		if rapid.Bool().Draw(r, "due") {
			m.DueAt = time.Unix(1_900_000_000, 0).UTC()
		}
		data, err := m.MarshalJSON()
		must(w.t, err)
		if rapid.IntRange(0, 9).Draw(r, "torn") == 0 {
			data = data[:len(data)/2]
		}
		must(w.t, os.WriteFile(w.path(dir, maildir.FileName(m.ID)), data, 0o600))
		w.ids = append(w.ids, m.ID)
	}
	w.changed(dir)
}

func (w *moving) move(r *rapid.T) {
	from, to := rapid.SampledFrom(parts).Draw(r, "from").dir, rapid.SampledFrom(parts).Draw(r, "to").dir
	files, _ := os.ReadDir(w.path(from))
	if len(files) == 0 || from == to {
		return
	}
	must(w.t, os.MkdirAll(w.path(to), 0o700))
	file := rapid.SampledFrom(files).Draw(r, "file").Name()
	must(w.t, os.Rename(w.path(from, file), w.path(to, file)))
	w.changed(from)
	w.changed(to)
}

// damage does to a file of headers what crashes and other programs do.
func (w *moving) damage(r *rapid.T) {
	dir := w.path("bob", maildir.HeadersDir)
	files, _ := os.ReadDir(dir)
	if len(files) == 0 {
		return
	}
	file := filepath.Join(dir, rapid.SampledFrom(files).Draw(r, "file").Name())
	data, err := os.ReadFile(file)
	if err != nil || len(data) == 0 { // a link that leads nowhere, or damaged before
		return
	}
	switch how := rapid.SampledFrom([]string{"version", "byte", "half", "zeros", "empty", "other", "link", "gone", "left"}).Draw(r, "how"); how {
	case "version":
		data[7]++
	case "byte":
		data[rapid.IntRange(0, len(data)-1).Draw(r, "at")] ^= 1
	case "half":
		data = data[:len(data)/2]
	case "zeros":
		data = make([]byte, len(data))
	case "empty":
		data = nil
	case "other": // that of another folder
		if data, err = os.ReadFile(filepath.Join(dir, rapid.SampledFrom(files).Draw(r, "of").Name())); err != nil {
			return
		}
	case "link":
		must(w.t, os.Remove(file))
		must(w.t, os.Symlink("nowhere", file))
		return
	case "gone":
		must(w.t, os.RemoveAll(dir))
		return
	case "left": // of a process that was killed while it wrote
		file = filepath.Join(dir, ".left.tmp")
	}
	must(w.t, os.WriteFile(file, data, 0o600))
}

// renew retires the mailbox and makes one of the same name, or one with the old headers.
func (w *moving) renew(r *rapid.T) {
	if rapid.IntRange(0, 4).Draw(r, "rarely") > 0 {
		return
	}
	old := w.path("." + string(wire.NewID()))
	must(w.t, os.Rename(w.path("bob"), old))
	must(w.t, w.store.Create(w.t.Context(), "bob"))
	if rapid.Bool().Draw(r, "headers") {
		must(w.t, os.MkdirAll(w.path("bob/run"), 0o700))
		if err := os.Rename(filepath.Join(old, maildir.HeadersDir), w.path("bob", maildir.HeadersDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			must(w.t, err)
		}
	}
}

// touch sets the time of a directory that has not changed, also into the future.
func (w *moving) touch(r *rapid.T) {
	dir := rapid.SampledFrom(parts).Draw(r, "dir").dir
	at := time.Now().Add(time.Duration(rapid.IntRange(-50, 50).Draw(r, "hours")) * time.Hour)
	os.Chtimes(w.path(dir), at, at)
}

// compare asks in several ways, of which a short round draws one, twice: the first look may make what the second one reads.
func (w *moving) compare() {
	asked := wire.NewID()
	if len(w.ids) > 0 {
		asked = rapid.SampledFrom(w.ids).Draw(w.r, "asked")
	}
	key := headers.KeyOf(asked)
	all := maildir.Everywhere
	ways := map[string]struct {
		change func(*maildir.Range)
		is     func(*wire.Message) bool
	}{
		"all": {func(*maildir.Range) {}, func(*wire.Message) bool { return true }},
		"due": {func(rg *maildir.Range) { rg.With = headers.HasDue }, func(m *wire.Message) bool { return !m.DueAt.IsZero() }},
		"answers": {func(rg *maildir.Range) {
			rg.With, rg.Keep = headers.IsReply, func(h *headers.Header) bool { return h.InReplyTo == key }
		}, func(m *wire.Message) bool { return m.InReplyTo == asked }},
		"thread": {func(rg *maildir.Range) { rg.Keep = func(h *headers.Header) bool { return h.Thread == key } }, func(m *wire.Message) bool { return m.ThreadID() == asked }},
		"words": {func(rg *maildir.Range) {
			rg.Texts, rg.Keep = true, func(h *headers.Header) bool { return !h.Has(headers.IsWhole) || strings.Contains(h.Text, "ünï") }
		}, func(m *wire.Message) bool { return len(m.Body) > 1000 || strings.Contains(m.Body, "Ünï") }},
	}
	drawn := rapid.SampledFrom(slices.Sorted(maps.Keys(ways))).Draw(w.r, "way")
	for range 2 {
		for name, way := range ways {
			if !testround.IsLong && name != drawn {
				continue
			}
			rg := all
			rg.Newest = rapid.Bool().Draw(w.r, "newest")
			way.change(&rg)
			got, bad := w.look(rg)
			want, wantBad := w.read(rg.Newest, way.is)
			if !slices.Equal(got, want) || bad != wantBad {
				w.t.Fatalf("%s: %d bad, %s\nthe files: %d bad, %s", name, bad, got, wantBad, want)
			}
		}
		ids, err := w.store.Box("bob").IDs(all)
		must(w.t, err)
		if want, bad := w.read(false, func(*wire.Message) bool { return true }); len(ids) != len(want)+bad {
			w.t.Fatalf("ids: %s, and not %s and %d bad", ids, want, bad)
		}
	}
}

func (w *moving) look(rg maildir.Range) (all []string, bad int) {
	found, err := w.store.Box("bob").Walk(rg, func(it *wire.Item) bool {
		all = append(all, fmt.Sprint(it.State, " ", it.ID))
		return true
	})
	if err != nil {
		w.t.Error(err)
	}
	return all, found.Bad
}

// read does by the files alone what look does.
func (w *moving) read(newest bool, is func(*wire.Message) bool) (all []string, bad int) {
	for _, part := range parts {
		files, _ := os.ReadDir(w.path(part.dir))
		if newest {
			slices.SortFunc(files, func(a, b fs.DirEntry) int { return cmp.Compare(b.Name(), a.Name()) })
		}
		for _, file := range files {
			data, err := os.ReadFile(w.path(part.dir, file.Name()))
			must(w.t, err)
			if m, err := wire.Decode(data); err != nil {
				bad++
			} else if is(m) {
				all = append(all, fmt.Sprint(part.state, " ", m.ID))
			}
		}
	}
	return all, bad
}
