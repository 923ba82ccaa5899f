package crashtest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A template is a small team with mail of bob's in every state and a log of which a part is in the
// archive, copied for each fault.
type template struct {
	*world
	target
}

func newTemplate(t *testing.T) *template {
	t.Helper()
	w := newWorld(t, memory(t), takers[:4]...)
	w.size = 300
	p := &template{world: w, target: target{me: "bob"}}
	p.old = w.mustSend(w.batch(map[string]any{"to": []string{"bob"}, "id": newID(3)}), "bob")
	p.done = w.mail("bob")
	p.owed = w.mail("bob", "--ack")
	w.mustRun(call{args: []string{"read", "--as", "bob"}, reader: "bob"})
	p.unread = w.mail("bob")
	w.mail("bob")
	p.asks = w.mail("bob", "--ack")
	turns := func(from, to int) {
		var lines strings.Builder
		for i := from; i < to; i++ {
			id := fmt.Sprintf(`"agent":"bob","turn_id":"t%d","thread_id":"th","transport":"exec"}`, i)
			fmt.Fprintf(&lines, "{\"kind\":\"turn_started\",%s\n{\"kind\":\"counted\"}\n{\"kind\":\"turn_completed\",\"status\":\"completed\",%s\n", id, id)
		}
		w.mustRun(call{args: []string{"event", "--stdin", "--as", "bob"}, stdin: lines.String()})
	}
	turns(0, 20)
	w.splitLog("bob")
	w.must("gc", "--keep", "0s", "--keep-last", "1000")
	turns(20, 60)
	w.splitLog("bob")
	turns(60, 90)
	w.must("status", "bob")
	if err := os.Remove(w.stateFile("bob")); err != nil {
		t.Fatal("status has written no state.json: ", err)
	}
	if w.archived("bob") == 0 || len(w.segments("bob")) != 2 {
		t.Fatal("nothing of the log is in the archive, or all")
	}
	w.dropNote()
	w.judge(w.census())
	asked := p.copy(t, w.root+"-asked")
	p.target.status = asked.must("status", "bob", "--json").out
	w.failed(t)
	return p
}

// copy is a copy of the team and of what was promised in it.
func (p *template) copy(t *testing.T, root string) *world {
	t.Helper()
	w := p.at(root)
	w.t, w.record = t, p.record.copy()
	p.copyTo(t, root)
	return w
}

// A fault is what goes wrong while a process runs: a system call that fails, or at which the process
// is killed, the kth of every thread, since that is how strace counts; too few descriptors; or a
// disk that is full.
type fault struct {
	call string // openat; nofile: of descriptors
	how  string // error=EIO, signal=KILL
	k    int
	disk *disk
}

func (f fault) String() string {
	if f.disk != nil {
		return f.disk.name
	}
	return fmt.Sprintf("%s:%s:when=%d", f.call, f.how, f.k)
}

// faults are what may fail, and how: what the kernel answers there when a disk is full, broken,
// read-only, or over its quota.
var faults = []struct {
	call string
	hows []string
}{
	{"openat", []string{"error=EIO", "error=ENOSPC", "error=EROFS"}},
	{"openat2", []string{"error=EIO", "error=ENFILE"}},
	{"newfstatat", []string{"error=EIO"}},
	{"getdents64", []string{"error=EIO"}},
	{"read", []string{"error=EIO"}},
	{"pread64", []string{"error=EIO"}},
	{"write", []string{"error=ENOSPC", "error=EIO", "error=EDQUOT"}},
	{"fsync", []string{"error=EIO", "error=ENOSPC", "error=EDQUOT"}},
	{"renameat2", []string{"error=ENOSPC", "error=EIO", "error=EROFS", "error=EDQUOT"}},
	{"renameat", []string{"error=ENOSPC", "error=EIO", "error=EROFS"}},
	{"mkdirat", []string{"error=ENOSPC", "error=EIO", "error=EROFS", "error=EDQUOT"}},
	{"unlinkat", []string{"error=EIO", "error=EROFS"}},
	{"ftruncate", []string{"error=EIO", "error=ENOSPC"}},
	{"flock", []string{"error=EIO", "error=ENOLCK"}},
}

