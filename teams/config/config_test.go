package config

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/agentteammail/atm/wire"
)

func ordered() *Config {
	return &Config{Members: map[wire.Name]Member{
		"me":    {Person: true},
		"alice": {Command: []string{"a"}},
		"bob":   {Command: []string{"b"}, After: []wire.Name{"alice"}},
		"carol": {Command: []string{"c"}, After: []wire.Name{"alice", "bob"}},
		"dave":  {Command: []string{"d"}},
	}}
}

func TestStart(t *testing.T) {
	p := ordered()
	// A cycle is a mistake, but must not hang.
	p.Members["alice"] = Member{Command: []string{"a"}, After: []wire.Name{"carol", "alice"}}
	var mu sync.Mutex
	var got []wire.Name
	errs := p.Start(t.Context(), p.StartOrder([]wire.Name{"carol", "dave"}), func(_ context.Context, n wire.Name) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, n)
		return nil
	})
	at := func(n wire.Name) int { return slices.Index(got, n) }
	if len(errs) > 0 || len(got) != 4 || at("alice") > at("bob") || at("bob") > at("carol") {
		t.Fatalf("%v, %v", got, errs)
	}
}

func TestStartFailureStopsDependents(t *testing.T) {
	p := ordered()
	var mu sync.Mutex
	var got []wire.Name
	errs := p.Start(t.Context(), p.StartOrder([]wire.Name{"carol", "dave"}), func(_ context.Context, n wire.Name) error {
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
