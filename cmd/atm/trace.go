package main

import (
	"context"
	"strings"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
)

var traceVerb = &cmdline.Verb{
	Name: "trace", Args: "ID", Summary: "how far a message got, and the evidence",
	Examples: []string{"atm trace 9f3a1c"},
	Notes:    []string{"A stage that is not named has no evidence, which is not the same as no."},
	MinArgs:  1, MaxArgs: 1,
	Run: run(trace),
}

func trace(ctx context.Context, e *env) error {
	if err := e.whoIfSaid(); err != nil {
		return err
	}
	it, _, err := e.find(ctx, e.Args[0], false)
	if err != nil {
		return err
	}
	traced := e.root.Trace(ctx, it.Message)
	if e.JSON() {
		return e.PrintJSON(map[string]any{"id": it.ID, "recipients": traced})
	}
	for _, t := range traced {
		var b strings.Builder
		if len(traced) > 1 {
			b.WriteString(strings.TrimSuffix(t.To, "@"+string(e.team.Name)))
			b.WriteString(": ")
		}
		n := 0
		for _, s := range t.Stages {
			if s.Evidence == nil {
				continue
			}
			if n++; n > 1 {
				b.WriteString("   ")
			}
			b.WriteString(s.Stage)
			if s.At != nil {
				b.WriteString(" " + stamp(*s.At))
			}
			if s.Text != "" {
				b.WriteString(" " + letter.Clip(`"`+letter.Escape(s.Text)+`"`, 60))
			}
		}
		if n == 0 {
			b.WriteString("no evidence")
		}
		if t.State == mailbox.Withdrawn {
			b.WriteString("   withdrawn")
		}
		if t.Due != "" {
			b.WriteString("\n  " + t.Due)
		}
		if t.Gate != "" {
			b.WriteString("\n  " + t.Gate)
		}
		if err := e.print("%s", b.String()); err != nil {
			return err
		}
	}
	return nil
}