// needStrace skips a test where strace may not be used.
func needStrace(t *testing.T) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command("strace", "-f", "--seccomp-bpf", "-qq", "-o", log, "-e", "inject=fsync:error=EIO", "true")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("strace does not work here: %v: %s", err, out)
	}
}

// under is the command that makes a process run into the fault.
func (f fault) under(log string) []string {
	switch {
	case f.disk != nil:
		return nil
	case f.call == "nofile":
		return []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, f.k)}
	}
	traced := f.call
	if traced == "fsync" {
		traced += ",openat" // a file that is made anew is another one
	}
	line := []string{"strace", "-f", "-y", "-q", "-o", log, "-e", "trace=" + traced, "-e", "inject=" + f.String()}
	if f.how != kill {
		line = append(line, "--seccomp-bpf") // half the time; the first thread then gets no signals
	}
	return line
}

// injected is what strace tells of the calls that failed.
type injected struct {
	calls  []string
	ours   bool   // some of them were about the mail, not about the runtime's own files
	mute   bool   // one of them would have written to stderr
	change bool   // one of them may change what is on disk
	resync string // a file that was synced again after its fsync failed
}

// syncedFile is of an fsync the number and the path. Of a directory there is no other that could be
// synced instead: each message in it asks for it again.
var syncedFile = regexp.MustCompile(`fsync\((\d+<([^>]*)>)`)

// madeFile is of an openat that makes a file the number and the path.
var madeFile = regexp.MustCompile(`openat\(.*O_EXCL.* = (\d+<[^>]*>)`)

// readingCall is a call that changes nothing on disk, unless it creates a file.
var readingCall = regexp.MustCompile(`^\d+ +(openat2?\(.*O_RDONLY|newfstatat\(|getdents64\(|read\(|pread64\()`)

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// readStrace reads strace's log.
func readStrace(t *testing.T, log string) (s injected) {
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]bool{}
	begun := map[string]string{} // calls that strace tells in two lines, by thread
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		line := lines.Text()
		thread, call, _ := strings.Cut(line, " ")
		if start, unfinished := strings.CutSuffix(line, "<unfinished ...>"); unfinished {
			begun[thread] = start
			continue
		}
		if _, end, resumed := strings.Cut(call, " resumed>"); resumed && begun[thread] != "" {
			line = begun[thread] + end
			delete(begun, thread)
		}
		isInjected := strings.Contains(line, "(INJECTED)")
		if m := madeFile.FindStringSubmatch(line); m != nil {
			delete(failed, m[1])
		}
		if m := syncedFile.FindStringSubmatch(line); m != nil && !isDirectory(m[2]) {
			if failed[m[1]] && !isInjected {
				s.resync = m[1]
			}
			failed[m[1]] = failed[m[1]] || isInjected
		}
		if isInjected {
			s.calls = append(s.calls, line)
			s.change = s.change || !readingCall.MatchString(line) || strings.Contains(line, "O_CREAT")
			s.mute = s.mute || strings.Contains(line, " write(2<")
			s.ours = s.ours || !strings.Contains(line, "<anon_inode:") && !strings.Contains(line, "/proc/") && !strings.Contains(line, "/sys/")
		}
	}
	return s
}

