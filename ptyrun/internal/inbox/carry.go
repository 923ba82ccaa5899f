package inbox

import (
	"context"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/queue"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// A Carrier gives a program mail beside its prompt: see ptyrun.Carrier.
type Carrier interface {
	Carry(ctx context.Context, ids []wire.ID) (by string, err error)
	TakeBack(ctx context.Context, ids []wire.ID) error
}

// carrying is what Options.Carrier does. It claims what it gives, so that nobody else gives that; the log tells what it has
// given and what was read, the queue what is silent. What it leaves is typed.
type carrying struct {
	by        string // the way that was open last; "": none, or not known yet
	isBusy    bool   // the carrier is at work
	isNews    bool   // there is mail that it has not looked at
	isTaking  bool   // it is at work on that
	mayOpen   bool   // a way may have opened since it looked
	word      reducer.Word
	nextAt    time.Time // of the next look, while there is mail
	leftSince time.Time // since when an idle agent has left mail to its way
	restUntil time.Time // the way was of no use
}

const (
	carryTime  = 8 * time.Second // a plugin starts a process or two for it
	carryEvery = 2 * time.Second // while there is mail
)

// hasCarrier reports whether mail may go beside the agent's prompt.
func (in *Inbox) hasCarrier() bool {
	return in.o.Carrier != nil && in.o.HasTerminal && in.Inject() == Body
}

// stepCarrier has the carrier give what is unread, also to an agent that is at work.
func (in *Inbox) stepCarrier(now time.Time) {
	c, word := &in.carrying, in.State.Session().Word()
	if in.Agent == nil { // with the program its way has ended
		*c = carrying{isNews: true, isBusy: c.isBusy}
		return
	}
	isIdle := word == reducer.WordIdle
	if c.word != word {
		c.word, c.isNews = word, true
	}
	if c.isBusy || in.giving != nil || !in.hasCarrier() || in.MustWait(c.restUntil, now) {
		return
	}
	if gate := in.gateOf(nil, now); gate != control.GateOpen && (gate != control.GateBusy || word != reducer.WordBusy) {
		return
	}
	var ids []wire.ID
	free := in.queue.Free()
	if startsTurn := slices.ContainsFunc(free, func(m queue.Message) bool { return !m.IsAside }); isIdle && !startsTurn {
		free = nil
	}
	for _, m := range free {
		if !m.AtPrompt && in.tries[m.ID] == 0 && (isIdle || !m.Urgent) { // for urgent mail the turn is ended
			ids = append(ids, m.ID)
		}
	}
	switch {
	case len(ids) == 0 || !isIdle || c.by == "":
		c.leftSince = time.Time{}
	case c.leftSince.IsZero():
		c.leftSince = now
	case !in.MustWait(c.leftSince.Add(in.queue.Patience), now):
		in.rest("it does not take its mail")
		return
	}
	isDue := c.isNews && len(ids) > 0 || c.mayOpen && c.by == "" || isIdle && len(ids) > 0 && !in.MustWait(c.nextAt, now)
	if !isDue {
		return
	}
	agent := in.Agent
	c.isBusy, c.isTaking, c.isNews, c.mayOpen = true, c.isNews, false, false
	in.Go(func() {
		ctx, cancel := context.WithTimeout(in.Context(), carryTime)
		defer cancel()
		by, err := in.o.Carrier.Carry(ctx, ids)
		in.Post(func() {
			if c.isBusy, c.isTaking = false, false; in.Agent != agent { // what it says is about the last program
				return
			}
			if c.by, c.nextAt = by, in.Now().Add(carryEvery); err != nil {
				in.rest(err.Error())
			}
		})
	})
}

// typedNext returns those of the messages that are next which are typed: all but what the carrier has, or may have. What was
// given in vain before is typed.
func (in *Inbox) typedNext(now time.Time) []wire.ID {
	c := &in.carrying
	if isCarried := in.hasCarrier() && !now.Before(c.restUntil) && (c.isTaking || c.isNews || c.by != ""); !isCarried {
		return in.next
	}
	return slices.DeleteFunc(slices.Clone(in.next), func(id wire.ID) bool { return in.tries[id] == 0 && !in.queue.IsAtPrompt(id) })
}

// rest has all mail typed for a while.
func (in *Inbox) rest(why string) {
	c := &in.carrying
	in.Log.Warn("giving mail beside the prompt", "way", c.by, "reason", why)
	c.by, c.restUntil = "", in.Now().Add(run.RetryLast)
}

// takeBack takes back what the program was given beside its prompt, and nobody has told of: it is typed, as a possible repeat.
func (in *Inbox) takeBack(ids []wire.ID) {
	for _, id := range ids {
		in.tries[id]++
	}
	if in.hasCarrier() {
		in.rest("the program has not confirmed it")
	}
	if in.o.Carrier != nil {
		in.ChangeClaim(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), carryTime)
			defer cancel()
			return in.o.Carrier.TakeBack(ctx, ids)
		})
	}
}
