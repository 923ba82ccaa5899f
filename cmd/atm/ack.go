package main

import (
	"context"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
)

var ackVerb = &cmdline.Verb{
	Name: "ack", Args: "ID…", Summary: "I have it and will act",
	Examples: []string{"atm ack 9f3a1c", `atm ack 9f3a1c --text "after lunch"`},
	Notes: []string{"Reaches the sender before the debt is cleared. Again: nothing more, exit 0.",
		"Of what you took (atm take) it ends the lease; only its holder may."},
	Flags:   []cmdline.Flag{{Name: "text", Aliases: []string{"message", "m", "body"}, Kind: cmdline.String, Arg: "TEXT", Usage: "a word with it"}},
	MinArgs: 1, MaxArgs: -1,
	Run: run(ack),
}

func ack(ctx context.Context, e *env) error {
	if err := e.who(); err != nil {
		return err
	}
	if err := e.mine(); err != nil {
		return err
	}
	if e.Given("text") {
		if err := cmdline.CheckText(e.String("text")); err != nil {
			return err
		}
	}
	items, taken, err := e.findMineOrTaken(ctx, e.Args)
	if err != nil {
		return err
	}
	for i, it := range items {
		if taken[i] != nil {
			continue
		}
		if it.State == mailbox.Withdrawn {
			return cmdline.Refused("message %s was withdrawn by its sender", it.ID.Short(6))
		}
		if it.State == "" || it.From == e.me.Address() && len(it.To) > 0 && it.To[0] != e.me.Address() {
			return cmdline.Refused("message %s is one that you sent", it.ID.Short(6)).WithHint("atm trace %s%s says who has acknowledged it", it.ID.Short(6), e.typed())
		}
	}
	var all []sent
	for i, it := range items {
		box := e.me
		ack := func() (teams.Acked, error) { return e.root.Ack(ctx, e.me, it.Message, e.String("text"), e.origin()) }
		if taken[i] != nil {
			box = taken[i]
			ack = func() (teams.Acked, error) {
				return e.root.AckTaken(ctx, box, e.me.Address(), it.Message, e.String("text"), e.origin())
			}
		}
		a, err := ack()
		if err != nil {
			return err
		}
		if a.Unlogged != nil {
			e.Warn("%v", a.Unlogged)
		}
		if a.Differs {
			e.Warn("%s was acknowledged before with another text: atm reply %s \"…\" says more", it.ID.Short(6), it.ID.Short(6))
		}
		idle := a.NoMailbox && a.Already && !it.RequiresAck // read before, and nothing was owed
		switch {
		case idle:
			e.Warn("%s has no mailbox here, and %s asked for no ack: there is nothing to note", it.From, it.ID.Short(6))
		case a.NoMailbox:
			e.Warn("%s has no mailbox here: the ack of %s is only noted", it.From, it.ID.Short(6))
		}
		all = append(all, e.ackResult(box, it, a))
		if e.JSON() {
			continue
		}
		word := ""
		if a.Already {
			word = " before"
		}
		if idle {
			if err := e.print("read %s before", it.ID.Short(6)); err != nil {
				return err
			}
			continue
		}
		if err := e.print("acked %s%s", it.ID.Short(6), word); err != nil {
			return err
		}
	}
	switch {
	case !e.JSON():
		return nil
	case len(all) == 1:
		return e.PrintJSON(all[0])
	}
	return e.PrintJSON(map[string]any{"acks": all})
}

// ackResult is what became of one ack, as JSON says it.
func (e *env) ackResult(box *mailbox.Box, it *mailbox.Item, a teams.Acked) sent {
	s := sent{ID: teams.AckID(it.ID, box.Address()), Delivered: []delivered{}, Failed: []failed{}}
	if a.Post != nil {
		s.Delivered = append(s.Delivered, e.reached(a.Post.To[0], time.Now(), false))
	}
	return s
}
