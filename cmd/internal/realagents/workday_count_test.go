//go:build linux

package realagents

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// margin is how far a moment must be from any change for what was then to be certain: a screen settles, a hook takes a while.
const margin = 5 * time.Second

// usage is what a process of atm's has used, by the time since the day began.
type usage struct{ looks []look }

type look struct {
	at    time.Duration
	rss   int // KB
	files int
	used  time.Duration
}

// ourProcesses are the processes that run a program of this build, and of the one before it, with their command lines.
func ourProcesses() map[int]string {
	all := map[int]string{}
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		path, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(path, bin+"/") {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
		words := strings.Split(strings.TrimRight(string(command), "\x00"), "\x00")
		words[0] = filepath.Base(words[0])
		all[pid] = strings.Join(words[:min(3, len(words))], " ")
	}
	return all
}

// lookAt reads what a process has used.
func lookAt(pid int) (l look, ok bool) {
	at := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(at + "stat")
	memory, _ := os.ReadFile(at + "statm")
	files, _ := os.ReadDir(at + "fd")
	_, rest, _ := strings.Cut(string(stat), ") ")
	f, m := strings.Fields(rest), strings.Fields(string(memory))
	if err != nil || len(f) < 13 || len(m) < 2 {
		return l, false
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	pages, _ := strconv.Atoi(m[1])
	return look{rss: pages * os.Getpagesize() / 1024, files: len(files), used: time.Duration(user+system) * 10 * time.Millisecond}, true
}

// sample notes what atm says of each agent, and what our processes use.
func (d *workday) sample() {
	asked := time.Now()
	out, code := d.try("team", "--json")
	var team struct {
		Members []struct{ Name, State, Detail string }
	}
	if err := json.Unmarshal([]byte(out), &team); err != nil || code != 0 {
		d.fault("team: exit %d, %s", code, out)
		return
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	for _, m := range team.Members {
		if d.listeners[m.Name] != nil {
			s := sample{at: asked, agent: m.Name, state: m.State, detail: m.Detail}
			if w := d.open[m.Name]; w != nil {
				reading, _ := w.now()
				s.isShown = reading.Activity.IsWork() == (m.State == "busy") && (reading.Dialog != nil) == (m.State == "blocked")
			}
			d.samples = append(d.samples, s)
		}
	}
	runners := map[int]string{}
	for _, agent := range byRunner {
		runners[d.runner(agent)] = " " + agent
	}
	for pid, command := range ourProcesses() {
		command += runners[pid]
		l, ok := lookAt(pid)
		if key := fmt.Sprintf("%s\t%d", command, pid); ok {
			if d.programs[key] == nil {
				d.programs[key] = &usage{}
			}
			l.at = time.Since(d.began)
			d.programs[key].looks = append(d.programs[key].looks, l)
		}
	}
}

// settle waits until all that was sent has arrived, or nothing moves any more.
func (d *workday) settle() (took time.Duration) {
	began, last, since := time.Now(), "", time.Now()
	for time.Since(began) < 6*time.Minute {
		d.endLimits()
		d.answerUnknown()
		var rest, missing []string
		for _, agent := range workers {
			if state := d.stateNow(agent); state != "idle" {
				rest = append(rest, agent+" "+state)
			}
		}
		d.lock.Lock()
		for _, c := range d.copies {
			if fate := d.fate(c); fate == "lost" {
				missing = append(missing, c.token+" "+c.to)
			}
		}
		d.lock.Unlock()
		if out, _ := d.try("pending", "--json"); !strings.Contains(out, `"pending":[]`) {
			rest = append(rest, out)
		}
		if len(rest)+len(missing) == 0 {
			break
		}
		if now := strings.Join(append(missing, rest...), ", "); now != last {
			last, since = now, time.Now()
		} else if time.Since(since) > 90*time.Second {
			if len(rest) > 0 {
				d.fault("it does not become quiet: %s", rest)
			}
			break
		}
		time.Sleep(2 * time.Second)
	}
	time.Sleep(10 * time.Second) // in which something may come twice
	return time.Since(began)
}

// answerUnknown has the person answer what a program asks of which atm does not know: the hook that would have told was killed.
func (d *workday) answerUnknown() {
	for agent, w := range d.open {
		reading, held := w.now()
		if reading.Dialog == nil || held < time.Minute {
			continue
		}
		if _, code := w.answers(""); code == 0 {
			d.add("questions: only the screen of " + agent + " showed it")
		}
	}
}

// fate is what became of a copy. The caller has the lock.
func (d *workday) fate(c *mailCopy) string {
	s := d.people[c.to][c.token]
	if l := d.listeners[c.to]; l != nil {
		s = l.got(c.token)
	}
	switch {
	case c.isTaken && s.times > 0:
		return "taken back, and seen"
	case c.isTaken:
		return "taken back"
	case c.mayCome && s.times-s.marked <= 2: // the notice names it
		return "not sent, or withdrawn late"
	case s.times == 0:
		return "lost"
	case s.times == 1:
		return "once"
	case s.marked >= s.times-1:
		return "again, marked"
	}
	return "twice unmarked"
}

// find returns where in its recipient's inbox a copy lies, "." for the inbox itself, and its id.
func (d *workday) find(c *mailCopy) (place, id string) {
	inbox := filepath.Join(d.dir, ".atm", "main", c.to, "inbox")
	filepath.WalkDir(inbox, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if data, _ := os.ReadFile(path); strings.Contains(string(data), c.token) {
			rel, _ := filepath.Rel(inbox, filepath.Dir(path))
			place, _, _ = strings.Cut(rel, "/")
			id = strings.TrimSuffix(e.Name(), ".json")
			return fs.SkipAll
		}
		return nil
	})
	return place, id
}

// isCutOff reports whether a copy was in a turn that was cut off, as trace tells its sender: the conversation has it, and the
// model was never asked.
func (d *workday) isCutOff(c *mailCopy, id string) bool {
	out, _ := d.try("trace", id, "--json")
	var trace struct {
		Recipients []struct {
			To     string
			Stages []struct{ Stage, Text string }
		}
	}
	json.Unmarshal([]byte(out), &trace)
	for _, r := range trace.Recipients {
		for _, s := range r.Stages {
			if name, _, _ := strings.Cut(r.To, "@"); name == c.to && s.Stage == "turn_done" && (s.Text == "interrupted" || s.Text == "failed") {
				return true
			}
		}
	}
	return false
}

// isVain reports whether a copy was handed to the program twice in vain: then the agent is told that something may not have
// arrived, and atm read shows it, which a pretended model does not run.
func (d *workday) isVain(id string) bool {
	out, _ := d.try("trace", id)
	return strings.Contains(out, "nothing shows that it arrived")
}

// report counts, ends everything, and fails the test for what must not be.
func (d *workday) report(quiet time.Duration) {
	t := d.t
	bad := func(format string, args ...any) { t.Errorf(format, args...) }
	d.judgeCopies(bad)
	d.judgeJobs(bad)
	d.judgeStates()
	d.judgeQuestions(bad)
	if out, code := d.try("doctor"); code != 0 {
		t.Logf("doctor: exit %d\n%s", code, out)
	}
	d.end(bad)
	d.reportUsage()
	for _, what := range slices.Sorted(maps.Keys(d.count)) {
		t.Logf("%6d %s", d.count[what], what)
	}
	for _, f := range d.faults {
		bad("%s", f)
	}
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("%s and %s until quiet; load %s", d.lasts, quiet.Round(time.Second), load)
}

var fates = []string{"once", "again, marked", "taken back", "not sent, or withdrawn late", "cut off", "unread", "lost", "twice unmarked", "taken back, and seen"}

// judgeCopies prints what became of the copies of each recipient.
func (d *workday) judgeCopies(bad func(string, ...any)) {
	table := map[string]map[string]int{}
	for _, c := range d.copies {
		fate := d.fate(c)
		place, id := "", c.id
		if fate == "lost" {
			place, id = d.find(c)
		}
		if slices.Contains([]string{"new", "tmp", "."}, place) || place == "held" && d.isVain(id) {
			fate = "unread"
		} else if id != "" && fate == "lost" && d.isCutOff(c, id) {
			fate = "cut off"
		}
		for _, row := range []string{c.to, "total"} {
			if table[row] == nil {
				table[row] = map[string]int{}
			}
			table[row][fate]++
		}
		at, say := slices.Index(fates, fate), d.t.Logf
		if at < slices.Index(fates, "cut off") {
			continue
		}
		if at >= slices.Index(fates, "lost") {
			say = bad
		}
		out := ""
		if id != "" {
			out, _ = d.try("trace", id)
		}
		say("%s: %s to %s, %s\n%s", fate, c.token, c.to, c.kind, out)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-6s", "copies")
	for _, fate := range fates {
		fmt.Fprintf(&b, " | %s", fate)
	}
	for _, to := range append(slices.Sorted(maps.Keys(d.people)), append(slices.Clone(workers), "total")...) {
		fmt.Fprintf(&b, "\n%-6s", to)
		for _, fate := range fates {
			fmt.Fprintf(&b, " | %*d", len(fate), table[to][fate])
		}
	}
	d.t.Log(b.String())
	sent := 0
	for agent, l := range d.listeners {
		for _, id := range l.printedIDs() {
			if sent++; !d.received[id] {
				bad("%s sent %s, which did not arrive", agent, id)
			}
		}
	}
	for name, all := range d.people {
		for word, s := range all {
			if s.times > 1 && !d.wasToldAgain(word) {
				bad("%s got %s %d times", name, word, s.times)
			}
		}
	}
	d.t.Logf("%d messages sent by agents", sent)
}

// wasToldAgain reports whether the agent that sends R1 was given T1, which tells it to, again, with the mark.
func (d *workday) wasToldAgain(word string) bool {
	number, isSent := strings.CutPrefix(word, "R")
	return isSent && slices.ContainsFunc(d.copies, func(c *mailCopy) bool {
		return c.token == "T"+number && d.fate(c) == "again, marked"
	})
}

func (d *workday) judgeJobs(bad func(string, ...any)) {
	takes, again := 0, 0
	for id, j := range d.jobs {
		takes += j.takes
		again += j.takes - 1
		if j.acks != 1 || j.unmarked > 0 {
			bad("job %s: %+v", id, *j)
		}
	}
	d.t.Logf("%d jobs, %d taken, %d of them again", len(d.jobs), takes, again)
}

// judgeStates compares what atm said of the agents with what their models knew.
func (d *workday) judgeStates() {
	type row struct{ clear, wrong, shown int }
	said := map[string]int{}
	var last sample
	for _, agent := range workers {
		r := &row{}
		for _, s := range d.samples {
			was := d.listeners[agent].was(s.at, margin)
			if s.agent != agent {
				continue
			}
			if said[agent+" "+s.state]++; was == "" {
				continue
			}
			r.clear++
			if s.state == was || was == "limited" && (s.state == "idle" || s.state == "blocked") {
				continue
			}
			r.wrong++
			if s.isShown { // its program is slow to go on, or shows what its model knows nothing of
				r.shown++
			}
			if last.agent != agent || last.state != s.state || s.at.Sub(last.at) > 3*time.Second {
				d.t.Logf("%s on: %s is %s by its model, and atm said %s (%s; the program shows so: %v)", s.at.Sub(d.began).Round(time.Second), agent, was, s.state, s.detail, s.isShown)
			}
			last = s
		}
		d.t.Logf("states of %s: %d wrong of %d clear ones, %d of these as its own screen", agent, r.wrong, r.clear, r.shown)
	}
	d.t.Logf("states said: %v", said)
}

// judgeQuestions: none is open, what was rejected never ran.
func (d *workday) judgeQuestions(bad func(string, ...any)) {
	if out, _ := d.try("pending", "--json"); !strings.Contains(out, `"pending":[]`) {
		bad("still open: %s", out)
	}
	ran := map[string]int{}
	files, _ := os.ReadDir(d.dir)
	for _, f := range files {
		for _, word := range []string{"ok", "asky", "askn"} {
			if strings.HasPrefix(f.Name(), word) {
				ran[word]++
			}
		}
	}
	if ran["askn"] > 0 {
		bad("%d commands ran that were rejected", ran["askn"])
	}
	d.t.Logf("%d questions; ran by a rule %d, approved %d, rejected %d", len(d.asked), ran["ok"], ran["asky"], ran["askn"])
}

// end ends everything, after which nothing of ours runs or lies about.
func (d *workday) end(bad func(string, ...any)) {
	if out, code := d.try("down"); code != 0 {
		bad("down: exit %d, %s", code, out)
	}
	for _, w := range d.open {
		w.leave()
	}
	for name, h := range d.beside {
		h.end(map[bool]syscall.Signal{true: syscall.SIGINT, false: syscall.SIGTERM}[name != "tui"])
	}
	var left map[int]string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		if left = ourProcesses(); len(left) == 0 {
			break
		}
	}
	if len(left) > 0 {
		bad("these are left: %v", left)
	}
	root, files, size := filepath.Join(d.dir, ".atm"), 0, int64(0)
	filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		if info, err := e.Info(); err == nil {
			size += info.Size()
		}
		if isQuestion, _ := filepath.Match(root+"/main/*/run/asks/*/control.sock", path); isQuestion && d.count["hooks killed, each"] > 0 {
			d.t.Logf("of a hook that was killed, until its agent asks again: %s", path)
			return nil
		}
		isPart := strings.HasSuffix(path, ".part") || filepath.Base(filepath.Dir(path)) == "tmp" || !e.Type().IsRegular()
		if isPart || filepath.Base(filepath.Dir(path)) == "bad" {
			bad("left over: %s", path)
		}
		return nil
	})
	d.t.Logf("the root has %d files, %d KB", files, size/1024)
}

