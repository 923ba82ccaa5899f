package main

import (
	"context"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
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
	if why := e.polls(ctx); why != "" {
		checks = append(checks, teams.Check{Code: "fs.no_events", Severity: "warning", Message: why + ": what waits looks every half second instead"})
	}
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

// polls says why what waits would have to poll here, "" if it need not.
func (e *env) polls(ctx context.Context) string {
	names, err := e.root.Teams()
	if err != nil {
		return ""
	}
	for _, n := range names {
		t, err := e.root.Team(n)
		if err != nil {
			continue
		}
		boxes, err := t.Boxes()
		if err != nil || len(boxes) == 0 {
			continue
		}
		w, err := watcher.Open(ctx, boxes[:1], watcher.Options{Messages: true})
		if err != nil {
			return err.Error()
		}
		defer w.Close()
		return w.Polling()
	}
	return ""
}
