//go:build unix

package crashtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// A stroke is what goes wrong while a process runs.
type stroke interface {
	String() string
	under(log string) []string                 // what the process runs under
	read(log string, r result) (struck, error) // what became of it
}

// struck is what became of a stroke.
type struck struct {
	fired  bool
	calls  []string // those that failed
	ours   bool     // some of them were about the mail, not about the runtime's own files
	mute   bool     // one of them would have written to stderr
	resync string   // a file that was synced again after its fsync failed
}

// An attempt is one deed under one fault, and again without.
type attempt struct {
	deed
	p      *template
	f      stroke
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
	s, err := a.f.read(log, r)
	if err != nil {
		t.Fatal(err)
	}
	if !s.fired {
		return s
	}
	if strings.HasPrefix(r.err, "runtime: ") && (!s.ours || r.code == 2) {
		return s // it hit Go's own files
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
	if (r.code == 2 || r.code == 3) && !strings.Contains(r.err+r.out, "--attach: ") { // the sender's own file
		a.Errorf("what cannot be opened is taken for what is not there")
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
	if act.after != nil {
		act.after(a)
	}
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
	a.report(t, clip(strings.Join(s.calls, "\n"))+"\n"+r.String())
	return s
}

// report says what was complained about.
func (a *attempt) report(t *testing.T, about string) {
	t.Helper()
	if len(a.before) > 0 {
		t.Errorf("%s under %s\n%s\n- %s", a.name, a.f, about, strings.Join(slices.Compact(a.before), "\n- "))
	}
}
