//go:build linux

package realagents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// typescriptSDK is the client of the Model Context Protocol that many programs are made with.
const typescriptSDK = "@modelcontextprotocol/sdk@1.32.2"

// The TypeScript SDK's client uses every part of atm mcp: tools, errors, progress, cancellation, a subscription.
func TestTypeScriptClient(t *testing.T) {
	s := newBob(t, "claude")
	dir := filepath.Join(npm, "mcp-client")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		if out, err := exec.Command("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", dir, typescriptSDK).CombinedOutput(); err != nil {
			t.Fatalf("npm install: %v\n%s", err, out)
		}
	}
	script, err := os.ReadFile(filepath.Join("testdata", "mcp.mjs"))
	path := filepath.Join(dir, "client.mjs") // beside the packages, where node looks for them
	if err != nil || os.WriteFile(path, script, 0o600) != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", path, filepath.Join(bin, "atm"), s.dir)
	cmd.Env, cmd.Stderr = s.env(), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("node: %v", err)
	}
	for _, want := range []string{
		`instructions "You are bob, in team main.`,
		`tools ["ack id","pending ","read ","reply id,text","search words","send to,text","team ","thread id","wait "]`,
		`resources ["atm://inbox","atm://team"]`,
		`send {"text":"sent `,
		`send {"text":"no agent \"led\" in team \"main\"\nhint: did you mean \"lead\"?`,
		`"error":true}`,
		`team {"text":"bob `,
		`updated ["atm://inbox"]`,
		`\n  one for you`,
		`"body":"one for you"`,
		`wait {"text":"no mail within 6s\nhint: `,
		`"timeout":true`,
		`progress ["waited 5s"]`,
		`aborted "yes"`,
		`search {"text":"`,
		`unread "0"`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not in\n%s", want, out)
		}
	}
}

// Each program finds the server in the plugin, and loses it again.
func TestProgramsFindTheServer(t *testing.T) {
	for _, program := range []string{"claude", "codex", "gemini"} {
		t.Run(program, func(t *testing.T) {
			s := newBob(t, program).in(t)
			atm := filepath.Join(s.kit.dir, "bin", "atm")
			home := func(args ...string) string {
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "HOME="+filepath.Join(s.kit.dir, "home"), "ATM_AGENT=bob", "PATH="+filepath.Join(s.kit.dir, "bin")+":"+bin+":"+os.Getenv("PATH"))
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%q: %v\n%s", args, err, out)
				}
				return string(out)
			}
			list := append(s.command(), "mcp", "list")
			s.install(s.kit)
			got := home(list...)
			word := map[string]string{"codex": "enabled"}[program]
			if word == "" {
				word = "onnected"
			}
			if !strings.Contains(got, atm) || !strings.Contains(got, word) {
				t.Errorf("%s mcp list says\n%s", program, got)
			}
			home(atm, "uninstall", program)
			if got := home(list...); strings.Contains(got, atm) {
				t.Errorf("afterwards it says\n%s", got)
			}
		})
	}
}
