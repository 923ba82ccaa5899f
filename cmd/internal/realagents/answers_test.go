//go:build linux

package realagents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What a program asks that a person has started can be answered from anywhere, and the person can still be first.
func TestAnswersFromOutside(t *testing.T) {
	for _, v := range byHandVersions {
		if v.program == "codex" {
			for name, do := range map[string]func(*byHand){"approve": (*byHand).approvedFromOutside, "reject": (*byHand).rejectedFromOutside, "rule": (*byHand).ruled, "yes": (*byHand).personSaysYes, "no": (*byHand).personSaysNo} {
				t.Run(nameOf(v.program, v.isNewest)+"/"+name, func(t *testing.T) { do(newByHand(t, v.program, v.isNewest)) })
			}
		}
		if v.program == "claude" || v.program == "opencode" {
			for name, do := range map[string]func(*byHand){"choice": (*byHand).chosenFromOutside, "no choice": (*byHand).nothingChosen} {
				t.Run(nameOf(v.program, v.isNewest)+"/"+name, func(t *testing.T) { do(newByHand(t, v.program, v.isNewest)) })
			}
		}
		if v.program != "claude" {
			continue
		}
		for name, do := range map[string]func(*byHand){
			"approve": (*byHand).approvedFromOutside, "always": (*byHand).approvedAlways, "reject": (*byHand).rejectedFromOutside, "rule": (*byHand).ruled,
			"yes": (*byHand).personSaysYes, "no": (*byHand).personSaysNo, "leaves": (*byHand).programEndsAsking, "headless": (*byHand).scriptAsks, "plan": (*byHand).plannedFromOutside,
		} {
			t.Run(nameOf(v.program, v.isNewest)+"/"+name, func(t *testing.T) { do(newByHand(t, v.program, v.isNewest)) })
		}
	}
}

// asksFrom has a program ask to run a command, and returns when it can be answered from outside.
func (s *byHand) asksFrom(agent string) *window {
	s.t.Helper()
	w := s.open(agent)
	s.asksAfter(w, "DOTOOL")
	w.waitsFor("blocked")
	return w
}

func (s *byHand) asksAfter(w *window, prompt string) {
	s.t.Helper()
	w.says(prompt)
	s.wait("the question to be served", func() bool { return strings.Contains(s.do("pending", "--json"), `"served":true`) })
}

// chosenFromOutside: what it asks its person is answered in its own form. It is blocked until then, and gets mail after it.
func (s *byHand) chosenFromOutside() {
	bob := s.open("bob")
	s.asksAfter(bob, "DOASK")
	if q := s.pending()[0]; q.Prompt != "Which database?" {
		s.t.Errorf("it asks %+v", q)
	}
	s.send("note for after the question")
	time.Sleep(3 * time.Second) // what it tells behind the question has come
	if state := s.stateOf("bob"); state != "blocked" || s.gets("note for after the question") > 0 {
		s.t.Errorf("it is %s, and has the mail %d times", state, s.gets("note for after the question"))
	}
	s.do("approve", "bob", "Postgres", "--as", "lead")
	s.wait("the model to get the answer", func() bool { return s.gets(`"Which database?"="Postgres"`) > 0 })
	s.wait("the model to get the mail", func() bool { return s.gets("note for after the question") > 0 })
	bob.waitsFor("idle")
	s.asksNothing()
}

func (s *byHand) nothingChosen() {
	bob := s.open("bob")
	s.asksAfter(bob, "DOASK")
	s.do("reject", "bob", "--reason", "take what we have", "--as", "lead")
	s.wait("the model to get the reason", func() bool { return s.gets("take what we have") > 0 })
	bob.waitsFor("idle")
	s.asksNothing()
}

// plannedFromOutside: a plan is rejected with a reason, and another one approved.
func (s *byHand) plannedFromOutside() {
	bob := s.open("bob", "--permission-mode", "plan")
	s.asksAfter(bob, "DOPLAN")
	s.do("reject", "bob", "--reason", "more tests", "--as", "lead")
	s.wait("the model to get the reason", func() bool { return s.gets("more tests") > 0 })
	bob.waitsFor("idle")
	s.asksAfter(bob, "DOPLAN please")
	s.do("approve", "bob", "--as", "lead")
	s.wait("the model to get the yes", func() bool { return s.gets("User has approved your plan") > 0 })
	bob.waitsFor("idle")
	s.asksNothing()
}

