// Package push gives mail to a program through the ways that its driver lists. To one that its person started by hand
// whoever has delivered a message does that at once; to one that atm runs, its runner when the program is idle. What does
// not get in that way stays in the inbox, which the programs that can watch, and for which the hooks look at each turn.
package push

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// An Outcome says what became of giving a member's mail to its program.
type Outcome struct {
	By       string          // see agents.Way; "": no way is open now
	IsIn     bool            // the mail was given to the program. Else it takes it itself, or, without By, at its next turn
	IsUnsure bool            // and it may not have taken it
	To       presence.Member // as the member was before
	Why      string          // why the mail is not in; "": it is, or nobody has to know
}

// senderTime limits how long a sender tries.
const senderTime = 3 * time.Second

// A Carrier is a ptyrun.Carrier: it gives mail to the program of a run.
type Carrier struct {
	Team *teamdir.Team
	Name wire.Name
	Run  string
}

// way returns the way into the program of the run that people see, whose hooks have told of its conversation; nil: none is open.
func (c Carrier) way() (p programs.Program, way *programs.OpenWay) {
	all := slices.DeleteFunc(programs.RunningPrograms(c.Team, c.Name), func(p programs.Program) bool {
		return p.Run != c.Run || p.Session == "" || !p.IsAttended()
	})
	if len(all) == 0 {
		return p, nil
	}
	p = slices.MaxFunc(all, func(a, b programs.Program) int { return a.At.Compare(b.At) })
	way, _ = p.BestWay(agents.AtIdle)
	return p, way
}

// Carry gives messages to the program, unless it takes them itself.
func (c Carrier) Carry(ctx context.Context, ids []wire.ID) (by string, err error) {
	p, way := c.way()
	switch {
	case way == nil:
		return "", nil
	case way.Way != nil && len(ids) > 0:
		_, err = Into(ctx, c.Team, c.Name, p, Options{
			Way: way, Limit: letter.MaxMessages, Match: func(m *wire.Item) bool { return slices.Contains(ids, m.ID) },
		})
	}
	if errors.Is(err, delivery.ErrUnsure) {
		err = nil
	}
	return way.By, err
}

// TakeBack has messages that were given, and that nobody has confirmed, be given again.
func (c Carrier) TakeBack(ctx context.Context, ids []wire.ID) error {
	if _, way := c.way(); way != nil && way.Way != nil {
		for _, id := range ids {
			way.TakeBack(ctx, id) // if it cannot, it may come twice, marked
		}
	}
	return repeat(ctx, c.Team.Box(c.Name), func(g claim.Given) bool { return g.IsLive(time.Now()) && slices.Contains(ids, g.ID) })
}

// repeat has what may be lost given once more.
func repeat(ctx context.Context, b *maildir.Box, isLost func(claim.Given) bool) error {
	_, err := claim.Settle(ctx, b, false, func(g claim.Given) delivery.Effect {
		if isLost(g) {
			return delivery.Repeat
		}
		return delivery.Nothing
	})
	return err
}

// Unread gives a member's unread mail to its program, if there is a way that takes it from outside. Without any program
// it costs one look into a directory.
func Unread(ctx context.Context, t *teamdir.Team, name wire.Name) (h Outcome) {
	if _, ok := programs.Bound(t, name); !ok {
		return h
	}
	h.To, _ = presence.One(ctx, t, name) // the mail may begin a turn
	if h.To.State == reducer.WordLimited {
		return Outcome{Why: "it is at its usage limit"}
	}
	p, ok := programs.Bound(t, name) // the look may have found that it shows another conversation
	if !ok {
		return Outcome{}
	}
	p, err := p.Now(t, name)
	if err != nil {
		return Outcome{Why: err.Error()}
	}
	way, why := p.BestWay(agents.AtIdle)
	if way == nil {
		return Outcome{Why: why}
	}
	if h.By = way.By; way.Way == nil {
		return h.takes(t, name)
	}
	ctx, cancel := context.WithTimeout(ctx, senderTime)
	defer cancel()
	o := Options{Limit: letter.MaxMessages, Way: way}
	if h.To.State == reducer.WordIdle {
		o.IdleSince = h.To.Since
	}
	got, err := Into(ctx, t, name, p, o)
	if err == nil && got.IsFull {
		err = errors.New("as much is in it as it takes at a time")
	}
	if h.IsUnsure = errors.Is(err, delivery.ErrUnsure); err != nil && !h.IsUnsure {
		h = Outcome{Why: fmt.Sprintf("%s: %v", way.By, err)}
		if next, _ := p.BestWay(agents.AtIdle, way.By); next != nil && next.Way == nil {
			h.By = next.By
		}
		return h.takes(t, name)
	}
	h.IsIn = true
	return h
}

// takes has a program get its mail by a way that takes it itself.
func (h Outcome) takes(t *teamdir.Team, name wire.Name) Outcome {
	if h.By != agents.ByPane {
		return h
	}
	err := errors.New("nothing here types into a pane")
	if c, _ := t.Config(); c != nil && c.Members[name].Inject == "off" {
		err = errors.New("inject is off")
	} else if t.Root().TypeInPane != nil {
		err = t.Root().TypeInPane(t, name)
	}
	if err != nil {
		h.By, h.Why = "", fmt.Sprintf("%s: %v", h.By, err)
	}
	return h
}

