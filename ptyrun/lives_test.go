//go:build unix

package ptyrun

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/internal/terminal"
	"github.com/agentteammail/atm/wire"
)

func descriptors() int {
	names, _ := os.ReadDir("/dev/fd")
	return len(names)
}

// zombies returns this process's unreaped children, on systems with /proc.
func zombies() (n int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range stats {
		data, _ := os.ReadFile(f)
		_, after, _ := strings.Cut(string(data), ") ")
		if of := strings.Fields(after); len(of) > 1 && of[0] == "Z" && of[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}

// Run after run of programs that exit, are stopped, crash or leave processes, with and without viewers, leaves no
// goroutine, file descriptor or zombie.
func TestManyRunsLeakNothing(t *testing.T) {
	r := newRig(t)
	life := func(i int) {
		script := []string{
			"echo hello",
			"setsid sleep 60 & (trap '' HUP; sleep 60) & exit 0",
			"exec sleep 60",
			"kill -9 $$",
			"exec 0<&- 1>&- 2>&-; sleep 0.05",
		}[i%5]
		r.program("plain", "sh", "-c", script)
		o := r.opt
		o.Run = string(wire.NewID())
		o.Env = append(os.Environ(), "ATM_RUN="+o.Run, "TERM=xterm-256color")
		if i%5 == 3 {
			o.Restart = OnCrash
			timing := quick
			timing.Backoff, timing.Settle = time.Millisecond, time.Second
			o.timing = &timing
		}
		if i%3 == 0 {
			o.Follow = (&fakeFollower{}).follow
		}
		hold, err := claim.HoldRunner(t.Context(), r.Store, "bob")
		must(t, err)
		defer hold.Release()
		o.Mail = &Mail{Mailbox: (*mailbox.Mailbox)(r.Bob), hold: hold}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		over := make(chan struct{})
		go func() {
			defer close(over)
			c, err := control.Dial(ctx, filepath.Join(r.Bob.Path(), "run"))
			if err != nil {
				return
			}
			defer c.Close()
			if i%2 == 0 {
				c.Attach(ctx, control.AttachRequest{Cols: 90 + i, Rows: 30}, control.Terminal{In: make(chan []byte), Out: &viewed{}})
			} else {
				c.Status(ctx)
			}
		}()
		if i%5 == 2 {
			time.AfterFunc(20*time.Millisecond, cancel)
		}
		exit, err := runOnce(ctx, o)
		if err != nil {
			t.Fatalf("run %d: %+v, %v", i, exit, err)
		}
		cancel()
		<-over
	}
	life(0) // opens what stays open, like the poller
	fds, routines := descriptors(), runtime.NumGoroutine()
	for i := range 5 * 3 * 2 { // each with each
		life(i)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		f, g, z := descriptors(), runtime.NumGoroutine(), zombies()
		if f <= fds && g <= routines && z == 0 {
			return
		}
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d descriptors, %d goroutines, %d zombies; before %d and %d\n%s", f, g, z, fds, routines, buf[:runtime.Stack(buf, true)])
		}
	}
}

// Whoever asks the loop something is heard between two pieces of output, also in a flood: the program prints numbers, and
// those that are asked for together are few lines apart.
func TestHeardInFlood(t *testing.T) {
	needs(t, "awk")
	r := newRig(t).lowScreen().program("plain", "awk", "BEGIN { for (n = 1000000; ; n++) print n }")
	r.run().Wait("lines", r.shows("\n1"))
	r.mu.Lock()
	runner := r.runner
	r.mu.Unlock()
	const asked = 30
	seen := make(chan int, asked)
	var apart []int
	for len(apart) < 10 { // a starved program prints nothing between them
		for range asked {
			go runner.Post(func() {
				n, _ := strconv.Atoi(strings.TrimSpace(terminal.Of(runner.Run).Tail(3)[0]))
				seen <- n
			})
		}
		last := <-seen
		for range asked - 1 {
			n := <-seen
			if n > last {
				apart = append(apart, n-last)
			}
			last = n
		}
	}
	slices.Sort(apart)
	if apart[len(apart)/2] > 2000 { // a piece of 4 KiB has 450
		t.Errorf("lines between them: %d", apart)
	}
}

// A flood neither blocks nor grows the runner, and its last lines are right.
func TestFlood(t *testing.T) {
	megabytes := 1
	if testround.IsLong {
		megabytes = 12 // a recording holds ten
	}
	r := newRig(t).lowScreen().program("plain", "bash", "--norc", "--noprofile")
	r.run().idle()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := m.HeapInuse, uint64(0)
	began := time.Now()
	given := make(chan error, 1)
	text := "head -c " + strconv.Itoa(megabytes) + "000000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo; echo the-last-line"
	go func() { given <- r.give(text) }()
	r.Wait("the last line", func() bool {
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
		return strings.Contains(strings.Join(r.Screen(), "\n"), "\nthe-last-line\n")
	})
	took := time.Since(began)
	must(t, <-given)
	files, _ := filepath.Glob(filepath.Join(r.Bob.Path(), "run", "*.cast"))
	if len(files) < 1+megabytes/10 {
		t.Errorf("recordings %q", files)
	}
	grown := int64(most) - int64(before)
	t.Logf("%d MB in %s; the heap grew from %d KiB by %d KiB at most", megabytes, took.Round(time.Millisecond), before>>10, grown>>10)
	if grown > 48<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}
