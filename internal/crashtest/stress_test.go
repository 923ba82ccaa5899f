//go:build unix

package crashtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"
)

// A job is what some processes do, again and again.
type job struct {
	name  string
	n     int // so many at a time
	tasks []func(*world)
}

var stressJobs = []job{
	{"send", 2, []func(*world){(*world).send, (*world).send, (*world).say}},
	{"once", 1, []func(*world){(*world).sendOnce, (*world).sendAgain, (*world).sendAgain}},
	{"several", 1, []func(*world){(*world).sendAll, (*world).batch, (*world).attach}},
	{"read", 4, []func(*world){(*world).read, (*world).read, (*world).cutRead, (*world).headRead, (*world).jsonRead, (*world).fileRead}},
	{"slow", 1, []func(*world){(*world).slowRead, (*world).read, (*world).read, (*world).read, (*world).read, (*world).read, (*world).read, (*world).read}},
	{"wait", 2, []func(*world){(*world).waitRead, (*world).follow, (*world).ask}},
	{"answer", 2, []func(*world){(*world).answer, (*world).answer, (*world).answer, (*world).withdraw, (*world).unread}},
	{"drop", 1, []func(*world){(*world).dropIn}},
	{"keep", 1, []func(*world){(*world).gc, (*world).look, (*world).look}},
	{"backup", 1, []func(*world){(*world).backup}},
	{"retire", 1, []func(*world){(*world).retire}},
}

// duration is how long the stress lasts: ATM_STRESS, or d.
func duration(t testing.TB, d time.Duration) time.Duration {
	t.Helper()
	if s := os.Getenv("ATM_STRESS"); s != "" {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			t.Fatal("ATM_STRESS: ", err)
		}
	}
	return d
}

// work has the jobs done until over says so.
func (w *world) work(jobs []job, over func() bool) {
	var all sync.WaitGroup
	for _, j := range jobs {
		for range j.n {
			all.Go(func() {
				for !over() {
					j.tasks[rand.IntN(len(j.tasks))](w)
				}
			})
		}
	}
	all.Wait()
}

// settle has everything taken in that was dropped, and counts.
func (w *world) settle() *census {
	w.t.Helper()
	r := w.run(call{args: []string{"team", "restore", "erin"}})
	w.expect(r, 0, 3, 5)
	for end := time.Now().Add(10 * time.Second); ; {
		for _, a := range takers {
			w.expect(w.run(call{args: []string{"ls", "--count", "--as", a}}), 0)
		}
		c := take(w.t, w.team())
		if left := c.pending(); len(left) == 0 || time.Now().After(end) {
			for _, o := range left {
				w.t.Errorf("not taken in: %s", o.path)
			}
			return c
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Senders, readers, droppers and keepers work on one team, and one process in
// three is killed. What was acknowledged is there, once and whole; what was read
// was seen. In memory, where most happens in a second, and on a disk, whose
// syncs take their time.
func TestStress(t *testing.T) {
	d := duration(t, 3*time.Second)
	if dir := os.Getenv("ATM_STRESS_DIR"); dir != "" {
		stress(t, dir, d)
	} else if os.Getenv("ATM_STRESS") == "" {
		stress(t, quick(t), d)
	} else {
		t.Run("memory", func(t *testing.T) { stress(t, quick(t), d/2) })
		t.Run("disk", func(t *testing.T) { stress(t, t.TempDir(), d/2) })
	}
}

func stress(t *testing.T, dir string, d time.Duration) {
	w := newWorld(t, dir, takers...)
	end := time.Now().Add(d)
	w.work(stressJobs, func() bool { return time.Now().After(end) })
	v := w.judge(t, w.settle())
	report := fmt.Sprintf("%s, %s: %s; %s", t.Name(), d, v, w.summary())
	t.Log(report)
	if os.Getenv("ATM_STRESS") != "" {
		fmt.Println(report)
	}
	w.restored(t)
	w.drained(t)
}

// restored takes a last backup, restores it elsewhere, and judges that.
func (w *world) restored(t testing.TB) verdict {
	file := w.home + "/last.tar.gz"
	w.must("backup", file)
	other := *w
	other.root = w.root + "-restored"
	other.must("restore", file)
	return w.judge(t, take(t, other.team()))
}

// drained reads all that is unread, and judges once more.
func (w *world) drained(t testing.TB) verdict {
	for _, me := range takers {
		for range 2 {
			w.pipe(call{args: []string{"read", "--full", "--as", me}}, me, []int{0}, all)
		}
		if r := w.must("ls", "--count", "--as", me); r.out != "0\n" {
			t.Errorf("unread by %s after everything was read: %s", me, r.out)
		}
	}
	return w.judge(t, take(t, w.team()))
}
