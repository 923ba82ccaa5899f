package bridge

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	randv2 "math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/wire"
)

// cable is what lies between two hosts of a link.
type cable struct {
	left atomic.Int64 // bytes until it is cut
}

// stream is one end of it.
type stream struct {
	*io.PipeReader
	*io.PipeWriter
	cable *cable
	cut   func()
}

func (s stream) Write(p []byte) (n int, err error) {
	if left := s.cable.left.Add(-int64(len(p))); left < 0 {
		n, _ = s.PipeWriter.Write(p[:max(0, int64(len(p))+left)])
		s.cut()
		return n, errors.New("cut")
	}
	return s.PipeWriter.Write(p)
}

// linked makes two machines a link: whenever the first one calls, the bridge of the other is started.
func linked(t *testing.T, caller, other *machine) *cable {
	w := &cable{}
	w.left.Store(1 << 60)
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	caller.ThroughSSH(SSH{Target: "build", Name: other.Host, Version: "1"})
	l := caller.way.(*link)
	l.dial = func(ctx context.Context) (*session, error) {
		hereIn, thereOut := io.Pipe()
		thereIn, hereOut := io.Pipe()
		cut := func() {
			for _, p := range []*io.PipeWriter{thereOut, hereOut} {
				p.CloseWithError(io.EOF)
			}
			hereIn.Close()
			thereIn.Close()
		}
		there := stream{thereIn, thereOut, w, cut}
		running.Go(func() {
			defer cut()
			b := &Bridge{Root: other.Root, Team: other.Team, Host: other.Host, Report: other.Report, Warn: other.Warn}
			err := b.ThroughStreams(thereIn, there, "1", func(wire.Name) error { return nil })
			for err == nil || strings.Contains(err.Error(), "is held") { // by the one before, which is about to end
				if err = b.Run(context.Background()); err == nil {
					return
				}
			}
		})
		here := stream{hereIn, hereOut, w, cut}
		s, err := l.greet(bufio.NewReader(hereIn), here, SSH{Target: "build", Name: other.Host, Version: "1"}, cut)
		if err != nil {
			cut()
		}
		return s, err
	}
	return w
}

func twoLinked(t *testing.T) (w *cable, laptop, build *machine) {
	laptop, build = newMachine(t, "", "laptop", "alice"), newMachine(t, "", "build", "bob", "carol")
	return linked(t, laptop, build), laptop, build
}

// Two hosts exchange mail, attachments, stages and rows without a server, and trust each other's keys from then on.
func TestLink(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoLinked(t)
	must(t, laptop.Once(t.Context()))
	id, _ := laptop.sendLarge()
	build.send("bob", "alice@main.laptop", nil)
	must(t, laptop.Once(t.Context()))
	if build.hasLarge(); len(laptop.unread("alice")) != 1 {
		t.Fatalf("laptop said:\n%s", laptop.log())
	}
	must(t, build.Team.Box("bob").MarkRead(t.Context(), id))
	must(t, laptop.Once(t.Context()))
	if !strings.Contains(laptop.log(), "read at bob@build") || laptop.rowsOf("build") == nil || build.rowsOf("laptop") == nil {
		t.Errorf("laptop said:\n%s", laptop.log())
	}
	if len(laptop.waiting("build")) > 0 || len(build.waiting("laptop")) > 0 {
		t.Error("there is mail in an outbox")
	}
}

// While both run, mail arrives at once, and again after the connection was lost; each change of state is told.
func TestLinkRunning(t *testing.T) {
	t.Parallel()
	w, laptop, build := twoLinked(t)
	stop := laptop.run()
	laptop.eventually("connected", func() bool { return strings.Contains(laptop.log(), "connected to build") })
	for i := range 3 {
		laptop.send("alice", "bob@main.build", nil)
		build.send("bob", "alice@main.laptop", nil)
		laptop.eventually("delivered", func() bool { return len(build.unread("bob")) == i+1 && len(laptop.unread("alice")) == i+1 })
		laptop.eventually("shown", func() bool { return laptop.rowsOf("build") != nil })
		w.left.Store(0)
		laptop.eventually("told", func() bool { return strings.Count(laptop.log(), "lost the connection to build: ") == i+1 })
		w.left.Store(1 << 60)
		laptop.eventually("connected again", func() bool { return strings.Count(laptop.log(), "connected to build") == i+2 })
	}
	stop()
	if n := strings.Count(laptop.log(), "lost the connection"); n != 3 {
		t.Errorf("told %d times; said:\n%s", n, laptop.log())
	}
}

