//go:build unix

package testagent

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
)

func TestMain(m *testing.M) {
	RunIfReexecuted()
	os.Exit(m.Run())
}

// The drivers recognize these programs like the real ones.
func TestDrivers(t *testing.T) {
	for _, profile := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			a := start(t, Options{Profile: profile})
			prompt := func(r driver.Reading) bool { return r.Prompt && r.Activity == reducer.Idle }
			a.reads("the prompt", prompt)
			a.submits("THINK 5s CONFIRM [touch x]")
			a.reads("thinking", func(r driver.Reading) bool { return r.Activity == reducer.Thinking })
			d := a.reads("the dialog", func(r driver.Reading) bool { return r.Activity == reducer.Confirming && r.Dialog != nil }).Dialog
			if len(d.Options) < 2 {
				t.Errorf("options %+v", d.Options)
			}
			a.types("\r") // the selected option allows
			a.reads("the prompt again", prompt)
			a.submits("ECHO hello")
			a.reads("the answer", func(r driver.Reading) bool {
				return prompt(r) && strings.Contains(strings.Join(a.screen.Lines(), "\n"), "[[ECHO hello]]")
			})
			es, err := ReadLog(a.log)
			if err != nil || len(es.Of(Answered)) != 1 || es.Of(Answered)[0].Option != "yes" {
				t.Errorf("answers %+v, %v", es.Of(Answered), err)
			}
		})
	}
}

func TestSteps(t *testing.T) {
	got := parseSteps("[atm 9f from me] Do this\nTHINK 50ms, then CONFIRM [make x] SAY Faster, and two bugs less.\nEXIT 3")
	want := []step{{"THINK", 50 * time.Millisecond, ""}, {"CONFIRM", 0, "make x"}, {"SAY", 0, "Faster, and two bugs less."}, {"EXIT", 3 * time.Second, "3"}}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("step %d is %+v, not %+v", i, got[i], want[i])
		}
	}
}

// terminal is the program on a real PTY, with a screen that answers its queries.
type terminal struct {
	t      *testing.T
	log    string
	file   *os.File
	output chan []byte
	screen *screen.Screen
	driver *driver.Driver
	last   driver.Reading
}

func start(t *testing.T, o Options) *terminal {
	dir := t.TempDir()
	o.Log = filepath.Join(dir, "log")
	argv, env, err := Command(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), append(env, "TERM=xterm-256color")...)
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
	if err != nil {
		t.Fatal(err)
	}
	a := &terminal{t: t, log: o.Log, file: file, output: make(chan []byte), screen: screen.New(100, 30, 500)}
	a.driver, _ = driver.Named(o.Profile)
	go func() {
		defer close(a.output)
		for {
			p := make([]byte, 4096)
			n, err := file.Read(p)
			if err != nil {
				return
			}
			a.output <- p[:n]
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		for range a.output {
		}
		cmd.Wait()
		file.Close()
	})
	return a
}

func (a *terminal) types(s string) { a.file.WriteString(s) }

// submits pastes a text, and presses Return once that submits.
func (a *terminal) submits(text string) {
	a.types(pasteStart + text + pasteEnd)
	a.reads("the draft", func(driver.Reading) bool {
		es, _ := ReadLog(a.log)
		typed := es.Texts(Typed)
		return len(typed) > 0 && typed[len(typed)-1] == text
	})
	a.types("\r")
	a.reads("the submit", func(driver.Reading) bool {
		es, _ := ReadLog(a.log)
		sent := es.Texts(Submitted)
		return len(sent) > 0 && sent[len(sent)-1] == text
	})
}

// reads waits until the driver's reading meets the condition.
func (a *terminal) reads(what string, ok func(driver.Reading) bool) driver.Reading {
	a.t.Helper()
	late := time.After(time.Minute)
	for {
		a.last = a.driver.Read(driver.LookAt(a.screen), a.last)
		if ok(a.last) {
			return a.last
		}
		select {
		case p := <-a.output:
			a.screen.Write(p)
			a.file.Write(a.screen.Replies())
		case <-time.After(20 * time.Millisecond):
		case <-late:
			a.t.Fatalf("%s did not come: read %+v off\n%s", what, a.last, strings.Join(a.screen.Lines(), "\n"))
		}
	}
}
