//go:build linux

package realagents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/screen"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
)

// A byHand is a team whose agents a person starts: with atm's hooks installed, in terminals of the test's, and not by
// atm run. The team is in the directory in which the program works.
type byHand struct {
	*team
	said    func() []string // the requests to the model
	cannot  bool            // the program has no way to get mail at that time
	windows []*window
	tmux    []string // what its windows are clients of; nil: they have the program itself
}

// newByHand sets a team of lead, bob and carl up, with the program's hooks installed, as a person would. isNewest: the
// newest version that was tried. Nothing is started.
func newByHand(t *testing.T, program string, isNewest bool, flags ...string) *byHand {
	t.Helper()
	k := newKit(t, program, flags...)
	if isNewest {
		k.useNewest()
	}
	work, home := filepath.Join(k.dir, "work"), filepath.Join(k.dir, "home")
	s := &byHand{team: &team{kit: k, dir: work, home: home, kits: map[string]*kit{"bob": k}}}
	s.said = k.recordEach()
	s.do("init", "lead", "bob", "carl")
	s.install(k)
	t.Cleanup(func() {
		if t.Failed() {
			s.show()
		}
		for _, w := range s.windows {
			w.kill()
		}
	})
	return s
}

// yesOrNo matches a question of Gemini CLI about an extension.
var yesOrNo = regexp.MustCompile(`(?i)[^\n\x1b?]*\? \[y/n\]`)

// install has a kit's program take atm's plugin. It says yes to whatever the program asks first.
func (s *team) install(k *kit, flags ...string) {
	s.t.Helper()
	own := filepath.Join(k.dir, "bin")
	starts := "#!/bin/sh\nexec " + filepath.Join(scripts, "run") + " " + k.dir + " " + k.program + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(own, k.program), []byte(starts), 0o700); err != nil {
		s.t.Fatal(err)
	}
	child, err := process.Start(process.Command{
		Argv: append([]string{filepath.Join(bin, "atm"), "install", k.program}, flags...), Dir: s.dir,
		Env: append(s.env(), "HOME="+filepath.Join(k.dir, "home"), "PATH="+own+":"+bin+":"+os.Getenv("PATH")), Cols: 200, Rows: 50,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { child.Stop(context.Background(), 0) }).Stop() // it asks something else
	out, answered, buf := "", map[string]bool{}, make([]byte, 32<<10)
	for n := 0; err == nil; out += string(buf[:n]) {
		for _, question := range yesOrNo.FindAllString(out, -1) {
			if !answered[question] { // it is drawn again with what is typed
				answered[question] = true
				child.Write([]byte("y\r"), time.Second)
			}
		}
		n, err = child.Read(buf)
	}
	if <-child.Done(); child.Exit().Code != 0 {
		s.t.Fatalf("atm install %s: exit %d\n%s", k.program, child.Exit().Code, out)
	}
}

// show shows where things stand.
func (s *byHand) show() {
	for _, w := range s.windows {
		s.t.Logf("%s's screen:\n%s", w.agent, strings.Join(w.lines(), "\n"))
	}
	for _, args := range [][]string{{"team"}, {"events", "bob", "--limit", "40"}, {"doctor"}} {
		out, _ := s.try(args...)
		s.t.Logf("%s:\n%s", args, out)
	}
	for _, l := range s.log() {
		if l.Kind != "side" {
			s.t.Logf("model: %.300q", fmt.Sprint(l.Kind, " ", l.User))
		}
	}
}

// gets is how often a text is in what the model was told of a conversation, in prompts or beside them. The text must be
// in no answer.
func (s *byHand) gets(text string) (n int) {
	for _, request := range s.said() {
		n = max(n, strings.Count(request, text))
	}
	return n
}

// unread is how many messages an agent has not read.
func (s *byHand) unread(agent string) int {
	s.t.Helper()
	var status struct{ Unread int }
	s.get(&status, "status", agent)
	return status.Unread
}

// stateOf is what atm says that an agent does.
func (s *byHand) stateOf(agent string) string {
	s.t.Helper()
	var status struct{ State string }
	s.get(&status, "status", agent)
	return status.State
}

// hasEvent reports whether an agent's log has an event of that kind.
func (s *byHand) hasEvent(agent, kind string) bool {
	s.t.Helper()
	for line := range strings.Lines(s.do("events", agent, "--json", "--limit", "0")) {
		var e struct{ Kind string }
		if json.Unmarshal([]byte(line), &e) == nil && e.Kind == kind {
			return true
		}
	}
	return false
}

// headless runs the program as a script does, with a prompt and without a terminal, and returns what it prints.
func (s *byHand) headless(agent string, args ...string) (stdout, stderr string, err error) {
	s.t.Helper()
	argv := append(s.command(), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "ATM_AGENT="+agent)
	var out, mistakes strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &mistakes
	cmd.WaitDelay = time.Second // what it leaves behind may keep the pipes
	if err = cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	stop := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	err = cmd.Wait()
	if !stop.Stop() {
		err = errors.New("it did not end within two minutes")
	}
	return out.String(), mistakes.String(), err
}

