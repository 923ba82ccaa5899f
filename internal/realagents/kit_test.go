//go:build linux

package realagents

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// programs are what is run, in the kit's words.
var programs = []string{"claude", "codex", "gemini", "opencode"}

var (
	scripts string // the directory of the kit's scripts; "": the tests are skipped
	npm     string // the directory with the installed programs, which all kits share
	bin     string // the directory of the commands that are tested
)

func TestMain(m *testing.M) {
	if scripts = os.Getenv("ATM_REAL_AGENTS"); scripts == "" {
		os.Exit(m.Run())
	}
	code := 1
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	os.RemoveAll(bin)
	os.Exit(code)
}

// prepare finds the kit, and builds the commands.
func prepare() (err error) {
	if !filepath.IsAbs(scripts) {
		scripts = filepath.Join("..", "..", scripts)
	}
	if scripts, err = filepath.Abs(scripts); err != nil {
		return err
	}
	for _, f := range []string{"setup", "run", "leftovers", "fake_model.py"} {
		if _, err := os.Stat(filepath.Join(scripts, f)); err != nil {
			return fmt.Errorf("ATM_REAL_AGENTS is no kit: %w", err)
		}
	}
	cache, err := os.UserCacheDir()
	npm = cmp.Or(os.Getenv("ATM_REAL_NPM"), filepath.Join(cache, "atm-real-agents"))
	if err = errors.Join(err, os.MkdirAll(npm, 0o755)); err != nil {
		return err
	}
	if bin, err = os.MkdirTemp("", "atm-real-bin-"); err != nil {
		return err
	}
	if out, err := exec.Command("go", "build", "-o", bin+"/", "../../cmd/...").CombinedOutput(); err != nil {
		return fmt.Errorf("build atm: %w\n%s", err, out)
	}
	return nil
}

// A kit is one program, set up, with a HOME and a model of its own.
type kit struct {
	t       *testing.T
	dir     string
	program string
	acp     []string // what makes it speak the Agent Client Protocol, and that it is run so; nil: it draws a screen
	args    []string // more arguments
	run     string   // the script that starts it; "": the kit's
}

// newKit sets a program up. Flags: --untrusted, it asks at its start whether to trust its directory.
func newKit(t *testing.T, program string, flags ...string) *kit {
	t.Helper()
	if scripts == "" {
		t.Skip("needs the kit that installs the real programs: make real-agents KIT=DIR")
	}
	dir, err := os.MkdirTemp("", "atm-real-")
	k := &kit{t: t, dir: dir, program: program}
	if err = errors.Join(err, os.Symlink(npm, filepath.Join(k.dir, "npm"))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.remove)
	model := exec.Command("python3", filepath.Join("testdata", "says.py"), scripts, "--port", "0", "--log", filepath.Join(k.dir, "model.log"))
	out, err := model.StdoutPipe()
	if err = errors.Join(err, model.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		model.Process.Kill()
		model.Wait()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the fake model did not tell its port: %v", err)
	}
	setup := exec.Command(filepath.Join(scripts, "setup"), append(flags, k.dir, program)...)
	setup.Env = append(os.Environ(), "PORT="+strings.TrimSpace(port))
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("setup %s: %v\n%s", program, err, out)
	}
	if err := os.Symlink(filepath.Join(bin, "atm"), filepath.Join(k.dir, "bin", "atm")); err != nil {
		t.Fatal(err)
	}
	return k
}

// newest are the newest versions that were tried, beside those of the kit.
var newest = map[string]string{"claude": "@anthropic-ai/claude-code@2.1.332", "codex": "@openai/codex@0.171.0"}

