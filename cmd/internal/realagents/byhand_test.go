//go:build linux

package realagents

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	vendors "github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
)

// A byHandCase is something that happens to an agent that a person has started, while mail comes for it.
type byHandCase struct {
	name string
	at   string // of vendors.Moments, when the mail comes: where the program has no way then, it comes with the next turn; "": either
	only string // the program that has it; "": all
	do   func(s *byHand)
}

var byHandCases = []byHandCase{
	{"idle", vendors.AtIdle, "", (*byHand).mailWhileIdle},
	{"fresh", vendors.AtIdle, "", (*byHand).mailBeforeTheFirstPrompt},
	{"waiting", vendors.AtIdle, "", (*byHand).mailThatWaits},
	{"burst", vendors.AtIdle, "", (*byHand).twentyAtOnce},
	{"tool", vendors.AtBusy, "", (*byHand).mailDuringTool},
	{"end", vendors.AtEnd, "", (*byHand).mailAtTheEnd},
	{"dropped", vendors.AtEnd, "", (*byHand).dropAtTheEnd},
	{"question", vendors.AtBusy, "", (*byHand).mailDuringQuestion},
	{"answer", vendors.AtQuestion, "", (*byHand).questionFromOutside},
	{"draft", vendors.AtIdle, "", (*byHand).mailBesideDraft},
	{"withdrawn", "", "", (*byHand).mailWithdrawn},
	{"headless", "", "", (*byHand).mailForScript},
	{"clear", vendors.AtIdle, "", (*byHand).mailAfterClear},
	{"killed program", "", "", (*byHand).programIsKilled},
	{"server restart", "", "codex", (*byHand).serverIsKilled},
	{"two windows", "", "", (*byHand).twoWindows},
	{"killed pusher", "", "", (*byHand).pusherIsKilled},
}

// Mail for programs that people have started themselves: each message reaches the model once, whatever happens; or where
// a program cannot be told, it comes with the next turn.
func TestByHand(t *testing.T) {
	for _, v := range byHandVersions {
		for _, c := range byHandCases {
			if c.only != "" && c.only != v.program {
				continue
			}
			t.Run(nameOf(v.program, v.isNewest)+"/"+c.name, func(t *testing.T) {
				s := newByHand(t, v.program, v.isNewest)
				s.cannot = c.at != "" && !s.canGet(c.at)
				c.do(s)
			})
		}
	}
}

// canGet reports whether the program that a person has started has a way for mail at a moment (of vendors.Moments).
func (s *byHand) canGet(moment string) bool {
	_, version, _ := strings.Cut(ran[s.kit.dir], " ")
	return canGet(all.Of(s.program).Ways, version, moment)
}

// talks opens a window for an agent, who has had a first turn: by then every program has told atm who it is.
func (s *byHand) talks(agent string) *window {
	s.t.Helper()
	w := s.open(agent)
	w.says("hello from " + agent)
	w.waitsFor("idle")
	return w
}

// hasBegun says that the program has begun, and nobody has typed: Codex tells of itself with the first prompt, and gets
// nothing before.
func (s *byHand) hasBegun() { s.cannot = s.program == "codex" || !s.canGet(vendors.AtIdle) }

// gotOnce waits until the model has got a message, and checks that it came once and counts as read. Where the program
// cannot be told now, the message waits, and comes with the next prompt.
func (s *byHand) gotOnce(w *window, id, body string) {
	s.t.Helper()
	if s.cannot {
		w.waitsFor("idle")
		if s.gets(body) > 0 || s.has(id, "read") {
			s.t.Errorf("it has no way to get %q now, and got it", body)
		}
		w.says("what else is there")
		s.cannot = !s.canGet(vendors.AtIdle) // now it has told of itself
	}
	s.wait("the model to get "+body, func() bool { return s.gets(body) > 0 })
	w.waitsFor("idle")
	s.wait("the message to count as read", func() bool { return s.has(id, "read") })
	s.checkOnce(body)
}

// checkOnce checks that the model got a text once.
func (s *byHand) checkOnce(body string) {
	s.t.Helper()
	n := s.gets(body)
	if n == 1 {
		return
	}
	s.t.Errorf("the model got %q %d times", body, n)
	for _, request := range s.said() {
		if strings.Count(request, body) == n {
			for i, part := range strings.Split(request, body)[:n] {
				s.t.Logf("the %d. time behind %q", i+1, part[max(0, len(part)-500):])
			}
			return
		}
	}
}

