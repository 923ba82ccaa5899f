package main

import (
	"context"

	"github.com/agentteammail/atm/internal/cmdline"
)

var doctorVerb = &cmdline.Verb{
	Name: "doctor", Summary: "check everything, and name what mends it",
	Examples: []string{"atm doctor", "atm doctor --fix"},
	Notes:    []string{"Exit 1 when something is wrong."},
	Flags:    []cmdline.Flag{{Name: "fix", Usage: "mend what can be mended without loss"}},
	Run:      long(doctor),
}

func doctor(ctx context.Context, e *env) error {
	if err := e.openRoot(); err != nil {
		return err
	}
	checks := e.root.Doctor(ctx, e.place(), e.Bool("fix"))
	wrong := 0
	for _, c := range checks {
		if c.Wrong() {
			wrong++
		}
	}
	if e.JSON() {
		if err := e.PrintJSON(map[string]any{"checks": checks}); err != nil {
			return err
		}
	} else {
		for _, c := range checks {
			line := c.Severity + ": " + c.Message
			if err := e.print("%s", cmdline.Escape(line)); err != nil {
				return err
			}
			if c.Fix != "" {
				if err := e.print("  %s", cmdline.Escape(c.Fix)); err != nil {
					return err
				}
			}
		}
		if wrong == 0 {
			return e.print("nothing is wrong")
		}
	}
	if wrong > 0 {
		return &cmdline.Error{Exit: cmdline.ExitFailed, Printed: true}
	}
	return nil
}