// Wherever the connection is cut, each message arrives once.
func TestLinkCutAnywhere(t *testing.T) {
	t.Parallel()
	w, laptop, build := twoLinked(t)
	file, err := filestore.Add(laptop.Team.Dir(), "notes", strings.NewReader(strings.Repeat("notes", 100)))
	must(t, err)
	must(t, laptop.Once(t.Context()))
	sent := 0
	for cut := int64(0); ; cut += 200 + randv2.Int64N(200) {
		laptop.send("alice", "bob@main.build", func(m *wire.Message) { m.Attachments = []wire.Attachment{file} })
		build.send("bob", "alice@main.laptop", nil)
		sent++
		w.left.Store(cut)
		err := laptop.Once(t.Context())
		w.left.Store(1 << 60)
		if err == nil { // it is longer than the whole
			break
		}
		laptop.eventually("connected", func() bool { return laptop.Once(t.Context()) == nil })
		bob, alice := build.unread("bob"), laptop.unread("alice")
		if len(bob) != sent || len(alice) != sent || len(laptop.waiting("build")) > 0 {
			t.Fatalf("cut after %d: bob has %d of %d, alice %d; laptop said:\n%s\nbuild said:\n%s", cut, len(bob), sent, len(alice), laptop.log(), build.log())
		}
	}
}

// What was taken is not taken again, even if its recipient has been retired since and the answer to it was lost.
func TestLinkTakesOnce(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoLinked(t)
	allTrust(t, laptop, build)
	id := laptop.send("alice", "bob@main.build", nil)
	it, err := laptop.Team.Store.Outbox(wire.Address{Host: "build"}).Get(id)
	must(t, err)
	must(t, laptop.Once(t.Context()))
	_, err = build.Team.Retire(t.Context(), "bob")
	must(t, err)
	must(t, build.Team.Store.Create(t.Context(), "bob"))
	// As if laptop had been killed before it heard of it.
	posts := &maildir.Post{Message: it.Message, To: []*maildir.Box{laptop.Team.Store.Outbox(wire.Address{Agent: "bob", Team: "main", Host: "build"})}, Given: true}
	maildir.Deliver(t.Context(), posts)
	must(t, posts.Outcomes[0].Err)
	must(t, laptop.Once(t.Context()))
	if len(build.unread("bob")) > 0 || len(laptop.waiting("build")) > 0 {
		t.Errorf("the new bob has %d; said:\n%s", len(build.unread("bob")), build.log())
	}
}

// While the other side's disk is full, mail stays here, and the bridge says why.
func TestLinkFullDisk(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoLinked(t)
	must(t, laptop.Once(t.Context()))
	laptop.send("alice", "bob@main.build", nil)
	build.full.Store("bob/inbox")
	if err := laptop.Once(t.Context()); err == nil || !strings.Contains(err.Error(), "build has not taken it: ") || len(laptop.waiting("build")) != 1 {
		t.Errorf("%v; said:\n%s", err, laptop.log())
	}
	build.full.Store("nothing")
	must(t, laptop.Once(t.Context()))
	if len(build.unread("bob")) != 1 || len(laptop.waiting("build")) > 0 {
		t.Errorf("bob has %d", len(build.unread("bob")))
	}
}

// A host that has another key, name or protocol than is known is not let in, and what to type is said.
func TestLinkStrangers(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoLinked(t)
	must(t, laptop.Once(t.Context()))
	for about, c := range map[string]struct {
		there      *machine
		want, hint string
	}{
		"another key": {newMachine(t, "", "build"), "build has another key than the one that is trusted here", "atm bridge trust build "},
		"its name":    {newMachine(t, "", "cloud"), "build calls itself cloud", "atm bridge --ssh build --name cloud"},
	} {
		other := newMachine(t, "", "laptop", "alice")
		allTrust(t, other, build)
		linked(t, other, c.there)
		other.way.(*link).peer = "build"
		err := other.Once(t.Context())
		e, _ := errors.AsType[*failure.Error](err)
		if e == nil || !strings.Contains(e.Message, c.want) || !strings.Contains(e.Hint.String(), c.hint) {
			t.Errorf("%s: %v", about, err)
		}
	}
}

