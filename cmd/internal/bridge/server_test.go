package bridge

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// While both run, mail arrives at once, also for a host that is trusted later.
func TestRunning(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir())
	laptop, build := newMachine(t, s.ClientURL(), "laptop", "alice"), newMachine(t, s.ClientURL(), "build", "bob")
	laptop.run()
	build.run()
	laptop.eventually("connected", func() bool { return strings.Contains(laptop.log(), "connected to") })
	build.eventually("connected", func() bool { return strings.Contains(build.log(), "connected to") })
	allTrust(t, laptop, build)
	id := laptop.send("alice", "bob@main.build", nil)
	build.eventually("delivered", func() bool { return len(build.unread("bob")) == 1 })
	must(t, build.Team.Box("bob").MarkRead(t.Context(), id))
	laptop.eventually("told that bob has read it", func() bool { return strings.Contains(laptop.log(), "read at bob@build") })
	began := time.Now()
	const n = 40
	for i := range n {
		laptop.send("alice", "bob@main.build", nil)
		build.eventually("delivered", func() bool { return len(build.unread("bob")) == i+1 })
	}
	if took := time.Since(began); took > n*pollEvery { // each at a look that nothing has hinted at
		t.Errorf("%d messages took %v", n, took)
	}
}

// While the server is down mail waits, and goes out once it is back.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	var address atomic.Value // of the server: after a restart somebody else may have its port
	address.Store(s.Addr().String())
	url := relayTo(t, func() string { return address.Load().(string) }, func() func() bool { return func() bool { return true } })
	laptop, build := newMachine(t, url, "laptop", "alice"), newMachine(t, url, "build", "bob")
	allTrust(t, laptop, build)
	laptop.run()
	build.run()
	laptop.send("alice", "bob@main.build", nil)
	build.eventually("delivered", func() bool { return len(build.unread("bob")) == 1 })
	laptop.eventually("rid of it", func() bool { return len(laptop.waiting("build")) == 0 })
	s.Shutdown()
	s.WaitForShutdown()
	laptop.send("alice", "bob@main.build", nil)
	laptop.eventually("told that the connection is lost", func() bool { return strings.Contains(laptop.log(), "lost the connection") })
	if err := newMachine(t, url, "cloud").Once(t.Context()); err == nil || !strings.Contains(err.Error(), "connect to nats://") {
		t.Errorf("once, without a server: %v", err)
	}
	if len(laptop.waiting("build")) != 1 {
		t.Error("the outbox does not keep it")
	}
	address.Store(startServer(t, dir).Addr().String())
	build.eventually("delivered after the restart", func() bool { return len(build.unread("bob")) == 2 })
	laptop.eventually("rid of it", func() bool { return len(laptop.waiting("build")) == 0 })
}

// A connection that carries nothing any more, and is not closed, is replaced.
func TestSilentConnection(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir())
	var conns atomic.Int32
	var isSilent atomic.Bool // the first one
	url := relayTo(t, s.Addr().String, func() (carries func() bool) {
		isFirst := conns.Add(1) == 1
		return func() bool { return !isFirst || !isSilent.Load() }
	})
	laptop := newMachine(t, url, "laptop", "alice")
	laptop.run()
	laptop.eventually("connected", func() bool { return strings.Contains(laptop.log(), "connected to") })
	isSilent.Store(true)
	laptop.eventually("connected again", func() bool { return conns.Load() > 1 })
}

