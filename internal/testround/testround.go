// Package testround says how long tests of random rounds, kills and floods last. A plain round is short, and its chances
// are the same each time; with ATM_STRESS=DURATION it lasts so long, and its chances are new. What processes do side by
// side differs each time all the same.
package testround

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// IsLong reports whether rounds are long.
var IsLong = os.Getenv("ATM_STRESS") != ""

// Seed is where chances come from.
var Seed = seed()

func seed() uint64 {
	if IsLong {
		return rand.Uint64()
	}
	return 1
}

// Lasts returns how long a round lasts that is short otherwise.
func Lasts(t testing.TB, short time.Duration) time.Duration {
	t.Helper()
	if !IsLong {
		return short
	}
	d, err := time.ParseDuration(os.Getenv("ATM_STRESS"))
	if err != nil {
		t.Fatal("ATM_STRESS: ", err)
	}
	return d
}

// Rand has the chances of a round. It is safe for concurrent use.
var Rand = rand.New(&source{from: rand.NewPCG(Seed, 0)})

type source struct {
	mu   sync.Mutex
	from rand.Source
}

func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.from.Uint64()
}

// Check is rapid.Check with so many checks, and ten times as many in a long round. A flag of rapid's on the command line
// counts more.
func Check(t *testing.T, checks int, property func(*rapid.T)) {
	t.Helper()
	if IsLong {
		checks *= 10
	}
	byDefault("rapid.checks", strconv.Itoa(checks))
	byDefault("rapid.seed", strconv.FormatUint(Seed, 10))
	rapid.Check(t, property)
}

var (
	mu    sync.Mutex
	given = map[string]bool{} // flags that we have set
)

func byDefault(name, value string) {
	mu.Lock()
	defer mu.Unlock()
	f := flag.Lookup(name)
	isOurs := given[name] || f.Value.String() == f.DefValue
	if isOurs && f.Value.String() != value {
		given[name] = true
		f.Value.Set(value)
	}
}
