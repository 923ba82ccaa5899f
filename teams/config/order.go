package config

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentteammail/atm/wire"
)

// Startable are the members that have a command, by name.
func (c *Config) Startable() []wire.Name {
	var out []wire.Name
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
func (c *Config) StartOrder(names []wire.Name) []wire.Name {
	var out []wire.Name
	seen := map[wire.Name]bool{}
	var visit func(n wire.Name)
	visit = func(n wire.Name) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, before := range c.Members[n].After {
			visit(before)
		}
		out = append(out, n)
	}
	for _, n := range names {
		visit(n)
	}
	return out
}

// Start calls start for each of the members, at the same time where it can: a
// member waits for those in its after that stand before it in order (see
// StartOrder), and is not started when one of them failed. It returns the errors
// by member. It cannot hang, whatever team.toml says: nobody waits for a member
// that comes later in order.
func (c *Config) Start(ctx context.Context, order []wire.Name, start func(context.Context, wire.Name) error) map[wire.Name]error {
	type result struct {
		name wire.Name
		done chan struct{}
		err  error
	}
	results := map[wire.Name]*result{}
	for _, n := range order {
		var before []*result
		for _, b := range c.Members[n].After {
			if r := results[b]; r != nil {
				before = append(before, r)
			}
		}
		mine := &result{name: n, done: make(chan struct{})}
		results[n] = mine
		go func() {
			defer close(mine.done)
			for _, r := range before {
				if <-r.done; r.err != nil {
					mine.err = fmt.Errorf("not started: %s, which it comes after, is not ready", r.name)
					return
				}
			}
			mine.err = start(ctx, n)
		}()
	}
	errs := map[wire.Name]error{}
	for n, r := range results {
		if <-r.done; r.err != nil {
			errs[n] = r.err
		}
	}
	return errs
}
