package ptyrun

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

// A pretendedInbox is a way beside the prompt of bob's program.
type pretendedInbox struct {
	r *rig

	mu     sync.Mutex
	shut   bool  // there is no way
	fails  error // of Give
	drops  bool  // it has what it was given, and nobody tells that
	given  [][]wire.ID
	isBack bool // TakeBack was called
}

func (i *pretendedInbox) Look(context.Context) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shut {
		return ""
	}
	return "inbox socket"
}

func (i *pretendedInbox) Give(ctx context.Context, ids []wire.ID) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.given = append(i.given, slices.Clone(ids))
	if i.fails != nil || i.drops {
		return i.fails
	}
	c, err := i.r.opt.Mail.hold.Claim(ctx, ids) // as the program's hook does: they are read
	if err != nil {
		return err
	}
	return c.Typed(ctx)
}

func (i *pretendedInbox) TakeBack(_ context.Context, ids []wire.ID) []wire.ID {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.isBack = true
	return ids
}

func (i *pretendedInbox) gives() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.given)
}

func runBeside(t *testing.T, i *pretendedInbox) (*rig, *pretendedInbox) {
	r := newRig(t).fake(testagent.Options{})
	i.r, r.opt.Beside = r, i
	return r.run().idle(), i
}

// Mail that goes beside the prompt needs no prompt: what a person has half written stays.
func TestMailBesideThePrompt(t *testing.T) {
	t.Parallel()
	r, in := runBeside(t, &pretendedInbox{})
	c := r.client()
	_, err := c.Type(t.Context(), control.TypeRequest{Text: []byte("half a ")})
	must(t, err)
	for n := range 2 {
		id := r.send("ping")
		r.wait("the mail", r.read(id))
		if in.gives() != n+1 {
			t.Errorf("given %v", in.given)
		}
	}
	if s, err := r.status(); err != nil || s.Ways.Prompt != "inbox socket" {
		t.Errorf("%+v, %v", s.Ways, err)
	}
	_, err = c.Type(t.Context(), control.TypeRequest{Text: []byte("line"), Enter: true})
	must(t, err)
	r.wait("the line", func() bool { return len(r.fakes(testagent.Submitted)) == 1 })
	if got := r.fakes(testagent.Submitted); got[0] != "half a line" {
		t.Errorf("submitted %q", got)
	}
}

// What did not go that way is typed, and for a while all mail; what perhaps has arrived is typed once, as a repeat.
func TestMailBesideInVain(t *testing.T) {
	t.Parallel()
	for how, in := range map[string]*pretendedInbox{"fails": {fails: errors.New("full")}, "drops": {drops: true}, "shut": {shut: true}} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r, in := runBeside(t, in)
			first, second := r.send("ping"), wire.ID("")
			r.wait("the mail", r.read(first))
			second = r.send("pong")
			r.wait("the next mail", r.read(second))
			if got := strings.Join(r.fakes(testagent.Submitted), "\n"); !strings.Contains(got, "ping") || !strings.Contains(got, "pong") {
				t.Errorf("submitted %q", got)
			}
			if in.gives() > 1 || in.isBack != in.drops {
				t.Errorf("given %v, taken back: %v", in.given, in.isBack)
			}
		})
	}
}
