//go:build linux || darwin

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/runinfo"
)

// Each verb asks the runner for one thing, and prints the outcome in a line.
func TestRunnerVerbs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.serve()
	s.asks(0, "interrupt bob", "interrupt", "bob: interrupted\n")
	s.asks(0, "restart bob", "restart", "bob: restarted, process 1\n")
	s.asks(0, "restart bob --json", "restart", `{"name":"bob","state":"restarted","pid":2}`+"\n")
	s.asks(0, "stop bob", "stop", "bob: stopped; ended with it: sleep (0), sleep (1)\n")
	s.asks(0, "type bob ls -- -l", `type "ls -l" raw=false enter=false`, "bob: typed (not submitted: atm type bob --enter)\n")
	s.asks(0, "type bob ls --team main", `type "ls" raw=false enter=false`, "bob: typed (not submitted: atm type bob --enter --team main)\n")
	s.asks(0, "type bob --enter", `type "" raw=false enter=true`, "bob: typed\n")
	s.asks(0, `type bob --raw \e[A\x9b\u00e4\r\\`, `type "\x1b[A\x9bä\r\\" raw=true enter=false`, "bob: typed\n")
	for _, args := range []string{
		"type bob", "type bob \x1b[A", `type bob --raw \q`, `type bob --raw \x4`, `type bob --raw a\`, "stop",
		"screen bob --last", "screen bob 5", "screen bob --last x", "interrupt bob alice",
	} {
		s.asks(2, args, "", "")
	}
}

func TestScreen(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.screen = control.Screen{Lines: []string{"one ✳", "", "  zwei", "", ""}, ANSI: "\x1b[1mone\x1b[0m\n\n", Cols: 80, Rows: 24, CursorX: 3, CursorY: 1, Title: "t;itle", State: "idle"}
	s.serve()
	if got := s.atm(0, "screen", "bob"); got != "one ✳\n\n  zwei\n" {
		t.Errorf("%q", got)
	}
	if got := s.atm(0, "screen", "bob", "--ansi"); got != "\x1b[1mone\x1b[0m\n" {
		t.Errorf("%q", got)
	}
	s.heard()
	s.atm(0, "screen", "bob", "--last", "7")
	s.atm(0, "screen", "--last", "8", "bob")
	if got := s.heard(); got != "screen 7 false; screen 8 false" {
		t.Error(got)
	}
	got := s.atm(0, "screen", "bob", "--json")
	for _, want := range []string{`"agent":"bob"`, `"lines":["one ✳","","  zwei","",""]`, `"cursor":{"x":3,"y":1}`, `"title":"t;itle"`, `"state":"idle"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

// A runner's refusal has an exit code and a hint, and so has a missing runner.
func TestNoRunner(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, verb := range []string{"screen", "interrupt", "restart"} {
		if got := s.atm(1, verb, "bob"); got != "atm: bob is not running\natm: hint: atm run bob -- CMD\n" {
			t.Errorf("%s: %q", verb, got)
		}
	}
	s.atm(1, "type", "bob", "hi")
	if got := s.atm(0, "stop", "bob"); got != "bob: not running\n" {
		t.Errorf("%q", got)
	}
	s.atm(3, "screen", "nobody")
	if got := s.atm(2, "attach", "bob"); !strings.Contains(got, "atm screen bob") {
		t.Errorf("%q", got)
	}
	s.says("", &control.Error{Code: "refused", Message: "it asks something", Try: []control.Try{{Op: "screen"}}})
	s.serve()
	if got := s.atm(5, "interrupt", "bob"); got != "atm: bob: it asks something\natm: hint: atm screen bob\n" {
		t.Errorf("%q", got)
	}
}

// What a runner says to try becomes commands that work when typed.
func TestRunnerSaysWhatToTry(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.serve()
	screen, attach, raw := control.Try{Op: "screen"}, control.Try{Op: "attach"}, control.Try{Op: "type", Raw: true}
	for _, c := range []struct {
		hint  string
		tries []control.Try
	}{
		{"atm status bob --team main", nil},
		{"atm status bob --team main", []control.Try{{Op: "dance"}}}, // of a newer runner
		{"atm screen bob --team main", []control.Try{screen}},
		{"atm attach bob --team main", []control.Try{attach}},
		{"atm screen bob --team main shows it; atm attach bob --team main, or --raw to type anyway", []control.Try{screen, attach, raw}},
		{"atm pending --team main shows the question; atm approve bob OPTION --team main, atm attach bob --team main, or --raw to type anyway",
			[]control.Try{{Op: "answer"}, attach, raw}},
		{"atm pending --team main shows the question; atm reject bob --team main", []control.Try{{Op: "answer", Deny: true}}},
		{"atm approve bob 2 --team main", []control.Try{{Op: "answer", Option: "2"}}},
		{"atm reject bob 'no, stop' --team main", []control.Try{{Op: "answer", Option: "no, stop", Deny: true}}},
	} {
		s.says("", &control.Error{Code: "refused", Message: "no", Try: c.tries})
		if got, want := s.atm(5, "interrupt", "bob", "--team", "main"), "atm: bob: no\natm: hint: "+c.hint+"\n"; got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}

// A runner that does not answer can be stopped.
func TestSilentRunner(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	server := s.listen()
	defer server.Close()
	got := s.atm(1, "screen", "bob")
	for _, want := range []string{"does not answer", "atm stop bob"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}

// From an agent's environment only the lead does things to others.
func TestMayAct(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.serve()
	lead := func(toml string) { s.write(toml, "team.toml") }
	// r is the run in the run.json of alice, bob and lead.
	for _, name := range []string{"alice", "bob", "lead"} {
		s.write(`{"run":"r","runner":1}`, name, "run", runinfo.File)
	}
	as := func(exit int, env ...string) {
		t.Helper()
		verbs := [][]string{{"interrupt", "bob"}, {"restart", "bob"}, {"stop", "bob"}}
		if env[0] != "ATM_AGENT=bob" { // nobody types into their own terminal
			verbs = append(verbs, []string{"type", "bob", "hi"})
		}
		for _, verb := range verbs {
			s.heard()
			out := s.atm(exit, append(append(append([]string(nil), env...), verb...), "--team", "main")...)
			if did := s.heard() != ""; did != (exit == 0) {
				t.Errorf("%v %v: did it: %v\n%s", env, verb, did, out)
			}
		}
	}
	as(0, "ATM_AGENT=")                                  // the owner
	as(0, "ATM_AGENT=me")                                // a person
	as(5, "ATM_AGENT=alice")                             // a script of another member's
	as(5, "ATM_AGENT=alice", "ATM_RUN=r")                // there is no lead
	as(0, "ATM_AGENT=bob", "ATM_RUN=r", "ATM_TEAM=main") // to themselves
	as(5, "ATM_AGENT=bob", "ATM_RUN=other")              // an old or invented run
	as(5, "CLAUDECODE=1")                                // an agent without a name
	as(5, "CLAUDECODE=1", "ATM_AGENT=alice")             //
	lead(`lead = "alice"`)                               //
	as(0, "ATM_AGENT=alice", "ATM_RUN=r")                //
	as(0, "CLAUDECODE=1", "ATM_AGENT=alice")             //
	as(5, "ATM_AGENT=alice@other", "ATM_RUN=r")          // of another team
	as(5, "ATM_AGENT=alice", "ATM_TEAM=other", "ATM_RUN=r")
	lead(`lead = "bob"`)
	as(5, "ATM_AGENT=alice", "ATM_RUN=r")
	lead(`lead = [`) // nobody leads
	as(1, "ATM_AGENT=alice", "ATM_RUN=r")
	lead("")
	s.atm(0, "team", "add", "lead")
	as(0, "ATM_AGENT=lead", "ATM_RUN=r")
	s.write(`{"lead":"alice","approvers":null}`, "alice", "run", "policy.json") // the runner's policy goes before team.toml
	as(0, "ATM_AGENT=alice", "ATM_RUN=r")
	s.write(`{"lead":"lead","approvers":null}`, "bob", "run", "policy.json") // and the target's before its own
	as(5, "ATM_AGENT=alice", "ATM_RUN=r")
	// --as does not make the lead of an agent under a runner.
	if out := s.atm(5, "ATM_AGENT=alice", "ATM_RUN=r", "stop", "bob", "--as", "lead"); !strings.Contains(out, "who is lead") {
		t.Error(out)
	}
	// Everybody may look.
	s.atm(0, "ATM_AGENT=alice", "ATM_RUN=r", "screen", "bob")
}

// stop returns only once the lock is released.
func TestStopWaitsForTheLock(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.serve()
	lock := filepath.Join(s.team, ".locks", "bob.runner")
	f, err := os.OpenFile(lock, os.O_CREATE|os.O_RDWR, 0o600)
	must(t, err)
	defer f.Close()
	must(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	c := s.command("stop", "bob")
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	must(t, c.Start())
	s.hears("stop")
	syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	if err := c.Wait(); err != nil || !strings.HasPrefix(out.String(), "bob: stopped") || strings.Contains(out.String(), "has not ended") {
		t.Error(err, out.String())
	}
}
