//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The scripts that notify people pass on what others wrote as data, and docs/scripting.md names each.
func TestNotifyScripts(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not there")
	}
	const text = "mail for me from bob@main: -x '\"; touch pwned; $(touch pwned) `touch pwned` <!channel> &"
	event := `{"event":"mail","agent":"me","text":"` + strings.ReplaceAll(text, `"`, `\"`) + `"}`
	scripting, err := os.ReadFile(filepath.Join("..", "..", "docs", "scripting.md"))
	must(t, err)
	want := map[string]string{
		"ntfy.sh":    `"message": "mail for me from bob@main: -x '\"; touch pwned; $(touch pwned) ` + "`touch pwned`" + ` <!channel> &"`,
		"slack.sh":   `"text": "mail for me from bob@main: -x '\"; touch pwned; $(touch pwned) ` + "`touch pwned`" + ` &lt;!channel&gt; &amp;"`,
		"desktop.sh": "--app-name\natm\n--\n" + text + "\n",
	}
	scripts, _ := filepath.Glob(cookbook("notify/*.sh"))
	if len(scripts) != len(want) {
		t.Errorf("%d scripts", len(scripts))
	}
	for _, script := range scripts {
		name, dir := filepath.Base(script), t.TempDir()
		must(t, os.MkdirAll(filepath.Join(dir, ".config"), 0o700))
		for _, file := range []string{".config/atm-ntfy", ".config/atm-slack"} {
			must(t, os.WriteFile(filepath.Join(dir, file), []byte("secret\n"), 0o600))
		}
		for program, does := range map[string]string{"curl": "cat >said", "notify-send": `printf '%s\n' "$@" >said`} {
			must(t, os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+does+"\n"), 0o755))
		}
		c := exec.Command(script)
		c.Dir, c.Stdin = dir, strings.NewReader(event)
		c.Env = []string{"HOME=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")}
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		said, _ := os.ReadFile(filepath.Join(dir, "said"))
		if !strings.Contains(string(said), want[name]) {
			t.Errorf("%s said\n%s\nnot\n%s", name, said, want[name])
		}
		if _, err := os.Lstat(filepath.Join(dir, "pwned")); err == nil {
			t.Errorf("%s has run a part of the text", name)
		}
		if !strings.Contains(string(scripting), "`notify/"+name+"`") {
			t.Errorf("docs/scripting.md does not name %s", name)
		}
	}
}
