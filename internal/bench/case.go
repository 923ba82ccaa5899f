package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Case is one line of the table.
type Case struct {
	Name    string
	Against string
	Goal    Goal
	Rounds  int // at most; 0: as many as there are

	// Open prepares the case. errors.ErrUnsupported: not on this system.
	Open func(*bench) (cell, error)

	measure cell
	results []result // one a try
}

// A cell measures both sides of a case for about d each, in turns, and returns
// how long one operation took.
type cell func(d time.Duration) (ours, reference time.Duration, err error)

// result is the median of a try's rounds.
type result struct {
	ratio           float64
	ours, reference time.Duration
}

// Goal is what a ratio must be. The zero Goal has none: the ratio is one of
// times and only printed.
type Goal struct {
	Speed float64 // ours is at least so many times as fast as the reference
	Time  float64 // ours takes at most so many times as long
}

func (g Goal) gated() bool { return g != Goal{} }

func (g Goal) ratio(ours, reference time.Duration) float64 {
	if g.Speed > 0 {
		return float64(reference) / float64(ours)
	}
	return float64(ours) / float64(reference)
}

func (g Goal) met(ratio float64) bool {
	switch {
	case g.Speed > 0:
		return ratio >= g.Speed
	case g.Time > 0:
		return ratio <= g.Time
	}
	return true
}

func (g Goal) better(a, b float64) bool {
	if g.Speed > 0 {
		return a > b
	}
	return a < b
}

func (g Goal) String() string {
	switch {
	case g.Speed > 0:
		return fmt.Sprintf("speed ≥ %.2f", g.Speed)
	case g.Time > 0:
		return fmt.Sprintf("time ≤ %.2f", g.Time)
	}
	return ""
}

// best is the result of the best try.
func (c *Case) best() result {
	best := c.results[0]
	for _, r := range c.results[1:] {
		if c.Goal.better(r.ratio, best.ratio) {
			best = r
		}
	}
	return best
}

func (c *Case) met() bool { return len(c.results) > 0 && c.Goal.met(c.best().ratio) }

func missed(cases []*Case) (n int) {
	for _, c := range cases {
		if len(c.results) > 0 && !c.met() {
			n++
		}
	}
	return n
}

// measure opens the cases and measures them, in tries and rounds.
func (b *bench) measure(cases []*Case) error {
	var pending []*Case
	for _, c := range cases {
		var err error
		c.measure, err = c.Open(b)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		pending = append(pending, c)
	}
	b.ground.settle()
	for try := range b.Tries {
		if len(pending) == 0 {
			break
		}
		fmt.Fprintf(b.progress, "try %d: %d cases, %d rounds\n", try+1, len(pending), b.Round)
		if err := b.try(pending); err != nil {
			return err
		}
		pending = slices.DeleteFunc(pending, (*Case).met)
	}
	return nil
}

// try measures the cases in rounds, in another order each round.
func (b *bench) try(cases []*Case) error {
	got := map[*Case][]result{}
	order := slices.Clone(cases)
	for round := range b.Round {
		b.shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, c := range order {
			if c.Rounds > 0 && round >= c.Rounds {
				continue
			}
			if err := b.ctx.Err(); err != nil {
				return err
			}
			ours, reference, err := c.measure(b.Cell)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			got[c] = append(got[c], result{c.Goal.ratio(ours, reference), ours, reference})
		}
	}
	for c, rs := range got {
		c.results = append(c.results, result{
			median(rs, func(r result) float64 { return r.ratio }),
			median(rs, func(r result) time.Duration { return r.ours }),
			median(rs, func(r result) time.Duration { return r.reference }),
		})
	}
	return nil
}

func median[T any, N float64 | time.Duration](list []T, of func(T) N) N {
	v := make([]N, len(list))
	for i := range list {
		v[i] = of(list[i])
	}
	slices.Sort(v)
	if n := len(v); n%2 == 0 && n > 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// An op does something once, or several times at once, and says how often.
type op func() (times int, err error)

// A loop runs for about d.
type loop func(d time.Duration) (times int, took time.Duration, err error)

// alone runs an op again and again.
func alone(do op) loop {
	return func(d time.Duration) (times int, took time.Duration, err error) {
		for began := time.Now(); took < d; took = time.Since(began) {
			n, err := do()
			if err != nil {
				return 0, 0, err
			}
			times += n
		}
		return times, took, nil
	}
}

// loops measures two loops by their throughput: three slices of each, in turns.
func (b *bench) loops(ours, reference loop) cell {
	return func(d time.Duration) (time.Duration, time.Duration, error) {
		var times [2]int
		var took [2]time.Duration
		for range 3 {
			for _, side := range b.eitherFirst() {
				n, t, err := [2]loop{ours, reference}[side](d / 3)
				if err != nil {
					return 0, 0, err
				}
				times[side], took[side] = times[side]+n, took[side]+t
			}
		}
		return took[0] / time.Duration(times[0]), took[1] / time.Duration(times[1]), nil
	}
}

// A single is one operation that times itself.
type single func() (time.Duration, error)

// singles measures two operations by the median of one: one of each, in turns,
// at least three.
func (b *bench) singles(ours, reference single) cell {
	return func(d time.Duration) (time.Duration, time.Duration, error) {
		var took [2][]time.Duration
		var spent time.Duration
		for n := 0; n < b.turns || spent < 2*d; n++ {
			for _, side := range b.eitherFirst() {
				t, err := [2]single{ours, reference}[side]()
				if err != nil {
					return 0, 0, err
				}
				took[side] = append(took[side], t)
				spent += t
			}
		}
		self := func(t time.Duration) time.Duration { return t }
		return median(took[0], self), median(took[1], self), nil
	}
}

// precision is how a duration is shown: three digits.
func precision(d time.Duration) string {
	switch s := d.Seconds(); {
	case s >= 1:
		return digits(s) + " s"
	case s >= 1e-3:
		return digits(s*1e3) + " ms"
	default:
		return digits(s*1e6) + " µs"
	}
}

func digits(v float64) string {
	return fmt.Sprintf("%.*f", max(0, 2-int(math.Floor(math.Log10(max(v, 1))))), v)
}
