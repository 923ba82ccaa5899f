//go:build linux

package realagents

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// desk is a team of lead, who asks, and bob, who is the program.
type desk struct {
	*kit
	atm string
	dir string // of the team
}

func newDesk(t *testing.T, k *kit) *desk {
	t.Helper()
	exe, err := built()
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{kit: k, atm: exe, dir: filepath.Join(k.dir, "team")}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(k.dir, "bin", "atm")); err != nil {
		t.Fatal(err)
	}
	d.do("init", "lead", "bob")
	return d
}

// in is the same desk in a subtest.
func (d *desk) in(t *testing.T) *desk {
	k := *d.kit
	k.t = t
	sub := *d
	sub.kit = &k
	t.Cleanup(func() {
		if t.Failed() {
			sub.tell()
		}
	})
	return &sub
}

// tell shows where things stand.
func (d *desk) tell() {
	screen, _ := d.try("screen", "bob")
	events, _ := d.try("events", "bob", "--limit", "40")
	status, _ := d.try("status", "bob")
	d.t.Logf("screen:\n%s\nevents:\n%s\nstatus:\n%s", screen, events, status)
	for _, s := range d.log() {
		if s.Kind != "side" {
			d.t.Logf("model: %.300q", fmt.Sprint(s.Kind, " ", s.User))
		}
	}
}

// try runs atm, and returns what it printed and its exit code.
func (d *desk) try(args ...string) (string, int) {
	d.t.Helper()
	cmd := exec.Command(d.atm, args...)
	cmd.Dir = d.dir
	// The environment of a person who works in the team's directory.
	cmd.Env = []string{"HOME=" + d.kit.dir, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=xterm-256color"}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
}

// do runs atm, which must work.
func (d *desk) do(args ...string) string {
	d.t.Helper()
	out, code := d.try(args...)
	if code != 0 {
		d.t.Fatalf("atm %s: exit %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// send sends bob a message, and returns the short form of its id.
func (d *desk) send(body string, flags ...string) string {
	d.t.Helper()
	out := d.do(append([]string{"send", "bob", body, "--as", "lead"}, flags...)...)
	f := strings.Fields(out)
	if len(f) < 2 || f[0] != "sent" {
		d.t.Fatalf("atm send printed %q", out)
	}
	return f[1]
}

// command is how the program is started.
func (d *desk) command() []string {
	return []string{filepath.Join(d.scripts, "run"), d.kit.dir, d.program}
}

// run starts bob, and returns when he waits at his prompt.
func (d *desk) run(flags ...string) {
	d.t.Helper()
	out := d.do(append(append([]string{"run", "bob", "--detach"}, flags...), append([]string{"--"}, d.command()...)...)...)
	if !strings.Contains(out, "ready") && !strings.Contains(out, slow) {
		d.t.Fatalf("atm run: %s", out)
	}
	d.idle()
}

// slow is what atm run --detach says of a program that takes longer to begin than
// it is waited for.
const slow = "no prompt is shown yet"

// runTrust starts bob, who begins by asking whether something is to be trusted.
func (d *desk) runTrust() {
	d.t.Helper()
	out, code := d.try(append([]string{"run", "bob", "--detach", "--"}, d.command()...)...)
	if (code == 0 || !strings.Contains(out, "trust")) && !strings.Contains(out, slow) {
		d.t.Errorf("atm run --detach: exit %d\n%s", code, out)
	}
	d.wait("bob to ask", func() bool { return d.status().State == "blocked" })
}

// patience is how long something may take on a slow machine.
const patience = 60 * time.Second

// wait waits for something to be so.
func (d *desk) wait(what string, so func() bool) {
	d.t.Helper()
	end := time.Now().Add(patience)
	for !so() {
		if time.Now().After(end) {
			d.t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// status is what atm status tells of bob.
type status struct {
	State  string `json:"state"`
	PID    int    `json:"pid"`
	Unread int    `json:"unread"`
}

func (d *desk) status() (s status) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.do("status", "bob", "--json")), &s); err != nil {
		d.t.Fatal(err)
	}
	return s
}

// idle waits until bob waits for mail and has read what there was.
func (d *desk) idle() {
	d.t.Helper()
	d.wait("bob to be idle", func() bool { s := d.status(); return s.State == "idle" && s.Unread == 0 })
}

// asked is an open question, as atm pending tells it.
type asked struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Tool   string `json:"tool"`
	Prompt string `json:"prompt"`
}

func (d *desk) pending() []asked {
	d.t.Helper()
	var p struct{ Pending []asked }
	if err := json.Unmarshal([]byte(d.do("pending", "--json")), &p); err != nil {
		d.t.Fatal(err)
	}
	return p.Pending
}

// question waits for what bob asks.
func (d *desk) question() asked {
	d.t.Helper()
	var q asked
	d.wait("a question", func() bool {
		p := d.pending()
		if len(p) > 0 {
			q = p[0]
		}
		return len(p) > 0 && q.ID != ""
	})
	return q
}

// stages are what atm trace knows of a message to bob.
func (d *desk) stages(id string) map[string]bool {
	d.t.Helper()
	var tr struct {
		Recipients []struct {
			Stages []struct {
				Stage string `json:"stage"`
				At    string `json:"at"`
			} `json:"stages"`
		} `json:"recipients"`
	}
	if err := json.Unmarshal([]byte(d.do("trace", id, "--json")), &tr); err != nil {
		d.t.Fatal(err)
	}
	out := map[string]bool{}
	for _, r := range tr.Recipients {
		for _, s := range r.Stages {
			out[s.Stage] = out[s.Stage] || s.At != ""
		}
	}
	return out
}
