package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
)

// worker runs a command over a message that was taken, and is its holder: it
// renews the lease while the command runs, and ends the command when the lease
// is lost, so that two never work on one message for longer than that takes. Its
// guard (takeguard.go) does so when the worker cannot.
type worker struct {
	e     *env
	h     *mailbox.Hold
	box   *mailbox.Box
	lease time.Duration

	guard   *guard // nil: none is to be had here
	renewed time.Time
}

// stopPatience is how long a command has from TERM to its end.
const stopPatience = 5 * time.Second

// takeAndWork takes a message and runs a command over it: done when that exits
// with 0, given back otherwise.
func (e *env) takeAndWork(ctx context.Context, box *mailbox.Box, opt mailbox.HoldOptions, words []string) error {
	if _, err := exec.LookPath(words[0]); err != nil {
		return cmdline.NotFound("%v", err).WithHint("atm take %s -- CMD: CMD is a program, or sh -c \"…\"", box.Agent())
	}
	// From before the message is had, so that an interrupt gives it back.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	letGo, err := e.whenAlone(func() { signals <- syscall.SIGTERM })
	if err != nil {
		return err
	}
	defer letGo()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	var got os.Signal
	heard := make(chan struct{})
	had := make(chan struct{})
	go func() {
		defer close(heard)
		select {
		case got = <-signals:
			stop()
		case <-had:
		}
	}()
	h, err := e.hold(waiting, box, opt, nil)
	close(had)
	<-heard
	switch {
	case got != nil:
		if h != nil {
			h.GiveBack(ctx, "interrupted")
		}
		return &cmdline.Error{Exit: cmdline.ExitInterrupted, Printed: true}
	case err != nil:
		return err
	case h == nil:
		e.Warn("nothing to take")
		return nil
	}
	w := &worker{e: e, h: h, box: box, lease: opt.For, renewed: time.Now()}
	return w.work(ctx, words, signals)
}

// renewing is how often a worker looks whether its lease is to be renewed, at
// least: a machine that slept wakes with its leases run out by the clock.
const renewing = time.Second

// renew renews the lease when a third of it has gone by the clock on the wall,
// which may have jumped. lost says that it was lost.
func (w *worker) renew(ctx context.Context) (lost error) {
	if d := time.Since(w.renewed.Round(0)); d >= 0 && d < w.lease/3 {
		return nil
	}
	err := w.h.Renew(ctx, w.lease)
	var leased *mailbox.LeasedError
	switch {
	case err == nil:
		w.renewed = time.Now()
		w.guarded()
	case errors.As(err, &leased), errors.Is(err, mailbox.ErrNotHeld) && w.open():
		return err
	}
	return nil // not now: it is tried again, and the guard has its eye on the end of the lease
}

// guarded tells the guard of the lease; one that was killed is replaced.
func (w *worker) guarded() {
	if w.guard == nil {
		return
	}
	select {
	case <-w.guard.ended:
		w.guard.pipe.Close()
		g, err := startGuard()
		if w.guard = g; err != nil || g == nil {
			return
		}
		g.tell(w.charge())
	default:
		w.guard.tell(guarded{Until: w.h.Until})
	}
}

// charge is what a guard is to know.
func (w *worker) charge() guarded {
	return guarded{Agent: w.box.Agent(), ID: w.h.ID, Key: w.h.Key, Until: w.h.Until, Lease: w.lease}
}

