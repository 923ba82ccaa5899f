//go:build linux

package crashtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// An attempt is one deed under one fault, and again without.
type attempt struct {
	deed
	p      *template
	w      *world
	f      fault
	before []string // complaints
}

func (a *attempt) Helper() {}
func (a *attempt) Errorf(format string, args ...any) {
	a.before = append(a.before, fmt.Sprintf(format, args...))
}

// try runs the deed under the fault and judges what it left; then it runs it
// again, undisturbed: then it must be done.
func (a *attempt) try(t *testing.T, dir string) struck {
	w, err := a.p.copy(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	a.w = w
	act := a.begin(a.p, w)
	next := func() call {
		if act.next != nil {
			return act.next()
		}
		return act.call
	}
	c := next()
	log := dir + ".log"
	defer os.Remove(log)
	c.under = a.f.under(log)
	r := w.run(c)
	s, err := a.f.read(log)
	if err != nil {
		t.Fatal(err)
	}
	if !s.fired {
		return s
	}
	if strings.Contains(r.err, "runtime: ") && !s.ours {
		return s // strace hit Go's own files
	}
	act.note(r)
	left := take(t, w.team())
	w.judge(a, left)
	if s.resync != "" {
		a.Errorf("synced again after a failed fsync: %s", s.resync)
	}
	if r.code > 0 && r.err == "" && !s.mute && !strings.Contains(r.out, `"error"`) && !strings.Contains(r.out, `"failed"`) {
		a.Errorf("it fails without a word")
	}
	if r.code == 0 {
		if err := act.done(left); err != nil {
			a.Errorf("exit 0, but %v", err)
		}
	}
	if !act.once {
		second := w.run(next())
		act.note(second)
		if second.code != 0 && !(a.name == "retire" && second.code == 3) {
			a.Errorf("again, undisturbed: %s", second)
		}
	}
	w.must("ls", "--count", "--as", "bob")
	left = take(t, w.team())
	w.judge(a, left)
	if !act.once {
		if err := act.done(left); err != nil {
			a.Errorf("again, undisturbed: %v", err)
		}
	}
	for _, o := range left.pending() {
		a.Errorf("not taken in: %s", o.path)
	}
	if len(a.before) > 0 {
		t.Errorf("%s under %s\n%s\n%s\n- %s", a.name, a.f, clip(strings.Join(s.calls, "\n")), r, strings.Join(slices.Compact(a.before), "\n- "))
	}
	return s
}

// Every system call of every command fails once, in every way that a disk may
// fail, or the process is killed there. Nothing is lost, doubled or torn, exit
// 0 means done, and the same command again does it.
func TestFaults(t *testing.T) {
	strace(t)
	full := os.Getenv("ATM_FAULTS") != ""
	p := newTemplate(t)
	var runs, fired atomic.Int64
	began := time.Now()
	t.Cleanup(func() {
		fmt.Printf("faults: %d runs, %d struck, %s\n", runs.Load(), fired.Load(), time.Since(began).Round(time.Second))
	})
	for _, d := range deeds {
		if !full && d.name != "send" {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			dir := quick(t)
			for _, kind := range faults {
				hows := kind.hows
				if full {
					hows = append(slices.Clone(hows), "signal=KILL")
				} else if hows = hows[:1]; kind.call == "openat" || kind.call == "newfstatat" {
					continue // a taste is enough
				}
				for _, how := range hows {
					for k := 1; k < 200; k++ {
						a := &attempt{deed: d, p: p, f: fault{kind.call, how, k}}
						runs.Add(1)
						if s := a.try(t, filepath.Join(dir, fmt.Sprintf("%s-%s-%d", kind.call, how, k))); !s.fired {
							break
						}
						fired.Add(1)
					}
				}
			}
		})
	}
}