// relayTo passes connections on to a server, as long as they carry what is written, and returns its own URL.
func relayTo(t *testing.T, server func() string, begin func() (carries func() bool)) (url string) {
	relay, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { relay.Close() })
	go func() {
		for in, err := relay.Accept(); err == nil; in, err = relay.Accept() {
			out, err := net.Dial("tcp", server())
			if err != nil {
				in.Close()
				continue
			}
			carries := begin()
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() {
					io.Copy(writer(func(p []byte) (int, error) {
						if !carries() {
							return len(p), nil
						}
						return pair[0].Write(p)
					}), pair[1])
					pair[0].Close()
				}()
			}
		}
	}()
	return "nats://" + relay.Addr().String()
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// A stream that an administrator made keeps its settings. Once it is full, mail stays in the outbox, commands can say
// why, and it goes out once there is room.
func TestStreamAtItsLimit(t *testing.T) {
	t.Parallel()
	for limit, config := range map[string]jetstream.StreamConfig{
		"maximum messages exceeded": {MaxMsgs: 2}, "maximum bytes exceeded": {MaxBytes: 2 << 10}, "maximum messages per subject exceeded": {MaxMsgsPerSubject: 2, DiscardNewPerSubject: true},
	} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			_, laptop, build := twoMachines(t)
			js := laptop.connectForTest(t)
			config.Name, config.Subjects, config.Discard, config.Description, config.MaxAge = "atm_main", []string{"atm.main.>"}, jetstream.DiscardNew, "mine", time.Hour
			made, err := js.CreateStream(t.Context(), config)
			must(t, err)
			for range 6 {
				laptop.send("alice", "bob@main.build", nil)
			}
			why := "atm_main is full on the server (" + limit + ")"
			err = onceEach(laptop)
			if n := len(laptop.waiting("build")); err == nil || !strings.Contains(err.Error(), why) || n == 0 || n == 6 {
				t.Errorf("%v; %d wait", err, n)
			}
			laptop.run()
			laptop.eventually("told why", func() bool { return strings.Contains(laptop.log(), why) })
			if got := presence.HeldReason(laptop.Team, "build"); !strings.Contains(got, why) {
				t.Errorf("held: %q", got)
			}
			stream, err := js.Stream(t.Context(), "atm_main")
			must(t, err)
			if got := stream.CachedInfo().Config; !reflect.DeepEqual(got, made.CachedInfo().Config) {
				t.Errorf("the stream was changed: %+v", got)
			}
			config.MaxMsgs, config.MaxBytes, config.MaxMsgsPerSubject, config.DiscardNewPerSubject = 0, 0, 0, false
			_, err = js.UpdateStream(t.Context(), config)
			must(t, err)
			laptop.eventually("through", func() bool { return onceEach(build) == nil && len(build.unread("bob")) == 6 })
			laptop.eventually("over it", func() bool { return presence.HeldReason(laptop.Team, "build") == "" })
		})
	}
}

// Nor does a stream that drops the oldest mail at its limit lose any: mail waits in the outbox until its host has fetched
// what is there. The limit stays, whatever it is.
func TestStreamThatDropsTheOldest(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]jetstream.StreamConfig{
		"messages": {MaxMsgs: 3}, "bytes": {MaxBytes: 4 << 10}, "messages of a host": {MaxMsgsPerSubject: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, laptop, build := twoMachines(t)
			must(t, onceEach(laptop)) // makes the stream
			js := laptop.connectForTest(t)
			limit.Name, limit.Subjects, limit.Discard = "atm_main", []string{"atm.main.mail.*"}, jetstream.DiscardOld
			_, err := js.UpdateStream(t.Context(), limit)
			must(t, err)
			sent := map[wire.ID]bool{}
			for range 12 {
				sent[laptop.send("alice", "bob@main.build", nil)] = true
			}
			isHeld := false
			for range 20 {
				for _, m := range []*machine{laptop, build} {
					err := onceEach(m)
					isFull := err != nil && strings.Contains(err.Error(), " has not fetched its own: the message waits in the outbox")
					if isHeld = isHeld || isFull; err != nil && !isFull {
						t.Fatal(err)
					}
				}
			}
			if !isHeld {
				t.Error("nothing was held: this shows nothing")
			}
			for _, it := range build.unread("bob") {
				delete(sent, it.ID)
			}
			if len(sent) > 0 || len(laptop.waiting("build")) > 0 {
				t.Errorf("%d are lost, %d wait; %v", len(sent), len(laptop.waiting("build")), err)
			}
			stream, err := js.Stream(t.Context(), "atm_main")
			must(t, err)
			if got := stream.CachedInfo().Config; got.MaxMsgs != max(limit.MaxMsgs, -1) && limit.MaxMsgs > 0 || got.Discard != jetstream.DiscardOld {
				t.Errorf("the stream was changed: %+v", got)
			}
		})
	}
}

func TestOneBridgeAHost(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir())
	laptop, other := newMachine(t, s.ClientURL(), "laptop", "alice"), newMachine(t, s.ClientURL(), "laptop", "alice")
	stop := laptop.run()
	server := laptop.connectForTest(t)
	laptop.eventually("the holder of the lease", func() bool { // or the other might get the lease
		keys, err := server.KeyValue(t.Context(), laptop.server.stream())
		if err == nil {
			_, err = keys.Get(t.Context(), rowsKey("laptop")) // which are sent after the lease
		}
		return err == nil
	})
	laptop.eventually("known to the other", func() bool {
		lease := (*LeaseError)(nil)
		err := other.Once(t.Context())
		return errors.As(err, &lease) && strings.Contains(err.Error(), fmt.Sprintf("(pid %d, root %s)", os.Getpid(), laptop.Root.Path))
	})
	held := (*lockfile.HeldError)(nil)
	if err := laptop.restarted().Once(t.Context()); !errors.As(err, &held) {
		t.Errorf("a second bridge in the same root: %v", err)
	}
	stop()
	must(t, other.Once(t.Context()))
	// After a kill, a bridge in the same root gets the lease at once; another must wait until it is dead.
	must(t, other.connect(t.Context()))
	other.server.conn.Close()
	must(t, other.restarted().Once(t.Context()))
}

