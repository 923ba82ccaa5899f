package bridge

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/wire"
)

// replay publishes everything on the server once more, as anybody may who can publish there.
func (m *machine) replay(t *testing.T) (n int) {
	t.Helper()
	js := m.connectForTest(t)
	stream, err := js.Stream(t.Context(), m.server.stream())
	must(t, err)
	info, err := stream.Info(t.Context())
	must(t, err)
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		msg, err := stream.GetMsg(t.Context(), seq)
		must(t, err)
		_, err = js.Publish(t.Context(), msg.Subject, msg.Data)
		must(t, err)
		n++
	}
	return n
}

// forget makes a new member of an old name.
func (m *machine) forget(t *testing.T, name wire.Name) {
	t.Helper()
	_, err := m.Team.Retire(t.Context(), name)
	must(t, err)
	must(t, m.Team.Store.Create(t.Context(), name))
}

// An envelope is taken once, on either machine, whatever has become of its message.
func TestTakenOnce(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	sent := laptop.send("alice", "bob@main.build", nil)
	must(t, onceEach(laptop, build))
	must(t, build.Team.Box("bob").MarkRead(t.Context(), sent))
	build.send("bob", "alice@main.laptop", func(m *wire.Message) { m.InReplyTo = sent })
	must(t, onceEach(build, laptop, build))
	nothingNew := func(about string) {
		t.Helper()
		before, err := laptop.Team.Box("alice").Log().LastSeq()
		must(t, err)
		if n := build.replay(t); n < 3 {
			t.Fatalf("%d envelopes: this shows little", n)
		}
		must(t, onceEach(laptop, build))
		after, err := laptop.Team.Box("alice").Log().LastSeq()
		must(t, err)
		if bob, alice := len(build.unread("bob")), len(laptop.unread("alice")); bob+alice > 0 || after != before || build.reasons()+laptop.reasons() != "" {
			t.Fatalf("%s: bob has %d, alice %d, and %d events more; bad: %s %s", about, bob, alice, after-before, build.reasons(), laptop.reasons())
		}
	}
	for _, it := range laptop.unread("alice") {
		must(t, laptop.Team.Box("alice").MarkRead(t.Context(), it.ID))
	}
	nothingNew("read")
	for _, m := range []*machine{laptop, build} {
		boxes, err := m.Team.Boxes()
		must(t, err)
		for _, b := range boxes {
			_, err := keep.GC(t.Context(), b, keep.GCOptions{Before: time.Now().AddDate(0, 0, 2)})
			must(t, err)
		}
		must(t, os.RemoveAll(m.Team.Dir().Join(".archive")))
	}
	nothingNew("archived, and the archive removed")
	build.forget(t, "bob")
	laptop.forget(t, "alice")
	nothingNew("retired and added again")
	stream, err := build.connectForTest(t).Stream(t.Context(), build.server.stream())
	must(t, err)
	must(t, stream.DeleteConsumer(t.Context(), "build"))
	nothingNew("with a new consumer")
	build.Bridge = build.restarted()
	nothingNew("with a new process")
	// What is new arrives all the same.
	laptop.send("alice", "bob@main.build", nil)
	must(t, onceEach(laptop, build))
	if n := len(build.unread("bob")); n != 1 {
		t.Errorf("bob has %d", n)
	}
}

// signedAt makes an envelope for bob that was signed at some time.
func (m *machine) signedAt(at time.Time) (*Envelope, []byte) {
	e := &Envelope{ToHost: "build"}
	m.sign(e, `{"id":"%s","from":"alice@main.laptop","to":["bob@main.build"],"body":"hi"}`)
	key, err := m.keys().Private(m.Host)
	must(m.t, err)
	e.At = at
	return e, e.Sign(key)
}

// An envelope may lie on the server for as long as it wants, but must have got there soon after it was signed.
func TestTakenAge(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	old := time.Now().Add(-3 * maxDelay)
	arrives := func(data []byte, stored time.Time) *fakeMsg {
		msg := &fakeMsg{data: data, tries: 1, stored: stored}
		build.ingest(t.Context(), []*incoming{newIncoming(fromServer{msg})}, nil)
		return msg
	}
	queued, data := laptop.signedAt(old)
	arrives(data, old.Add(time.Second))
	if n := len(build.unread("bob")); n != 1 {
		t.Fatalf("what was queued for long: bob has %d; bad: %s", n, build.reasons())
	}
	must(t, build.Team.Box("bob").MarkRead(t.Context(), queued.ID))
	build.forget(t, "bob")
	arrives(data, old.Add(time.Second))
	if n := len(build.unread("bob")); n != 0 {
		t.Errorf("delivered again: bob has %d", n)
	}
	// Once nothing is known of it any more, the server's time tells.
	must(t, presence.PruneTaken(build.Team))
	build.taken.days = nil
	if names, _ := build.Team.Dir().Names(teamdir.ReceivedDir); strings.Contains(strings.Join(names, " "), presence.TakenSuffix) {
		t.Errorf("kept: %q", names)
	}
	if m := arrives(data, time.Now()); m.acked != 1 || !strings.Contains(build.reasons(), "signed 90d before the server got it") || len(build.unread("bob")) != 0 {
		t.Errorf("published again: %+v, bad: %s, bob has %d", m, build.reasons(), len(build.unread("bob")))
	}
	// A person may have it tried again: perhaps a clock was wrong.
	_, err := presence.RetryRejected(build.Team)
	must(t, err)
	must(t, build.retryBad(t.Context()))
	if n := len(build.unread("bob")); n != 1 || build.reasons() != "" {
		t.Errorf("tried again: bob has %d, bad: %s", n, build.reasons())
	}
	// A header that is written in another way is the same envelope.
	_, data = laptop.signedAt(time.Now())
	arrives(data, time.Now())
	build.forget(t, "bob")
	arrives(bytes.Replace(data, []byte(`{"version":1`), []byte(`{ "more":true, "version":1`), 1), time.Now())
	if n := len(build.unread("bob")); n != 0 {
		t.Errorf("written in another way: bob has %d", n)
	}
}

// While nothing can be noted, nothing is acknowledged to the server; half an entry does no harm.
func TestTakenOnAFullDisk(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoMachines(t)
	_, data := laptop.signedAt(time.Now())
	build.full.Store(presence.TakenSuffix)
	if m := build.arrives(data, 1); m.acked != 0 || m.nacked != 1 || len(build.unread("bob")) != 1 {
		t.Errorf("on a full disk: %+v, bob has %d", m, len(build.unread("bob")))
	}
	files, _ := filepath.Glob(build.Team.Dir().Join(teamdir.ReceivedDir + "/*" + presence.TakenSuffix))
	if info, err := os.Stat(files[0]); err != nil || info.Size() == 0 || info.Size() >= 32 {
		t.Fatalf("the file has %d bytes, %v: this shows little", info.Size(), err)
	}
	build.full.Store("nothing")
	if m := build.arrives(data, 2); m.acked != 1 || len(build.unread("bob")) != 1 {
		t.Errorf("with room: %+v, bob has %d", m, len(build.unread("bob")))
	}
	build.forget(t, "bob")
	build.taken.days = nil
	if m := build.arrives(data, 1); m.acked != 1 || len(build.unread("bob")) != 0 {
		t.Errorf("again: %+v, bob has %d", m, len(build.unread("bob")))
	}
}