// A window is a terminal in which a program was started under an agent's name.
type window struct {
	s     *byHand
	agent string
	*process.Child
	driver *driver.Driver
	read   sync.WaitGroup

	mu       sync.Mutex
	emulator *screen.Screen
	reading  driver.Reading
	version  uint64    // of the screen that was read
	since    time.Time // when the reading last changed in what counts
}

// open starts the program under a name, and returns when it is at its prompt: a person has trusted the hooks.
func (s *byHand) open(agent string, args ...string) *window {
	s.t.Helper()
	w := s.start(agent, args...)
	w.waitsFor("idle")
	return w
}

// start starts the program under a name.
func (s *byHand) start(agent string, args ...string) *window {
	s.t.Helper()
	d, ok := driver.Named(s.program)
	env := append(os.Environ(), "ATM_AGENT="+agent, "TERM=xterm-256color")
	child, err := process.Start(process.Command{
		Argv: slices.Concat(s.tmux, s.command(), args), Dir: s.dir, Env: env, Cols: 100, Rows: 30,
	})
	if err != nil || !ok {
		s.t.Fatal("starting the program: ", err)
	}
	w := &window{s: s, agent: agent, Child: child, driver: d, emulator: screen.New(100, 30, 500), since: time.Now()}
	w.read.Go(w.draw)
	s.windows = append(s.windows, w)
	return w
}

// draw draws what the program writes, and answers its queries, until it has ended.
func (w *window) draw() {
	buf := make([]byte, 32<<10)
	for {
		n, err := w.Read(buf)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.emulator.Write(buf[:n])
		replies := w.emulator.Replies()
		w.look()
		w.mu.Unlock()
		if len(replies) > 0 {
			w.Write(replies, time.Second)
		}
	}
}

// look reads the screen. The caller has the lock.
func (w *window) look() {
	if w.version == w.emulator.Version() {
		return
	}
	before := w.reading
	w.version, w.reading = w.emulator.Version(), w.driver.Read(driver.LookAt(w.emulator), before)
	if before.Activity != w.reading.Activity || (before.Draft == "") != (w.reading.Draft == "") || (before.Dialog == nil) != (w.reading.Dialog == nil) {
		w.since = time.Now()
	}
}

// now is the meaning of the screen, and for how long it has been that.
func (w *window) now() (driver.Reading, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reading, time.Since(w.since)
}

func (w *window) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.emulator.Lines()
}

// shows reports whether a text is on the screen; how it is wrapped does not matter.
func (w *window) shows(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(driver.RemoveBlanks(strings.Join(w.emulator.Tail(200), "")), driver.RemoveBlanks(text))
}

// waitsFor waits until the screen shows that the program is idle, busy or blocked. It trusts atm's hooks when Codex asks.
func (w *window) waitsFor(state string) {
	w.s.t.Helper()
	w.s.wait(w.agent+" to be "+state, func() bool {
		r, held := w.now()
		isHooks := r.Dialog != nil && held > driver.DialogSettle && strings.Contains(strings.Join(w.lines(), " "), "hooks")
		if i := slices.IndexFunc(w.options(), func(o ask.Option) bool { return strings.HasPrefix(o.Label, "Trust all") }); isHooks && i >= 0 {
			w.keys(strings.Repeat("\x1b[B", i))
			w.enter()
			w.s.wait("the question about hooks to go", func() bool { r, _ := w.now(); return r.Dialog == nil })
			return false
		}
		switch state {
		case "idle":
			return r.Activity == reducer.Idle && r.Dialog == nil && (r.Prompt || r.Draft != "") && held > driver.FirstSettle
		case "busy":
			return r.Activity.IsWork()
		case "blocked":
			return r.Dialog != nil && held > driver.DialogSettle
		}
		panic("no state " + state)
	})
}

func (w *window) options() []ask.Option {
	if r, _ := w.now(); r.Dialog != nil {
		return r.Dialog.Options
	}
	return nil
}

// waitsForText waits until a text is on the screen.
func (w *window) waitsForText(text string) {
	w.s.t.Helper()
	w.s.wait(fmt.Sprintf("%q on %s's screen", text, w.agent), func() bool { return w.shows(text) })
}

// keys presses keys.
func (w *window) keys(keys string) {
	w.s.t.Helper()
	if _, err := w.Write([]byte(keys), 10*time.Second); err != nil {
		w.s.t.Fatalf("%s's keyboard: %v", w.agent, err)
	}
}