// A file that is synced again after its fsync failed is found. One that was made anew meanwhile is another file.
func TestReadStrace(t *testing.T) {
	const failed = `7 fsync(15</tmp/x.message>) = -1 EIO (Input/output error) (INJECTED)` + "\n"
	const synced = `8 fsync(15</tmp/x.message>) = 0` + "\n"
	const made = `8 openat(14</tmp>, "x.message", O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0600) = 15</tmp/x.message>` + "\n"
	for _, c := range []struct{ log, resync string }{
		{failed, ""},
		{failed + synced, "15</tmp/x.message>"},
		{failed + made + synced, ""},
		{made + failed + synced, "15</tmp/x.message>"},
	} {
		log := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(log, []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if s := readStrace(t, log); s.resync != c.resync || !s.change {
			t.Errorf("%q, not %q, after\n%s", s.resync, c.resync, c.log)
		}
	}
}

// attempt runs an action under a fault and judges what it left; then it runs it again, undisturbed:
// then it must be done. exists is false when there was nothing left to fail; changes is true if what failed may change what
// is on disk.
func (p *template) attempt(t *testing.T, name string, f fault, dir string) (exists, changes bool) {
	w := p.copy(t, dir)
	defer os.RemoveAll(dir)
	begin := actions[slices.IndexFunc(actions, func(a namedAction) bool { return a.name == name })].begin
	act := begin(w, p.target)
	log := dir + ".log"
	defer os.Remove(log)
	if f.disk != nil {
		os.RemoveAll(filepath.Join(w.team(), ".locks", "bob.inbox"))
		f.disk.exhaust()
	}
	w.setBroken(true)
	c := act.call
	c.under = f.under(log)
	r := w.run(c)
	s := injected{ours: true, change: true}
	if len(c.under) > 0 && c.under[0] == "strace" {
		s = readStrace(t, log)
		if len(s.calls) == 0 && !(r.code == -1 && f.how == kill) {
			return false, false
		}
	}
	if strings.Contains(r.err, "runtime: ") && (!s.ours || r.code == 2) || strings.Contains(r.err, "runtime: netpollBreak") {
		return true, s.change // it hit Go's own files
	}
	if s.mute && r.err == "" {
		r.err = "(it was not to be written)"
	}
	if act.note != nil {
		act.note(r)
	}
	left := w.census()
	w.judge(left)
	if s.resync != "" {
		w.wrong("synced again after a failed fsync: %s", s.resync)
	}
	saysWhy := r.err != "" || strings.Contains(r.out, `"error"`) || strings.Contains(r.out, `"failed"`)
	if r.code > 0 && !saysWhy && !s.mute {
		w.wrong("it fails without a word")
	}
	isSendersFile := strings.Contains(r.err+r.out, "--attach: ") || strings.Contains(r.err+r.out, "--file: ")
	if (r.code == 2 || r.code == 3) && !isSendersFile {
		w.wrong("what cannot be opened is taken for what is not there")
	}
	if said := r.err + r.out; strings.Contains(said, "may not survive") && strings.Contains(said, "do not send") {
		w.wrong("it forbids the retry that makes it durable")
	}
	if r.code == 0 && act.done != nil {
		if err := act.done(left); err != nil {
			w.wrong("exit 0, but %v", err)
		}
	}
	if f.disk != nil {
		p.judgeExhausted(w, name, r)
		f.disk.restore()
	}
	w.setBroken(false)
	if !act.once {
		if act.exits = nil; name == "retire" {
			act.exits = []int{3} // no more a member
		}
		again := w.run(act.call)
		if act.note != nil {
			act.note(again)
		}
	}
	w.must("ls", "--count", "--as", "bob")
	if act.after != nil {
		act.after()
	}
	left = w.census()
	w.judge(left)
	if !act.once && act.done != nil {
		if err := act.done(left); err != nil {
			w.wrong("again, undisturbed: %v", err)
		}
	}
	for _, path := range left.pending() {
		w.wrong("not taken in: %s", path)
	}
	if len(w.wrongs) > 0 {
		t.Errorf("%s under %s\n%s\n%s\n- %s", name, f, clip(strings.Join(s.calls, "\n")), r, strings.Join(w.wrongs, "\n- "))
	}
	return true, s.change
}

// Every system call of every command fails once, in every way that a disk may fail there, or the
// process is killed there. Nothing is lost, doubled or torn, exit 0 means done, and the same command
// again does it.
func TestFaults(t *testing.T) {
	needStrace(t)
	full := os.Getenv("ATM_FAULTS") != ""
	p := newTemplate(t)
	var failed, killed, done atomic.Int64
	began := time.Now()
	t.Cleanup(func() {
		if full {
			fmt.Printf("faults: %d actions; %d runs with failed calls, %d killed at a call, %s\n",
				len(actions), failed.Load(), killed.Load(), time.Since(began).Round(time.Second))
		}
	})
	for _, a := range actions {
		if !full && a.name != "send" && a.name != "hook at a prompt" {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			dir, runs, actionBegan := memory(t), 0, time.Now()
			hit := func(f fault) (exists, changes bool) {
				exists, changes = p.attempt(t, a.name, f, filepath.Join(dir, strings.ReplaceAll(f.String(), ":", "-")))
				if exists && f.how == kill {
					killed.Add(1)
				} else if exists {
					failed.Add(1)
				}
				runs++
				return exists, changes
			}
			for _, kind := range faults {
				hows := tasted(kind.call, kind.hows, a.name, full)
				for k := 1; k < 200 && len(hows) > 0; k++ {
					exists, changes := hit(fault{call: kind.call, how: hows[0], k: k})
					if !exists {
						break
					}
					for _, how := range hows[1:] {
						if changes || !needsChange[how] {
							hit(fault{call: kind.call, how: how, k: k})
						}
					}
				}
			}
			if full {
				t.Logf("%d of %d actions done: %d runs in %s", done.Add(1), len(actions), runs, time.Since(actionBegan).Round(time.Second))
			}
		})
	}
}

