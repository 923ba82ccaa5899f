//go:build unix

package maildir_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
)

func dropEvents(t tb, b *maildir.Box) (out []wire.Event) {
	return slices.DeleteFunc(eventsOf(t, b), func(e wire.Event) bool { return e.Source != "drop" })
}

// plainThatClaims recognizes plain text that says which type it had.
func plainThatClaims(kind string) func(*wire.Message) bool {
	return func(m *wire.Message) bool { return m.Kind() == wire.TypeMessage && m.Claims() == kind }
}

// What becomes of a file that is dropped, by its name and content.
func TestDrop(t *testing.T) {
	t.Parallel()
	const v4 = "01900000-0000-4000-8000-0000000000aa"
	future, soon := string(daysAgo(-2)), string(wire.NewID())
	type check = func(*wire.Message) bool
	text := func(body string) check {
		return func(m *wire.Message) bool {
			return m.Body == body && m.From.String() == "drop@main" && m.Kind() == "message" && !m.RequiresAck
		}
	}
	attached := func(size int64) check {
		return func(m *wire.Message) bool {
			return len(m.Attachments) == 1 && m.Attachments[0].Size == size && m.Attachments[0].Name == m.Subject
		}
	}
	theirID := func(meta string) check {
		return func(m *wire.Message) bool {
			return time.Since(m.ID.Time()).Abs() < time.Minute && string(m.Meta) == meta
		}
	}
	for _, c := range []struct {
		about, name, content string
		message              check
		event, bad           string // the kind; the reason
		ignored              bool
	}{
		{about: "text", name: "a note.txt", content: "hello\nworld\n", message: text("hello\nworld\n")},
		{about: "blank text", name: "n", content: " \n", message: text(" \n")},
		{about: "text with a BOM", name: "n", content: "\ufeffx", message: text("x")},
		{about: "1 MiB and a byte", name: "n", content: strings.Repeat("x", 1<<20+1), message: attached(1<<20 + 1)},
		{about: "text that takes more than 4 MiB of JSON", name: "n", content: strings.Repeat("\x01", 1<<20), message: attached(1 << 20)},
		{about: "binary", name: "b.png", content: "\x89PNG\x00\xff", message: attached(6)},
		{about: "Latin-1", name: "n", content: "caf\xe9", message: attached(4)},
		{about: "JSON of 5 MiB", name: "m.json", content: `{"body":"` + strings.Repeat("x", 5<<20) + `"}`, message: attached(5<<20 + 11)},
		{about: "a JSON array", name: "a.json", content: `[1,{"body":"x"}]`, message: text(`[1,{"body":"x"}]`)},
		{about: "an object with none of our fields", name: "package.json", content: `{"name":"x","Body":1}`, message: text(`{"name":"x","Body":1}`)},
		{about: "somebody's kind", name: "k8s.json", content: `{"kind":"Deployment","apiVersion":"v1"}`, message: text(`{"kind":"Deployment","apiVersion":"v1"}`)},
		{about: "an answer of ACP, which has no tag", name: "j.json", content: `{"turn_id":"t","status":"failed"}`, message: text(`{"turn_id":"t","status":"failed"}`)},
		{about: "not JSON, and not called so", name: "n.txt", content: `{"body":`, message: text(`{"body":`)},

		{about: "a message", name: "m.json", content: `{"body":"x"}`, message: text("x")},
		{about: "a message with a BOM", name: "m.json", content: "\ufeff{\"body\":\"x\"}", message: text("x")},
		{about: "a message with fields", name: "m.JSON", content: `{"from":"alice","to":"bob","subject":"s","requires_ack":true,"x":{"n":1e400},"origin":{"via":"cli","uid":7,"y":1}}`,
			message: func(m *wire.Message) bool {
				data, err := m.Encode() // Ingest sets the origin
				return err == nil && m.From == addr("alice") && m.RequiresAck && m.Origin.Via == "drop" && *m.Origin.UID == os.Getuid() &&
					strings.Contains(string(data), `"y":1`) && strings.Contains(string(data), `"x":{"n":1e400}`)
			}},
		{about: "its own id", name: "m.json", content: `{"id":"` + soon + `","body":"x"}`, message: theirID(`{"atm":{"id":"` + soon + `"}}`)},
		{about: "a number as its id", name: "m.json", content: `{"id":1e400,"body":"x"}`, message: theirID(`{"atm":{"id":1e400}}`)},
		{about: "an id as a name, in upper case", name: strings.ToUpper(string(past)) + ".json", content: `{"body":"x"}`, message: theirID("")},
		{about: "an id far in the future", name: "m.json", content: `{"id":"` + future + `","body":"x"}`, message: theirID(`{"atm":{"id":"` + future + `"}}`)},
		{about: "an id that is none", name: "m.json", content: `{"id":"../../x","body":"x"}`, message: theirID(`{"atm":{"id":"../../x"}}`)},
		{about: "an answer to a question about a permission", name: "m.json", content: `{"type":"permission_reply","payload":{"allow":true}}`,
			message: plainThatClaims("permission_reply")},
		{about: "a question about a permission", name: "m.json", content: `{"type":"permission_request","payload":{"tool":"Bash"}}`,
			message: plainThatClaims("permission_request")},
		{about: "an ack", name: "m.json", content: `{"type":"ack","from":"carol","body":"x"}`, message: plainThatClaims("ack")},
		{about: "a notice", name: "m.json", content: `{"type":"notice","from":"carol","body":"x"}`, message: plainThatClaims("notice")},
		{about: "an answer to a draft", name: "h.json", content: `{"input_type":"reject","draft_id":"` + v4 + `","reason":"no"}`,
			message: plainThatClaims("human_input")},
		{about: "an answer to a draft in a message", name: "h.json", message: plainThatClaims("human_input"),
			content: `{"type":"human_input","from":"carol","body":"hi","payload":{"input_type":"approve","draft_id":"` + v4 + `"}}`},
		{about: "what a person says", name: "h.json", content: `{"input_type":"message","text":"hi","note":1.0}`,
			message: func(m *wire.Message) bool {
				return m.Type == wire.TypeHumanInput && m.Body == "hi" && string(m.Payload) == `{"input_type":"message","text":"hi","note":1.0}`
			}},

		{about: "a daemon's event", name: "e.json", content: `{"kind":"turn_started","turn_id":"t","n":18446744073709551615}`, event: "turn_started"},
		{about: "an event that says nothing else", name: "e.json", content: `{"kind":"exited","code":1}`, event: "exited"},
		{about: "a note that shares a kind with us", name: "e.json", content: `{"kind":"exited","code":1,"service":"web"}`, message: text(`{"kind":"exited","code":1,"service":"web"}`)},
		{about: "a note that shares a kind with a daemon", name: "e.json", content: `{"kind":"turn_completed","status":"failed","build":7}`, message: text(`{"kind":"turn_completed","status":"failed","build":7}`)},
		{about: "what only atm appends", name: "e.json", content: `{"kind":"message_withdrawn","id":"` + v4 + `"}`, message: text(`{"kind":"message_withdrawn","id":"` + v4 + `"}`)},
		{about: "an event of a PTY manager", name: "e.json", content: `{"kind":"exited","slot_id":"s1","exit_code":0}`, event: "exited"},
		{about: "an update of the agent client protocol", name: "e.json", content: `{"sessionUpdate":"tool_call","title":"x"}`, event: "tool_call_start"},
		{about: "a call of Codex", name: "e.json", content: `{"method":"turn/started","params":{"threadId":"t"}}`, event: "turn_started"},

		{about: "an issue, whose kind is no event's", name: "issue.json", content: `{"kind":"bug","title":"login broken"}`, message: text(`{"kind":"bug","title":"login broken"}`)},
		{about: "a kind that another vocabulary has", name: "e.json", content: `{"kind":"error","message":"m","code":"c"}`, message: text(`{"kind":"error","message":"m","code":"c"}`)},
		{about: "an event type nobody knows", name: "e.json", content: `{"event_type":"deploy"}`, message: text(`{"event_type":"deploy"}`)},
		{about: "an update nobody knows", name: "e.json", content: `{"sessionUpdate":"celebration"}`, message: text(`{"sessionUpdate":"celebration"}`)},
		{about: "an older update nobody knows", name: "e.json", content: `{"update_type":"celebration"}`, message: text(`{"update_type":"celebration"}`)},
		{about: "a call nobody knows", name: "e.json", content: `{"method":"deploy/started","params":{}}`, message: text(`{"method":"deploy/started","params":{}}`)},
		{about: "an event with a field of the wrong type", name: "e.json", content: `{"kind":"turn_idle","agent":5}`, message: text(`{"kind":"turn_idle","agent":5}`)},
		{about: "an object with a name twice", name: "e.json", content: `{"kind":"turn_idle","agent":"a","agent":"b"}`, bad: "agent"},

		{about: "torn JSON", name: "t.json", content: "{\n \"body\": \"x", bad: "line 2, column 12"},
		{about: "JSON with a tail", name: "t.json", content: "{\"body\":\"x\"}\nx", bad: "line 2, column 1"},
		{about: "a NUL in a message", name: "t.json", content: `{"body":"a\u0000"}`, bad: "NUL"},
		{about: "a NUL in what a person says", name: "t.json", content: `{"input_type":"message","text":"a\u0000"}`, bad: "NUL"},
		{about: "a bad file called like a reason", name: "t.json.reason.json", content: "{", bad: "line 1, column 2"},

		{about: "a name that is not UTF-8", name: "n\xff\xfe", content: "x", message: text("x")},
		{about: "a bad file with such a name", name: "\xff\xfe.json", content: "{", bad: "line 1"},
		{about: "a name of 255 bytes", name: strings.Repeat("é", 127) + "x", content: "x", message: text("x")},
		{about: "a name of 255 bytes that says JSON", name: strings.Repeat("n", 250) + ".json", content: "{", bad: "line 1"},
		{about: "a name of 255 bytes that are not UTF-8, and says JSON", name: strings.Repeat("\xff", 250) + ".json", content: "{", bad: "line 1"},
		{about: "a name with a line break", name: "a\n\x1b[2Jb", content: "x", message: text("x")},
		{about: "a name like a file that is being taken in", name: string(past) + ".x.drop", content: "x", message: text("x")},

		{about: "hidden", name: ".x", content: "x", ignored: true},
		{about: "an editor's copy", name: "x~", content: "x", ignored: true},
		{about: "tmp", name: "x.tmp", content: "x", ignored: true},
		{about: "a browser's", name: "x.crdownload", content: "x", ignored: true},
		{about: "empty", name: "x", content: "", ignored: true},
	} {
		for _, where := range []string{"inbox", "inbox/new"} {
			if len(c.content) > 1<<20+1 && where == "inbox/new" {
				continue
			}
			t.Run(c.about+" in "+where, func(t *testing.T) {
				if !utf8.ValidString(c.name) && runtime.GOOS == "darwin" {
					t.Skip("no such names here")
				}
				bob := newBob(t)
				dropFile(t, bob, where, c.name, c.content)
				dropFile(t, bob, "inbox", "another", "a good one") // must not be hidden by the first
				settleDrops(t, bob)
				got := takeCensus(t, bob)
				got.sound(t)
				if len(got.tmp) > 0 || len(got.drops) > len(got.texts) {
					t.Errorf("tmp %q, drops %q", got.tmp, got.drops)
				}
				left, err := os.ReadFile(filepath.Join(bob.Path(), where, c.name))
				if (err == nil) != c.ignored || c.ignored && string(left) != c.content {
					t.Errorf("left in place: %.40q, %v", left, err)
				}
				good := 0
				for _, m := range got.texts {
					if m.Body == "a good one" {
						good++
					} else if c.message == nil || !c.message(m) {
						t.Errorf("a message: %.300s", encoded(t, m))
					}
				}
				if good != 1 || len(got.texts) != 1+count(c.message != nil) {
					t.Errorf("%d messages", len(got.texts))
				}
				events := dropEvents(t, bob)
				if len(events) != count(c.event != "") || len(events) == 1 && (events[0].Kind != c.event || string(events[0].Wire) != c.content) {
					t.Errorf("events %v", events)
				}
				bad, err := drop.BadFiles(bob)
				if err != nil || len(bad) != count(c.bad != "") || len(bad) == 1 && !strings.Contains(bad[0].Reason, c.bad) {
					t.Errorf("bad %v, %v", bad, err)
				}
				if len(bad) == 1 && len(c.name) < 200 && bad[0].Name != c.name {
					t.Errorf("set aside as %q", bad[0].Name)
				}
			})
		}
	}
}