// types types a text into the box, one key after the other, and waits until it is there. It does so again if the program
// was not listening: Gemini CLI drops what comes while its hooks run.
func (w *window) types(text string) {
	w.s.t.Helper()
	var typed time.Time
	w.s.wait("the box to hold "+text, func() bool {
		r, _ := w.now()
		if r.Draft == "" && time.Since(typed) > 5*time.Second {
			typed = time.Now()
			for _, key := range text {
				w.keys(string(key))
			}
		}
		return strings.Contains(driver.RemoveBlanks(r.Draft), driver.RemoveBlanks(text))
	})
}

func (w *window) enter() { w.keys("\r") }

// says submits a prompt. It returns when the model has it. It presses Enter again if the program was not listening, as types
// does.
func (w *window) says(text string) {
	w.s.t.Helper()
	before := len(w.s.prompts(text))
	w.types(text)
	time.Sleep(driver.SubmitDelay(len(text)))
	w.enter()
	pressed := time.Now()
	w.s.wait("the model to get "+text, func() bool {
		if r, _ := w.now(); time.Since(pressed) > 5*time.Second && strings.Contains(driver.RemoveBlanks(r.Draft), driver.RemoveBlanks(text)) {
			pressed = time.Now()
			w.enter()
		}
		return len(w.s.prompts(text)) > before
	})
}

// halfLine types a line and does not submit it. It returns what checks that the line is still there, and nowhere else.
func (w *window) halfLine() (check func()) {
	w.s.t.Helper()
	const half = "a thought half typed"
	w.types(half)
	return func() {
		w.s.t.Helper()
		w.s.wait("the half-written line to be in the box", func() bool { r, _ := w.now(); return strings.TrimSpace(r.Draft) == half })
		if n := len(w.s.prompts(half)); n > 0 {
			w.s.t.Errorf("the half-written line was submitted")
		}
	}
}

// approve allows at the keyboard what the program asks for.
func (w *window) approve() {
	w.s.t.Helper()
	w.waitsFor("blocked")
	r, _ := w.now()
	o, err := r.Dialog.Pick(ask.Answer{})
	if err != nil {
		w.s.t.Fatalf("it asks %+v", r.Dialog)
	}
	w.keys(o.Keys)
	w.s.wait("the question to go", func() bool {
		now, _ := w.now()
		return now.Dialog == nil || now.Dialog.Fingerprint != r.Dialog.Fingerprint
	})
}

// kill ends the program and what it has started in this terminal with SIGKILL, as a crash would.
func (w *window) kill() {
	syscall.Kill(-w.PID(), syscall.SIGKILL)
	<-w.Done()
	w.read.Wait()
}

// leave ends the program as a person does who closes the terminal.
func (w *window) leave() {
	w.s.t.Helper()
	if _, err := w.Stop(w.s.t.Context(), 10*time.Second); err != nil {
		w.s.t.Error(err)
	}
	w.read.Wait()
}

// clear begins a new conversation in the same window.
func (w *window) clear() {
	w.s.t.Helper()
	w.types(cmp.Or(map[string]string{"codex": "/new", "opencode": "/new"}[w.s.program], "/clear"))
	time.Sleep(driver.SubmitDelay(10))
	w.enter()
	w.s.wait("the box to be empty", func() bool { r, _ := w.now(); return r.Draft == "" })
	if w.s.program == "codex" { // which asks in which directory
		w.waitsFor("blocked")
		w.enter()
	}
	w.waitsFor("idle")
}

// resume starts the program again under a name, with the newest conversation. What Codex's server still asks is allowed.
func (s *byHand) resume(agent string) *window {
	s.t.Helper()
	newest := map[string][]string{"codex": {"resume", "--last"}, "gemini": {"--resume", "latest"}}[s.program]
	if newest == nil {
		newest = []string{"--continue"}
	}
	w := s.start(agent, newest...)
	s.wait("the prompt or a question", func() bool {
		r, held := w.now()
		return held > driver.FirstSettle && (r.Dialog != nil || r.Prompt)
	})
	if r, _ := w.now(); r.Dialog != nil {
		w.approve()
	}
	w.waitsFor("idle")
	return w
}

// Each program, started by hand, tells atm by its hooks what it does.
func TestStartedByHand(t *testing.T) {
	for _, v := range byHandVersions {
		t.Run(nameOf(v.program, v.isNewest), func(t *testing.T) {
			s := newByHand(t, v.program, v.isNewest)
			bob := s.open("bob")
			bob.says("ECHO hello")
			bob.waitsForText("[[ECHO hello]]")
			bob.waitsFor("idle")
			s.wait("atm to say idle", func() bool { return s.stateOf("bob") == "idle" })
			for _, kind := range []string{"session_start", "turn_started", "turn_completed"} {
				if !s.hasEvent("bob", kind) {
					t.Errorf("no %s by its hooks", kind)
				}
			}
		})
	}
}

// byHandVersions are what people start.
var byHandVersions = versions[:6]
