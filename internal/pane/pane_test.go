//go:build linux || darwin

package pane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/delivery/waytest"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/internal/testprogram"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/internal/tmux"
	"github.com/agentteammail/atm/wire"
)

func TestMain(m *testing.M) { testprogram.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A scene is the pretended agent below a shell in a pane of a tmux of its own.
type scene struct {
	*testing.T
	*Way
	log string
}

func begin(t *testing.T, o testagent.Options) *scene {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux")
	}
	dir := testtree.Short(t)
	s := &scene{t, &Way{}, filepath.Join(dir, "log")}
	o.Log = s.log
	argv, env, err := testagent.Command(o)
	must(t, err)
	socket := filepath.Join(dir, "s")
	c := exec.Command("tmux", "-S", socket, "-f", os.DevNull, "new-session", "-d", "-x", "100", "-y", "30", "-P", "-F", "#{pid} #{pane_id}", "bash --norc -i")
	c.Env = append(os.Environ(), append(env, "TMUX=", "PS1=$ ")...)
	out, err := c.Output()
	must(t, err)
	_, err = fmt.Sscan(string(out), &s.Pane.Server, &s.Pane.ID)
	must(t, err)
	s.Pane.Socket = socket
	t.Cleanup(func() {
		s.Pane.Call(t.Context(), "", "kill-server")
		exec.Command("tmux", "-S", socket, "kill-server").Run()
	})
	s.Driver, _ = driver.Named("claude")
	s.keys(argv[0], "Enter")
	s.wait("the program", func() bool { return len(s.entries(testagent.Ready)) > 0 })
	all, err := testagent.ReadLog(s.log)
	must(t, err)
	s.PID = all[0].PID
	s.wait("its prompt", func() bool { return s.Look(t.Context()) == nil })
	return s
}

func (s *scene) entries(event string) []string {
	all, err := testagent.ReadLog(s.log)
	must(s, err)
	return all.Texts(event)
}

// keys are pressed by a script: tmux does not count them as a person's.
func (s *scene) keys(words ...string) {
	s.tmux(append([]string{"send-keys", "-t", s.Pane.ID}, words...)...)
}

func (s *scene) tmux(words ...string) string {
	s.Helper()
	out, err := s.Pane.Call(s.Context(), "", words...)
	must(s, err)
	return out
}

func (s *scene) wait(what string, holds func() bool) {
	s.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			out, _ := s.Pane.Call(s.Context(), "", "capture-pane", "-p", "-t", s.Pane.ID)
			s.Fatalf("waited in vain for %s; the screen:\n%s", what, out)
		}
	}
}

// shut proves that nothing is pasted now, and why not.
func (s *scene) shut(why string) {
	s.Helper()
	s.wait("the way to be shut: "+why, func() bool { // at first a line may still be a draft
		err := s.Look(s.Context())
		return err != nil && strings.Contains(err.Error(), why)
	})
	err := s.Put(s.Context(), mail("one"))
	if err == nil || errors.Is(err, delivery.ErrUnsure) || !strings.Contains(err.Error(), why) {
		s.Errorf("put: %v, not %q", err, why)
	}
	if slices.ContainsFunc(s.entries(testagent.Typed), func(text string) bool { return strings.Contains(text, "[atm") }) {
		s.Error("something was pasted")
	}
}

func mail(body string) delivery.Text {
	id := wire.NewID()
	return delivery.Text{ID: id, Body: fmt.Sprintf("[atm %s from alice, now] answer: atm reply %s\n  %s\n%s\n%s\n", id.Short(6), id.Short(6), body, letter.NotTyped, letter.End)}
}

func TestPaneIsAWay(t *testing.T) {
	t.Parallel()
	waytest.Test(t, func(t *testing.T) *waytest.Program {
		s := begin(t, testagent.Options{})
		return &waytest.Program{
			Way:   s.Way,
			Acted: func() []string { return s.entries(testagent.Submitted) },
			Shut:  func() { s.keys("half a line") },
			Ask:   func() { s.keys("CONFIRM [touch made.txt]"); s.keys("Enter") },
			Asks: func() bool {
				return len(s.entries(testagent.DialogShown)) > 0 && len(s.entries(testagent.Answered)) == 0
			},
		}
	})
}