func (s *byHand) mailWhileIdle() {
	bob := s.talks("bob")
	s.gotOnce(bob, s.send("note one"), "note one")
	if s.cannot {
		return
	}
	s.gotOnce(bob, s.send("note two\nwith a second line\nand a third\nand a fourth"), "note two")
	s.wait("bob's turn to end", func() bool { return s.stateOf("bob") == "idle" })
}

// Before its first prompt a program may not have said yet that it is there.
func (s *byHand) mailBeforeTheFirstPrompt() {
	bob := s.open("bob")
	if s.program == "claude" { // else the mail may be in what its first hook answers, which waits for the first prompt
		s.wait("its first hook", func() bool { return s.hasEvent("bob", "session_start") })
	}
	id := s.send("note zero")
	s.hasBegun()
	s.gotOnce(bob, id, "note zero")
}

// Mail that waits when a program starts comes by itself, where the program tells of its start.
func (s *byHand) mailThatWaits() {
	id := s.send("note that waits")
	bob := s.open("bob")
	s.hasBegun()
	s.gotOnce(bob, id, "note that waits")
}

// Twenty messages at once come once each, and none stays unread.
func (s *byHand) twentyAtOnce() {
	bob := s.talks("bob")
	var bodies []string
	for i := range 20 {
		bodies = append(bodies, fmt.Sprintf("note %d of twenty.", i))
		s.send(bodies[i])
	}
	if s.cannot {
		bob.says("what is there")
	}
	for i, body := range bodies {
		s.wait("the model to get "+body, func() bool {
			if s.cannot && s.gets(body) == 0 && i > 0 && s.stateOf("bob") == "idle" { // what did not go together
				bob.says("what else is there")
			}
			return s.gets(body) > 0
		})
	}
	bob.waitsFor("idle")
	s.wait("all to count as read", func() bool { return s.unread("bob") == 0 })
	for _, body := range bodies {
		s.checkOnce(body)
	}
}

func (s *byHand) mailDuringTool() {
	bob := s.talks("bob")
	bob.says("DOSLEEP")
	s.wait("the command, or the question about it", func() bool {
		r, _ := bob.now()
		return r.Dialog != nil || s.program == "claude" && s.hasEvent("bob", "tool_call_start")
	})
	if r, _ := bob.now(); r.Dialog != nil { // Claude Code asks nothing
		bob.approve()
	}
	bob.waitsFor("busy")
	s.gotOnce(bob, s.send("note in between"), "note in between")
	for _, r := range s.said() {
		if strings.Contains(r, "note in between") {
			if !strings.Contains(r, "done") {
				s.t.Error("it came without the result of the command")
			}
			return
		}
	}
}

func (s *byHand) mailAtTheEnd() {
	bob := s.talks("bob")
	bob.says("DOSLOW")
	bob.waitsFor("busy")
	s.gotOnce(bob, s.send("note at the end"), "note at the end")
	if s.hungUp("DOSLOW") {
		s.t.Error("it interrupted the answer")
	}
}

// What nobody pushes arrives at the end of the turn all the same, once.
func (s *byHand) dropAtTheEnd() {
	bob := s.talks("bob")
	bob.says("DOSLOW")
	bob.waitsFor("busy")
	const body = "a file at the end"
	if err := os.WriteFile(filepath.Join(s.dir, ".atm", "main", "bob", "inbox", "note.txt"), []byte(body), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.wait("the model to get "+body, func() bool { return s.gets(body) > 0 })
	bob.waitsFor("idle")
	s.wait("the file to count as read", func() bool { return s.unread("bob") == 0 })
	s.checkOnce(body)
}

// A question stands, whatever comes.
func (s *byHand) mailDuringQuestion() {
	bob := s.talks("bob")
	bob.says("DOTOOL")
	bob.waitsFor("blocked")
	before, _ := bob.now()
	id := s.send("note for after the question")
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if now, _ := bob.now(); now.Dialog == nil || now.Dialog.Fingerprint != before.Dialog.Fingerprint || s.isMade() {
			s.t.Fatal("the question did not stand")
		}
	}
	bob.approve()
	s.wait("the command to have run", s.isMade)
	s.cannot = false // the command's end takes the mail along
	s.gotOnce(bob, id, "note for after the question")
}

