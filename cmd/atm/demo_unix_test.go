//go:build linux || darwin

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// runDemo runs a demonstration and checks that it leaves nothing behind.
func runDemo(t *testing.T, name string) string {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("..", "..", "testdata", "demo", name))
	must(t, err)
	tmp := t.TempDir()
	c := exec.Command("sh", script)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + tmp, "TMPDIR=" + tmp, "GORACE=atexit_sleep_ms=0"}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), tmp) {
		t.Errorf("it shows where it is:\n%s", out)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return string(out)
}

func TestDemo(t *testing.T) {
	t.Parallel()
	out := runDemo(t, "demo.sh")
	for _, step := range []string{`$ atm send alice "Please split the parser out of main.go." --ack --as me`, "wants ack", "TestParse: want 3 nodes", "Done, all green.\n"} {
		if !strings.Contains(out, step) {
			t.Errorf("%s is not in\n%s", step, out)
		}
	}
}

// The demonstration of a team runs to its end and shows each of its steps.
func TestDemoTeam(t *testing.T) {
	t.Parallel()
	out := runDemo(t, "team.sh")
	rest := out
	for _, step := range []string{
		`\$ atm up\nalice: ready, process \d+\nbob: ready, process \d+\n`,
		`\$ atm team\nalice +idle `,
		`\$ sh pair\.sh parser "write the parser"\n(.|\n)*?approved in round 2\n`,
		`\$ sh pair\.sh parser "write the parser"\n(.|\n)*?approved in round 2\n`,
		`\$ atm pending\n[0-9a-f]{6}  alice  permission .*git push origin v1\.0`,
		`\$ atm team\nalice +blocked +.*git push origin v1\.0.*\n`,
		`\$ atm approve alice\nalice: answered \(Yes\)\n`,
		`  < Released as v1\.0\.\n`,
		`\$ atm down\n(bob: stopped\nalice: stopped|alice: stopped\nbob: stopped)\n`,
		`\$ atm team\nalice +off `,
	} {
		at := regexp.MustCompile(step).FindStringIndex(rest)
		if at == nil {
			t.Fatalf("%s is not in what follows, in its place:\n%s", step, out)
		}
		rest = rest[at[1]:]
	}
}
