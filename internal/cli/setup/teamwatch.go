package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

// watchEvery is how often the team is looked at: a lock that a killed runner
// leaves writes no event, so there is nothing else that could be waited for.
const watchEvery = 500 * time.Millisecond

// most is how many things that wait are listed below the table.
const most = 3

// A teamWatch shows the team again and again, until it is left.
type teamWatch struct {
	c *cli.Context
	s *command.Scope

	known map[string]bool // what was waiting at the last look; nil: there was none
}

func readMembers(ctx context.Context, t *teams.Team) (members, error) {
	m := members{Team: t.Name, Members: []teams.Member{}}
	all, stats, err := t.Members(ctx)
	m.Members, m.Stats = append(m.Members, all...), stats
	return m, err
}

// run repaints on a terminal that can; else it prints the team whenever something
// but an age is different.
func (w *teamWatch) run(ctx context.Context) error {
	if command.Terminal() && !w.c.Bool("json") && os.Getenv("TERM") != "dumb" {
		return w.paint(ctx)
	}
	before := ""
	for {
		m, err := readMembers(ctx, w.s.Team)
		if err != nil {
			return err
		}
		now, err := m.withoutAges()
		if err != nil {
			return err
		}
		if now != before {
			if before != "" && !w.c.Bool("json") {
				fmt.Fprintln(os.Stdout)
			}
			if err := command.Print(w.c, m); err != nil {
				return err
			}
		}
		before = now
		if !sleep(ctx, watchEvery) {
			return ctx.Err()
		}
	}
}

// withoutAges tells whether something has changed.
func (m members) withoutAges() (string, error) {
	m.Members = slices.Clone(m.Members)
	for i := range m.Members {
		m.Members[i].PresenceAt, m.Members[i].ReadAt = nil, nil
	}
	text, err := command.JSON(m)
	return string(text), err
}

// paint shows the team and what is waiting on a screen of its own.
func (w *teamWatch) paint(ctx context.Context) error {
	r, ctx := command.StartRepaint(ctx)
	defer r.Close()
	for {
		m, err := readMembers(ctx, w.s.Team)
		if err != nil {
			return err
		}
		waiting := w.waiting(ctx)
		w.ring(waiting)
		if err := r.Paint(w.lines(m, waiting)); err != nil {
			return err
		}
		if sleep(ctx, watchEvery) {
			continue
		}
		if errors.Is(context.Cause(ctx), command.ErrQuit) {
			return nil
		}
		return ctx.Err()
	}
}

// lines are the table, cut to the terminal, and what is waiting below it.
func (w *teamWatch) lines(m members, waiting []waitingThing) []string {
	var below []string
	for i, thing := range waiting {
		if i == most {
			below = append(below, fmt.Sprintf("%d more: atm pending%s", len(waiting)-most, w.s.Flags()))
			break
		}
		below = append(below, thing.text+"   "+thing.command)
	}
	t := newTable()
	lines := t.Lines(m.Members)
	if _, height, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		lines = teams.FirstLines(lines, max(height-len(below)-2, 3))
	}
	if len(m.Members) == 0 {
		lines = strings.Split(m.String(), "\n")
	}
	if len(below) > 0 {
		lines = append(lines, "")
	}
	for _, line := range below {
		lines = append(lines, t.Fit(line))
	}
	return lines
}

// A waitingThing waits for somebody to do something about it: for me, where I am
// known, else for whoever is in charge.
type waitingThing struct{ key, title, text, command string }

func (w *teamWatch) waiting(ctx context.Context) (out []waitingThing) {
	questions, _ := w.s.Team.Waiting(ctx) // what cannot be read hides nothing else
	for _, q := range questions {
		if w.s.Me != nil && q.Agent == w.s.Me.Agent() {
			continue // nobody answers their own
		}
		text := letter.Clip(letter.Escape(strings.Join(strings.Fields(cmp.Or(q.Input, q.Prompt)), " ")), 80)
		key := string(q.Agent) + q.ID + q.Since.String()
		out = append(out, waitingThing{key, string(q.Agent) + " asks", string(q.Agent) + " asks: " + text, "atm pending" + w.s.Flags()})
	}
	if w.s.Me == nil {
		return out
	}
	if ids, _, _ := w.s.Me.UnreadIDs(); len(ids) > 0 {
		out = append(out, waitingThing{string(slices.Max(ids)), "atm", fmt.Sprintf("%d unread", len(ids)), "atm read" + w.s.Flags()})
	}
	return out
}

// ring tells of what is new since the last look. What was there at the first is
// seen anyway.
func (w *teamWatch) ring(waiting []waitingThing) {
	first := w.known == nil
	known := map[string]bool{}
	for _, thing := range waiting {
		known[thing.key] = true
		if !first && !w.known[thing.key] {
			command.Notify(thing.title, thing.text)
		}
	}
	w.known = known
}

// sleep reports whether the context is still there afterwards.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
