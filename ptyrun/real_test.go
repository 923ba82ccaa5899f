package ptyrun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
)

func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed", p)
		}
	}
}

func (r *rig) shows(text string) func() bool {
	return func() bool { return strings.Contains(strings.Join(r.Screen(), "\n"), text) }
}

// A pager or editor in a shell is no prompt: mail waits until it exits.
func TestFullScreenPrograms(t *testing.T) {
	for name, c := range map[string]struct{ start, seen, leave string }{
		"vi":   {"vi -u NONE made-up-name", "made-up-name", "\x1b:q!\r"},
		"less": {"less -X /etc/services", "", "q"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs(t, "bash", name)
			r := newRig(t).shell().run().idle()
			r.prompt(c.start)
			r.Wait("it to run", r.Has(`state_change new="tool_running"`))
			r.Send("hello")
			time.Sleep(600 * time.Millisecond)
			if r.Has("injecting")() {
				t.Fatal("mail was typed into " + name)
			}
			if _, err := r.Client().Type(t.Context(), control.TypeRequest{Text: []byte(c.leave), Raw: true}); err != nil {
				t.Fatal(err)
			}
			r.Wait("what it is told", r.shows("would read"))
		})
	}
}

// A running command is busy, however quiet it is.
func TestQuietCommand(t *testing.T) {
	t.Parallel()
	needs(t, "mkfifo")
	r := newRig(t).shell().run().idle()
	end := filepath.Join(r.opt.Dir, "end")
	r.prompt("mkfifo " + end + "; cat " + end + "; echo awake-$((1+1))")
	r.Send("hello")
	time.Sleep(700 * time.Millisecond)
	if r.Has("injecting")() {
		t.Error("mail was typed while a command ran")
	}
	must(t, os.WriteFile(end, nil, 0o600))
	r.Wait("what it is told", r.shows("\nwould read"))
	if got := strings.Join(r.Screen(), "\n"); strings.Index(got, "awake-2") > strings.Index(got, "\nwould read") {
		t.Errorf("it was told before the end of the command:\n%s", got)
	}
}

// A command's own question (read x) is no prompt.
func TestCommandAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t).shell().run().idle()
	r.prompt("read -p 'password: ' x")
	r.Wait("the question", r.shows("password:"))
	r.Send("hello")
	time.Sleep(700 * time.Millisecond)
	if r.Has("injecting")() {
		t.Error("mail was typed into a question")
	}
}