func TestTyped(t *testing.T) {
	t.Parallel()
	s := begin(t, testagent.Options{})
	one := mail("to bob@example.org: /help me,\t" + strings.Repeat("and more of it, ", 80))
	must(t, s.Put(t.Context(), one))
	s.wait("the turn", func() bool { return len(s.entries(testagent.Submitted)) > 0 })
	want, _ := Typed(s.Driver, one.Body)
	if got := s.entries(testagent.Submitted); len(got) != 1 || got[0] != want || !strings.Contains(got[0], `bob\@example.org: \/help`) {
		t.Errorf("%q\n%q", got, want)
	}
}

func TestNotNow(t *testing.T) {
	t.Parallel()
	t.Run("busy", func(t *testing.T) {
		t.Parallel()
		s := begin(t, testagent.Options{})
		s.keys("THINK 1h")
		s.keys("Enter")
		s.shut("busy")
	})
	t.Run("a draft", func(t *testing.T) {
		t.Parallel()
		s := begin(t, testagent.Options{})
		s.keys("half a line")
		s.shut("draft")
		if out := s.tmux("capture-pane", "-p", "-t", s.Pane.ID); !strings.Contains(out, "❯ half a line\n") {
			t.Error(out)
		}
	})
	t.Run("a dialog", func(t *testing.T) {
		t.Parallel()
		s := begin(t, testagent.Options{})
		s.keys("CONFIRM [touch made.txt]")
		s.keys("Enter")
		s.shut("dialog")
		if len(s.entries(testagent.DialogKey))+len(s.entries(testagent.Answered)) > 0 {
			t.Error("a key was pressed in the dialog")
		}
	})
	t.Run("copy mode", func(t *testing.T) {
		t.Parallel()
		s := begin(t, testagent.Options{})
		s.tmux("copy-mode", "-t", s.Pane.ID)
		s.shut("mode")
		s.tmux("send-keys", "-t", s.Pane.ID, "-X", "cancel")
		must(t, s.Put(t.Context(), mail("now")))
	})
	t.Run("several panes", func(t *testing.T) {
		t.Parallel()
		s := begin(t, testagent.Options{})
		s.tmux("set-option", "-w", "-t", s.Pane.ID, "synchronize-panes", "on")
		s.shut("several panes")
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		s := begin(t, testagent.Options{})
		must(t, syscall.Kill(s.PID, syscall.SIGSTOP))
		s.wait("the shell", func() bool { return strings.Contains(s.tmux("capture-pane", "-p", "-t", s.Pane.ID), "Stopped") })
		s.shut("foreground")
	})
	t.Run("ended", func(t *testing.T) {
		t.Parallel()
		s := begin(t, testagent.Options{})
		s.keys("EXIT 0")
		s.keys("Enter")
		s.shut(ErrGone.Error())
	})
	t.Run("another server", func(t *testing.T) {
		t.Parallel()
		s := begin(t, testagent.Options{})
		s.Pane.Server++
		s.shut(ErrGone.Error())
	})
}

// Where two carry mail at once, one or none is submitted, and nothing is submitted together.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	s := begin(t, testagent.Options{})
	results := make(chan error)
	for i := range 2 {
		go func() { results <- s.Put(s.Context(), mail(fmt.Sprint("of ", i))) }()
	}
	took := 0
	for range 2 {
		if err := <-results; err == nil {
			took++
		}
	}
	s.wait("what was taken", func() bool { return len(s.entries(testagent.Submitted)) >= took })
	for _, text := range s.entries(testagent.Submitted) {
		if strings.Count(text, letter.End) != 1 {
			t.Errorf("submitted: %q", text)
		}
	}
}

// typesInto has something be typed as soon as a text was pasted.
func (s *scene) typesInto(words string) {
	s.wait("the paste", func() bool { return slices.Contains(s.entries(testagent.Typed), letter.End) })
	s.keys("-l", words)
}

