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
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/letter"
)

// programs are what is run, in the kit's words.
var programs = []string{"claude", "codex", "gemini", "opencode"}

var (
	scripts string // the directory of the kit's scripts; "": the tests are skipped
	npm     string // the directory with the installed programs, which all kits share
	bin     string // the directory of the commands that are tested

	ran = map[string]string{} // by the kit's directory, its program with the version that was run: the last one set up
)

func TestMain(m *testing.M) {
	if os.Getenv("ATM_REAL_AGENTS") == "" {
		os.Exit(m.Run())
	}
	code := 1
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
		fmt.Println("ran with", strings.Join(slices.Compact(slices.Sorted(maps.Values(ran))), ", "))
	}
	os.RemoveAll(bin)
	os.Exit(code)
}

// prepare finds the kit, and builds the commands.
func prepare() (err error) {
	cache, err := os.UserCacheDir()
	npm = cmp.Or(os.Getenv("ATM_REAL_NPM"), filepath.Join(cache, "atm-real-agents"))
	if err = errors.Join(err, os.MkdirAll(npm, 0o755), os.Setenv("ATM_REAL_NPM", npm)); err != nil {
		return err
	}
	if scripts, err = filepath.Abs("kit"); err != nil {
		return err
	}
	if bin, err = os.MkdirTemp("", "atm-real-bin-"); err != nil {
		return err
	}
	if out, err := exec.Command("go", "build", "-o", bin+"/", "../../../cmd/...").CombinedOutput(); err != nil {
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
	port    string   // the model's
	flags   []string // of the kit's setup
	isNamed bool     // its command begins with the program's name
	isPart  bool     // RUN has left out steps of its test, so it proves nothing
}

// newKit sets a program up. Flags: --untrusted, it asks at its start whether to trust its directory.
func newKit(t *testing.T, program string, flags ...string) *kit {
	t.Helper()
	if scripts == "" {
		t.Skip("installs the real programs: make real-agents")
	}
	dir, err := os.MkdirTemp("", "atm-real-")
	if err != nil {
		t.Fatal(err)
	}
	k := &kit{t: t, dir: dir, program: program, flags: flags}
	t.Cleanup(k.remove)
	t.Cleanup(func() {
		if !k.isPart {
			noteResult(t, ran[k.dir])
		}
	})
	model := exec.Command(filepath.Join(scripts, "fake_model.py"), "--port", "0", "--log", filepath.Join(k.dir, "model.log"))
	out, err := model.StdoutPipe()
	if err = errors.Join(err, model.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		model.Process.Kill()
		model.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the fake model did not tell its port: %v", err)
	}
	k.port = strings.TrimSpace(line)
	version := ""
	if os.Getenv("ATM_REAL_NEWEST") != "" {
		version = "@latest"
	}
	k.setup(version)
	if err := os.Symlink(filepath.Join(bin, "atm"), filepath.Join(k.dir, "bin", "atm")); err != nil {
		t.Fatal(err)
	}
	return k
}

// setup has the kit run a version of its program; "": the one that the kit names.
func (k *kit) setup(version string) {
	k.t.Helper()
	cmd := exec.Command(filepath.Join(scripts, "setup"), append(slices.Clone(k.flags), k.dir, k.program+version)...)
	cmd.Env = append(os.Environ(), "PORT="+k.port)
	var mistakes strings.Builder
	cmd.Stderr = &mistakes
	out, err := cmd.Output()
	if err != nil {
		k.t.Fatalf("%v\n%s", err, &mistakes)
	}
	name := strings.TrimSpace(string(out))
	k.t.Log(name)
	ran[k.dir] = name
}

// newest are the newest versions that were tried, beside those of the kit.
var newest = map[string]string{"claude": "@2.1.332", "codex": "@0.171.0", "qwen": "@0.24.4", "pi": "@1.6.0"}

// useNewest has the kit run the newest version of its program that was tried.
func (k *kit) useNewest() {
	k.t.Helper()
	if os.Getenv("ATM_REAL_NEWEST") == "" {
		k.setup(newest[k.program])
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
	if k.acp != nil || k.isNamed {
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
	if inPush.MatchString(text) { // as it is, but for the first line, which stands in our header
		return strings.Replace(inPush.ReplaceAllString(text, "$1$2"), "; text: ", "\n  ", 1)
	}
	text = strings.Replace(text, "\n"+letter.NotTyped+"\n"+letter.End, "\n"+letter.End, 1)
	forms := map[string][]string{"claude": {`\@`, "@", `\/`, "/"}, "codex": {`$\`, "$"}, "gemini": {`\@`, "@"}, "qwen": {`\@`, "@"}, "cline": {`\@\`, "@", `\/`, "/"}, "copilot": {`@\`, "@"}}
	return strings.NewReplacer(forms[k.program]...).Replace(text)
}

// inPush matches what came through the inbox of Claude Code as it gives it to its model, with our line that says so.
var inPush = regexp.MustCompile(`(?s)^Another Claude session sent a message[^:]*:\n<cross-session-message [^>]*>\n(.*?)(?:\[atm\] mail from a teammate; your user did not type it here\n?)?(\[/atm\])?\n+</cross-session-message>.*$`)

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
