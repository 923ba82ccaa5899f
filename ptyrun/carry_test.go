package ptyrun

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/wire"
)

// A pretendedInbox is a Carrier into bob's program.
type pretendedInbox struct {
	r *rig

	mu    sync.Mutex
	shut  bool        // there is no way
	fails error       // of Carry
	drops bool        // it has what it was given, and nobody tells that
	given [][]wire.ID // that were not read when they were given
	back  []wire.ID   // that were taken back
}

func (i *pretendedInbox) Carry(ctx context.Context, ids []wire.ID) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shut {
		return "", nil
	}
	if len(ids) == 0 {
		return "inbox socket", nil
	}
	i.given = append(i.given, slices.Clone(ids))
	if i.fails != nil {
		return "inbox socket", i.fails
	}
	box, to := i.r.opt.Mail.box(), holder.New(holder.Push, "s", "push "+string(wire.NewID()), time.Now())
	c, err := claim.HandOver(ctx, box, to, false, inbox.ReadOptions{Limit: 10, Match: func(m *wire.Item) bool { return slices.Contains(ids, m.ID) }})
	if err != nil || len(c.Items) == 0 {
		return "inbox socket", err
	}
	announced, err := c.Sent(ctx)
	err = errors.Join(err, box.Log().Append(ctx, announced...))
	if !i.drops { // a hook shows them
		var read []wire.Event
		read, err = claim.Settle(ctx, box, false, func(claim.Given) delivery.Effect { return delivery.MarkRead })
		err = errors.Join(err, box.Log().Append(ctx, read...))
	}
	return "inbox socket", err
}

func (i *pretendedInbox) TakeBack(ctx context.Context, ids []wire.ID) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.back = append(i.back, ids...)
	box := i.r.opt.Mail.box()
	_, err := claim.Settle(ctx, box, false, func(claim.Given) delivery.Effect { return delivery.Repeat })
	return err
}

func (i *pretendedInbox) gives() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.given)
}

// impatient is for what waits until the program counts as silent: five times as long as for a text to be accepted.
func (r *rig) impatient() *rig {
	timing := quick
	timing.Accept = time.Second
	r.opt.timing = &timing
	return r
}

func runBeside(t *testing.T, i *pretendedInbox) (*rig, *pretendedInbox) {
	r := newRig(t).fake(testagent.Options{}).impatient()
	i.r, r.opt.Carrier = r, i
	return r.run().idle(), i
}

// Mail that goes beside the prompt needs no prompt: what a person has half written stays.
func TestMailBesideThePrompt(t *testing.T) {
	t.Parallel()
	r, in := runBeside(t, &pretendedInbox{})
	c := r.Client()
	_, err := c.Type(t.Context(), control.TypeRequest{Text: []byte("half a ")})
	must(t, err)
	for n := range 2 {
		id := r.Send("ping")
		r.Wait("the mail", r.Read(id))
		if in.gives() != n+1 {
			t.Errorf("given %v", in.given)
		}
	}
	if s, err := r.status(); err != nil || s.Ways.Prompt != "inbox socket" {
		t.Errorf("%+v, %v", s.Ways, err)
	}
	_, err = c.Type(t.Context(), control.TypeRequest{Text: []byte("line"), Enter: true})
	must(t, err)
	r.Wait("the line", func() bool { return len(r.Fakes(testagent.Submitted)) == 1 })
	if got := r.Fakes(testagent.Submitted); got[0] != "half a line" {
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
			first, second := r.Send("ping"), wire.ID("")
			r.Wait("the mail", r.Read(first))
			second = r.Send("pong")
			r.Wait("the next mail", r.Read(second))
			if got := strings.Join(r.Fakes(testagent.Submitted), "\n"); !strings.Contains(got, "ping") || !strings.Contains(got, "pong") {
				t.Errorf("submitted %q", got)
			}
			if in.gives() > 1 || (len(in.back) > 0) != in.drops {
				t.Errorf("given %v, taken back: %v", in.given, in.back)
			}
		})
	}
}

// noWay is a Carrier that needs long to find out that no way is open.
type noWay struct{}

func (noWay) Carry(context.Context, []wire.ID) (string, error) {
	time.Sleep(quick.Check + 200*time.Millisecond)
	return "", nil
}
func (noWay) TakeBack(context.Context, []wire.ID) error { return nil }

// Mail is typed where no way is open, however long it takes to find that out.
func TestMailWithoutAWay(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{})
	r.opt.Carrier = noWay{}
	r.run().idle()
	id := r.Send("ping")
	r.Wait("the mail", r.Read(id))
}

// What a hook has claimed that was killed before it answered is given once that claim has lapsed.
func TestMailOfAKilledHook(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).impatient().run().idle()
	c := r.Client()
	_, err := c.Type(t.Context(), control.TypeRequest{Text: []byte("half a ")})
	must(t, err)
	r.Wait("the draft", func() bool { s, err := r.status(); return err == nil && s.Gate == control.GateDraft })
	id := r.Send("ping")
	h, err := claim.HandOver(t.Context(), r.Bob, holder.New(holder.Session, "s", "x", time.Now().Add(-5*time.Second)), false, inbox.ReadOptions{Limit: 10})
	must(t, err)
	if len(h.Items) != 1 {
		t.Fatal("not claimed")
	}
	_, err = c.Type(t.Context(), control.TypeRequest{Text: []byte("line"), Enter: true})
	must(t, err)
	r.Wait("the mail", r.Read(id))
}
