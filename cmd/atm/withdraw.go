package main

import (
	"context"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
)

var withdrawVerb = &cmdline.Verb{
	Name: "withdraw", Args: "ID", Summary: "take a message of yours back",
	Examples: []string{"atm withdraw 9f3a1c"},
	Notes:    []string{"Unread: it is taken out. Read: the reader gets a notice. Acked: refused, exit 5."},
	MinArgs:  1, MaxArgs: 1,
	Run: run(withdraw),
}

type withdrawn struct {
	To     string `json:"to"`
	Result string `json:"result"`
	Error  string `json:"error,omitempty"`
}

func withdraw(ctx context.Context, e *env) error {
	if err := e.who(); err != nil {
		return err
	}
	if err := e.mine(); err != nil {
		return err
	}
	it, _, err := e.find(ctx, e.Args[0], false)
	if err != nil {
		return err
	}
	if it.From != e.me.Address() || it.Origin != nil && it.Origin.Via == "drop" {
		return cmdline.Refused("message %s is from %s: only its sender withdraws it", it.ID.Short(6), it.From).
			WithHint("atm reply %s \"…\"%s", it.ID.Short(6), e.typed())
	}
	var out []withdrawn
	var refused, failedAt int
	var first error
	for _, w := range e.root.Withdraw(ctx, e.me, it.Message, e.origin()) {
		o := withdrawn{To: w.To.String()}
		switch {
		case w.Err != nil:
			failedAt++
			if first == nil {
				first = w.Err
			}
			_, o.Error, _ = e.failure(w.Err)
			o.Result = "failed"
		case w.State == mailbox.Unread:
			o.Result = "withdrawn"
		case w.State == mailbox.Withdrawn:
			o.Result = "withdrawn before"
		case w.State == "":
			o.Result = "acknowledged already, left alone"
			refused++
		default:
			o.Result = "read already, a notice was sent"
		}
		out = append(out, o)
	}
	switch {
	case len(out) == failedAt && failedAt > 0:
		return first
	case len(out) == refused:
		return cmdline.Refused("message %s is acknowledged", it.ID.Short(6)).WithHint("atm reply %s \"…\"%s", it.ID.Short(6), e.typed())
	}
	if e.JSON() {
		if err := e.PrintJSON(map[string]any{"id": it.ID, "recipients": out}); err != nil {
			return err
		}
	} else {
		for _, o := range out {
			text := o.Result
			if o.Error != "" {
				text += ": " + o.Error
			}
			if err := e.print("%s %s: %s", it.ID.Short(6), o.To, text); err != nil {
				return err
			}
		}
	}
	if failedAt+refused > 0 {
		return &cmdline.Error{Exit: cmdline.ExitPartial, Printed: true}
	}
	return nil
}