// fakeMsg is a message of the server, with its number of tries, and the answers to it.
type fakeMsg struct {
	jetstream.Msg
	data          []byte
	tries         uint64
	stored        time.Time
	acked, nacked int
}

func (m *fakeMsg) Data() []byte                       { return m.data }
func (m *fakeMsg) Ack() error                         { m.acked++; return nil }
func (m *fakeMsg) NakWithDelay(_ time.Duration) error { m.nacked++; return nil }
func (m *fakeMsg) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{NumDelivered: m.tries, Timestamp: m.stored}, nil
}

// arrives ingests an envelope at its nth delivery.
func (m *machine) arrives(data []byte, tries uint64) *fakeMsg {
	msg := &fakeMsg{data: data, tries: tries}
	m.ingest(m.t.Context(), []*incoming{newIncoming(fromServer{msg})}, func(in *incoming) { m.fetch(m.t.Context(), in) })
	return msg
}

func (m *machine) reasons() string {
	reasons, err := presence.RejectReasons(m.Team)
	must(m.t, err)
	return strings.Join(slices.Sorted(maps.Values(reasons)), "\n")
}

// Delivery is tried ten times, then the envelope is moved aside; a retry delivers it.
func TestDeadLetter(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	must(t, build.connect(t.Context()))
	t.Cleanup(func() { build.server.conn.Close() })
	file, err := filestore.Add(laptop.Team.Dir(), "notes", strings.NewReader("notes"))
	must(t, err)
	data := laptop.sign(&Envelope{ToHost: "build"}, `{"id":"%s","from":"alice@main.laptop","to":["bob@main.build"],"body":"hi","attachments":[{"name":"notes","sha256":"`+file.SHA256+`","size":5}]}`)
	if m := build.arrives(data, 9); m.nacked != 1 || m.acked != 0 || build.reasons() != "" {
		t.Errorf("the ninth time: %+v, bad: %s", m, build.reasons())
	}
	if m := build.arrives(data, 10); m.acked != 1 || !strings.Contains(build.reasons(), "object not found") {
		t.Errorf("the tenth time: %+v, bad: %s", m, build.reasons())
	}
	if n, err := presence.RetryRejected(build.Team); n != 1 || err != nil {
		t.Errorf("%d to be tried again: %v", n, err)
	}
	must(t, build.retryBad(t.Context()))
	if bad, _ := presence.RejectReasons(build.Team); len(bad) != 1 {
		t.Errorf("tried in vain, and %d lie in bad", len(bad))
	}
	must(t, laptop.connect(t.Context()))
	t.Cleanup(func() { laptop.server.conn.Close() })
	must(t, laptop.server.putObject(t.Context(), file.SHA256, strings.NewReader("notes")))
	_, err = presence.RetryRejected(build.Team)
	must(t, err)
	must(t, build.retryBad(t.Context()))
	if left, _ := build.Team.Dir().Names(".bridge/bad"); len(left) > 0 || len(build.unread("bob")) != 1 {
		t.Errorf("left %v, bob has %d", left, len(build.unread("bob")))
	}
}

// sign makes an envelope from a machine with a message of the same id.
func (m *machine) sign(e *Envelope, message string) []byte {
	m.t.Helper()
	key, err := m.keys().Private(m.Host)
	must(m.t, err)
	e.Kind, e.ID, e.Team, e.FromHost, e.At = cmp.Or(e.Kind, KindMail), cmp.Or(e.ID, wire.NewID()), cmp.Or(e.Team, "main"), cmp.Or(e.FromHost, m.Host), time.Now()
	e.Content = []byte(strings.ReplaceAll(message, "%s", string(e.ID)))
	return e.Sign(key)
}

