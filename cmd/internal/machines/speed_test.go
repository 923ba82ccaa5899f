//go:build linux

package machines

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A message is in the other host's inbox in at most three times the time that bare JetStream takes to
// publish and to fetch as many bytes, and so is a backlog of 1,000.
func TestSpeed(t *testing.T) {
	if os.Getenv("ATM_MACHINES") == "" {
		t.Skip("make machines measures")
	}
	const backlog, rounds = 1000, 5
	dir := memory(t)
	w := &world{t: t}
	var addresses []string
	w.servers, addresses, _ = newServers(t, dir, 1)
	w.connect(addresses)
	w.hosts = newHosts(t, dir, addresses, team, "laptop", "build")
	laptop, build := w.hosts[0], w.hosts[1]
	build.startBridge(t, dir)
	text := strings.Repeat("0123456789abcdef", 64)
	laptop.must(t, "send", "bob@build", text, "--as", "alice") // makes the outbox
	outbox, inbox := arrivals(t, filepath.Dir(laptop.outbox()[0])), arrivals(t, filepath.Join(build.team(), "bob/inbox/new"))
	data, err := os.ReadFile(laptop.outbox()[0])
	if err != nil {
		t.Fatal(err)
	}

	var one, all [2][]time.Duration // ours, and bare
	var way []time.Duration
	bare := w.newBare()
	for range rounds {
		// The backlog: sent while the bridge is off; counted from its start.
		line := fmt.Sprintf("{\"to\":[\"bob@build\"],\"body\":%q}\n", text)
		if r := laptop.atm(0, strings.Repeat(line, backlog), "send", "--batch", "--as", "alice"); r.code != 0 {
			t.Fatal(r)
		}
		n := len(laptop.outbox())
		began := time.Now()
		laptop.startBridge(t, dir)
		await(t, inbox, n)
		all[0] = append(all[0], time.Since(began))
		await(t, outbox, backlog)
		began = time.Now()
		for range backlog {
			bare.pass(data)
		}
		all[1] = append(all[1], time.Since(began))

		// One message at a time, from its file in the outbox.
		for range 20 {
			laptop.must(t, "send", "bob@build", text, "--as", "alice")
			done := time.Now()
			sent, came := await(t, outbox, 1), await(t, inbox, 1)
			one[0] = append(one[0], came.Sub(done))
			way = append(way, came.Sub(sent))
			for len(laptop.outbox()) > 0 {
				time.Sleep(time.Millisecond)
			}
			laptop.must(t, "send", "amy", text, "--as", "alice") // the machine is as busy as before the other
			began := time.Now()
			one[1] = append(one[1], bare.pass(data).Sub(began))
		}
		laptop.bridge.stop(syscall.SIGTERM)
	}
	compare(t, "a message, p50 from the end of send", one)
	slices.Sort(way)
	t.Logf("a message, p50 from its file in the outbox: %v", way[len(way)/2])
	compare(t, "a backlog of 1,000", all)
}

func compare(t *testing.T, what string, took [2][]time.Duration) {
	for i := range took {
		slices.Sort(took[i])
	}
	ours, bare := took[0][len(took[0])/2], took[1][len(took[1])/2]
	ratio := float64(ours) / float64(bare)
	t.Logf("%s: %v, bare %v: %.2f times, the goal is 3", what, ours, bare, ratio)
	if ratio > 3 {
		t.Errorf("%s takes %.2f times as long", what, ratio)
	}
}

// bare is a stream of its own, published to and fetched from one message at a time.
type bare struct {
	w        *world
	messages jetstream.MessagesContext
}

func (w *world) newBare() *bare {
	ctx := w.t.Context()
	stream, err := w.js.CreateStream(ctx, jetstream.StreamConfig{Name: "bare", Subjects: []string{"bare"}, Discard: jetstream.DiscardNew})
	if err != nil {
		w.t.Fatal(err)
	}
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "bare", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		w.t.Fatal(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(messages.Stop)
	return &bare{w, messages}
}

// pass publishes data, fetches it and acknowledges it. It returns when it was there.
func (b *bare) pass(data []byte) time.Time {
	ctx := b.w.t.Context()
	if _, err := b.w.js.Publish(ctx, "bare", data); err != nil {
		b.w.t.Fatal(err)
	}
	m, err := b.messages.Next()
	if err != nil {
		b.w.t.Fatal(err)
	}
	at := time.Now()
	if err := m.DoubleAck(ctx); err != nil {
		b.w.t.Fatal(err)
	}
	return at
}

// arrivals are the times at which files appear in a directory.
func arrivals(t *testing.T, dir string) <-chan time.Time {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err == nil {
		_, err = syscall.InotifyAddWatch(fd, dir, syscall.IN_CREATE|syscall.IN_MOVED_TO)
	}
	if err != nil {
		t.Fatal(dir, ": ", err)
	}
	file, all := os.NewFile(uintptr(fd), dir), make(chan time.Time, 10_000)
	t.Cleanup(func() { file.Close() })
	go func() {
		for buf := make([]byte, 64<<10); ; {
			n, err := file.Read(buf)
			if err != nil {
				return
			}
			for at := 0; at < n; at += syscall.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[at+12:])) { // and its name
				all <- time.Now()
			}
		}
	}()
	return all
}

// await returns when the last of n files appeared.
func await(t *testing.T, all <-chan time.Time, n int) (at time.Time) {
	for ; n > 0; n-- {
		select {
		case at = <-all:
		case <-time.After(time.Minute):
			t.Fatalf("%d files did not appear", n)
		}
	}
	return at
}