// FuzzDropped: a dropped file of any name and content becomes exactly one message, event or bad file, or is still there
// because its name is ignored, and its content is not lost.
func FuzzDropped(f *testing.F) {
	for _, s := range []struct{ name, content string }{
		{"note", "hello\n"}, {"m.json", `{"body":"x"}`}, {"m.json", `{"id":"` + string(past) + `","body":"x","theirs":1e400}`},
		{"e.json", `{"kind":"turn_started"}`}, {"h.json", `{"input_type":"message","text":"a\u0000b"}`}, {"h", `{"text":1,"input_type":"abort"}`},
		{"torn.json", `{"body":`}, {"controls", strings.Repeat("\x01", 5000)}, {"\xff\xfe", "x"}, {".hidden", "x"}, {"x.reason", "{"},
		{string(past) + ".json", `{"body":"x"}`}, {string(past) + ".json", "torn"}, {strings.Repeat("n", 250) + ".json", "{"},
		{string(past) + ".x.drop", "x"}, {"empty", ""}, {"bin", "\x00\x01\xff"}, {"m.json", `{"sent_at":"0000-01-01T00:00:00+23:59","body":""}`},
	} {
		f.Add(s.name, []byte(s.content), false)
		f.Add(s.name, []byte(s.content), true)
	}
	top := testtree.Memory(f)
	f.Fuzz(func(t *testing.T, name string, content []byte, inNew bool) {
		if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\x00") ||
			runtime.GOOS == "darwin" && !utf8.ValidString(name) {
			t.Skip("no name of a file")
		}
		path, err := os.MkdirTemp(top, "drop-")
		must(t, err)
		defer os.RemoveAll(path)
		bob := openStore(t, path, nil, "bob").Box("bob")
		where := "inbox"
		if inNew {
			where = "inbox/new"
		}
		at := filepath.Join(bob.Path(), where, name)
		if slices.Contains(drop.InboxDirs, name) {
			t.Skip("one of the mailbox's own directories")
		}
		dropFile(t, bob, where, name, string(content))
		settleDrops(t, bob)
		if !(inNew && maildir.IsMessageFile(name)) && (isPassedOver(name) || len(content) == 0) {
			if got, err := os.ReadFile(at); err != nil || !bytes.Equal(got, content) {
				t.Fatalf("passed over, and it is %q: %v", got, err)
			}
			return
		}
		read(t, bob)
		if _, err := os.Lstat(at); err == nil {
			t.Fatal("it is still there")
		}
		c := takeCensus(t, bob)
		c.sound(t)
		events := dropEvents(t, bob)
		if len(c.places)+len(c.bad)+len(events) != 1 || len(c.tmp) > 0 || len(c.drops) > len(c.places) {
			t.Fatalf("%d messages, %d events, bad %q, tmp %q, drops %q", len(c.places), len(events), c.bad, c.tmp, c.drops)
		}
		for _, b := range c.bad {
			if got, err := os.ReadFile(filepath.Join(bob.Path(), "inbox/bad", b)); err != nil || !bytes.Equal(got, content) {
				t.Fatalf("bad has %q: %v", got, err)
			}
			if files, err := drop.BadFiles(bob); err != nil || len(files) != 1 || files[0].Reason == "" || files[0].Reason == "no reason recorded" {
				t.Fatal(files, err)
			}
		}
		text := bytes.TrimPrefix(content, []byte("\ufeff"))
		for _, e := range events { // a line of another log is appended as it is, not under wire
			if e.Wire != nil && compacted(text) != string(e.Wire) {
				t.Fatalf("the event has %q of %q", e.Wire, content)
			}
		}
		for id, m := range c.texts {
			if c.place(id) != "done" && c.place(id) != "cur" {
				t.Fatalf("read, and in %s", c.place(id))
			}
			if !says(t, bob.Store(), m, content, text) {
				t.Fatalf("%s\ncame of %q", encoded(t, m), content)
			}
		}
	})
}

