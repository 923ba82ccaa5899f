package ptyrun

import (
	"bytes"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/agentteammail/atm/ptyrun/process"
)

// worker runs jobs in order, beside the loop, because they wait for locks and disks.
type worker struct {
	lock sync.Mutex
	last chan struct{} // closed when the last job is done
}

func (w *worker) do(job func()) {
	w.lock.Lock()
	defer w.lock.Unlock()
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

// wait waits for all jobs. Call do no more.
func (w *worker) wait() {
	if w.last != nil {
		<-w.last
	}
}

// retry calls try until it succeeds. When the loop has ended it calls it once.
func (r *runner) retry(what string, try func() error) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		isLast := false
		select {
		case <-r.done:
			isLast = true
		default:
		}
		err := try()
		if err != nil {
			r.Log.Error(what, "err", err)
		}
		if err == nil || isLast {
			return
		}
		select {
		case <-time.After(pause):
		case <-r.done:
		}
	}
}

// maxPieces is how many pieces of output may be queued for the loop.
const maxPieces = 128

// readOutput sends what the program writes, and closes the channel at the end. While the channel is full the program
// blocks, as on a slow terminal.
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

// write is something to type. done gets the number of bytes written.
type write struct {
	data []byte
	done func(n int, err error)
}

const (
	maxWrites    = 2048 // queued for a program that does not read
	writeTimeout = 2 * time.Second
)

// suspendKey is Ctrl-Z, also as a sequence of the kitty protocol or xterm's modifyOtherKeys.
var suspendKey = regexp.MustCompile(`\x1a|\x1b\[122[:\d]*;(?:5|69|133|197)(?::1)?u|\x1b\[27;5;122~`)

// wakeDelays are when a program is woken after Ctrl-Z: it may take a while to suspend itself, and waking a running
// program does nothing.
var wakeDelays = []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second}

// writeInput types into the program, in order, beside the loop, because a program that does not read would block it.
func writeInput(c *process.Child, writes <-chan write) {
	for w := range writes {
		n, err := c.Write(w.data, writeTimeout)
		if suspendKey.Match(w.data) {
			for _, after := range wakeDelays {
				time.AfterFunc(after, c.Wake)
			}
		}
		if w.done != nil {
			w.done(n, err)
		}
	}
}

// sendKeys types keys. Keys that the program does not read in time are lost, as on any terminal.
func (p *program) sendKeys(keys ...[]byte) {
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
