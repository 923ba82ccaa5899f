//go:build linux

package realagents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// acpSDK is the client of the Agent Client Protocol that editors are made with.
const acpSDK = "@agentclientprotocol/sdk@2.4.0"

// The TypeScript SDK's client talks to a program as an editor does: an answer, a permission, a cancel, and the
// thread in another process.
func TestEditor(t *testing.T) {
	for _, program := range []string{"claude", "opencode"} {
		t.Run(program, func(t *testing.T) {
			s := newBob(t, program).in(t)
			s.run()
			dir := filepath.Join(npm, "acp-client")
			if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
				if out, err := exec.Command("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", dir, acpSDK).CombinedOutput(); err != nil {
					t.Fatalf("npm install: %v\n%s", err, out)
				}
			}
			script, err := os.ReadFile(filepath.Join("testdata", "acp.mjs"))
			path := filepath.Join(dir, "client.mjs") // beside the packages, where node looks for them
			if err != nil || os.WriteFile(path, script, 0o600) != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("node", path, filepath.Join(bin, "atm"), s.dir)
			cmd.Dir, cmd.Env, cmd.Stderr = s.dir, s.env(), os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("node: %v", err)
			}
			for _, want := range []string{
				`initialize [1,"bob (atm)",true]`, "\nend_turn \"", "ECHO from typescript",
				`asked "bob wants to run: touch made.txt"`, "\ncancelled ", "\nended 0\n", "\nloaded [\"ECHO from typescriptDOTOOL pleaseDOSLOW words\",",
			} {
				if !strings.Contains(string(out), want) {
					t.Errorf("%s is not in\n%s", want, out)
				}
			}
			if !s.isMade() {
				t.Error("what was allowed was not done")
			}
			if !s.hungUp("DOSLOW words") {
				t.Error("the cancelled turn went on")
			}
		})
	}
}
