//go:build linux

package realagents

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// With atm's hooks installed a program tells of its turns itself, and takes mail
// in the middle of work: by a hook or typed, never both.
func TestHooks(t *testing.T) {
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			d := newDesk(t, newKit(t, program, false))
			d.in(t).install()
			d.in(t).trustHooks()
			t.Run("one message", func(t *testing.T) {
				s := d.in(t)
				s.idle()
				// A session of Codex or opencode begins with the first message: whether
				// there are hooks is not known before that.
				s.once(s.send("ECHO zero"), "ECHO zero")
				s.idle()
				before := len(s.turns())
				id := s.send("ECHO one")
				s.once(id, "ECHO one")
				s.idle()
				if st := s.stages(id); !st["read"] || !st["turn_done"] {
					t.Errorf("its trace has %v", st)
				}
				if n := len(s.turns()) - before; n != 1 {
					t.Errorf("one message began %d turns", n)
				}
				if !strings.Contains(s.do("events", "bob", "--json"), `"source":"hook"`) {
					t.Error("no hook has told anything")
				}
			})
			t.Run("in the middle of work", func(t *testing.T) {
				s := d.in(t)
				s.idle()
				os.Remove(filepath.Join(d.kit.dir, "work", "made.txt"))
				s.send("DOTOOL please")
				s.question()
				id := s.send("note this")
				time.Sleep(time.Second)
				s.do("approve", "bob", "--as", "lead")
				s.wait("the command to have run", s.made)
				s.wait("the message to be read", func() bool { return s.stages(id)["read"] })
				s.idle()
				// What a hook hands over is no prompt; what is typed is one.
				typed, events := len(s.prompts(id)), s.events()
				injected, handed := 0, 0
				for _, e := range events {
					if !strings.HasSuffix(e.ID, id) {
						continue
					}
					switch e.Kind {
					case "injected":
						injected++
					case "message_read":
						handed++
					}
				}
				t.Logf("handed over by hooks %d times, typed %d times", handed, typed)
				if injected+handed != 1 || typed != injected {
					t.Errorf("%d events say that a hook handed it over, %d that it was typed; the model got it as a prompt %d times", handed, injected, typed)
				}
				// The screen never says busy behind the hooks' end of the turn.
				for i, e := range events {
					if i > 0 && e.Source == "pty" && e.Kind == "state_change" && (e.New == "thinking" || e.New == "responding" || e.New == "tool_running") && events[i-1].Kind == "turn_idle" {
						t.Errorf("event %d says %s after a hook has said idle", e.Seq, e.New)
					}
				}
			})
			t.Run("stop", func(t *testing.T) {
				s := d.in(t)
				s.do("stop", "bob")
				if left := s.leftovers(); left != "" {
					t.Errorf("after atm stop:\n%s", left)
				}
			})
		})
	}
}

// trustHooks starts bob. Codex asks whether the new hooks are to be trusted:
// nobody but a person at its terminal says yes.
func (d *desk) trustHooks() {
	d.t.Helper()
	if d.program != "codex" {
		d.run()
		return
	}
	d.runTrust()
	if out, code := d.try("approve", "bob", "2", "--as", "lead"); code == 0 {
		d.t.Errorf("atm approve trusted the hooks: %s", out)
	}
	d.do("type", "bob", "--raw", `\e[B`)
	d.do("type", "bob", "--raw", `\r`)
	d.idle()
}

// event is what the tests look at of bob's events.
type event struct {
	Seq    int    `json:"seq"`
	Source string `json:"source"`
	Kind   string `json:"kind"`
	New    string `json:"new"`
	ID     string `json:"id"`
}

func (d *desk) events() (out []event) {
	d.t.Helper()
	for _, line := range strings.Split(d.do("events", "bob", "--json", "--limit", "0"), "\n") {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			d.t.Fatalf("%v in %q", err, line)
		}
		out = append(out, e)
	}
	return out
}

// turns are the ids of bob's turns.
func (d *desk) turns() (out []string) {
	d.t.Helper()
	var h struct {
		Turns []struct {
			ID string `json:"turn_id"`
		} `json:"turns"`
	}
	if err := json.Unmarshal([]byte(d.do("history", "bob", "--json")), &h); err != nil {
		d.t.Fatal(err)
	}
	for _, turn := range h.Turns {
		out = append(out, turn.ID)
	}
	return out
}

// install installs atm's hooks in the program's directory, as bob.
func (d *desk) install() {
	d.t.Helper()
	cmd := exec.Command(d.atm, "install", d.program, "--local", "--as", "bob")
	cmd.Dir = filepath.Join(d.kit.dir, "work")
	cmd.Env = []string{
		"HOME=" + filepath.Join(d.kit.dir, "home"), "PATH=" + filepath.Join(d.kit.dir, "bin") + ":" + os.Getenv("PATH"),
		"ATM_ROOT=" + filepath.Join(d.dir, ".atm"),
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("atm install %s: %v\n%s", d.program, err, out)
	}
	d.t.Logf("%s", out)
}