// reportUsage prints what each process of ours that ran for a while has used.
func (d *workday) reportUsage() {
	var b strings.Builder
	fmt.Fprintf(&b, "%-32s %8s %6s | memory KB, slope KB/min | files, most | processor ms/min, of the first and last half", "process", "from", "min")
	for _, key := range slices.Sorted(maps.Keys(d.programs)) {
		all := d.programs[key].looks
		name, _, _ := strings.Cut(key, "\t")
		first, last := all[0], all[len(all)-1]
		if last.at-first.at < 100*time.Second {
			continue
		}
		warm := slices.IndexFunc(all, func(l look) bool { return l.at > first.at+time.Minute })
		half := all[len(all)/2]
		most := 0
		for _, l := range all {
			most = max(most, l.files)
		}
		perMinute := func(from, to look) float64 {
			return float64((to.used - from.used).Milliseconds()) / max((to.at-from.at).Minutes(), 0.01)
		}
		fmt.Fprintf(&b, "\n%-32.32s %8s %6.1f | %d -> %d, %+.0f | %d -> %d, %d | %.0f -> %.0f", name, first.at.Round(time.Second), (last.at - first.at).Minutes(),
			all[warm].rss, last.rss, slope(all[warm:]), first.files, last.files, most, perMinute(first, half), perMinute(half, last))
	}
	d.t.Log(b.String())
}

// slope is how much memory grows, in KB a minute: the line nearest to all looks.
func slope(all []look) float64 {
	var n, x, y, xx, xy float64
	for _, l := range all {
		at, kb := l.at.Minutes(), float64(l.rss)
		n, x, y, xx, xy = n+1, x+at, y+kb, xx+at*at, xy+at*kb
	}
	if d := n*xx - x*x; d > 0 {
		return (n*xy - x*y) / d
	}
	return 0
}