// work runs the command to its end.
func (w *worker) work(ctx context.Context, words []string, signals <-chan os.Signal) error {
	c := exec.Command(words[0], words[1:]...)
	text := []byte(w.h.Body)
	if w.e.JSON() {
		text = marshalLine(jsonItem{Item: w.h.Item})
	}
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(text), w.e.Stdout, w.e.Stderr
	c.WaitDelay = time.Second // somebody it started may keep stdin open
	c.Env = append(os.Environ(), "ATM_ROOT="+w.e.root.Path, "ATM_TEAM="+string(w.e.team.Name), "ATM_AGENT="+string(w.e.me.Agent()),
		"ATM_MESSAGE="+string(w.h.ID), takeMark+"="+string(w.h.Key))
	alone(c)
	var err error
	if w.guard, err = startGuard(); err != nil { // before there is anything to guard
		return errors.Join(fmt.Errorf("start what guards %s: %w", words[0], err), w.giveBack(ctx, "not started"))
	}
	if w.guard != nil {
		w.guard.tell(w.charge())
		defer func() {
			if w.guard != nil {
				w.guard.close()
			}
		}()
	}
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // some systems end the command with the thread that began it
		err := c.Start()
		started <- err
		if err == nil {
			ended <- c.Wait()
		}
	}()
	if err := <-started; err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", words[0], err), w.giveBack(ctx, "not started"))
	}
	renew := time.NewTicker(min(max(w.lease/6, 10*time.Millisecond), renewing))
	defer renew.Stop()
	var kill <-chan time.Time
	interrupted, lost := false, error(nil)
	for {
		select {
		case err := <-ended:
			return w.ended(ctx, err, interrupted, lost)
		case s := <-signals:
			interrupted = true
			tellAll(c, s)
			if kill == nil {
				kill = time.After(stopPatience)
			}
		case <-renew.C:
			if lost != nil {
				continue
			}
			if lost = w.renew(ctx); lost != nil {
				tellAll(c, syscall.SIGTERM)
				kill = time.After(stopPatience)
			}
		case <-kill:
			tellAll(c, syscall.SIGKILL)
		}
	}
}

// open reports whether the message is neither finished nor withdrawn: the
// command may have acked it, or given it back, itself.
func (w *worker) open() bool {
	it, err := w.box.Get(w.h.ID)
	if err != nil || it.State != mailbox.Unread {
		return false
	}
	k := it.Takings.Last()
	return k == nil || k.Key != w.h.Key
}

// ended does what the command's end means for the message.
func (w *worker) ended(ctx context.Context, err error, interrupted bool, lost error) error {
	var exit *exec.ExitError
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it exited with 0
	}
	if lost != nil || err != nil {
		endMarked(w.h.Key, renewing) // nothing of it goes on when another gets the message
	}
	how, code := "", 0
	switch {
	case lost != nil:
		return w.lost(lost)
	case err == nil:
		return w.done(ctx)
	case interrupted:
		how, code = "interrupted", cmdline.ExitInterrupted
	case errors.As(err, &exit):
		how, code = strings.TrimSpace(exit.Error()), max(exit.ExitCode(), 1)
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			code = 128 + int(s.Signal())
		}
	default:
		return errors.Join(err, w.giveBack(ctx, "failed"))
	}
	var leased *mailbox.LeasedError
	if err := w.giveBack(ctx, how); errors.As(err, &leased) || errors.Is(err, mailbox.ErrNotHeld) {
		return w.lost(err) // the guard ended it, since this process did not renew
	}
	return &cmdline.Error{Exit: code, Printed: true}
}

func (w *worker) lost(why error) error {
	w.e.Warn("the lease was lost while the command ran, and it was ended: %v", why)
	return &cmdline.Error{Exit: cmdline.ExitRefused, Printed: true}
}

// done acks, unless the command has ended the lease itself.
func (w *worker) done(ctx context.Context) error {
	a, err := w.e.root.AckTaken(ctx, w.box, w.e.me.Address(), w.h.Key, w.h.Message, "", w.e.origin())
	switch {
	case errors.Is(err, mailbox.ErrNotHeld) && !w.open():
		return nil
	case err != nil:
		return err
	case a.Unlogged != nil:
		w.e.Warn("%v", a.Unlogged)
	}
	return nil
}

// giveBack gives the message back, and says so.
func (w *worker) giveBack(ctx context.Context, how string) error {
	err := w.h.GiveBack(ctx, how)
	var leased *mailbox.LeasedError
	switch {
	case errors.Is(err, mailbox.ErrNotHeld) && !w.open():
		return nil
	case errors.Is(err, mailbox.ErrNotHeld), errors.As(err, &leased):
		return err
	case err != nil:
		w.e.Warn("%s could not be given back, and is free when its lease runs out: %v", w.h.ID.Short(6), err)
		return err
	}
	w.e.Warn("%s given back: %s", w.h.ID.Short(6), how)
	return w.e.root.Tidy(ctx, w.box, w.e.origin())
}
