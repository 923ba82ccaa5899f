package bridge

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// startServer starts a nats-server that keeps its streams in a directory.
func startServer(t testing.TB, dir string) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	must(t, err)
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

// A machine has a root with a team, and its bridge.
type machine struct {
	*Bridge
	server *natsServer
	t      testing.TB

	full atomic.Value // part of a path that cannot be written

	mu   sync.Mutex
	said []string
}

func newMachine(t testing.TB, url string, host wire.Name, members ...wire.Name) *machine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root")
	_, err := rootdir.Make(path)
	must(t, err)
	m := &machine{t: t}
	fault := func(op, name string) error {
		if part, isSet := m.full.Load().(string); isSet && op == "write" && strings.Contains(name, part) {
			return syscall.ENOSPC
		}
		return nil
	}
	root, err := teamdir.OpenFound(rootdir.Found{Path: path, Source: rootdir.FromFlag, Fault: fault}, notices.Tell)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	root.KeysDir = t.TempDir()
	team, err := root.CreateTeam("main")
	must(t, err)
	for _, name := range members {
		must(t, team.Store.Create(t.Context(), name))
	}
	_, err = hostkey.Dir(root.KeysDir).Generate(host)
	must(t, err)
	say := func(line string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.said = append(m.said, line)
	}
	m.Bridge = &Bridge{
		Root: root, Team: team, Host: host,
		Report: func(tr Transfer) { say(tr.String()) }, Warn: say,
	}
	m.server = m.throughServer(url)
	return m
}

func (m *machine) log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.said, "\n")
}

// allTrust makes machines trust each other.
func allTrust(t testing.TB, all ...*machine) {
	for _, m := range all {
		private, err := m.keys().Private(m.Host)
		must(t, err)
		for _, other := range all {
			if other != m {
				must(t, other.keys().Trust(m.Host, private.Public().(ed25519.PublicKey), true))
			}
		}
	}
}

// throughServer makes the machine's bridge one over a server.
func (b *Bridge) throughServer(url string) *natsServer {
	b.ThroughServer(url, "", 0)
	return b.way.(*natsServer)
}

// restarted is a bridge of the machine's that knows nothing of the one before.
func (m *machine) restarted() *Bridge {
	b := &Bridge{Root: m.Root, Team: m.Team, Host: m.Host, Report: m.Report, Warn: m.Warn}
	b.throughServer(m.server.url)
	return b
}

// send sends a message to an address, as a member does.
func (m *machine) send(from wire.Name, to string, change func(*wire.Message)) wire.ID {
	m.t.Helper()
	a, err := wire.ParseAddress(to, "main")
	must(m.t, err)
	msg := &wire.Message{Body: "hello"}
	if change != nil {
		change(msg)
	}
	o := &post.Outgoing{From: m.Team.Box(from), To: []wire.Address{a}, Message: msg}
	_, err = post.Send(m.t.Context(), m.Root, o)
	must(m.t, err)
	return msg.ID
}

// onceEach runs the bridge of each machine once, and returns their errors.
func onceEach(machines ...*machine) (err error) {
	for _, m := range machines {
		err = errors.Join(err, m.Once(m.t.Context()))
	}
	return err
}

// run runs the bridge until the test ends.
func (m *machine) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			m.t.Errorf("%s: %v", m.Host, err)
		}
	})
	m.t.Cleanup(stop)
	return stop
}

func (m *machine) eventually(what string, is func() bool) {
	m.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			m.t.Fatalf("%s: not yet %s; said:\n%s", m.Host, what, m.log())
		}
	}
}

func (m *machine) unread(agent wire.Name) []*wire.Item {
	m.t.Helper()
	var out []*wire.Item
	_, err := inbox.Walk(m.t.Context(), m.Team.Box(agent), maildir.Range{Unread: true}, func(it *wire.Item) bool {
		out = append(out, it)
		return true
	})
	must(m.t, err)
	return out
}

func (m *machine) waiting(host wire.Name) []wire.ID {
	ids, err := claim.Outgoing(m.Team.Store.Outbox(wire.Address{Host: host}))
	must(m.t, err)
	return ids
}

