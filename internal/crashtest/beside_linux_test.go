package crashtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// While one asks for a status, events go to the archive: between any two of its
// calls. What is said is what was so, and what is kept of it is true.
func TestFaultsStatusBesideGC(t *testing.T) {
	if os.Getenv("ATM_FAULTS") == "" {
		t.Skip("it takes a minute: set ATM_FAULTS=1")
	}
	strace(t)
	p := newTemplate(t)
	for _, name := range []string{"openat", "openat2", "newfstatat", "getdents64", "pread64"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := quick(t)
			for k := 1; k < 200; k++ {
				w, err := p.copy(filepath.Join(dir, fmt.Sprint(k)))
				if err != nil {
					t.Fatal(err)
				}
				log := w.root + ".log"
				// (strace itself writes to stderr here.)
				asked := make(chan result, 1)
				go func() {
					out, err := w.command(fault{name, "delay_enter=250000", k}.under(log), "status", "bob", "--json").Output()
					r := result{args: []string{"status"}, out: string(out)}
					if err != nil {
						r.err, r.code = err.Error(), 1
					}
					asked <- r
				}()
				time.Sleep(60 * time.Millisecond)
				w.must("gc", "--keep", "0s", "--keep-last", "1000")
				r := <-asked
				calls, err := os.ReadFile(log)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(string(calls), "(DELAYED)") {
					break
				}
				a := &attempt{deed: deed{name: "status beside gc"}, p: p, f: fault{name, "delay", k}}
				if err := alike(r.out, p.said); r.code != 0 || err != nil {
					a.Errorf("%v: %s", err, r)
				}
				if err := alike(w.must("status", "bob", "--json").out, p.said); err != nil {
					a.Errorf("asked again: %v", err)
				}
				w.judgeStatus(a, "bob")
				w.judge(a, take(t, w.team()))
				a.report(t, delayed(string(calls)))
				os.RemoveAll(w.root)
			}
		})
	}
}

// delayed is the call that was held up.
func delayed(calls string) string {
	for line := range strings.Lines(calls) {
		if strings.Contains(line, "(DELAYED)") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