// says reports whether a message has the dropped content: as its body, as an attachment, or in its fields.
func says(t testing.TB, s *maildir.Store, m *wire.Message, content, text []byte) bool {
	if m.Body == string(content) || m.Body == string(text) {
		return true
	}
	for _, a := range m.Attachments {
		if f, err := filestore.Open(s.Dir(), a); err == nil {
			got, _ := io.ReadAll(f)
			f.Close()
			if bytes.Equal(got, content) {
				return true
			}
		}
	}
	if m.Type == wire.TypeHumanInput && string(m.Payload) == compacted(text) {
		return true
	}
	before, err := wire.ReadObject(text)
	after, e := wire.ReadObject(encoded(t, m))
	if err != nil || e != nil {
		return false
	}
	for _, f := range before { // package wire tests how our own fields are written
		switch f.Name {
		case "body", "subject":
			if before.Text(f.Name) != after.Text(f.Name) {
				return false
			}
		case "id", "type", "from", "to", "thread", "in_reply_to", "supersedes", "sent_at", "expires_at", "due_at", "priority",
			"requires_ack", "reply_wanted", "hop", "origin", "meta", "attachments":
		default:
			if string(f.Value) != "null" && compacted(after.Get(f.Name)) != compacted(f.Value) {
				return false
			}
		}
	}
	return true
}

