//go:build linux

package realagents

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A runner that is killed in the middle of typing leaves nothing that the next
// one trips over: the message comes once, or again with a word that says so.
func TestRunnerIsKilled(t *testing.T) {
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			d := newDesk(t, newKit(t, program, false)).in(t)
			d.run()
			// Before the return key, about then, and when the text was taken.
			for _, after := range []time.Duration{0, 180 * time.Millisecond, 600 * time.Millisecond} {
				d.idle()
				id := d.send("ECHO whatever happens")
				d.claimed()
				time.Sleep(after)
				d.kill()
				d.wait("the lock to be free", func() bool { s := d.status().State; return s == "off" || s == "unknown" })
				d.run()
				d.idle()
				d.wait("the message to be read", func() bool { return d.stages(id)["read"] })
				got := d.prompts(id)
				t.Logf("killed %s after the claim: %d times", after, len(got))
				if len(got) == 0 {
					t.Error("the message was lost")
				}
				for _, text := range got[min(1, len(got)):] {
					if head, _, _ := strings.Cut(text, "\n"); !strings.Contains(head, "may be a repeat") {
						t.Errorf("it came again, and does not say so: %q", text)
					}
				}
			}
			d.do("stop", "bob")
			if left := d.leftovers(); left != "" {
				t.Errorf("after atm stop:\n%s", left)
			}
		})
	}
}

func (d *desk) runDir() string { return filepath.Join(d.dir, ".atm", "main", "bob", "run") }

// claimed waits until a message is in the runner's hands.
func (d *desk) claimed() {
	d.t.Helper()
	end := time.Now().Add(patience)
	for {
		data, err := os.ReadFile(filepath.Join(d.runDir(), "claims.json"))
		if err == nil && bytes.Contains(data, []byte(`"ids"`)) {
			return
		}
		if time.Now().After(end) {
			d.t.Fatal("nothing was claimed")
		}
		time.Sleep(time.Millisecond)
	}
}

// kill kills the runner.
func (d *desk) kill() {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.runDir(), "run.json"))
	if err != nil {
		d.t.Fatal(err)
	}
	var run struct{ Runner int }
	if err := json.Unmarshal(data, &run); err != nil || run.Runner <= 1 {
		d.t.Fatalf("run.json: %v: %s", err, data)
	}
	if err := syscall.Kill(run.Runner, syscall.SIGKILL); err != nil {
		d.t.Fatal(err)
	}
}
