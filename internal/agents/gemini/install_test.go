//go:build linux || darwin

package gemini

import (
	"os"
	"testing"

	"github.com/agentteammail/atm/internal/agents"
)

// Gemini CLI takes a file of the system's only from a directory that root alone may write to.
func TestBringGemini(t *testing.T) {
	if os.Geteuid() == 0 && isSystemPath("/usr/bin") != (isSystemPath("/usr") && isSystemPath("/")) {
		t.Error("/usr/bin is no directory of the system")
	}
	if dir := t.TempDir(); isSystemPath(dir) { // /tmp is for all
		info, _ := os.Stat(os.TempDir())
		if info.Mode().Perm()&0o002 != 0 {
			t.Errorf("%s is taken", dir)
		}
	}
	if b, why := bring(&agents.Run{Command: []string{"gemini"}, Dir: t.TempDir()}); why != "" {
		t.Errorf("%v %q", b, why)
	}
}
