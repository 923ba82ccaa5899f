package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
	"golang.org/x/sys/unix"
)

// watching is the time from a message's appearance in new, made by another
// process, until somebody who waits for it knows. The reference is a blocking
// read of inotify.
func (b *bench) watching() []*Case {
	return []*Case{{
		Name: "from a delivery to the watcher's entry", Against: "a raw inotify event", Goal: Goal{Time: 1.8}, Open: openWatch,
	}}
}

func openWatch(b *bench) (cell, error) {
	r, err := b.newRoot("watch", 1, "bob")
	if err != nil {
		return nil, err
	}
	b.later(r.close)
	bob := r.Box("bob")
	w, err := watcher.Open(b.ctx, []*mailbox.Box{bob}, watcher.Options{Messages: true})
	if err != nil {
		return nil, err
	}
	b.later(w.Close)
	if why := w.Polling(); why != "" {
		return nil, fmt.Errorf("the watcher polls: %s", why)
	}
	events, err := watchNew(r.raws[0].new)
	if err != nil {
		return nil, err
	}
	b.later(events.Close)
	child, err := b.startWriter()
	if err != nil {
		return nil, err
	}
	ours := func(n int) ([]time.Duration, error) {
		return child.round(filepath.Join(bob.Path(), "inbox"), n, func() (string, error) {
			e, err := w.Next(b.ctx)
			if err == nil && e.Message == nil {
				err = fmt.Errorf("an entry without a message: %v", e.Err)
			}
			if err != nil {
				return "", err
			}
			return string(e.Message.ID), nil
		})
	}
	reference := func(n int) ([]time.Duration, error) { return child.round(filepath.Dir(r.raws[0].new), n, events.next) }
	return func(d time.Duration) (time.Duration, time.Duration, error) {
		var took [2][]time.Duration
		for range 3 {
			for _, side := range b.eitherFirst() {
				t, err := [2]func(int) ([]time.Duration, error){ours, reference}[side](max(5, int(d/gap)/3))
				if err != nil {
					return 0, 0, err
				}
				took[side] = append(took[side], t...)
			}
		}
		self := func(t time.Duration) time.Duration { return t }
		return median(took[0], self), median(took[1], self), nil
	}, nil
}

// inotify is a descriptor that is read blocking, without the poller.
type inotify struct {
	fd   int
	buf  [4096]byte
	left []byte
}

func watchNew(dir string) (*inotify, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err == nil {
		_, err = unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MOVED_TO)
	}
	return &inotify{fd: fd}, err
}

func (i *inotify) Close() error { return unix.Close(i.fd) }

// next is the id of the next message to appear.
func (i *inotify) next() (string, error) {
	for len(i.left) == 0 {
		n, err := unix.Read(i.fd, i.buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return "", err
		}
		i.left = i.buf[:n]
	}
	end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(i.left[12:]))
	name, _, _ := strings.Cut(string(i.left[unix.SizeofInotifyEvent:end]), "\x00")
	i.left = i.left[end:]
	return strings.TrimSuffix(name, ".json"), nil
}

const (
	writerMark = "ATM_BENCH_WRITER" // in the environment: be the writer
	gap        = 2 * time.Millisecond
)

// writerProcess is another process that delivers messages.
type writerProcess struct {
	in  io.Writer
	out *bufio.Reader
}

func (b *bench) startWriter() (*writerProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), writerMark+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.later(func() error {
		in.Close()
		return cmd.Wait()
	})
	return &writerProcess{in, bufio.NewReader(out)}, nil
}

// round has n messages delivered into dir/new, calls next for each, and tells
// how long after each delivery next returned its id.
func (w *writerProcess) round(dir string, n int, next func() (string, error)) ([]time.Duration, error) {
	if _, err := fmt.Fprintln(w.in, n, dir); err != nil {
		return nil, err
	}
	seen := map[string]int64{}
	for range n {
		id, err := next()
		if err != nil {
			return nil, err
		}
		seen[id] = clock()
	}
	var took []time.Duration
	for range n {
		var id string
		var at int64
		if _, err := fmt.Fscanln(w.out, &id, &at); err != nil {
			return nil, fmt.Errorf("the writer: %w", err)
		}
		if seen[id] == 0 {
			return nil, fmt.Errorf("message %s was not seen", id)
		}
		took = append(took, time.Duration(seen[id]-at))
	}
	return took, nil
}

// clock is the same in all processes.
func clock() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// writer is the other process: for each line with a number and a directory it
// renames so many messages from tmp into new, and then tells when.
func writer(in io.Reader, out io.Writer) {
	runtime.LockOSThread()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var n int
		var dir string
		fmt.Sscan(lines.Text(), &n, &dir)
		ids := make([]wire.ID, n)
		for i := range ids {
			m := message()
			ids[i] = m.ID
			data, err := m.Encode()
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "tmp", string(m.ID)), data, 0o600)
			}
			if err != nil {
				panic(err)
			}
		}
		report := make([]string, 0, n)
		for id := range slices.Values(ids) {
			time.Sleep(gap)
			from, to := filepath.Join(dir, "tmp", string(id)), filepath.Join(dir, "new", string(id)+".json")
			at := clock()
			if err := os.Rename(from, to); err != nil {
				panic(err)
			}
			report = append(report, fmt.Sprintln(id, at))
		}
		io.WriteString(out, strings.Join(report, ""))
	}
}