// A question can be answered from outside as at the keyboard; the first answer counts.
func (s *byHand) questionFromOutside() {
	bob := s.talks("bob")
	bob.says("DOTOOL")
	bob.waitsFor("blocked")
	if s.cannot {
		if out, code := s.try("approve", "bob", "--as", "lead"); code == 0 {
			s.t.Errorf("it was answered: %s", out)
		}
		bob.approve()
	} else {
		s.wait("the question", func() bool { return len(s.pending()) == 1 })
		s.do("approve", "bob", "--as", "lead")
	}
	s.wait("the command to have run", s.isMade)
	bob.waitsFor("idle")

	os.Remove(s.made())
	bob.says("DOTOOL please")
	bob.waitsFor("blocked")
	bob.approve()
	s.wait("the command to have run", s.isMade)
	bob.waitsFor("idle")
	s.wait("the question to be gone", func() bool { return len(s.pending()) == 0 })
}

func (s *byHand) mailBesideDraft() {
	bob := s.talks("bob")
	check := bob.halfLine()
	id := s.send("note beside a draft")
	if s.cannot {
		bob.enter()
		s.cannot, check = false, func() {}
	}
	s.gotOnce(bob, id, "note beside a draft")
	check()
}

// What is withdrawn before the model has it, it never gets.
func (s *byHand) mailWithdrawn() {
	bob := s.talks("bob")
	bob.says("DOTOOL")
	bob.waitsFor("blocked")
	id := s.send("note to forget")
	out, code := s.try("withdraw", id, "--as", "lead")
	bob.approve()
	bob.waitsFor("idle")
	last := s.send("note to keep")
	if s.cannot = !s.canGet(vendors.AtIdle); s.cannot {
		s.gotOnce(bob, last, "note to keep")
	} else {
		s.wait("the last message", func() bool { return s.gets("note to keep") > 0 })
	}
	if n := s.gets("note to forget"); code == 0 && n > 0 && !strings.Contains(out, "notice") || code != 0 && n != 1 {
		s.t.Errorf("atm withdraw: exit %d, %s; and the model got it %d times", code, out, n)
	}
}

// scripts are how a program is run with a prompt and no terminal.
var scriptArgs = map[string][]string{"claude": {"-p"}, "codex": {"exec"}, "gemini": {"-p"}, "opencode": {"run"}}

// A script's output is what the model says, whatever mail comes meanwhile, and the program ends when the model has
// answered. Mail that comes too late waits.
func (s *byHand) mailForScript() {
	s.open("bob").leave() // who has trusted the hooks
	done := make(chan struct{})
	var out, mistakes string
	var err error
	go func() {
		out, mistakes, err = s.headless("bob", append(scriptArgs[s.program], "DOSLOW")...)
		close(done)
	}()
	s.wait("the model to get the prompt", func() bool { return len(s.prompts("DOSLOW")) > 0 })
	id := s.send("note for a script")
	asked := time.Now()
	<-done
	if took := time.Since(asked); took > 17*time.Second { // the answer's time is 8 s, a hook's 10 s
		s.t.Errorf("it ended %s after it was asked", took)
	}
	if first, last := "word1 ", "word40"; err != nil || !strings.HasPrefix(out, first) || !strings.HasSuffix(strings.TrimSpace(out), last) {
		s.t.Errorf("it printed %q and %q, %v", out, mistakes, err)
	}
	if n := s.gets("note for a script"); n > 1 || n == 0 && s.has(id, "read") {
		s.t.Errorf("the model got it %d times: %s", n, s.do("trace", id))
	}
	if s.gets("note for a script") > 0 {
		return
	}
	bob := s.open("bob")
	bob.says("now then")
	s.gotOnce(bob, id, "note for a script")
}

// After a new conversation was begun in the same window mail arrives as before: where the program does not tell of it, as
// opencode, in the one before.
func (s *byHand) mailAfterClear() {
	bob := s.talks("bob")
	bob.clear()
	s.gotOnce(bob, s.send("note after clear"), "note after clear")
}

// What was sent to a program that was killed reaches the next one.
func (s *byHand) programIsKilled() {
	bob := s.talks("bob")
	if s.program == "codex" { // whose server would show the question again
		bob.says("DOSLOW")
		bob.waitsFor("busy")
	} else {
		bob.says("DOTOOL")
		bob.waitsFor("blocked")
	}
	s.send("note before the kill")
	bob.kill()
	if s.program != "codex" { // whose server goes on
		s.wait("atm to say that it is off", func() bool { return s.stateOf("bob") == "off" })
	}
	after := s.send("note after the kill")
	bob = s.resume("bob")
	s.cannot = !s.canGet(vendors.AtIdle)
	s.gotOnce(bob, after, "note after the kill")
	s.arrived(bob, "note before the kill")
}

// Codex's windows share a server. When it ends, the messages wait for the next one.
func (s *byHand) serverIsKilled() {
	bob := s.talks("bob")
	if s.endProcesses("app-server") == 0 {
		s.t.Fatal("Codex has no server:\n", s.leftovers())
	}
	s.send("note without a server")
	bob.kill()
	bob = s.resume("bob")
	s.arrived(bob, "note without a server")
	s.gotOnce(bob, s.send("note with a new server"), "note with a new server")
}

