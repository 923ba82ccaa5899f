//go:build linux

package realagents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// programs are what is run, in the kit's words.
var programs = []string{"claude", "codex", "gemini", "opencode"}

// scripts is the directory of the kit's scripts; without it the test is
// skipped.
func scripts(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ATM_REAL_AGENTS")
	if dir == "" {
		t.Skip("needs the kit that installs the real programs: make real-agents KIT=DIR")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", "..", dir)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"setup", "run", "leftovers", "fake_model.py"} {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			t.Fatalf("ATM_REAL_AGENTS is no kit: %v", err)
		}
	}
	return dir
}

// built is the program that is tested, built once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "atm-real-bin-")
	if err != nil {
		return "", err
	}
	exe := filepath.Join(dir, "atm")
	cmd := exec.Command("go", "build", "-o", dir, "./cmd/...")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build atm: %w\n%s", err, out)
	}
	return exe, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if os.Getenv("ATM_REAL_AGENTS") != "" {
		if exe, err := built(); err == nil {
			os.RemoveAll(filepath.Dir(exe))
		}
	}
	os.Exit(code)
}

// installed is the directory with the programs, which all kits share.
func installed() (string, error) {
	dir := os.Getenv("ATM_REAL_NPM")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(cache, "atm-real-agents")
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// kit is one program, set up, with a model of its own.
type kit struct {
	t       *testing.T
	scripts string
	dir     string
	program string
	port    string
}

// newKit sets a program up. Untrusted: it asks at its start whether to trust its
// directory.
func newKit(t *testing.T, program string, untrusted bool) *kit {
	t.Helper()
	k := &kit{t: t, scripts: scripts(t), program: program}
	npm, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	if k.dir, err = os.MkdirTemp("", "atm-real-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.remove)
	if err := os.Symlink(npm, filepath.Join(k.dir, "npm")); err != nil {
		t.Fatal(err)
	}
	k.model()
	args := []string{k.dir, program}
	if untrusted {
		args = append([]string{"--untrusted"}, args...)
	}
	cmd := exec.Command(filepath.Join(k.scripts, "setup"), args...)
	cmd.Env = append(os.Environ(), "PORT="+k.port)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("setup %s: %v\n%s", program, err, out)
	}
	return k
}

// model starts the fake model, and ends it with the test.
func (k *kit) model() {
	k.t.Helper()
	cmd := exec.Command(filepath.Join(k.scripts, "fake_model.py"), "--port", "0", "--log", filepath.Join(k.dir, "model.log"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		k.t.Fatalf("the fake model did not tell its port: %v", err)
	}
	k.port = strings.TrimSpace(line)
}

// leftovers are what still runs out of the kit, a line each.
func (k *kit) leftovers(args ...string) string {
	out, err := exec.Command(filepath.Join(k.scripts, "leftovers"), append(args, k.dir)...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		k.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (k *kit) remove() {
	if k.t.Failed() && os.Getenv("ATM_REAL_KEEP") != "" {
		k.t.Logf("kept: %s", k.dir)
		k.leftovers("--end")
		return
	}
	k.leftovers("--end")
	// What is being ended may write a last file.
	var err error
	for range 20 {
		if err = os.RemoveAll(k.dir); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	k.t.Errorf("removing the kit: %v", err)
}

// said is a line of the model's log.
type said struct {
	Kind   string   `json:"kind"`
	User   string   `json:"user"`
	Turn   []string `json:"turn"`
	Closed *string  `json:"closed"`
}

func (k *kit) log() []said {
	k.t.Helper()
	data, err := os.ReadFile(filepath.Join(k.dir, "model.log"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		k.t.Fatal(err)
	}
	var out []said
	for line := range bytes.Lines(data) {
		var s said
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		if err := json.Unmarshal(line, &s); err != nil {
			k.t.Fatalf("the model's log: %v in %q", err, line)
		}
		out = append(out, s)
	}
	return out
}

// prompts are the submitted texts that hold a word, as the model got them.
func (k *kit) prompts(word string) (out []string) {
	for _, s := range k.log() {
		if s.Kind == "prompt" && strings.Contains(s.User, word) {
			out = append(out, strings.TrimRight(s.User, " \n")) // opencode adds a blank to a paste
		}
	}
	return out
}

// closed reports whether the program hung up on the answer to a text that holds
// a word.
func (k *kit) closed(word string) bool {
	for _, s := range k.log() {
		if s.Closed != nil && strings.Contains(*s.Closed, word) {
			return true
		}
	}
	return false
}

// made reports whether the model's command was run: touch made.txt.
func (k *kit) made() bool {
	_, err := os.Stat(filepath.Join(k.dir, "work", "made.txt"))
	return err == nil
}
