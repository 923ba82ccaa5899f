package ptyrun

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"regexp"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/wire"
)

// worker runs jobs one after the other, apart from the loop: they wait for locks and disks. Only the loop
// gives it jobs.
type worker struct{ last chan struct{} }

func (w *worker) do(job func()) {
	before, done := w.last, make(chan struct{})
	w.last = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		job()
	}()
}

func (w *worker) wait() {
	if w.last != nil {
		<-w.last
	}
}

// eventWriter appends the runner's events in order, apart from the loop. What cannot be appended (a lock, a
// full disk) is tried again: a state that was not told is a lie that stays.
type eventWriter struct {
	box    *mailbox.Box
	log    *slog.Logger
	events chan wire.Event
	done   chan struct{}
}

const (
	keptEvents  = 1024 // wait for a disk that has no room: the newest, for they say what is
	appendAgain = 500 * time.Millisecond
)

// say queues an event. It never waits: where there is no room, since the disk hangs, the event is lost.
func (w *eventWriter) say(e wire.Event) {
	e.Source = "pty"
	select {
	case w.events <- e:
	default:
		w.log.Error("too many events wait", "lost", e.Kind)
	}
}

// close has what is queued appended, tried once, and waits for that.
func (w *eventWriter) close() {
	close(w.events)
	<-w.done
}

func (w *eventWriter) run() {
	defer close(w.done)
	var batch []wire.Event
	var again <-chan time.Time // nil: the last try was no failure
	for isOpen := true; isOpen; {
		select {
		case e, ok := <-w.events:
			isOpen = ok
			if ok {
				batch = append(batch[max(0, len(batch)-keptEvents+1):], e)
			}
		case <-again:
			again = nil
		}
		if len(batch) == 0 || isOpen && (again != nil || len(w.events) > 0) { // what is queued goes in together
			continue
		}
		if err := w.box.Log().Append(context.Background(), batch...); err != nil {
			w.log.Error("appending events", "err", err)
			again = time.After(appendAgain)
		} else {
			batch = nil
		}
	}
}

// maxUnread is how many pieces of output may wait for the loop.
const maxUnread = 128

// readOutput hands over what the program writes, and then closes the channel. When that is full the program waits, as
// for a slow terminal.
func readOutput(c *process.Child, output chan<- []byte) {
	defer close(output)
	buf := make([]byte, 32<<10)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		output <- bytes.Clone(buf[:n])
	}
}

// write is something to be typed. done hears how much was.
type write struct {
	data []byte
	done func(n int, err error)
}

const (
	maxWrites = 2048            // wait for a program that does not read
	writeWait = 2 * time.Second // for it to read
)

// suspendKey is Ctrl-Z, also as a sequence by the kitty protocol or xterm's modifyOtherKeys.
var suspendKey = regexp.MustCompile(`\x1a|\x1b\[122[:\d]*;(?:5|69|133|197)(?::1)?u|\x1b\[27;5;122~`)

// wakes are when a program is woken after that key: it may take a while to suspend itself, and one that is awake hears
// nothing of it.
var wakes = []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second}

// writeInput types into the program, in order, apart from the loop: a program that does not read blocks nobody else.
func writeInput(c *process.Child, writes <-chan write) {
	for w := range writes {
		n, err := c.Write(w.data, writeWait)
		if suspendKey.Match(w.data) {
			for _, after := range wakes {
				time.AfterFunc(after, c.Wake)
			}
		}
		if w.done != nil {
			w.done(n, err)
		}
	}
}

// put types keys. What a program leaves unread for too long is lost, as on any terminal.
func (p *program) put(keys ...[]byte) {
	for _, k := range keys {
		p.send(write{data: bytes.Clone(k)})
	}
}

func (p *program) send(w write) {
	select {
	case p.input <- w:
	default:
		if w.done != nil {
			go w.done(0, os.ErrDeadlineExceeded)
		}
	}
}