func twoMachines(t *testing.T) (s *server.Server, laptop, build *machine) {
	s = startServer(t, t.TempDir())
	laptop, build = newMachine(t, s.ClientURL(), "laptop", "alice"), newMachine(t, s.ClientURL(), "build", "bob", "carol")
	allTrust(t, laptop, build)
	return s, laptop, build
}

// Whoever looks whether a bridge runs keeps none from beginning.
func TestBeginsBesideALook(t *testing.T) {
	t.Parallel()
	for _, peer := range []wire.Name{"", "build"} {
		laptop := newMachine(t, "", "laptop")
		laptop.peer = peer
		name := "bridge"
		if peer != "" {
			name = presence.BridgeLock(peer)
		}
		look, err := laptop.Team.Locks().Lock(t.Context(), name, lockfile.Shared, 0, nil)
		must(t, err)
		time.AfterFunc(50*time.Millisecond, func() { look.Unlock() })
		unlock, err := laptop.lock(t.Context())
		must(t, err)
		unlock()
	}
}

// A message that was sent once can be sent to somebody else there under the same id.
func TestSameID(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	id := laptop.send("alice", "bob@main.build", nil)
	must(t, onceEach(laptop, build))
	laptop.send("alice", "carol@main.build", func(m *wire.Message) { m.ID = id })
	must(t, onceEach(laptop, build))
	if bob, carol := build.unread("bob"), build.unread("carol"); len(bob) != 1 || len(carol) != 1 {
		t.Errorf("bob has %d, carol %d; said:\n%s", len(bob), len(carol), build.log())
	}
}

// sendLarge sends bob the longest text with two attachments, and carol the larger one of these.
func (m *machine) sendLarge() (id wire.ID, file wire.Attachment) {
	m.t.Helper()
	content := make([]byte, 3<<20)
	rand.Read(content)
	file, err := filestore.Add(m.Team.Dir(), "noise", bytes.NewReader(content))
	must(m.t, err)
	empty, err := filestore.Add(m.Team.Dir(), "nothing", strings.NewReader(""))
	must(m.t, err)
	body := strings.Repeat("x", wire.MaxBody)
	id = m.send("alice", "bob@main.build", func(m *wire.Message) { m.Body, m.Attachments = body, []wire.Attachment{file, empty} })
	m.send("alice", "carol@main.build", func(m *wire.Message) { m.Attachments = []wire.Attachment{file} })
	return id, file
}

// hasLarge fails the test unless that has come.
func (m *machine) hasLarge() {
	m.t.Helper()
	got := m.unread("bob")
	if len(got) != 1 || got[0].Body != strings.Repeat("x", wire.MaxBody) || len(got[0].Attachments) != 2 || len(m.unread("carol")) != 1 {
		m.t.Fatalf("bob got %d messages; said:\n%s", len(got), m.log())
	}
	for _, a := range got[0].Attachments {
		f, err := filestore.Open(m.Team.Dir(), a)
		must(m.t, err)
		f.Close()
	}
}

func TestAttachmentsAndLargeMessages(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	_, file := laptop.sendLarge()
	must(t, onceEach(laptop, build))
	build.hasLarge()
	// An object without its chunks, as a failed Put may leave it, is stored again.
	objects, err := laptop.connectForTest(t).Stream(t.Context(), "OBJ_atm_main_files")
	must(t, err)
	must(t, objects.Purge(t.Context(), jetstream.WithPurgeSubject("$O.atm_main_files.C.>")))
	must(t, os.Remove(build.Team.Dir().Join(filestore.Dir+"/"+file.SHA256)))
	laptop.send("alice", "carol@main.build", func(m *wire.Message) { m.Attachments = []wire.Attachment{file} })
	must(t, onceEach(laptop, build))
	if len(build.unread("carol")) != 2 {
		t.Errorf("carol has %d; said:\n%s", len(build.unread("carol")), build.log())
	}
}