// Only mail that the envelope's host may send is delivered, and nothing is written elsewhere.
func TestNotAccepted(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	cloud := newMachine(t, laptop.server.url, "cloud")
	allTrust(t, cloud, build)
	must(t, build.connect(t.Context()))
	t.Cleanup(func() { build.server.conn.Close() })
	mail := func(from, to, more string) string {
		return fmt.Sprintf(`{"id":"%%s","from":%q,"to":[%q],"body":"hi"%s}`, from, to, more)
	}
	good := mail("alice@main.laptop", "bob@main.build", "")
	stage := `{"id":"%s","sender":"bob@main.build","to":"alice@main.laptop","stages":[{"stage":"stored","evidence":"x"},{"stage":"../x","evidence":"x"}]}`
	stranger := newMachine(t, laptop.server.url, "laptop")
	for about, tt := range map[string]struct {
		data []byte
		want string
	}{
		"not an envelope":          {[]byte("\x00\xff"), "2 bytes that are not an envelope"},
		"no header":                {[]byte("{}"), "version 0"},
		"too large":                {make([]byte, maxEnvelope+1), "bytes that are not an envelope"},
		"a newer version":          {[]byte(`{"version":2}` + "\n"), "an envelope of version 2"},
		"a host that is a path":    {[]byte(`{"version":1,"from_host":"../../x","id":"` + string(wire.NewID()) + `"}` + "\n"), "not an envelope"},
		"a stranger's":             {newMachine(t, laptop.server.url, "desk").sign(&Envelope{ToHost: "build"}, good), "from host desk: key "},
		"signed by another key":    {stranger.sign(&Envelope{ToHost: "build"}, good), "not signed by the trusted key of host laptop"},
		"changed":                  {append(laptop.sign(&Envelope{ToHost: "build"}, good), ' '), "its content differs from what was signed"},
		"changed inside":           {bytes.Replace(laptop.sign(&Envelope{ToHost: "build"}, good), []byte(`"hi"`), []byte(`"ho"`), 1), "its content differs from what was signed"},
		"a notice for nobody":      {laptop.sign(&Envelope{ToHost: "build"}, mail("alice@main.laptop", "zed@main.build", `,"type":"notice"`)), "there is no zed on host build"},
		"for another host":         {laptop.sign(&Envelope{ToHost: "cloud"}, good), `it is for host "cloud" of team "main"`},
		"for another team":         {laptop.sign(&Envelope{ToHost: "build", Team: "other"}, good), `of team "other"`},
		"from this host":           {build.sign(&Envelope{ToHost: "build"}, good), "from host build: key "},
		"of an unknown kind":       {laptop.sign(&Envelope{ToHost: "build", Kind: "pigeon"}, good), `an envelope of kind "pigeon"`},
		"of another host's member": {cloud.sign(&Envelope{ToHost: "build"}, good), "host cloud signed a message from alice@main.laptop"},
		"of another team's member": {laptop.sign(&Envelope{ToHost: "build"}, mail("alice@other.laptop", "bob@main.build", "")), "signed a message from alice@other.laptop"},
		"of a member here":         {laptop.sign(&Envelope{ToHost: "build"}, mail("carol@main", "bob@main.build", "")), "signed a message from carol@main"},
		"no message":               {laptop.sign(&Envelope{ToHost: "build"}, "[]"), "not a JSON object"},
		"another id inside":        {laptop.sign(&Envelope{ToHost: "build"}, strings.ReplaceAll(good, "%s", string(wire.NewID()))), "the message inside is"},
		"an id of next year":       {laptop.sign(&Envelope{ToHost: "build", ID: "03a1f859-f5a6-728f-8e26-bc745809e3b4"}, good), "more than a day ahead of the clock"},
		"for a path":               {laptop.sign(&Envelope{ToHost: "build"}, mail("alice@main.laptop", "../../x@main.build", "")), "is not a name"},
		"for nobody here":          {laptop.sign(&Envelope{ToHost: "build"}, mail("alice@main.laptop", "bob@main", "")), "none of its recipients is here"},
		"an attachment's path": {laptop.sign(&Envelope{ToHost: "build"}, mail("alice@main.laptop", "bob@main.build",
			`,"attachments":[{"name":"../x","sha256":"../../../x","size":1}]`)), "attachment"},
		"an attachment's size": {laptop.sign(&Envelope{ToHost: "build"}, mail("alice@main.laptop", "bob@main.build",
			`,"attachments":[{"name":"x","sha256":"`+strings.Repeat("a", 64)+`","size":1099511627776}]`)), "attachment"},
		"stages of another host":  {cloud.sign(&Envelope{ToHost: "build", Kind: KindStage}, stage), `host cloud reports on`},
		"stages for a path":       {laptop.sign(&Envelope{ToHost: "build", Kind: KindStage}, strings.Replace(stage, "bob@", "../bob@", 1)), "reports on"},
		"stages of a strange id":  {laptop.sign(&Envelope{ToHost: "build", Kind: KindStage}, strings.Replace(stage, "%s", "../x", 1)), "reports on"},
		"stages that are no JSON": {laptop.sign(&Envelope{ToHost: "build", Kind: KindStage}, "x"), "is not a list of stages"},
	} {
		m := build.arrives(tt.data, 1)
		if got := build.reasons(); m.acked != 1 || !strings.Contains(got, tt.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: acked %d times, bad: %q, want %q", about, m.acked, got, tt.want)
		}
		must(t, os.RemoveAll(build.Team.Dir().Join(".bridge/bad")))
	}
	files, _ := filepath.Glob(filepath.Join(build.Root.Path, "*", "*"))
	for _, file := range files {
		if name := filepath.Base(file); !slices.Contains([]string{"bob", "carol", ".bridge", ".locks"}, name) {
			t.Errorf("there is %s", file)
		}
	}
	// An ack in the name of another host's member is delivered as mail, but is no ack.
	asked := build.send("bob", "alice@main.laptop", func(m *wire.Message) { m.RequiresAck = true })
	alice := wire.Address{Agent: "alice", Team: "main", Host: "laptop"}
	forged := &Envelope{ToHost: "build", ID: wire.AckID(asked, alice, 0)}
	build.arrives(cloud.sign(forged, `{"id":"%s","type":"ack","from":"carol@main.cloud","to":["bob@main.build"],"in_reply_to":"`+string(asked)+`"}`), 1)
	if ack, err := post.AckOf(build.Root, search.OwnMessage(build.Team.Box("bob"), asked), alice); err == nil || len(build.unread("bob")) != 1 {
		t.Errorf("acked by %v; bob has %d", ack, len(build.unread("bob")))
	}
	must(t, build.Team.Box("bob").MarkRead(t.Context(), forged.ID))
	// A correct envelope is delivered.
	if m := build.arrives(laptop.sign(&Envelope{ToHost: "build"}, good), 1); m.acked != 1 || len(build.unread("bob")) != 1 {
		t.Errorf("mail: %+v; said:\n%s", m, build.log())
	}
	build.arrives(laptop.sign(&Envelope{ToHost: "build", Kind: KindStage}, stage), 1)
	if e, err := build.Team.Box("bob").Log().Newest(5); err != nil || len(e) != 2 || e[1].Kind != wire.EventStage || e[1].Field("stage") != "stored" {
		t.Errorf("stages: %+v, %v", e, err)
	}
	// A host that uses an id first cannot suppress another's mail.
	taken := &Envelope{ToHost: "build", ID: wire.NewID()}
	build.arrives(cloud.sign(taken, mail("carol@main.cloud", "bob@main.build", "")), 1)
	build.arrives(laptop.sign(&Envelope{ToHost: "build", ID: taken.ID}, good), 1)
	if got := build.reasons(); got != "a message from carol@cloud already has its id" || len(build.unread("bob")) != 2 {
		t.Errorf("bad: %q; bob has %d", got, len(build.unread("bob")))
	}
}