// For one that calls under the name of a host, and is not that host, nothing is noted.
func TestLinkCalledByStranger(t *testing.T) {
	t.Parallel()
	_, laptop, build := twoLinked(t)
	must(t, laptop.Once(t.Context()))
	build.send("bob", "alice@main.laptop", nil)
	key, err := newMachine(t, "", "laptop", "alice").keys().Generate("laptop")
	must(t, err)
	for about, theirs := range map[string]greeting{
		"another key":  {Protocol: protocol, Team: "main", Host: "laptop", Key: hostkey.EncodeKey(key), Peer: "build"},
		"another team": {Protocol: protocol, Team: "other", Host: "laptop", Key: hostkey.EncodeKey(key), Peer: "build"},
		"a newer atm":  {Protocol: protocol + 1, Team: "main", Host: "laptop", Key: hostkey.EncodeKey(key), Peer: "build"},
	} {
		line, err := json.Marshal(theirs)
		must(t, err)
		build.eventually("free", func() bool { // of the bridge that laptop had called
			b := &Bridge{Root: build.Root, Team: build.Team, Host: build.Host, Report: build.Report, Warn: build.Warn}
			in := bytes.NewReader(append(line, '\n'))
			must(t, b.ThroughStreams(in, io.Discard, "1", func(wire.Name) error { return nil }))
			if err = b.Once(t.Context()); err == nil {
				t.Errorf("%s: it is let in", about)
			}
			_, isHeld := errors.AsType[*lockfile.HeldError](err)
			return !isHeld
		})
		if why := presence.HeldReason(build.Team, "laptop"); why != "" {
			t.Errorf("%s: it is noted of laptop: %s", about, why)
		}
	}
	must(t, laptop.Once(t.Context()))
	if len(laptop.unread("alice")) != 1 {
		t.Error("laptop itself did not get its mail")
	}
}

// A raw is the other side of a session, which may write anything.
type raw struct {
	t    *testing.T
	in   *bufio.Reader
	out  io.Writer
	here *session
}

// rawTo begins a session of a machine with a hostile host.
func rawTo(t *testing.T, m *machine, peer wire.Name) *raw {
	hereIn, thereOut := io.Pipe()
	thereIn, hereOut := io.Pipe()
	l := &link{Bridge: m.Bridge}
	m.way, m.peer, m.isContinuous = l, peer, true
	var err error
	m.key, err = m.keys().Private(m.Host)
	must(t, err)
	s := newSession(bufio.NewReader(hereIn), hereOut, func() { hereIn.Close(); hereOut.Close() })
	l.session, l.since, s.link = s, time.Now(), l
	s.start()
	r := &raw{t, bufio.NewReader(thereIn), thereOut, s}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); m.receive(ctx) }()
	t.Cleanup(func() { s.cancel(errors.New("over")); cancel(); thereIn.Close(); <-done })
	return r
}

func (r *raw) write(frames ...frame) {
	for _, f := range frames {
		data, _ := json.Marshal(f)
		r.out.Write(append(data, '\n'))
	}
}

// read returns the next frame of a kind.
func (r *raw) read(kind string) (f frame) {
	for f.Type != kind {
		line, err := readLine(r.in, maxLine)
		must(r.t, err)
		must(r.t, json.Unmarshal(line, &f))
	}
	return f
}