const kill = "signal=KILL"

// needsChange are the ways to fail that show nothing more at a call that only reads. The kernel does not answer so there; and
// a process killed there leaves what it leaves when it is killed at its next change, or when it ends.
var needsChange = map[string]bool{"error=ENOSPC": true, "error=EROFS": true, "error=EDQUOT": true, kill: true}

// tasted are all ways in which a call may fail, and without ATM_FAULTS a few.
func tasted(call string, hows []string, action string, full bool) []string {
	isHook := action != "send"
	switch {
	case full:
		return append(slices.Clone(hows), kill)
	case isHook && (call == "renameat" || call == "write"):
		return []string{kill}
	case isHook || strings.HasPrefix(call, "open") || call == "newfstatat" || call == "pread64":
		return nil
	}
	return hows[:1]
}

// With too few descriptors a command fails and says so; it does not take what it cannot open for
// what is not there.
func TestFaultsDescriptors(t *testing.T) {
	needFaults(t)
	p := newTemplate(t)
	for _, a := range actions {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			dir := memory(t)
			for n := 9; n < 40; n++ { // Go itself needs eight
				p.attempt(t, a.name, fault{call: "nofile", k: n}, filepath.Join(dir, fmt.Sprint(n)))
			}
		})
	}
}

func needFaults(t *testing.T) {
	t.Helper()
	if os.Getenv("ATM_FAULTS") == "" {
		t.Skip("it takes minutes: set ATM_FAULTS=1")
	}
}

// While one asks for a status, events go to the archive: between any two of its calls. What is said
// is what was so, and what is kept of it is true.
func TestFaultsStatusBesideGC(t *testing.T) {
	needFaults(t)
	needStrace(t)
	p := newTemplate(t)
	for _, name := range []string{"openat", "openat2", "newfstatat", "getdents64", "pread64"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := memory(t)
			for k := 1; k < 200; k++ {
				w := p.copy(t, filepath.Join(dir, fmt.Sprint(k)))
				log := w.root + ".log"
				cmd := w.command(fault{call: name, how: "delay_enter=250000", k: k}.under(log), "status", "bob", "--json")
				var out bytes.Buffer
				cmd.Stdout = &out // (strace itself writes to stderr here.)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(60 * time.Millisecond)
				w.must("gc", "--keep", "0s", "--keep-last", "1000")
				w.want(cmd.Wait())
				calls, err := os.ReadFile(log)
				if err != nil {
					t.Fatal(err)
				}
				delayed := regexp.MustCompile(`.*\(DELAYED\)`).FindString(string(calls))
				if delayed == "" {
					break
				}
				w.want(sameStatus(out.String(), p.target.status))
				w.want(sameStatus(w.must("status", "bob", "--json").out, p.target.status))
				w.judgeStatus("bob")
				w.judge(w.census())
				if w.failed(t) {
					t.Fatal(delayed)
				}
				os.RemoveAll(w.root)
			}
		})
	}
}