// A message that cannot be sent blocks neither others nor what comes in.
func TestOneThatCannotGo(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	build.send("bob", "alice@main.laptop", nil)
	must(t, onceEach(build))
	file, err := filestore.Add(laptop.Team.Dir(), "notes", strings.NewReader("notes"))
	must(t, err)
	laptop.send("alice", "bob@main.build", func(m *wire.Message) { m.Attachments = []wire.Attachment{file} })
	must(t, os.Remove(laptop.Team.Dir().Join(filestore.Dir+"/"+file.SHA256)))
	laptop.send("alice", "bob@main.build", nil)
	if err := onceEach(laptop); err == nil || !strings.Contains(err.Error(), `attachment "notes": its content is missing`) {
		t.Errorf("sent: %v", err)
	}
	must(t, onceEach(build))
	if len(laptop.waiting("build")) != 1 || len(build.unread("bob")) != 1 || len(laptop.unread("alice")) != 1 {
		t.Errorf("%d wait, bob has %d, alice %d", len(laptop.waiting("build")), len(build.unread("bob")), len(laptop.unread("alice")))
	}
	// Also under Run.
	laptop.run()
	build.run()
	laptop.eventually("told that it cannot go", func() bool { return strings.Count(laptop.log(), "its content is missing") == 1 })
	laptop.send("alice", "bob@main.build", nil)
	build.eventually("delivered", func() bool { return len(build.unread("bob")) == 2 })
}