func (s *byHand) asksNothing() {
	s.t.Helper()
	s.wait("nothing to be asked", func() bool { return len(s.pending()) == 0 })
	s.wait("the question's socket to go", func() bool {
		left, _ := filepath.Glob(filepath.Join(s.dir, ".atm", "main", "*", "run", "asks", "*"))
		return len(left) == 0
	})
}

func (s *byHand) approvedFromOutside() {
	bob := s.asksFrom("bob")
	if q := s.pending()[0]; q.Tool != "Bash" || !strings.Contains(q.Prompt, "touch") {
		s.t.Errorf("it asks %+v", q)
	}
	s.do("approve", "bob", "--as", "lead")
	s.wait("the command to have run", s.isMade)
	bob.waitsFor("idle")
	s.asksNothing()
	if out, code := s.try("approve", "bob", "--as", "lead"); code != 3 {
		s.t.Errorf("a second answer: exit %d, %s", code, out)
	}
}

// What is allowed for longer is not asked again.
func (s *byHand) approvedAlways() {
	bob := s.asksFrom("bob")
	s.do("approve", "bob", "always", "--as", "lead")
	s.wait("the command to have run", s.isMade)
	bob.waitsFor("idle")
	if err := os.Remove(s.made()); err != nil {
		s.t.Fatal(err)
	}
	bob.says("DOTOOL")
	s.wait("the command to have run again", s.isMade)
	bob.waitsFor("idle")
	s.asksNothing()
	if n := strings.Count(s.do("events", "bob", "--kind", "confirm_required", "--limit", "0"), "confirm_required"); n != 1 {
		s.t.Errorf("it has asked %d times", n)
	}
}

func (s *byHand) rejectedFromOutside() {
	bob := s.asksFrom("bob")
	s.do("reject", "bob", "--reason", "use the makefile instead", "--as", "lead")
	s.wait("the model to get the reason", func() bool { return s.gets("use the makefile instead") > 0 })
	bob.waitsFor("idle")
	if s.isMade() {
		s.t.Error("the command ran")
	}
	s.asksNothing()
}

func (s *byHand) ruled() {
	toml := "[[rules]]\ntool = \"Bash(touch *)\"\ndecision = \"allow\"\n"
	if err := os.WriteFile(filepath.Join(s.dir, ".atm", "main", "team.toml"), []byte(toml), 0o600); err != nil {
		s.t.Fatal(err)
	}
	bob := s.open("bob")
	bob.says("DOTOOL")
	s.wait("the command to have run", s.isMade)
	bob.waitsFor("idle")
	s.asksNothing()
}

// Of a yes at the dialog the hook is not told.
func (s *byHand) personSaysYes() {
	bob := s.asksFrom("bob")
	bob.approve()
	s.wait("the command to have run", s.isMade)
	s.asksNothing()
	bob.waitsFor("idle")
	s.wait("atm to say idle", func() bool { return s.stateOf("bob") == "idle" })
}

func (s *byHand) personSaysNo() {
	bob := s.asksFrom("bob")
	bob.keys("\x1b")
	bob.waitsFor("idle")
	s.asksNothing()
	s.wait("atm to say idle", func() bool { return s.stateOf("bob") == "idle" })
	if s.isMade() {
		s.t.Error("the command ran")
	}
}

// A program that ends while it asks leaves no hook behind.
func (s *byHand) programEndsAsking() {
	bob := s.asksFrom("bob")
	leftBefore := hooks(s.dir)
	if len(leftBefore) == 0 {
		s.t.Fatal("no hook waits")
	}
	bob.kill()
	s.wait("its hook to end", func() bool { return len(hooks(s.dir)) == 0 })
	s.asksNothing()
}

// hooks are the processes of atm hook that run in a directory.
func hooks(dir string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		line, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		in, _ := os.Readlink(filepath.Join(p, "cwd"))
		if strings.Contains(string(line), "atm\x00hook\x00") && in == dir {
			pids = append(pids, filepath.Base(p))
		}
	}
	return pids
}

// Where nobody looks, nothing waits for an answer.
func (s *byHand) scriptAsks() {
	if _, mistakes, err := s.headless("bob", "-p", "DOTOOL"); err != nil {
		s.t.Errorf("it ended with %v, %s", err, mistakes)
	}
	if s.isMade() {
		s.t.Error("the command ran")
	}
}
