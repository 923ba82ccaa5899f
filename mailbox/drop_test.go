//go:build unix

package mailbox

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// What becomes of a file that is dropped, by its name and content.
func TestDrop(t *testing.T) {
	t.Parallel()
	const v4 = "01900000-0000-4000-8000-0000000000aa"
	future := string(oldID(-2)) // the day after tomorrow
	soon := string(wire.NewID())
	text := func(body string) func(*wire.Message) string {
		return func(m *wire.Message) string {
			switch {
			case m.Body != body:
				return fmt.Sprintf("the body is %.60q", m.Body)
			case m.From.String() != "drop@main" || m.Kind() != "message" || m.RequiresAck:
				return "it is no plain text"
			}
			return ""
		}
	}
	attached := func(size int64) func(*wire.Message) string {
		return func(m *wire.Message) string {
			if len(m.Attachments) != 1 || m.Attachments[0].Size != size || m.Attachments[0].Name != m.Subject {
				return fmt.Sprintf("attached: %v", m.Attachments)
			}
			return ""
		}
	}
	id := func(id, meta string) func(*wire.Message) string {
		return func(m *wire.Message) string {
			if id != "" && string(m.ID) != id || id == "" && time.Since(m.ID.Time()).Abs() > time.Minute || m.MetaString("id") != meta {
				return fmt.Sprintf("id %s, meta %s", m.ID, m.Meta)
			}
			return ""
		}
	}
	for _, c := range []struct {
		about, name, content string
		message              func(*wire.Message) string // what is wrong with it
		event, bad           string                     // the kind; the reason
		ignored              bool
	}{
		{about: "text", name: "a note.txt", content: "hello\nworld\n", message: text("hello\nworld\n")},
		{about: "text without an end", name: "n", content: "x", message: text("x")},
		{about: "blank text", name: "n", content: " \n", message: text(" \n")},
		{about: "text with a BOM", name: "n", content: "\ufeffx", message: text("\ufeffx")},
		{about: "1 MiB of text", name: "n", content: strings.Repeat("x", 1<<20), message: text(strings.Repeat("x", 1<<20))},
		{about: "1 MiB and a byte", name: "n", content: strings.Repeat("x", 1<<20+1), message: attached(1<<20 + 1)},
		{about: "text that takes more than 4 MiB of JSON", name: "n", content: strings.Repeat("\x01", 1<<20), message: attached(1 << 20)},
		{about: "binary", name: "b.png", content: "\x89PNG\x00\xff", message: attached(6)},
		{about: "a NUL", name: "n", content: "a\x00b", message: attached(3)},
		{about: "Latin-1", name: "n", content: "caf\xe9", message: attached(4)},
		{about: "JSON of 5 MiB", name: "m.json", content: `{"body":"` + strings.Repeat("x", 5<<20) + `"}`, message: attached(5<<20 + 11)},
		{about: "a JSON array", name: "a.json", content: `[1,{"body":"x"}]`, message: text(`[1,{"body":"x"}]`)},
		{about: "a JSON string", name: "a.json", content: `"x"`, message: text(`"x"`)},
		{about: "an object with none of our fields", name: "package.json", content: `{"name":"x","Body":1}`, message: text(`{"name":"x","Body":1}`)},
		{about: "an empty object", name: "e.json", content: `{}`, message: text(`{}`)},
		{about: "somebody's kind", name: "k8s.json", content: `{"kind":"Deployment","apiVersion":"v1"}`, message: text(`{"kind":"Deployment","apiVersion":"v1"}`)},
		{about: "not JSON, and not called so", name: "n.txt", content: `{"body":`, message: text(`{"body":`)},
		{about: "wrong type, and not called JSON", name: "n.txt", content: `{"body":5}`, message: text(`{"body":5}`)},

		{about: "a message", name: "m.json", content: `{"body":"x"}`, message: text("x")},
		{about: "a message not called JSON", name: "m", content: "\n {\"body\":\"x\"}\n", message: text("x")},
		{about: "a message with a BOM", name: "m.json", content: "\ufeff{\"body\":\"x\"}", message: text("x")},
		{about: "a message with fields", name: "m.JSON", content: `{"from":"alice","to":"bob","subject":"s","requires_ack":true,"x":{"n":1e400},"origin":{"via":"cli","uid":7,"y":1}}`,
			message: func(m *wire.Message) string {
				// Where it came from is said by us.
				if m.From.String() != "alice@main" || !m.RequiresAck || m.Origin.Via != "drop" || *m.Origin.UID != os.Getuid() ||
					!strings.Contains(string(m.Append(nil)), `"y":1`) || !strings.Contains(string(m.Append(nil)), `"x":{"n":1e400}`) {
					return string(m.Append(nil))
				}
				return ""
			}},
		{about: "its own id", name: "m.json", content: `{"id":"` + soon + `","body":"x"}`, message: id(soon, "")},
		{about: "an id in upper case", name: "m.json", content: `{"id":"` + strings.ToUpper(gone) + `","body":"x"}`, message: id(gone, "")},
		{about: "an id as a name, in upper case", name: strings.ToUpper(gone) + ".json", content: `{"body":"x"}`, message: id("", "")},
		{about: "an id far in the future", name: "m.json", content: `{"id":"` + future + `","body":"x"}`, message: id("", future)},
		{about: "an id of version 4", name: "m.json", content: `{"id":"` + v4 + `","body":"x"}`, message: id("", v4)},
		{about: "an id that is none", name: "m.json", content: `{"id":"../../x","body":"x"}`, message: id("", "../../x")},
		{about: "an answer to a question about a permission", name: "m.json", content: `{"type":"permission_reply","payload":{"allow":true}}`,
			message: func(m *wire.Message) string {
				if m.Kind() != "message" {
					return m.Type
				}
				return ""
			}},
		{about: "what a person says", name: "h.json", content: `{"input_type":"reject","draft_id":"` + v4 + `","reason":"no","artifact_uri":null}`,
			message: func(m *wire.Message) string {
				if m.Type != wire.TypeHumanInput || m.Body != "reject draft "+v4+": no" || string(m.Payload) != `{"input_type":"reject","draft_id":"`+v4+`","reason":"no","artifact_uri":null}` {
					return string(m.Append(nil))
				}
				return ""
			}},

		{about: "a daemon's event", name: "e.json", content: `{"kind":"turn_started","n":18446744073709551615}`, event: "turn_started"},
		{about: "a session's event", name: "e", content: `{"event_type":"agent_output","stream":"std_out","content":"x"}`, event: "agent_output"},
		{about: "an update of an older client", name: "e.json", content: `{"update_type":"message_delta","delta":"x"}`, event: "message_delta"},
		{about: "an update", name: "e.json", content: `{"sessionUpdate":"agent_message_chunk","kind":"x"}`, event: "agent_message_chunk"},
		{about: "a notification of an update", name: "e.json", content: `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[]}}}`, event: "plan"},
		{about: "what Codex tells", name: "e.json", content: `{"method":"turn/started","params":{"threadId":"th","turn":{"id":"tu"}}}`, event: "turn_started"},
		{about: "an event nobody knows", name: "e.json", content: `{"kind":"something_new"}`, event: "something_new"},

		{about: "an event with a stream that is none", name: "e.json", content: `{"event_type":"agent_output","stream":"stdout","content":"x"}`, bad: "line 1, column 39: stream: must be std_out or std_err"},
		{about: "an event of two agents", name: "e.json", content: `{"kind":"turn_idle","agent":"a","agent":"b"}`, bad: "column 41: agent stands twice"},
		{about: "the same under a name that promises no JSON", name: "e.txt", content: `{"kind":"turn_idle","agent":5}`, message: text(`{"kind":"turn_idle","agent":5}`)},
		{about: "an approval of no draft", name: "h.json", content: `{"input_type":"approve","draft_id":"xyz"}`, bad: "column 36: draft_id: must be a UUID"},

		{about: "torn JSON", name: "t.json", content: "{\n \"body\": \"x", bad: "line 2, column 12"},
		{about: "no JSON", name: "t.json", content: "hello", bad: "line 1, column 1"},
		{about: "JSON with a tail", name: "t.json", content: "{\"body\":\"x\"}\nx", bad: "line 2, column 1"},
		{about: "a field of the wrong type", name: "t.json", content: "{\n\"body\":5}", bad: "line 2, column 8: body: must be a string"},
		{about: "an id that is a number", name: "t.json", content: `{"id":5,"body":"x"}`, bad: "line 1, column 7: id: must be a string"},
		{about: "a NUL in a message", name: "t.json", content: `{"body":"a\u0000"}`, bad: "line 1, column 9: body: has a NUL"},
		{about: "a NUL in what a person says", name: "t.json", content: `{"input_type":"message","text":"a\u0000"}`, bad: "NUL"},
		{about: "a sender that is no name", name: "t.json", content: `{"from":"../x","body":"x"}`, bad: "line 1, column 9: from"},
		{about: "JSON in Latin-1", name: "t.json", content: "{\"body\":\"caf\xe9\"}", bad: "line 1, column 13: not UTF-8"},
		{about: "a bad file called like a reason", name: "t.json.reason.json", content: "{", bad: "line 1, column 2"},

		{about: "a name that is not UTF-8", name: "n\xff\xfe", content: "x", message: text("x")},
		{about: "a bad file with such a name", name: "\xff\xfe.json", content: "{", bad: "line 1"},
		{about: "a name of 255 bytes", name: strings.Repeat("é", 127) + "x", content: "x", message: text("x")},
		{about: "a name of 255 bytes that says JSON", name: strings.Repeat("n", 250) + ".json", content: "{", bad: "line 1"},
		{about: "a name of 255 bytes that are not UTF-8, and says JSON", name: strings.Repeat("\xff", 250) + ".json", content: "{", bad: "line 1"},
		{about: "a name with a line break", name: "a\n\x1b[2Jb", content: "x", message: text("x")},
		{about: "a name like a claim", name: gone + ".x.drop", content: "x", message: text("x")},

		{about: "hidden", name: ".x", content: "x", ignored: true},
		{about: "an editor's copy", name: "x~", content: "x", ignored: true},
		{about: "another's", name: "#x#", content: "x", ignored: true},
		{about: "vim's probe", name: "4913", content: "x", ignored: true},
		{about: "vim's", name: ".x.swp", content: "x", ignored: true},
		{about: "swp", name: "x.swp", content: "x", ignored: true},
		{about: "tmp", name: "x.tmp", content: "x", ignored: true},
		{about: "part", name: "x.part", content: "x", ignored: true},
		{about: "crdownload", name: "x.crdownload", content: "x", ignored: true},
		{about: "JetBrains'", name: "x.json___jb_tmp___", content: "x", ignored: true},
		{about: "JetBrains' other", name: "x.json___jb_old___", content: "x", ignored: true},
		{about: "empty", name: "x", content: "", ignored: true},
	} {
		for _, where := range []string{"inbox", "inbox/new"} {
			if len(c.content) > 1<<20+1 && where == "inbox/new" {
				continue
			}
			t.Run(c.about+" in "+where, func(t *testing.T) {
				s := openStore(t, scratch(t), nil, "bob")
				bob := s.Box("bob")
				drop(t, bob, where, c.name, []byte(c.content))
				drop(t, bob, "inbox", "another", []byte("a good one")) // nothing hides it
				settleDrops(t, bob)
				got := takeCensus(t, teamPath(s), "bob")
				got.sound(t)
				if len(got.tmp)+len(got.drops) > 0 {
					t.Errorf("tmp %q, drops %q", got.tmp, got.drops)
				}
				left, err := os.ReadFile(filepath.Join(bob.Path(), where, c.name))
				if (err == nil) != c.ignored || c.ignored && string(left) != c.content {
					t.Errorf("left in place: %.40q, %v", left, err)
				}
				good := 0
				for _, m := range got.texts {
					switch {
					case m.Body == "a good one":
						good++
					case c.message == nil:
						t.Errorf("a message: %.200s", m.Append(nil))
					default:
						if wrong := c.message(m); wrong != "" {
							t.Error(wrong)
						}
					}
				}
				if want := 1 + min(1, len(c.about)*b2i(c.message != nil)); good != 1 || len(got.texts) != want {
					t.Errorf("%d messages, want %d", len(got.texts), want)
				}
				events := dropEvents(t, bob)
				if c.event == "" && len(events) > 0 || c.event != "" && (len(events) != 1 || events[0].Kind != c.event || string(events[0].Wire) != c.content) {
					t.Errorf("events %v", events)
				}
				bad, err := bob.BadFiles(0)
				if err != nil || len(bad) != b2i(c.bad != "") || len(bad) == 1 && !strings.Contains(bad[0].Reason, c.bad) {
					t.Errorf("bad %v, %v", bad, err)
				}
				if len(bad) == 1 && len(c.name) < 200 && bad[0].Name != c.name {
					t.Errorf("set aside as %q", bad[0].Name)
				}
			})
		}
	}
}

