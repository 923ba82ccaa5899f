package teams

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/agentteammail/atm/wire"
)

// Startable are the members that a plan gives a command, by name.
func (p *Plan) Startable() []wire.Name {
	var out []wire.Name
	for n, m := range p.Members {
		if len(m.Command) > 0 && !m.Person {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Needed are the named members and those that they are to be started after,
// each once, the ones that are waited for first.
func (p *Plan) Needed(names []wire.Name) []wire.Name {
	var out []wire.Name
	seen := map[wire.Name]bool{}
	var visit func(n wire.Name)
	visit = func(n wire.Name) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, before := range p.Members[n].After {
			visit(before)
		}
		out = append(out, n)
	}
	for _, n := range names {
		visit(n)
	}
	return out
}

// InOrder calls f for each of the members, at once where nothing keeps them
// apart: a member's turn comes when those that it is to be started after are
// through, and does not come when one of them failed. In reverse it is the
// other way round, and a failure keeps nobody. The errors are those of f, by
// member.
func (p *Plan) InOrder(ctx context.Context, names []wire.Name, reverse bool, f func(context.Context, wire.Name) error) map[wire.Name]error {
	through := map[wire.Name]chan struct{}{}
	for _, n := range names {
		through[n] = make(chan struct{})
	}
	waits := map[wire.Name][]wire.Name{}
	for _, n := range names {
		for _, before := range p.Members[n].After {
			switch _, both := through[before]; {
			case !both:
			case reverse:
				waits[before] = append(waits[before], n)
			default:
				waits[n] = append(waits[n], before)
			}
		}
	}
	var mu sync.Mutex
	errs := map[wire.Name]error{}
	var wg sync.WaitGroup
	for _, n := range names {
		wg.Go(func() {
			defer close(through[n])
			err := func() error {
				for _, before := range waits[n] {
					select {
					case <-through[before]:
					case <-ctx.Done():
						return ctx.Err()
					}
					mu.Lock()
					failed := errs[before]
					mu.Unlock()
					if failed != nil && !reverse {
						return fmt.Errorf("not started: %s, which it comes after, is not ready", before)
					}
				}
				return f(ctx, n)
			}()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs[n] = err
			}
		})
	}
	wg.Wait()
	return maps.Clone(errs)
}
