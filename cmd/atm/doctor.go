package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/agentteammail/atm/internal/agentconfig"
	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/teams"
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
	checks := append(e.root.Doctor(ctx, e.place(), e.Bool("fix")), e.hookChecks()...)
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

// hookChecks looks at the hooks in the configurations of agents' programs, the
// user's and this worktree's. Where there are none, nothing is said.
func (e *env) hookChecks() (out []teams.Check) {
	at := e.place()
	p := agentconfig.Installer{Getenv: e.Getenv, Home: at.Home, Dir: at.Dir, State: at.State}
	p.Self, _ = os.Executable()
	if e.root.Accepted {
		p.Root = e.root.Path
	}
	for _, tool := range agentconfig.Tools {
		for _, local := range []bool{false, true} {
			c := teams.Check{Code: "hooks." + tool, Severity: "ok", Fix: "atm install " + tool}
			if local {
				c.Fix += " --local"
			}
			st, err := p.Status(tool, local)
			var tracked *agentconfig.TrackedError
			switch {
			case errors.As(err, &tracked), errors.Is(err, fs.ErrNotExist), err == nil && !st.Installed:
				continue
			case err != nil:
				c.Severity, c.Fix = "info", ""
				c.Message = fmt.Sprintf("whether %s has hooks cannot be told: %v", tool, err)
			case st.Missing != "":
				c.Severity = "error"
				c.Message = fmt.Sprintf("the hooks in %s run %s, which is not there: %s gets no mail in its turns", st.Path, st.Missing, tool)
			case !st.Current:
				c.Severity = "info"
				c.Message = fmt.Sprintf("the hooks in %s are not those that this atm installs", st.Path)
			default:
				c.Message, c.Fix = fmt.Sprintf("hooks of %s in %s", tool, st.Path), ""
			}
			out = append(out, c)
		}
	}
	return out
}