// useNewest has the kit run the newest version of its program. It is installed once, as the kit's own is.
func (k *kit) useNewest() {
	k.t.Helper()
	dir := filepath.Join(npm, "newest", k.program)
	if done, _ := os.ReadFile(filepath.Join(dir, "version")); string(done) != newest[k.program] {
		install := exec.Command("sh", "-ec", `rm -rf "$1"; mkdir -p "$1"; cd "$1"; echo '{"private":true}' >package.json
npm install --ignore-scripts --no-package-lock --no-audit --no-fund --no-update-notifier --loglevel=error "$2" </dev/null
if [ -e node_modules/@anthropic-ai/claude-code/install.cjs ]; then (cd node_modules/@anthropic-ai/claude-code && node install.cjs); fi
printf %s "$2" >version`, "sh", dir, newest[k.program])
		if out, err := install.CombinedOutput(); err != nil {
			k.t.Fatalf("install %s: %v\n%s", newest[k.program], err, out)
		}
	}
	link := filepath.Join(k.dir, "npm")
	if err := errors.Join(os.Remove(link), os.Symlink(filepath.Join(npm, "newest"), link)); err != nil {
		k.t.Fatal(err)
	}
}

// changeRun has the kit start its program with a changed copy of the kit's script.
func (k *kit) changeRun(old, new string) {
	k.t.Helper()
	script, err := os.ReadFile(filepath.Join(scripts, "run"))
	k.run = filepath.Join(k.dir, "run")
	changed := strings.Replace(string(script), old, new, 1)
	if err = errors.Join(err, os.WriteFile(k.run, []byte(changed), 0o755)); err != nil || changed == string(script) {
		k.t.Fatal("changing the kit's run:", err)
	}
}

// command starts the program; by its name, for which atm knows what it acts on, if it speaks the Agent Client Protocol.
func (k *kit) command() []string {
	run := []string{cmp.Or(k.run, filepath.Join(scripts, "run")), k.dir, k.program}
	if k.acp != nil {
		named := filepath.Join(k.dir, k.program)
		if err := os.WriteFile(named, []byte("#!/bin/sh\nexec "+strings.Join(run, " ")+" \"$@\"\n"), 0o700); err != nil {
			k.t.Fatal(err)
		}
		run = []string{named}
	}
	return slices.Concat(run, k.acp, k.args)
}

// exact is a text as who reads it understands it: the header says what is typed in another form for this program.
func (k *kit) exact(text string) string {
	forms := map[string][]string{"claude": {`\@`, "@", `\/`, "/"}, "codex": {`$\`, "$"}, "gemini": {`\@`, "@"}}
	return strings.NewReplacer(forms[k.program]...).Replace(text)
}

// leftovers are what still runs out of the kit, a line each.
func (k *kit) leftovers(flags ...string) string {
	out, err := exec.Command(filepath.Join(scripts, "leftovers"), append(flags, k.dir)...).CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		k.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (k *kit) remove() {
	k.leftovers("--end")
	if k.t.Failed() && os.Getenv("ATM_REAL_KEEP") != "" {
		k.t.Logf("kept: %s", k.dir)
		return
	}
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

// modelLine is a line of the model's log.
type modelLine struct {
	Kind   string
	User   string
	Turn   []string
	Closed string
}

func (k *kit) log() (lines []modelLine) {
	k.t.Helper()
	data, err := os.ReadFile(filepath.Join(k.dir, "model.log"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var l modelLine
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		if err := json.Unmarshal(line, &l); err != nil {
			k.t.Fatalf("the model's log: %v in %q", err, line)
		}
		lines = append(lines, l)
	}
	return lines
}

// prompts are the submitted texts that hold a word, as the model got them.
func (k *kit) prompts(word string) (texts []string) {
	for _, l := range k.log() {
		if l.Kind == "prompt" && strings.Contains(l.User, word) {
			texts = append(texts, strings.TrimRight(l.User, " \n")) // opencode adds a blank to a paste
		}
	}
	return texts
}

// hungUp reports whether the program hung up on the answer to a text that holds a word.
func (k *kit) hungUp(word string) bool {
	for _, l := range k.log() {
		if strings.Contains(l.Closed, word) {
			return true
		}
	}
	return false
}

// made is the file that the model's command makes: touch made.txt.
func (k *kit) made() string { return filepath.Join(k.dir, "work", "made.txt") }

func (k *kit) isMade() bool {
	_, err := os.Stat(k.made())
	return err == nil
}