// What a person types behind the text stays, and the text is taken back.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	s := begin(t, testagent.Options{})
	result := make(chan error)
	go func() { result <- s.Put(t.Context(), mail("Rebase, please.")) }()
	s.typesInto("wait a bit")
	if err := <-result; err == nil || errors.Is(err, delivery.ErrUnsure) {
		t.Errorf("put: %v", err)
	}
	s.wait("the letters alone", func() bool {
		v, err := s.see(t.Context())
		return err == nil && v.Draft == "wait a bit"
	})
	if got := s.entries(testagent.Submitted); len(got) > 0 {
		t.Errorf("submitted: %q", got)
	}
}

// A person at an attached client who has just pressed a key, though it changed nothing, is waited for.
func TestPersonTypes(t *testing.T) {
	t.Parallel()
	s := begin(t, testagent.Options{})
	c, err := process.Start(process.Command{
		Argv: []string{"tmux", "-S", s.Pane.Socket, "attach"}, Env: append(os.Environ(), "TERM=xterm", "TMUX="), Cols: 100, Rows: 30,
	})
	must(t, err)
	defer c.Stop(t.Context(), 0)
	go func() {
		for buf := make([]byte, 4096); ; {
			if _, err := c.Read(buf); err != nil {
				return
			}
		}
	}()
	s.wait("the client", func() bool { return strings.Contains(s.tmux("list-clients", "-F", "#{pane_id}"), s.Pane.ID) })
	_, err = c.Write([]byte("\x15"), time.Second)
	must(t, err)
	s.wait("the key", func() bool { return slices.Contains(s.entries(testagent.Input), strconv.Quote("\x15")) })
	s.shut(errTyping.Error())
	s.wait("quiet", func() bool { return s.Look(t.Context()) == nil })
	must(t, s.Put(t.Context(), mail("now")))
}

func TestOf(t *testing.T) {
	t.Parallel()
	s := begin(t, testagent.Options{})
	env := map[string]string{"TMUX": fmt.Sprintf("%s,%d,0", s.Pane.Socket, s.Pane.Server), "TMUX_PANE": s.Pane.ID}
	getenv := func(name string) string { return env[name] }
	if p := tmux.Of(s.PID, getenv); p == nil || *p != s.Pane {
		t.Error(p)
	}
	if p := tmux.Of(os.Getpid(), getenv); p != nil {
		t.Errorf("a process elsewhere is in %v", p)
	}
	for _, id := range []string{"", "%7", "0", "%0 ; kill-server"} {
		if env["TMUX_PANE"] = id; tmux.Of(s.PID, getenv) != nil {
			t.Errorf("%q is a pane", id)
		}
	}
}

// Where tmux does not answer before Enter, as on a busy machine, what was pasted is taken back.
func TestSlowTmux(t *testing.T) {
	s := begin(t, testagent.Options{})
	real, err := exec.LookPath("tmux")
	must(t, err)
	dir := t.TempDir()
	script := fmt.Sprintf(`#!/bin/sh
case "$*" in
*capture-pane*)
	if [ -e '%[1]s/pasted' ] && mkdir '%[1]s/slow' 2> /dev/null; then exec sleep 60; fi
	'%[2]s' "$@" > '%[1]s/shown' || exit
	if grep -qF '%[3]s' '%[1]s/shown'; then : > '%[1]s/pasted'; fi
	exec cat '%[1]s/shown' ;;
esac
exec '%[2]s' "$@"
`, dir, real, letter.End)
	must(t, os.WriteFile(filepath.Join(dir, "tmux"), []byte(script), 0o700))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err := s.Put(s.Context(), mail("hello")); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, delivery.ErrUnsure) {
		t.Errorf("put: %v", err)
	}
	must(t, s.Look(s.Context()))
	if submitted := s.entries(testagent.Submitted); len(submitted) > 0 {
		t.Errorf("submitted: %q", submitted)
	}
}