// Mail for an unknown member is returned.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	id := laptop.send("alice", "zed@main.build", nil)
	must(t, onceEach(laptop, build, laptop))
	got := laptop.unread("alice")
	if len(got) != 1 || got[0].Type != wire.TypeNotice || got[0].InReplyTo != id || !strings.Contains(got[0].Body, "there is no zed on host build") {
		t.Fatalf("alice got %+v; build said:\n%s", got, build.log())
	}
	if bad, err := presence.RejectReasons(build.Team); len(bad) != 0 || err != nil {
		t.Errorf("bad: %v, %v", bad, err)
	}
	// If another host returns it too, that is another notice.
	zed := wire.Address{Agent: "zed", Team: "main", Host: "build"}
	if got[0].ID != wire.Derive("returned", id, zed) {
		t.Errorf("its id is %s", got[0].ID)
	}
	sent, err := laptop.Team.Box("alice").Sent(id)
	must(t, err)
	if trace := post.AnswersTo(t.Context(), laptop.Root, sent).Trace(sent, zed); trace.Returned == nil || trace.Returned.ID != got[0].ID {
		t.Errorf("%+v", trace)
	}
	team := (*teams.Team)(laptop.Team.Handle(nil))
	if _, err := team.Await(t.Context(), sent, teams.Observer{}); err == nil || !strings.Contains(err.Error(), "returned") {
		t.Errorf("whoever waits for the answer: %v", err)
	}
}

// Mail for many unknown members comes back in one notice, which the trace of each of them names.
func TestNobodyOfManyThere(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	to := []wire.Address{{Agent: "bob", Team: "main", Host: "build"}}
	for i := range 200 {
		to = append(to, wire.Address{Agent: wire.Name(fmt.Sprintf("zed%03d", i)), Team: "main", Host: "build"})
	}
	o := &post.Outgoing{From: laptop.Team.Box("alice"), To: to, Message: &wire.Message{Body: "hello"}}
	_, err := post.Send(t.Context(), laptop.Root, o)
	must(t, err)
	must(t, onceEach(laptop, build, laptop))
	got := laptop.unread("alice")
	if len(got) != 1 || !strings.Contains(got[0].Body, "there is no zed000, zed001, ") || !strings.Contains(got[0].Body, "zed019 and 180 more on host build") {
		t.Fatalf("alice got %d: %+v; build said:\n%s", len(got), got, build.log())
	}
	if len(build.unread("bob")) != 1 {
		t.Error("bob has it not")
	}
	sent, err := laptop.Team.Box("alice").Sent(o.Message.ID)
	must(t, err)
	for _, a := range []wire.Address{to[1], to[200]} {
		if trace := post.AnswersTo(t.Context(), laptop.Root, sent).Trace(sent, a); trace.Returned == nil || trace.Returned.ID != got[0].ID {
			t.Errorf("%s: %+v", a, trace)
		}
	}
	if trace := post.AnswersTo(t.Context(), laptop.Root, sent).Trace(sent, to[0]); trace.Returned != nil {
		t.Errorf("bob: %+v", trace)
	}
}

// On a full disk nothing is delivered, and nothing is lost.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	data := laptop.sign(&Envelope{ToHost: "build"}, `{"id":"%s","from":"alice@main.laptop","to":["bob@main.build"],"body":"hi"}`)
	build.full.Store("")
	for _, tries := range []uint64{1, 10, 11} {
		if m := build.arrives(data, tries); m.acked != 0 || m.nacked != 1 {
			t.Errorf("try %d on a full disk: %+v", tries, m)
		}
	}
	build.full.Store(".bridge/received")
	if m := build.arrives(data, 1); m.acked != 0 || len(build.unread("bob")) != 1 {
		t.Errorf("with room for the message alone: %+v, bob has %d", m, len(build.unread("bob")))
	}
	build.full.Store("nothing")
	if m := build.arrives(data, 2); m.acked != 1 || len(build.unread("bob")) != 1 {
		t.Errorf("with room: %+v, bob has %d", m, len(build.unread("bob")))
	}
	if open, err := build.openReceipts(); len(open["bob"]) != 1 || err != nil {
		t.Errorf("its sender is told of %d, %v", len(open["bob"]), err)
	}
}