func compacted(b []byte) string {
	var out bytes.Buffer
	json.Compact(&out, b)
	return out.String()
}

// Links, sockets, FIFOs and directories stay and are not opened; no link is followed. Under a message's name in new
// they are moved to bad unopened.
func TestDropOfNoFiles(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret")
	var want []string
	for _, where := range []string{"", "new/"} {
		for name, make := range map[string]func(string) error{
			"link":      func(p string) error { return os.Symlink(secret, p) },
			"link.json": func(p string) error { return os.Symlink(filepath.Dir(secret), p) },
			"dangling":  func(p string) error { return os.Symlink("nowhere", p) },
			"directory": func(p string) error { return os.Mkdir(p, 0o700) },
			"fifo":      func(p string) error { return syscall.Mkfifo(p, 0o600) }, // opening it would wait for ever
		} {
			if err := make(filepath.Join(bob.Path(), "inbox", where+name)); err != nil {
				t.Skip(name, " not here: ", err)
			}
			want = append(want, "inbox/"+where+name)
			if where != "" {
				make(filepath.Join(bob.Path(), "inbox/new", nameOf(wire.NewID())))
			}
		}
	}
	for _, text := range []string{"torn", "", string(encoded(t, message("another id inside"))), strings.Repeat("x", wire.MaxFile+1)} {
		dropFile(t, bob, "inbox/new", nameOf(wire.NewID()), text)
	}
	dropFile(t, bob, "inbox", "note", "x")
	deliverN(t, bob, 1)
	for range 2 {
		settleDrops(t, bob)
		if b, err := inbox.Peek(ctx, bob, inbox.ReadOptions{Limit: 2}); err != nil || len(b.Items) != 2 {
			t.Error("a look: ", b, err)
		}
	}
	if got := read(t, bob); len(got) != 2 {
		t.Error(got)
	}
	bad, err := drop.BadFiles(bob)
	for end := time.Now().Add(time.Minute); err == nil && len(bad) < 5+4+len(want) && time.Now().Before(end); bad, err = drop.BadFiles(bob) {
		read(t, bob) // on a busy machine one look does not move all
	}
	if err != nil || len(bad) != 5+4+len(want) {
		t.Error(len(bad), bad, err)
	}
	h, err := keep.Examine(bob, false)
	notFiles := slices.Sorted(slices.Values(h.Files["drop.not_a_file"]))
	slices.Sort(want)
	if err != nil {
		t.Error(err)
	}
	equal(t, "the doctor is told of", notFiles, want...)
}

