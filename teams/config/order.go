package config

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/agentteammail/atm/wire"
)

// Startable lists the members that have a command, sorted.
func (c *Config) Startable() []wire.Name {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Members)), func(n wire.Name) bool {
		return len(c.Members[n].Command) == 0 || c.Members[n].Person
	})
}

// StartOrder returns the named members and the ones that they are started after, each once and after the ones that it
// waits for.
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

// Start calls start for each member in order (see StartOrder), concurrently where after allows it, and returns the
// errors by member. A member waits for the members of its after that precede it in order, so that a cycle cannot hang;
// if one of them fails, it is not started.
func (c *Config) Start(ctx context.Context, order []wire.Name, start func(context.Context, wire.Name) error) map[wire.Name]error {
	started := map[wire.Name]func() error{}
	for _, n := range order {
		before := maps.Clone(started)
		started[n] = sync.OnceValue(func() error {
			for _, a := range c.Members[n].After {
				if wait := before[a]; wait != nil && wait() != nil {
					return fmt.Errorf("not started: %s, which it comes after, is not ready", a)
				}
			}
			return start(ctx, n)
		})
	}
	var all sync.WaitGroup
	for _, once := range started {
		all.Go(func() { once() })
	}
	all.Wait()
	errs := map[wire.Name]error{}
	for n, once := range started {
		if err := once(); err != nil {
			errs[n] = err
		}
	}
	return errs
}
