package config

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentteammail/atm/wire"
)

// Startable are the members that have a command, by name.
func (c *Config) Startable() (out []wire.Name) {
	for n, m := range c.Members {
		if len(m.Command) > 0 && !m.Person {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// StartOrder returns the named members and those that they are started after,
// each once, and each behind the ones that it waits for.
func (c *Config) StartOrder(names []wire.Name) (out []wire.Name) {
	seen := map[wire.Name]bool{}
	var visit func(names []wire.Name)
	visit = func(names []wire.Name) {
		for _, n := range names {
			if !seen[n] {
				seen[n] = true
				visit(c.Members[n].After)
				out = append(out, n)
			}
		}
	}
	visit(names)
	return out
}

// Start calls start for each of the members, at the same time where it can, and
// returns the errors by member. A member waits for those in its after that stand
// before it in order (see StartOrder), and is not started when one of them failed.
// Nobody waits for a member that comes later: it cannot hang, whatever team.toml says.
func (c *Config) Start(ctx context.Context, order []wire.Name, start func(context.Context, wire.Name) error) map[wire.Name]error {
	type result struct {
		of   wire.Name
		done chan struct{}
		err  error
	}
	var results []*result
	for _, n := range order {
		before := results[:len(results):len(results)]
		mine := &result{of: n, done: make(chan struct{})}
		results = append(results, mine)
		go func() {
			defer close(mine.done)
			for _, r := range before {
				if !slices.Contains(c.Members[n].After, r.of) {
					continue
				}
				if <-r.done; r.err != nil {
					mine.err = fmt.Errorf("not started: %s, which it comes after, is not ready", r.of)
					return
				}
			}
			mine.err = start(ctx, n)
		}()
	}
	errs := map[wire.Name]error{}
	for _, r := range results {
		if <-r.done; r.err != nil {
			errs[r.of] = r.err
		}
	}
	return errs
}