// A file that is still being written is never taken in half, and neither is one under a message's name in new. Whoever
// waits for mail gets it a second after the last write. A whole JSON message is taken in at once.
func TestDropBeingWritten(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	var ends sync.WaitGroup
	for _, name := range []string{"inbox/a", "inbox/b.json", "inbox/new/c", "inbox/new/" + nameOf(past)} {
		f, err := os.Create(filepath.Join(bob.Path(), name))
		must(t, err)
		ends.Go(func() {
			defer f.Close()
			for range 24 {
				f.WriteString("a part, ")
				time.Sleep(maildir.Settling / 8)
			}
			f.WriteString("the end")
		})
	}
	whole, isOver := 0, atomic.Bool{}
	write(t, filepath.Join(bob.Path(), "inbox/whole.json"), `{"body":"a good one"}`)
	go func() { ends.Wait(); isOver.Store(true) }()
	for began := time.Now(); time.Since(began) < 2*maildir.Settling; {
		whole += len(read(t, bob))
	}
	if isOver.Load() || whole != 1 {
		t.Errorf("%d were read; isOver: %v", whole, isOver.Load())
	}
	ends.Wait()
	settleDrops(t, bob)
	read(t, bob)
	c := takeCensus(t, bob)
	all := strings.Repeat("a part, ", 24) + "the end"
	bodies := map[string]int{}
	for _, m := range c.texts {
		bodies[m.Body]++
	}
	if bodies[all] != 2 || bodies["a good one"] != 1 || len(c.texts) != 3 || len(c.bad) != 2 {
		t.Errorf("%v, bad %q", bodies, c.bad)
	}
}

