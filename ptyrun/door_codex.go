package ptyrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/internal/push/codex"
	ways "github.com/agentteammail/atm/ptyrun/driver/agents"
)

// codexDoor is the queue of a Codex's own server: what is put there begins a turn.
type codexDoor struct {
	socket     string
	hasStarted atomic.Bool // the agent has what was pushed last
}

func (d *codexDoor) by() string { return ways.ServerQueue }

func (d *codexDoor) isVerbatim() bool { return false }

func (d *codexDoor) isReceived() bool { return d.hasStarted.Load() }

func (d *codexDoor) look(ctx context.Context, _ []string) error {
	c, err := codex.Dial(ctx, d.socket)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = onlyThread(ctx, c)
	return err
}

// onlyThread returns the thread that the program shows. A server that has several does not say which one that is.
func onlyThread(ctx context.Context, c *codex.Client) (thread string, err error) {
	loaded, err := c.Loaded(ctx)
	if err == nil && len(loaded) > maxThreads {
		err = fmt.Errorf("its server has %d conversations", len(loaded))
	}
	if err != nil {
		return "", err
	}
	for _, id := range loaded {
		t, err := c.Read(ctx, id)
		switch {
		case err != nil:
			return "", err
		case t.Parent != "", t.Ephemeral: // no person's
		case thread != "":
			return "", errors.New("its server has more than one conversation")
		case t.Status.Type != codex.Idle:
			return "", fmt.Errorf("its conversation is %q", t.Status.Type)
		default:
			thread = id
		}
	}
	if thread == "" {
		return "", errors.New("its server has no conversation yet")
	}
	return thread, nil
}

const (
	maxThreads   = 20 // that are looked at, with those of sub-agents
	askReceipt   = 50 * time.Millisecond
	queueTime    = 3 * time.Second
	withdrawTime = time.Second
	newestItems  = 20
)

// push returns when the agent has the text, or has not and never will: what a turn did not begin with is withdrawn.
func (d *codexDoor) push(ctx context.Context, out pushText) error {
	d.hasStarted.Store(false)
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	c, err := codex.Dial(ctx, d.socket)
	if err != nil {
		return err
	}
	defer c.Close()
	thread, err := onlyThread(ctx, c)
	if err != nil {
		return err
	}
	queued, err := c.QueueAdd(ctx, thread, string(out.id), out.text)
	if _, isRefused := errors.AsType[*codex.RefusedError](err); isRefused {
		return err
	}
	if err != nil {
		return errors.Join(errUnconfirmed, err)
	}
	soon, cancel := context.WithTimeout(ctx, queueTime*2/3)
	defer cancel()
	for soon.Err() == nil {
		// It is refused before the first turn has begun.
		items, _ := c.Items(soon, thread, newestItems)
		if slices.ContainsFunc(items, func(i codex.Item) bool { return i.ClientID == string(out.id) }) {
			d.hasStarted.Store(true)
			return nil
		}
		select {
		case <-soon.Done():
		case <-time.After(askReceipt):
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
	defer cancel()
	if deleted, err := c.QueueDelete(last, thread, queued.ID); err == nil && deleted {
		return errors.New("its server did not begin a turn with it")
	}
	return errUnconfirmed
}
