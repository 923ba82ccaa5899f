//go:build linux

package crashtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// Every system call of every command fails once, in every way that a disk may
// fail, or the process is killed there. Nothing is lost, doubled or torn, exit
// 0 means done, and the same command again does it.
func TestFaults(t *testing.T) {
	strace(t)
	full := os.Getenv("ATM_FAULTS") != ""
	p := newTemplate(t)
	var failed, killed atomic.Int64
	began := time.Now()
	t.Cleanup(func() {
		if full {
			fmt.Printf("faults: %d deeds; %d runs with failed calls, %d killed at a call, %s\n", len(deeds()), failed.Load(), killed.Load(), time.Since(began).Round(time.Second))
		}
	})
	for _, d := range deeds() {
		if !full && d.name != "send" && d.name != "hook at a prompt" {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			dir := quick(t)
			for _, kind := range faults {
				hows := kind.hows
				switch hook := d.name != "send"; {
				case full:
					hows = append(slices.Clone(hows), "signal=KILL")
				case hook && (kind.call == "renameat" || kind.call == "write"):
					hows = []string{"signal=KILL"} // a taste is enough
				case hook || kind.call[:4] == "open" || kind.call == "newfstatat" || kind.call == "pread64":
					continue
				default:
					hows = hows[:1]
				}
				for _, how := range hows {
					for k := 1; k < 200; k++ {
						a := &attempt{deed: d, p: p, f: fault{kind.call, how, k}}
						if s := a.try(t, filepath.Join(dir, fmt.Sprintf("%s-%s-%d", kind.call, how, k))); !s.fired {
							break
						}
						if how == "signal=KILL" {
							killed.Add(1)
						} else {
							failed.Add(1)
						}
					}
				}
			}
		})
	}
}

// A shortage is a process that may have only so many files open.
type shortage int

func (n shortage) String() string { return fmt.Sprintf("ulimit -n %d", int(n)) }

func (n shortage) under(string) []string {
	return []string{"sh", "-c", n.String() + `; exec "$0" "$@"`}
}

func (n shortage) read(string, result) (struck, error) { return struck{fired: true, ours: true}, nil }

// With too few descriptors a command fails and says so; it does not take what
// it cannot open for what is not there.
func TestFaultsDescriptors(t *testing.T) {
	if os.Getenv("ATM_FAULTS") == "" {
		t.Skip("set ATM_FAULTS=1")
	}
	p := newTemplate(t)
	for _, d := range deeds() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			dir := quick(t)
			for n := 9; n < 40; n++ { // Go itself needs eight
				a := &attempt{deed: d, p: p, f: shortage(n)}
				a.try(t, filepath.Join(dir, fmt.Sprint(n)))
			}
		})
	}
}