// Other content under an attachment's name, or the rest of a failed Put, is not taken for the attachment.
func TestObjectOfThatName(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	file, err := filestore.Add(laptop.Team.Dir(), "noise", strings.NewReader("noise"))
	must(t, err)
	attach := func(m *wire.Message) { m.Attachments = []wire.Attachment{file} }
	must(t, laptop.Once(t.Context())) // makes the bucket
	bucket, err := laptop.connectForTest(t).ObjectStore(t.Context(), laptop.server.stream()+"_files")
	must(t, err)
	_, err = bucket.PutString(t.Context(), file.SHA256, "other") // of the same size
	must(t, err)
	laptop.send("alice", "bob@main.build", attach)
	must(t, onceEach(laptop))
	if got, err := bucket.GetString(t.Context(), file.SHA256); err != nil || got != "noise" {
		t.Errorf("the object is %q, %v", got, err)
	}
	_, err = bucket.PutString(t.Context(), file.SHA256, "other")
	must(t, err)
	if err = onceEach(build); err == nil || len(build.unread("bob")) > 0 || !strings.Contains(build.log(), "its content differs") {
		t.Errorf("with other content: %v; said:\n%s", err, build.log())
	}
	stream, err := laptop.connectForTest(t).Stream(t.Context(), "OBJ_"+laptop.server.stream()+"_files")
	must(t, err)
	must(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject("$O.*.C.>")))
	laptop.send("alice", "carol@main.build", attach)
	must(t, onceEach(laptop))
	build.eventually("delivered", func() bool {
		return onceEach(build) == nil && len(build.unread("bob")) == 1 && len(build.unread("carol")) == 1
	})
}

// A slow fetch delays only other fetches, and succeeds once the object is there.
func TestSlowAttachment(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	file, err := filestore.Add(laptop.Team.Dir(), "noise", strings.NewReader("noise"))
	must(t, err)
	must(t, build.Once(t.Context())) // makes the consumer
	laptop.send("alice", "bob@main.build", func(m *wire.Message) { m.Attachments = []wire.Attachment{file} })
	laptop.send("alice", "carol@main.build", nil)
	must(t, laptop.Once(t.Context()))
	objects, err := laptop.connectForTest(t).Stream(t.Context(), "OBJ_atm_main_files")
	must(t, err)
	must(t, objects.Purge(t.Context(), jetstream.WithPurgeSubject("$O.atm_main_files.C.>"))) // so that build waits for it
	build.run()
	build.eventually("connected", func() bool { return strings.Contains(build.log(), "connected to") })
	build.eventually("past the slow one", func() bool { return len(build.unread("carol")) == 1 })
	if isOver := strings.Contains(before(build.log(), " → carol: "), "receive: fetch "); isOver || len(build.unread("bob")) > 0 {
		t.Errorf("bob has %d; said:\n%s", len(build.unread("bob")), build.log())
	}
	must(t, laptop.connect(t.Context()))
	t.Cleanup(func() { laptop.server.conn.Close() })
	must(t, laptop.server.putObject(t.Context(), file.SHA256, strings.NewReader("noise")))
	build.eventually("complete", func() bool { return len(build.unread("bob")) == 1 })
}

func before(text, part string) string {
	text, _, _ = strings.Cut(text, part)
	return text
}

// A second envelope with the same id is the same message, also outside of the server's window.
func TestOnceEach(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	laptop.send("alice", "bob@main.build", nil)
	id := laptop.waiting("build")[0]
	file := filepath.Join(laptop.Team.Store.Outbox(wire.Address{Host: "build"}).Path(), "new", string(id)+".json")
	data, err := os.ReadFile(file)
	must(t, err)
	for range 3 {
		must(t, os.WriteFile(file, data, 0o600))
		must(t, onceEach(laptop, build))
	}
	// A lost consumer begins again.
	stream, err := build.connectForTest(t).Stream(t.Context(), build.server.stream())
	must(t, err)
	must(t, stream.DeleteConsumer(t.Context(), "build"))
	must(t, build.Team.Box("bob").MarkRead(t.Context(), id))
	must(t, onceEach(build))
	if n := len(build.unread("bob")); n != 0 || strings.Count(build.log(), "hello") != 1 {
		t.Errorf("bob got it %d times more; said:\n%s", n, build.log())
	}
}

// connectForTest opens a second connection to the machine's server.
func (m *machine) connectForTest(t *testing.T) jetstream.JetStream {
	conn, err := nats.Connect(m.server.url)
	must(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	must(t, err)
	return js
}
