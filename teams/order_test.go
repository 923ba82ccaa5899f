package teams

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/agentteammail/atm/wire"
)

func ordered() *Plan {
	return &Plan{Members: map[wire.Name]MemberPlan{
		"me":    {Person: true},
		"alice": {Command: []string{"a"}},
		"bob":   {Command: []string{"b"}, After: []wire.Name{"alice"}},
		"carol": {Command: []string{"c"}, After: []wire.Name{"alice", "bob"}},
		"dave":  {Command: []string{"d"}},
	}}
}

func TestInOrder(t *testing.T) {
	p := ordered()
	names := p.Needed(p.Startable())
	for _, reverse := range []bool{false, true} {
		var mu sync.Mutex
		var got []wire.Name
		errs := p.InOrder(t.Context(), names, reverse, func(_ context.Context, n wire.Name) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, n)
			return nil
		})
		if len(errs) > 0 || len(got) != 4 {
			t.Fatalf("%v, %v", got, errs)
		}
		at := func(n wire.Name) int { return slices.Index(got, n) }
		if (at("alice") < at("bob")) == reverse || (at("bob") < at("carol")) == reverse {
			t.Errorf("reverse %v: %v", reverse, got)
		}
	}
}

func TestFailureKeepsWhoComesAfter(t *testing.T) {
	p := ordered()
	var mu sync.Mutex
	var got []wire.Name
	errs := p.InOrder(t.Context(), p.Needed([]wire.Name{"carol", "dave"}), false, func(_ context.Context, n wire.Name) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, n)
		if n == "alice" {
			return errors.New("no such program")
		}
		return nil
	})
	slices.Sort(got)
	if !slices.Equal(got, []wire.Name{"alice", "dave"}) || errs["bob"] == nil || errs["carol"] == nil || errs["dave"] != nil {
		t.Errorf("%v, %v", got, errs)
	}
}
