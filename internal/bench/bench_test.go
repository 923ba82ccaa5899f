package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv(writerMark) != "" {
		writer(os.Stdin, os.Stdout)
		return
	}
	if played() {
		return
	}
	os.Exit(m.Run())
}

// Every case is measured once, however badly: what is tested is that the
// program still runs.
func TestEveryCase(t *testing.T) {
	c := Config{Dir: t.TempDir(), Tries: 1, Round: 1, Cell: 6 * time.Millisecond, Sizes: [3]int{10, 100, 1000}, Events: 500, Flood: 100 << 10, Runners: 2}
	var table, progress strings.Builder
	if err := c.Run(t.Context(), &table, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	t.Log("\n" + table.String())
	lines := strings.Split(strings.TrimSpace(table.String()), "\n")
	b := &bench{Config: c}
	want := 4 + len(b.cases()) // the machine, a blank line, the head
	for _, c := range b.cases() {
		if c.Name == "" { // not on this system
			want--
		}
	}
	if len(lines) != want {
		t.Errorf("%d lines, want %d", len(lines), want)
	}
	for _, l := range lines[2:] {
		if strings.Count(l, "|") != 8 {
			t.Errorf("no line of the table: %s", l)
		}
	}
	if left, _ := os.ReadDir(c.Dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestGoals(t *testing.T) {
	try := func(ratios ...float64) []result {
		var out []result
		for _, r := range ratios {
			out = append(out, result{ratio: r})
		}
		return out
	}
	for _, c := range []struct {
		c   Case
		met bool
	}{
		{Case{Goal: Goal{Speed: 1.05}, results: try(1.0, 1.05, 0.9)}, true},
		{Case{Goal: Goal{Speed: 1.05}, results: try(1.0, 1.04)}, false},
		{Case{Goal: Goal{Time: 1.35}, results: try(1.4, 1.3)}, true},
		{Case{Goal: Goal{Time: 1.35}, results: try(1.36)}, false},
		{Case{results: try(9)}, true},
	} {
		if c.c.met() != c.met {
			t.Errorf("%v with %v: met is %v", c.c.Goal, c.c.results, !c.met)
		}
	}
	if g := (Goal{Speed: 2}); g.ratio(time.Second, 3*time.Second) != 3 {
		t.Error("speed is the reference's time by ours")
	}
	if g := (Goal{Time: 2}); g.ratio(3*time.Second, time.Second) != 3 {
		t.Error("time is ours by the reference's")
	}
}

func TestPrecision(t *testing.T) {
	for d, want := range map[time.Duration]string{
		7 * time.Microsecond: "7.00 µs", 318_400 * time.Nanosecond: "318 µs", 2_340 * time.Microsecond: "2.34 ms",
		51 * time.Millisecond: "51.0 ms", 1_300 * time.Millisecond: "1.30 s",
	} {
		if got := precision(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