// Another side that breaks the rules is cut off, and writes nothing here but as members of its own host.
func TestLinkHostile(t *testing.T) {
	t.Parallel()
	newPair := func(t *testing.T) (laptop, build *machine) {
		laptop, build = newMachine(t, "", "laptop", "alice"), newMachine(t, "", "build", "bob")
		allTrust(t, laptop, build)
		return laptop, build
	}
	for about, c := range map[string]struct {
		write func(r *raw)
		want  string
	}{
		"no JSON":     {func(r *raw) { fmt.Fprintln(r.out, "\x1b[2J") }, "it wrote "},
		"a long line": {func(r *raw) { go r.out.Write(make([]byte, maxLine+8192)) }, "a line of more than"},
		"many objects": {func(r *raw) {
			for n := range uint64(100) {
				data, _ := json.Marshal(frame{Type: "get", N: n + 1, SHA256: "x"})
				if _, err := r.out.Write(append(data, '\n')); err != nil {
					return
				}
			}
		}, "more than 8 objects"},
		"many pings": {func(r *raw) {
			for range 1000 {
				if _, err := fmt.Fprintln(r.out, `{"type":"ping","n":1}`); err != nil {
					return
				}
			}
		}, "pings too often"},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			laptop, _ := newPair(t)
			r := rawTo(t, laptop, "build")
			go c.write(r)
			<-r.here.ctx.Done()
			if err := context.Cause(r.here.ctx); !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("envelopes", func(t *testing.T) {
		t.Parallel()
		laptop, build := newPair(t)
		cloud := newMachine(t, "", "cloud")
		allTrust(t, laptop, build, cloud)
		r := rawTo(t, laptop, "build")
		mail := func(from string) string {
			return fmt.Sprintf(`{"id":"%%s","from":%q,"to":["alice@main.laptop"],"body":"hi"}`, from)
		}
		bad := func(want string) {
			t.Helper()
			r.read("ack")
			if got := laptop.reasons(); !strings.Contains(got, want) {
				t.Errorf("%q, not %q", got, want)
			}
		}
		go r.write(frame{Type: "envelope", N: 1, Data: cloud.sign(&Envelope{ToHost: "laptop"}, mail("carol@main.cloud"))})
		bad("host build handed over an envelope of host cloud")
		go r.write(frame{Type: "envelope", N: 2, Data: build.sign(&Envelope{ToHost: "laptop"}, mail("carol@main.cloud"))})
		bad("host build signed a message from carol@main.cloud")
		go r.write(frame{Type: "rows", Data: cloud.sign(&Envelope{Kind: KindRows}, "{}")}, frame{Type: "pigeon"},
			frame{Type: "chunk", N: 77, Data: []byte("x")}, frame{Type: "ack", N: 77}, frame{Type: "get", N: 5, SHA256: strings.Repeat("a", 64)})
		if f := r.read("chunk"); f.N != 5 || f.Error == "" || f.Data != nil {
			t.Errorf("%+v", f)
		}
		if !strings.Contains(laptop.log(), "rows.build: it is rows of host cloud") {
			t.Errorf("said:\n%s", laptop.log())
		}
		go r.write(frame{Type: "envelope", N: 3, Data: build.sign(&Envelope{ToHost: "laptop"}, mail("bob@main.build"))})
		if f := r.read("ack"); f.N != 3 || f.Error != "" || len(laptop.unread("alice")) != 1 {
			t.Errorf("%+v; alice has %d", f, len(laptop.unread("alice")))
		}
	})
}

// What a host writes reaches it however slow the other side is: a disk there may be.
func TestLinkSlow(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) *raw {
		laptop, build := newMachine(t, "", "laptop", "alice"), newMachine(t, "", "build", "bob")
		allTrust(t, laptop, build)
		return rawTo(t, laptop, "build")
	}
	t.Run("it does not read, and is there", func(t *testing.T) {
		t.Parallel()
		r := begin(t)
		for range 100 {
			r.write(frame{Type: "ping"})
		}
		r.write(frame{Type: "pong", N: 1})
		select {
		case <-r.here.ponged:
		case <-r.here.ctx.Done():
			t.Error(context.Cause(r.here.ctx))
		}
	})
	t.Run("the session is closed while nothing is read", func(t *testing.T) {
		t.Parallel()
		r := begin(t)
		for range cap(r.here.out) + 1 { // the first one is being written
			r.here.write(frame{Type: "ping"})
		}
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for r.here.ctx.Err() == nil { // it is not silent
				r.write(frame{Type: "ping"})
				time.Sleep(time.Second)
			}
		}()
		r.here.close()
		<-stopped
	})
	t.Run("objects", func(t *testing.T) {
		t.Parallel()
		r := begin(t)
		for n := range uint64(10 * maxServes) { // each is whole before the next is asked for
			r.write(frame{Type: "get", N: n + 1, SHA256: "x"})
			if f := r.read("chunk"); f.N != n+1 || !f.End {
				t.Fatalf("%+v", f)
			}
		}
	})
}

func TestHostOf(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]wire.Name{
		"build": "build", "me@build": "build", "Build.example.org": "build", "ssh://me@build:2222": "build", "me@10.0.0.7": "",
		"ssh://[::1]:22": "", "rows": "", "b_1.x": "b_1",
	} {
		if got := HostOf(target); got != want {
			t.Errorf("%s: %q", target, got)
		}
	}
}

// A link that cannot be written to any more has ended, as one that has nothing more to read.
func TestWriteToEndedLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a broken pipe has another error there")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	s := newSession(nil, w, func() {})
	s.write(frame{Type: "ping"})
	<-s.ctx.Done()
	if err := context.Cause(s.ctx); err != errEnded {
		t.Error(err)
	}
}

// However late the last words of ssh are read, its end is the end of the other side.
func TestEndOfSSH(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("ssh is a script here")
	}
	laptop, dir := newMachine(t, "", "laptop", "alice"), t.TempDir()
	_, theirs, err := ed25519.GenerateKey(nil)
	must(t, err)
	_, laptop.key, err = ed25519.GenerateKey(nil)
	must(t, err)
	hello, _ := json.Marshal(greeting{Protocol: protocol, Team: "main", Host: "build", Key: publicKey(theirs)})
	script := "#!/bin/sh\necho '" + string(hello) + "'\necho '{\"type\":\"ping\"}'\n"
	must(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	laptop.ThroughSSH(SSH{Target: "build", Name: "build", Version: "1"})
	l := laptop.way.(*link)
	s, err := l.dial(t.Context())
	must(t, err)
	s.link = l
	for err == nil || err == io.EOF { // until it is given up
		_, err = s.in.Peek(4096)
	}
	s.start()
	<-s.ctx.Done()
	if err := context.Cause(s.ctx); err != errEnded {
		t.Error(err)
	}
}