// Links, sockets, FIFOs and directories stay, unopened; nothing behind a link
// is read.
func TestDropOfNoFiles(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	secret := filepath.Join(t.TempDir(), "secret")
	os.WriteFile(secret, []byte("secret"), 0o600)
	var want []string
	var opened []func() int
	for _, where := range []string{"inbox", "inbox/new"} {
		dir := filepath.Join(bob.Path(), where)
		os.Symlink(secret, filepath.Join(dir, "link"))
		os.Symlink(filepath.Dir(secret), filepath.Join(dir, "link.json"))
		os.Symlink("nowhere", filepath.Join(dir, "dangling"))
		os.Mkdir(filepath.Join(dir, "directory"), 0o700)
		os.WriteFile(filepath.Join(dir, "directory", "x"), []byte("x"), 0o600)
		if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
			t.Skip("no FIFOs here: ", err)
		}
		l, err := net.Listen("unix", filepath.Join(dir, "socket"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		opened = append(opened, opensOf(t, filepath.Join(dir, "fifo")), opensOf(t, secret))
		for _, n := range []string{"dangling", "directory", "fifo", "link", "link.json", "socket"} {
			want = append(want, strings.TrimPrefix(strings.TrimPrefix(where, "inbox")+"/"+n, "/"))
		}
	}
	drop(t, bob, "inbox", "note", []byte("x"))
	for range 3 {
		settleDrops(t, bob)
	}
	if b, err := bob.Read(ctx, ReadOptions{}, takeAll); err != nil || len(b.Items) != 1 {
		t.Error(b, err)
	}
	for i, w := range want {
		if _, err := os.Lstat(filepath.Join(bob.Path(), "inbox", w)); err != nil {
			t.Error(i, err)
		}
	}
	h, err := bob.Examine(false)
	slices.Sort(h.NotFiles)
	slices.Sort(want)
	if err != nil || !slices.Equal(h.NotFiles, want) {
		t.Errorf("the doctor is told of %q, want %q: %v", h.NotFiles, want, err)
	}
	for _, n := range opened {
		if n() > 0 {
			t.Error("a FIFO, or what is behind a link, was opened")
		}
	}
}

// The same under a message's name in new: set aside, unopened.
func TestNoFileUnderAMessagesName(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	secret := filepath.Join(t.TempDir(), "secret")
	os.WriteFile(secret, message("alice", "x").Append(nil), 0o600)
	name := func() string { return filepath.Join(bob.Path(), "inbox", "new", string(wire.NewID())+".json") }
	os.Symlink(secret, name())
	os.Mkdir(name(), 0o700)
	os.WriteFile(name(), []byte("torn"), 0o600)
	os.WriteFile(name(), nil, 0o600)
	os.WriteFile(name(), message("alice", "another id inside").Append(nil), 0o600)
	os.WriteFile(name(), []byte(strings.Repeat("x", wire.MaxFile+1)), 0o600)
	fifo := name()
	syscall.Mkfifo(fifo, 0o600)
	opened := opensOf(t, fifo)
	secretOpened := opensOf(t, secret)
	good := message("alice", "good")
	deliver(t, bob, good)
	for range 2 {
		if b, err := bob.Peek(ctx, ReadOptions{Limit: 1}); err != nil || len(b.Items) != 1 {
			t.Error("a look: ", b, err)
		}
	}
	if b, err := bob.Read(ctx, ReadOptions{Limit: 1}, takeAll); err != nil || len(b.Items) != 1 || b.Items[0].ID != good.ID {
		t.Error("a reading: ", b, err)
	}
	bad, err := bob.BadFiles(0)
	if err != nil || len(bad) != 7 {
		t.Errorf("%d bad: %v, %v", len(bad), bad, err)
	}
	if opened()+secretOpened() > 0 {
		t.Error("a FIFO, or what is behind a link, was opened")
	}
}

// leases skips the test where a file that nobody writes gets no lease.
func leases(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if leased, _ := lease(f); !leased {
		t.Skip("no leases here")
	}
}

// writer starts a process that has a file open for writing until its input
// ends, and then writes the rest.
func writer(t *testing.T, path string) (end func()) {
	t.Helper()
	sh := exec.Command("sh", "-c", `exec 3>>"$1" && printf begun >&3 && echo open && read line; printf " and ended" >&3`, "sh", path)
	in, err := sh.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := sh.StdoutPipe()
	if err == nil {
		err = sh.Start()
	}
	if err != nil {
		t.Skip("no shell: ", err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatal(line, err)
	}
	return func() { in.Close(); sh.Wait() }
}

// A file that a process has open for writing is left alone, however long, and
// taken in once it is closed; in new under a message's name too.
func TestDropBeingWritten(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	files := []string{"inbox/a", "inbox/b.json", "inbox/new/c", "inbox/new/" + gone + ".json"}
	var ends []func()
	for _, f := range files {
		ends = append(ends, writer(t, filepath.Join(bob.Path(), f)))
	}
	drop(t, bob, "inbox", "whole", []byte("a good one"))
	leases(t, filepath.Join(bob.Path(), "inbox", "whole"))
	// Also when it has not changed for longer than a file must that gets no lease.
	for {
		if info, err := os.Stat(filepath.Join(bob.Path(), files[3])); err != nil || time.Since(info.ModTime()) > 1100*time.Millisecond {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	for range 3 {
		b, err := bob.Read(ctx, ReadOptions{}, takeAll)
		if err != nil || len(b.Items) > 1 || len(b.Items) == 1 && b.Items[0].Body != "a good one" {
			t.Fatal(b, err)
		}
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(bob.Path(), f)); err != nil {
			t.Error(err)
		}
	}
	if taken := takeIn(t, bob); taken.Waiting != 3 {
		t.Errorf("%d wait", taken.Waiting)
	}
	for _, end := range ends {
		end()
	}
	if _, err := bob.Read(ctx, ReadOptions{}, takeAll); err != nil {
		t.Fatal(err)
	}
	c := takeCensus(t, teamPath(s), "bob")
	bodies := map[string]int{}
	for _, m := range c.texts {
		bodies[m.Body]++
	}
	if bodies["begun and ended"] != 2 || bodies["a good one"] != 1 || len(c.texts) != 3 || len(c.bad) != 2 {
		t.Errorf("%v, bad %q", bodies, c.bad)
	}
}