// Waited gives programs that people started the mail that was not due when it came and is now: nobody sends it at that
// moment. given has what was given before by this process.
func Waited(ctx context.Context, t *teamdir.Team, given map[string]bool) {
	t.Each(func(b *maildir.Box) error {
		if _, ok := programs.Bound(t, b.Agent()); !ok {
			return nil
		}
		ids, err := b.HaveWaited()
		isNew := false
		for _, id := range ids {
			key := string(b.Agent()) + " " + string(id)
			isNew, given[key] = isNew || !given[key], true
		}
		if isNew {
			Unread(ctx, t, b.Agent())
		}
		return err
	})
}

// Options say which mail is put into a program's conversation, and by which way.
type Options struct {
	Way   delivery.Way
	Limit int                   // of messages at a time
	Match func(*wire.Item) bool // which; nil: all

	IdleSince *time.Time // of the program; nil: it is not idle, as far as is known
}

// isSilent reports whether an idle program should have confirmed what it was given.
func (o *Options) isSilent(g claim.Given, now time.Time) bool {
	return o.IdleSince != nil && now.Sub(*o.IdleSince) >= delivery.Patience && now.Sub(g.To.Since) >= delivery.Patience
}

// Into claims unread mail for a program's conversation, and puts it there. It counts as read when a hook of the program, or
// its server, shows it. The result is never nil; without Items there was nothing to put, or another call has claimed it.
func Into(ctx context.Context, t *teamdir.Team, name wire.Name, p programs.Program, o Options) (*claim.Claim, error) {
	box, ended, after := t.Box(name), programs.EndedSessions(t, name), context.WithoutCancel(ctx)
	l := &letter.Renderer{Now: time.Now(), Team: t.Name, Digits: 6, Show: p.Flags}
	if err := repeat(ctx, box, func(g claim.Given) bool {
		return g.IsLive(l.Now) && (o.isSilent(g, l.Now) || !g.To.IsSession(p.Session) && slices.ContainsFunc(ended, g.To.IsSession))
	}); err != nil {
		return &claim.Claim{}, err
	}
	holds := t.Holds(name)
	to := holder.New(holder.Push, p.Session, "push "+string(wire.NewID()), l.Now)
	h, err := claim.HandOver(ctx, box, to, false, inbox.ReadOptions{
		Limit: o.Limit, MaxBytes: 16 << 20, Fits: l.LimitToPage(), Current: true,
		Match: func(m *wire.Item) bool {
			return (o.Match == nil || o.Match(m)) && holds(m.Message) == (teamdir.Hold{})
		},
	})
	startsTurn := slices.ContainsFunc(h.Items, func(it *wire.Item) bool { return !it.StartsNoTurn() })
	if err != nil || !startsTurn {
		err = errors.Join(err, h.Release(after))
		h.Items = nil
		return h, err
	}
	first, isIn := h.Items[0].ID, false
	if h.Repeat[first] {
		if isIn, err = o.Way.Has(ctx, first); errors.Is(err, delivery.ErrSilent) {
			err = nil
		}
	}
	if err == nil && !isIn {
		isUrgent := slices.ContainsFunc(h.Items, (*wire.Item).Urgent)
		err = o.Way.Put(ctx, delivery.Text{ID: first, From: h.Sender(), Body: h.PushText(l), IsUrgent: isUrgent})
	}
	if errors.Is(err, delivery.ErrUnsure) {
		if isIn, asked := o.Way.Has(ctx, first); !isIn && !errors.Is(asked, delivery.ErrSilent) {
			return h, err // the claim stands for a while, and then the program is asked once more
		}
	}
	if _, effect := delivery.Next(delivery.Claimed, delivery.EventOf(err)); effect == delivery.Release {
		return h, errors.Join(err, h.Release(after))
	}
	announced, failed := h.Sent(after)
	return h, errors.Join(err, failed, box.Log().Append(after, announced...))
}

// All gives mail to the programs of all whom the posts have just reached, side by side.
func All(ctx context.Context, r *teamdir.Root, posts []*maildir.Post) map[wire.Address]Outcome {
	var reached []wire.Address
	for _, post := range posts {
		for _, out := range post.Outcomes {
			a := out.Box.Address()
			if out.Err != nil || out.WasDelivered || out.Box.Host() != "" || !out.Box.IsDue(post.Message) || slices.Contains(reached, a) {
				continue
			}
			if t, err := r.TeamOf(a); err == nil && !post.Message.StartsNoTurn() && t.HoldReason(out.Box.MessageThere(post.Message), a.Agent) == (teamdir.Hold{}) {
				reached = append(reached, a)
			}
		}
	}
	if len(reached) > 0 {
		lockfile.Waits("push")
	}
	pushed := make([]Outcome, len(reached))
	teamdir.AtOnce(len(reached), func(i int) {
		if t, err := r.TeamOf(reached[i]); err == nil {
			pushed[i] = Unread(ctx, t, reached[i].Agent)
		}
	})
	all := map[wire.Address]Outcome{}
	for i, a := range reached {
		all[a] = pushed[i]
	}
	return all
}