// Of two windows with one name, one gets a message.
func (s *byHand) twoWindows() {
	words := []string{"the left window", "the right window"}
	var windows []*window
	for _, word := range words {
		w := s.open("bob")
		w.says(word)
		w.waitsFor("idle")
		windows = append(windows, w)
	}
	for i := range 4 {
		s.send(fmt.Sprintf("note %d of four", i))
	}
	if !s.canGet(vendors.AtIdle) {
		for i, w := range windows {
			w.says("and now, " + words[i])
			w.waitsFor("idle")
		}
	}
	for i := range 4 {
		body := fmt.Sprintf("note %d of four", i)
		s.wait("a window to get "+body, func() bool { return s.gets(body) > 0 })
		var got []string
		for _, word := range words {
			if slices.ContainsFunc(s.said(), func(r string) bool { return strings.Contains(r, word) && strings.Contains(r, body) }) {
				got = append(got, word)
			}
		}
		if len(got) != 1 || s.gets(body) != 1 {
			s.t.Errorf("%q arrived at %q, %d times", body, got, s.gets(body))
		}
	}
}

// Whoever gives a message to a program may be killed at any moment: nothing is lost, and what comes twice says so.
func (s *byHand) pusherIsKilled() {
	bob := s.talks("bob")
	const many = 8
	body := func(i int) string { return fmt.Sprintf("note %d of many", i) }
	for i := range many {
		cmd := exec.Command(filepath.Join(bin, "atm"), "send", "bob", body(i), "--as", "lead")
		cmd.Dir, cmd.Env = s.dir, s.env()
		if err := cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(rand.N(80 * time.Millisecond)) // the moment is the point
		cmd.Process.Kill()
		cmd.Wait()
		s.endProcesses("atm hook")
	}
	bob.waitsFor("idle")
	for i := range many {
		if s.isStored(body(i)) {
			s.arrived(bob, body(i))
		} else if s.gets(body(i)) > 0 {
			s.t.Errorf("%q was not delivered, and the model got it", body(i))
		}
	}
}

// arrived waits until the model has got a message, with the next prompts if nothing has brought it before, and checks that it
// came once, or twice with a word that says so.
func (s *byHand) arrived(w *window, body string) {
	s.t.Helper()
	for i := 0; s.gets(body) == 0; i++ {
		if i > 1 && s.isGivenUp(body) {
			s.t.Logf("%q was given twice to a call that was killed: atm read shows it", body)
			return
		}
		if i > 3 {
			s.t.Fatalf("%q is lost: %s", body, s.do("ls", "--as", "bob"))
		}
		w.waitsFor("idle")
		w.says("go on " + strconv.Itoa(i))
		w.waitsFor("idle")
	}
	if n := s.gets(body); n > 2 || n == 2 && !slices.ContainsFunc(s.said(), func(r string) bool { return strings.Contains(r, "repeat") }) {
		s.t.Errorf("the model got %q %d times", body, n)
	}
}

// isGivenUp reports whether a message was handed over so often in vain that only atm read shows it, which it does.
func (s *byHand) isGivenUp(body string) bool {
	s.t.Helper()
	held, _ := filepath.Glob(filepath.Join(s.dir, ".atm", "main", "bob", "inbox", "held", "*,2,*", "*.json"))
	for _, path := range held {
		if strings.Contains(s.do("show", strings.TrimSuffix(filepath.Base(path), ".json"), "--as", "bob"), body) {
			return strings.Contains(s.do("read", "--peek", "--as", "bob"), body)
		}
	}
	return false
}

// isStored reports whether a message is in bob's inbox, read or not.
func (s *byHand) isStored(body string) (is bool) {
	filepath.WalkDir(filepath.Join(s.dir, ".atm", "main", "bob", "inbox"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Base(filepath.Dir(path)) != "tmp" {
			data, _ := os.ReadFile(path)
			is = is || strings.Contains(string(data), body)
		}
		return nil // a file may be moved
	})
	return is
}

// endProcesses kills what runs out of the kit with one of these texts in its command line.
func (s *byHand) endProcesses(texts ...string) (n int) {
	for line := range strings.Lines(s.leftovers()) {
		pid, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(command, text) }) {
			if id, err := strconv.Atoi(pid); err == nil && syscall.Kill(id, syscall.SIGKILL) == nil {
				n++
			}
		}
	}
	return n
}