// What a writer adds after its file was taken in is not lost: the file is kept.
func TestDropWrittenLater(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	dropFile(t, bob, "inbox", "note", "begun")
	f, err := os.OpenFile(filepath.Join(bob.Path(), "inbox/note"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	settleDrops(t, bob)
	f.WriteString(" and ended")
	kept := takeCensus(t, bob).drops
	if len(kept) != 1 {
		t.Fatal(kept)
	}
	if got, err := os.ReadFile(bob.Store().Dir().Join(bob.Archived("drops", kept[0]))); err != nil || string(got) != "begun and ended" {
		t.Errorf("%q, %v", got, err)
	}
}

// Ingest does not wait for a lock that another process holds, however many files were dropped.
func TestDropWhileALockIsHeld(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	for i := range 20 {
		dropFile(t, bob, "inbox", fmt.Sprint(i), "text")
	}
	unlock, err := bob.Lock(ctx, "inbox")
	must(t, err)
	began := time.Now()
	taken := takeIn(t, bob)
	if took := time.Since(began); took > lockfile.DefaultTimeout/2 || taken.Again.IsZero() || countDrops(bob) != 20 {
		t.Errorf("%d wait, after %v", countDrops(bob), took)
	}
	unlock()
	if settleDrops(t, bob); len(read(t, bob)) != 20 {
		t.Error("not all was taken in")
	}
}

// A dropped file is renamed, and the rename is synced, before the message is published. Otherwise one file could become two
// messages.
func TestDropIsSyncedBeforeItIsPublished(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ where, begun string }{{where: "inbox"}, {where: "inbox/new"}, {where: "inbox", begun: "note"}} {
		var ops []string
		var bob *maildir.Box
		s := faultyStore(t, func(op, name string) error {
			switch {
			case op == "rename" && strings.HasSuffix(name, "/note"):
				ops = append(ops, "rename")
			case op == "fsync directory":
				ops = append(ops, "sync "+name)
			case op == "rename" && strings.HasPrefix(name, "bob/inbox/tmp/") && !strings.HasSuffix(name, ".drop"):
				ops = append(ops, "publish")
			}
			return nil
		}, "bob")
		bob = s.Box("bob")
		if c.begun != "" { // by a process that was killed before it synced
			write(t, begunFile(bob, wire.NewID(), c.begun), "hello")
		} else {
			dropFile(t, bob, c.where, "note", "hello")
		}
		ops = nil
		settleDrops(t, bob)
		published := slices.Index(ops, "publish")
		for _, dir := range []string{"bob/inbox/tmp", "bob/" + c.where} {
			i := slices.Index(ops, "sync "+dir)
			if i < 0 || i > published || c.begun == "" && i < slices.Index(ops, "rename") {
				t.Errorf("dropped in %s, begun %q: %s is not synced in time: %q", c.where, c.begun, dir, ops)
			}
		}
		if len(takeCensus(t, bob).places) != 1 {
			t.Error("it is no message")
		}
	}
}

// begunFile returns the path of a dropped file whose ingestion was interrupted.
func begunFile(b *maildir.Box, id wire.ID, name string) string {
	return filepath.Join(b.Path(), "inbox/tmp", string(id)+"."+name+".drop")
}

// A file that changes while it is taken in waits until it is settled again, and is one message; so is one whose place
// another file takes.
func TestDropThatChanges(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(t tb, bob *maildir.Box){
		"written":  func(t tb, bob *maildir.Box) { write(t, filepath.Join(bob.Path(), "inbox/note"), "hello and more") },
		"replaced": func(t tb, bob *maildir.Box) { dropFile(t, bob, "inbox", "note", "hello and more") },
	} {
		var bob *maildir.Box
		var once sync.Once
		bob = faultyStore(t, func(op, target string) error {
			if op == "rename" && strings.HasSuffix(target, "/note") {
				once.Do(func() { change(t, bob) })
			}
			return nil
		}, "bob").Box("bob")
		dropFile(t, bob, "inbox", "note", "hello")
		if in := takeIn(t, bob); in.Again.IsZero() {
			t.Error(what, in)
		}
		settleDrops(t, bob)
		c := takeCensus(t, bob)
		if len(c.texts) != 1 || c.texts[c.ids()[0]].Body != "hello and more" || len(c.tmp)+len(c.inbox)+len(c.bad) > 0 {
			t.Errorf("%s: %v, tmp %q, bad %q", what, c.places, c.tmp, c.bad)
		}
	}
}
