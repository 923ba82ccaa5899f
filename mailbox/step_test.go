//go:build unix

package mailbox

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// once does one scene of the fault tests and is killed, by itself, in place of
// its k-th file operation.
func (p *process) once() {
	k, _ := strconv.Atoi(os.Getenv("ATM_TEST_KILL"))
	var n atomic.Int64
	armed := false
	d, err := atomicfile.Open(p.path, func(atomicfile.Op, string) error {
		if armed {
			if n.Add(1) == int64(k) {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	s, err := OpenStore(d, "main")
	if err != nil {
		panic(err)
	}
	r := newFaultRun(teller{p}, p.path, s)
	r.trip = &trip{}
	for _, id := range strings.Fields(os.Getenv("ATM_TEST_IDS")) {
		r.ids = append(r.ids, wire.ID(id))
	}
	r.showing = func(id wire.ID) { p.say("show bob %s", id) }
	armed = true
	if err := faultScenes[os.Getenv("ATM_TEST_SCENE")].act(r); err != nil {
		p.say("error %s", err)
	}
	p.say("whole")
	os.Exit(0)
}

// teller tells the process that started this one what went wrong.
type teller struct{ p *process }

func (t teller) Helper()                        {}
func (t teller) Error(a ...any)                 { t.p.say("error %s", fmt.Sprint(a...)) }
func (t teller) Errorf(format string, a ...any) { t.p.say("error "+format, a...) }
func (t teller) Fatal(a ...any)                 { t.p.say("error %s", fmt.Sprint(a...)); os.Exit(1) }

// Whoever is killed before any of his file operations leaves what others can
// go on from: nothing torn, nothing in two places, and what was dropped is
// taken in once.
func TestKilledAtEachStep(t *testing.T) {
	scratchTop = scratch(t)
	t.Run("scenes", func(t *testing.T) {
		for name, scene := range faultScenes {
			if name == "drop too much" && !stressed {
				continue
			}
			first, step := 1, 1
			switch name {
			case "drop text", "drop with an id", "drop an event":
			default:
				if !stressed { // some of them: a process takes its time
					step = 3
					first = 1 + rand.IntN(step)
				}
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for k := first; ; k += step {
					r := scene.begin(t, &trip{})
					var ids []string
					for _, id := range r.ids {
						ids = append(ids, string(id))
					}
					c, out := start(t, "once", r.path, "ATM_TEST_SCENE="+name, "ATM_TEST_KILL="+strconv.Itoa(k), "ATM_TEST_IDS="+strings.Join(ids, " "))
					whole := false
					for out.Scan() {
						word, rest, _ := strings.Cut(out.Text(), " ")
						switch word {
						case "whole":
							whole = true
						case "error":
							t.Error(rest)
						case "show":
							r.shown[wire.ID(strings.TrimPrefix(rest, "bob "))]++
						}
					}
					c.Wait()
					if how := c.ProcessState.Sys().(syscall.WaitStatus); !whole && !how.Signaled() {
						t.Errorf("it ended by itself: %v", c.ProcessState)
					}
					scene.end(r)
					if t.Failed() {
						t.Fatalf("killed at operation %d", k)
					}
					if whole {
						t.Logf("killed at up to %d operations", k-step)
						return
					}
				}
			})
		}
	})
}
