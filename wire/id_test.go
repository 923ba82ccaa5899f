package wire

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestNewIDsAscend(t *testing.T) {
	var mu sync.Mutex
	seen := map[ID]bool{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			var mine []ID
			for range 5000 {
				mine = append(mine, NewID())
			}
			if !slices.IsSorted(mine) {
				t.Error("ids of one goroutine do not ascend")
			}
			mu.Lock()
			defer mu.Unlock()
			for _, id := range mine {
				if seen[id] || !IsID(string(id)) {
					t.Errorf("%s: twice, or no id", id)
				}
				seen[id] = true
			}
		})
	}
	all.Wait()
	if d := time.Since(NewID().Time()); d < -time.Second || d > time.Minute {
		t.Errorf("the id's time is off by %v", d)
	}
}

func TestIsID(t *testing.T) {
	for _, s := range []string{
		"", idA[:35], idA + "0", strings.ToUpper(idA), strings.ReplaceAll(idA, "-", ""),
		"01900000-0000-4000-8000-00000000000a", // version 4
		"01900000-0000-7000-c000-00000000000a", // another variant
		"01900000_0000-7000-8000-00000000000a", "0190000g-0000-7000-8000-00000000000a",
	} {
		if IsID(s) {
			t.Errorf("%q is taken for an id", s)
		}
	}
	if !IsID(idA) {
		t.Error(idA)
	}
}

func TestParseID(t *testing.T) {
	for _, s := range []string{idA, strings.ToUpper(idA), " " + idA + "\n", "urn:uuid:" + idA, "{" + idA + "}", strings.ReplaceAll(idA, "-", "")} {
		if id, err := ParseID(s); err != nil || id != idA {
			t.Errorf("%q: %q, %v", s, id, err)
		}
	}
	for _, s := range []string{"", "x", "01900000-0000-4000-8000-00000000000a", "../../../../../../../../../etc/passwd", idA + "\x00"} {
		if id, err := ParseID(s); err == nil {
			t.Errorf("%q is %q", s, id)
		}
	}
	if _, err := ParseID(strings.Repeat("x", MaxBody)); err == nil || len(err.Error()) > 100 {
		t.Error("a long text that is no id is quoted whole")
	}
}

// The same author gets the same id for the same act, however often.
func TestDerive(t *testing.T) {
	alice, other := Address{"alice", "main", ""}, Address{"alice", "other", ""}
	ack := Derive("ack", idA, alice)
	if ack != Derive("ack", idA, alice) || !IsID(string(ack)) || !ack.Time().Equal(ID(idA).Time()) {
		t.Error(ack)
	}
	for _, id := range []ID{Derive("due", idA, alice), Derive("ack", idB, alice), Derive("ack", idA, other)} {
		if id == ack {
			t.Error("two acts have one id")
		}
	}
}

func TestIDTime(t *testing.T) {
	id := ID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f") // RFC 9562, A.6
	if got := id.Time().Format(time.RFC3339Nano); got != "2022-02-22T19:22:22Z" {
		t.Error(got)
	}
	if id.Day() != "2022-02-22" {
		t.Error(id.Day())
	}
}

func TestFragment(t *testing.T) {
	for _, c := range []struct {
		s       string
		matches bool
	}{{"0190", true}, {"000a", true}, {"0000-000A", true}, {"00000000000a", true}, {"0191", false}, {"7000", false}, {idA, true}} {
		f, err := ParseFragment(c.s)
		if err != nil || f.Matches(idA) != c.matches {
			t.Errorf("%q: %v, %v", c.s, f.Matches(idA), err)
		}
	}
	for _, s := range []string{"", "19", "abc", "xyz1", strings.Repeat("0", 33)} {
		if _, err := ParseFragment(s); err == nil {
			t.Errorf("%q is a fragment", s)
		}
	}
	f, _ := ParseFragment(strings.ToUpper(idA))
	if id, ok := f.ID(); !ok || id != idA {
		t.Error(id, ok)
	}
	if s := ID(idA).Short(0); s != "00000a" {
		t.Error(s)
	}
}
